// bench/shapes.mjs imports this file too, without a compiler.
import { equal } from "node:assert/strict";
import type { Page } from "playwright-core";

/** A kind of schema that forms are often wrong about, and what a user enters. */
export interface Shape {
  readonly name: string;
  readonly schema: object;
  /** What a user does in the form. */
  readonly fill: (page: Page) => Promise<void>;
  readonly sent: unknown;
}

const field = (page: Page, label: string | RegExp) =>
  page
    .getByRole("region", { name: "Call", exact: true })
    .getByLabel(label, { exact: typeof label === "string" })
    .first();
const press = (page: Page, name: string | RegExp) =>
  page.getByRole("region", { name: "Call", exact: true }).getByRole("button", { name }).first().click();

const text = { type: "string" } as const;

export const shapes: readonly Shape[] = [
  {
    name: "anyOf at the root",
    schema: {
      type: "object",
      anyOf: [
        { title: "By id", type: "object", properties: { id: { type: "integer" } }, required: ["id"] },
        { title: "By name", type: "object", properties: { name: text }, required: ["name"] },
      ],
    },
    async fill(page) {
      await page.getByRole("region", { name: "Call", exact: true }).locator("select").first().selectOption({ label: "By name" });
      await field(page, /^name/).fill("Ada");
    },
    sent: { name: "Ada" },
  },
  {
    name: "a type that may be null, with an enum that has null",
    schema: { type: "object", properties: { level: { type: ["string", "null"], enum: ["low", "high", null] } } },
    fill: async (page) => void (await field(page, /^level/).selectOption({ label: "null" })),
    sent: { level: null },
  },
  {
    name: "anyOf of an enum and null, null by default",
    schema: { type: "object", properties: { level: { anyOf: [{ enum: ["low", "high"] }, { type: "null" }], default: null } } },
    fill: async (page) => void (await field(page, /^level/).selectOption({ label: "high" })),
    sent: { level: "high" },
  },
  {
    name: "a list of objects with lists",
    schema: {
      type: "object",
      properties: {
        people: { type: "array", items: { type: "object", properties: { name: text, tags: { type: "array", items: text } } } },
      },
    },
    async fill(page) {
      await press(page, "Add to people");
      await press(page, "Add to people");
      const names = page.locator('input[id$="_name"]');
      await names.nth(0).fill("Ada");
      await names.nth(1).fill("Bob");
      await press(page, /^Add to tags/);
      await page.locator('input[id*="_tags_0"]').first().fill("first");
      await press(page, "Move item 2 up");
    },
    sent: { people: [{ name: "Bob" }, { name: "Ada", tags: ["first"] }] },
  },
  {
    name: "a schema that refers to itself",
    schema: {
      type: "object",
      properties: { tree: { $ref: "#/$defs/node" } },
      $defs: { node: { type: "object", properties: { label: text, children: { type: "array", items: { $ref: "#/$defs/node" } } } } },
    },
    async fill(page) {
      await page.locator('input[id$="_label"]').first().fill("root");
      await press(page, "Add to children");
      await page.locator('input[id$="_label"]').nth(1).fill("leaf");
    },
    sent: { tree: { label: "root", children: [{ label: "leaf" }] } },
  },
  {
    name: "allOf with properties",
    schema: { type: "object", allOf: [{ properties: { a: text } }, { properties: { b: { type: "integer" } }, required: ["b"] }] },
    async fill(page) {
      await field(page, /^a/).fill("x");
      await field(page, /^b/).fill("3");
    },
    sent: { a: "x", b: 3 },
  },
  {
    name: "a map of additional properties",
    schema: { type: "object", properties: { labels: { type: "object", additionalProperties: text } } },
    async fill(page) {
      await press(page, /^Add an entry/);
      await page.getByLabel("Key", { exact: true }).fill("colour");
      await page.getByLabel("Key", { exact: true }).blur();
      await page.locator('input[id*="labels_colour"]:not([id$="-key"])').fill("blue");
    },
    sent: { labels: { colour: "blue" } },
  },
  {
    name: "a tuple",
    schema: {
      type: "object",
      properties: {
        point: {
          type: "array",
          prefixItems: [
            { type: "number", title: "x" },
            { type: "number", title: "y" },
          ],
        },
      },
    },
    async fill(page) {
      await page.locator('input[id*="point_0"]').fill("1.5");
      await page.locator('input[id*="point_1"]').fill("2");
    },
    sent: { point: [1.5, 2] },
  },
  {
    name: "if, then and else",
    schema: {
      type: "object",
      properties: { kind: { enum: ["mail", "post"] } },
      if: { properties: { kind: { const: "post" } }, required: ["kind"] },
      // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
      then: { properties: { street: text }, required: ["street"] },
    },
    async fill(page) {
      await field(page, /^kind/).selectOption({ label: "mail" });
      equal(await page.locator('input[id$="_street"]').count(), 0);
      await field(page, /^kind/).selectOption({ label: "post" });
      await page.locator('input[id$="_street"]').fill("Main St");
    },
    sent: { kind: "post", street: "Main St" },
  },
  {
    name: "defaults, minimum and maximum",
    schema: { type: "object", properties: { limit: { type: "integer", minimum: 1, maximum: 50, default: 20 }, city: text } },
    async fill(page) {
      await page.getByText("≥ 1, ≤ 50, default 20").waitFor();
      await field(page, /^city/).fill("Oslo");
    },
    sent: { limit: 20, city: "Oslo" },
  },
  {
    name: "optional fields that are not touched",
    schema: {
      type: "object",
      properties: {
        a: text,
        b: { type: "integer" },
        c: { type: "boolean" },
        d: { type: "object", properties: { e: text } },
        f: { type: "array", items: text },
      },
    },
    fill: async () => {},
    sent: {},
  },
  {
    name: "200 properties, with a filter",
    schema: { type: "object", properties: Object.fromEntries(Array.from({ length: 200 }, (_, index) => [`field_${index}`, text])) },
    async fill(page) {
      await page.getByLabel("Filter 200 fields").fill("field_173");
      equal(await page.locator(".call .field:visible > .field-head").count(), 1);
      await page.locator('input[id$="_field_173"]').fill("here");
    },
    sent: { field_173: "here" },
  },
];
