import fc from "fast-check";
import { expect, test } from "vitest";
import { revisionOf, signatureOf } from "../../src/tools/create/tool-definition.ts";
import type { JsonSchema, ToolDefinition } from "../../src/tools/tool.ts";

const flag = fc.option(fc.boolean(), { nil: undefined });
const text = fc.option(fc.string({ unit: "grapheme" }), { nil: undefined });
const schema = fc.option(fc.dictionary(fc.string({ unit: "grapheme" }), fc.jsonValue({ maxDepth: 4 })), { nil: undefined });
const signed = fc.record({
  name: fc.string({ unit: "grapheme" }),
  title: text,
  description: text,
  parameters: schema,
  overridesBuiltInTool: flag,
  skipPermission: flag,
});

test("a tool's signature has 64 hexadecimal digits", () => {
  expect(signatureOf({ name: "lint" })).toMatch(/^[0-9a-f]{64}$/);
});

test("a tool's signature does not depend on the order of keys at any depth", () => {
  fc.assert(
    fc.property(signed, (fields) => {
      expect(signatureOf(definitionOf(reversed(fields) as typeof fields))).toBe(signatureOf(definitionOf(fields)));
    }),
  );
});

test("a tool's signature does not depend on the white space of its source", () => {
  fc.assert(
    fc.property(signed, (fields) => {
      const definition = definitionOf(fields);
      expect(signatureOf(JSON.parse(JSON.stringify(definition, null, 2)))).toBe(signatureOf(JSON.parse(JSON.stringify(definition))));
    }),
  );
});

test("a tool's signature treats an absent flag as false and an undefined field as absent", () => {
  fc.assert(
    fc.property(signed, (fields) => {
      const { overridesBuiltInTool = false, skipPermission = false } = fields;
      expect(signatureOf({ ...definitionOf(fields), overridesBuiltInTool, skipPermission })).toBe(signatureOf(definitionOf(fields)));
      expect(signatureOf(fields as unknown as ToolDefinition)).toBe(signatureOf(definitionOf(fields)));
    }),
  );
});

test("a tool's signature changes with each of the six fields of the contract", () => {
  fc.assert(
    fc.property(
      signed,
      signed,
      fc.constantFrom("name", "title", "description", "parameters", "overridesBuiltInTool", "skipPermission"),
      (a, b, field) => {
        const changed = { ...a, [field]: b[field as keyof typeof b] };
        const isSame = meaning(a) === meaning(changed);
        expect(signatureOf(definitionOf(a)) === signatureOf(definitionOf(changed))).toBe(isSame);
      },
    ),
    { numRuns: 500 },
  );
});

test("fields outside the contract change the revision but not the signature", () => {
  const base: ToolDefinition = { name: "lint", description: "Finds faults.", parameters: { type: "object" } };
  const others: Partial<ToolDefinition>[] = [
    { outputSchema: { type: "object" } },
    { annotations: { readOnlyHint: true } },
    { defer: "never" },
    { isTerminal: true },
    { metadata: { a: 1 } },
    { timeout: 5 },
  ];
  const revisions = new Set([revisionOf(base, 1), revisionOf(base, 2), revisionOf(base, "2x")]);
  for (const other of others) {
    expect(signatureOf({ ...base, ...other })).toBe(signatureOf(base));
    revisions.add(revisionOf({ ...base, ...other }, 1));
  }
  expect(revisions.size).toBe(3 + others.length);
  expect(revisionOf({ ...base }, 1)).toBe(revisionOf(base, 1));
});

test.each<[string, JsonSchema, JsonSchema, boolean]>([
  ["minus zero and zero", { a: -0 }, { a: 0 }, true],
  ["the order of a list", { required: ["a", "b"] }, { required: ["b", "a"] }, false],
  ["composed and decomposed letters", { a: "\u00e9" }, { a: "e\u0301" }, false],
  ["a number and its text", { a: 1 }, { a: "1" }, false],
  ["keys that look like numbers", { 10: 1, 9: 2, a: 3 }, { a: 3, 9: 2, 10: 1 }, true],
  ["null and nothing", { a: null }, {}, false],
  ["nesting and a flat key", { a: { b: 1 } }, { "a.b": 1 }, false],
])("a tool's signature compares %s as JSON does", (_, a, b, isSame) => {
  expect(signatureOf({ name: "x", parameters: a }) === signatureOf({ name: "x", parameters: b })).toBe(isSame);
});

type Signed = typeof signed extends fc.Arbitrary<infer T> ? T : never;

function definitionOf(fields: Signed): ToolDefinition {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as unknown as ToolDefinition;
}

/** What equal contracts must have in common, computed in another way than in the code. */
function meaning(fields: Signed): string {
  const { name, title, description, parameters } = fields;
  const flags = [fields.overridesBuiltInTool === true, fields.skipPermission === true];
  return JSON.stringify(sorted([name, title ?? [], description ?? [], parameters ?? [], flags]));
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).map(([key, member]) => [key, sorted(member)] as const);
  return { pairs: entries.sort(([a], [b]) => (a < b ? -1 : 1)) };
}

function reversed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reversed);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).map(([key, member]) => [key, reversed(member)] as const);
  return Object.fromEntries(entries.reverse());
}
