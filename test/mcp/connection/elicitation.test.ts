import { expect, test } from "vitest";
import { readElicitation, toElicitResult } from "../../../src/mcp/connection/server-requests.ts";

const form = (properties: object) => ({ message: "m", requestedSchema: { type: "object", properties } });

test("what a form leaves open is filled with the defaults of its schema, of every kind", () => {
  const properties = {
    name: { type: "string", default: "Ada" },
    age: { type: "integer", default: 30 },
    rate: { type: "number", default: 1.5 },
    on: { type: "boolean", default: false },
    tags: { type: "array", items: { type: "string" }, default: ["a"] },
    none: { type: "string" },
  };
  const answer = { action: "accept", content: { age: 31 } } as const;
  expect(toElicitResult(form(properties), answer)).toEqual({
    action: "accept",
    content: { name: "Ada", age: 31, rate: 1.5, on: false, tags: ["a"] },
  });
});

test("what a form cannot hold is left out, and names are but names", () => {
  const properties = JSON.parse('{"__proto__": {"type": "string", "default": "p"}, "a": {"type": "string"}}') as object;
  const content = { a: { deep: 1 }, b: null, c: [1], d: Number.NaN, e: "kept" };
  const result = toElicitResult(form(properties), { action: "accept", content });
  expect(Object.entries(result["content"] as object)).toEqual([
    ["__proto__", "p"],
    ["e", "kept"],
  ]);
});

test("an invalid answer counts as a cancel", () => {
  expect(toElicitResult(form({}), { action: "perhaps" as never })).toEqual({ action: "cancel" });
  expect(toElicitResult({ message: "m", url: "https://a.test" }, { action: "accept", content: { a: 1 } })).toEqual({ action: "accept" });
});

test.each([
  null,
  [],
  { message: 1 },
  { message: "m" },
  { message: "m", requestedSchema: { type: "object" } },
  { message: "m", mode: "video", requestedSchema: { type: "object", properties: {} } },
  { message: "m", mode: "url", url: "file:///etc/passwd" },
  { message: "m", mode: "url" },
  { message: "m".repeat(200_000), requestedSchema: { type: "object", properties: {} } },
])("an invalid request is rejected", (params) => {
  expect(readElicitation(params)).toBeTypeOf("string");
});
