import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { compileSchema } from "../../src/tools/schema/json-schema-validator.ts";
import { schemaAsTypeScript, toolAsTypeScript } from "../../src/tools/schema/schema-as-typescript.ts";
import { patience } from "../slowness.ts";

const weather = {
  type: "object",
  properties: {
    city: { type: "string", description: "The city's name." },
    units: { enum: ["celsius", "fahrenheit"], default: "celsius" },
    days: { type: "integer", minimum: 1, maximum: 14 },
  },
  required: ["city"],
  additionalProperties: false,
};

test("writes properties with their descriptions and what a type cannot say", () => {
  expect(schemaAsTypeScript(weather)).toEqual({
    type: `{
  /** The city's name. */
  city: string;
  /** @default "celsius" */
  units?: "celsius" | "fahrenheit";
  /**
   * @minimum 1
   * @maximum 14
   */
  days?: number;
}`,
    declarations: [],
  });
});

test.each<[string, unknown, string]>([
  ["no schema", undefined, "unknown"],
  ["true", true, "unknown"],
  ["false", false, "never"],
  ["several types", { type: ["string", "null"] }, "string | null"],
  ["values of different types", { enum: ["a", 1, null, true] }, '"a" | 1 | null | true'],
  ["one value", { const: { kind: "x" } }, '{"kind":"x"}'],
  ["an array of alternatives", { type: "array", items: { type: ["string", "number"] } }, "(string | number)[]"],
  ["an array of anything", { type: "array" }, "unknown[]"],
  ["a tuple", { prefixItems: [{ type: "string" }, { type: "number" }], minItems: 1, items: false }, "[string, number?]"],
  [
    "a tuple of draft 7",
    { type: "array", items: [{ type: "string" }], minItems: 1, additionalItems: { type: "number" } },
    "[string, ...number[]]",
  ],
  ["a map", { type: "object", additionalProperties: { type: "number" } }, "{ [name: string]: number }"],
  ["no properties at all", { type: "object", additionalProperties: false }, "{ [name: string]: never }"],
  [
    "names that need quotes",
    { properties: { "content-type": { type: "string" } }, required: ["x y"] },
    '{ "content-type"?: string; "x y": unknown }',
  ],
  [
    "alternatives beside properties",
    { type: "object", properties: { a: {} }, oneOf: [{ required: ["a"] }, { type: "null" }] },
    "{ a?: unknown } & ({ a: unknown } | null)",
  ],
  [
    "all of several",
    { allOf: [{ properties: { a: { type: "string" } } }, { properties: { b: { type: "number" } } }] },
    "{ a?: string } & { b?: number }",
  ],
  ["a nullable type", { type: "string", nullable: true }, "string | null"],
  ["a reference to nothing", { $ref: "#/$defs/missing" }, "unknown"],
  ["a reference to another document", { $ref: "https://example.com/schema.json" }, "unknown"],
])("writes %s", (_what, schema, type) => {
  expect(schemaAsTypeScript(schema)).toEqual({ type, declarations: [] });
});

test("names the types that references name, also where they refer to themselves", () => {
  const schema = {
    type: "object",
    properties: { tree: { $ref: "#/$defs/tree-node" }, again: { $ref: "#" }, other: { $ref: "#/definitions/tree-node" } },
    $defs: { "tree-node": { type: "object", properties: { children: { type: "array", items: { $ref: "#/$defs/tree-node" } } } } },
    definitions: { "tree-node": { type: "string" } },
  };
  const { type, declarations } = schemaAsTypeScript(schema);
  expect(type).toBe("{ tree?: TreeNode; again?: Root; other?: TreeNode2 }");
  expect(declarations).toEqual([
    "type TreeNode = { children?: TreeNode[] };",
    "type Root = { tree?: TreeNode; again?: Root; other?: TreeNode2 };",
    "type TreeNode2 = string;",
  ]);
});

test("references by anchor and by address lead to the parts that the validator takes", () => {
  const schema = {
    type: "object",
    properties: { byAnchor: { $ref: "#leaf" }, byAddress: { $ref: "other.json#/properties/size" }, nowhere: { $ref: "#missing" } },
    $defs: {
      a: { $anchor: "leaf", type: "string" },
      b: { $id: "https://example.com/other.json", properties: { size: { type: "number" } } },
    },
    $id: "https://example.com/root.json",
  };
  expect(schemaAsTypeScript(schema)).toEqual({
    type: "{ byAnchor?: Leaf; byAddress?: Size; nowhere?: unknown }",
    declarations: ["type Leaf = string;", "type Size = number;"],
  });
});

test("definitions of arguments and of results with one name are two types", () => {
  const schema = (type: string) => ({ type: "object", properties: { unit: { $ref: "#/$defs/unit" } }, $defs: { unit: { type } } });
  const tool = { name: "convert", description: "Converts.", parameters: schema("string"), outputSchema: schema("number") };
  expect(toolAsTypeScript(tool)).toBe(
    "type Unit = string;\ntype Unit2 = number;\n/** Converts. */\nconvert(args: { unit?: Unit }): { unit?: Unit2 };",
  );
});

test("a text cannot end a comment", () => {
  const { type } = schemaAsTypeScript({ properties: { a: { description: "x */ process.exit() /*", pattern: "*/" } } });
  expect(type.match(/\*\//g)).toHaveLength(1);
});

test("a schema that shares and nests without end is cut, in a time that its size allows", () => {
  const shared: Record<string, unknown> = { type: "object", properties: {} };
  let outer = shared;
  for (let level = 0; level < 60; level++) outer = { type: "object", properties: { a: outer, b: outer, c: outer } };
  expect(schemaAsTypeScript(outer).type.length).toBeLessThan(1_000_000);
  const self: Record<string, unknown> = { type: "array" };
  self["items"] = self;
  expect(schemaAsTypeScript(self).type).toMatch(/^unknown(\[\])+$/);
  const deepUnion: { anyOf?: unknown[] } = {};
  deepUnion.anyOf = [deepUnion, deepUnion];
  expect(schemaAsTypeScript(deepUnion).type).toBe("unknown");
});

const cases: readonly { readonly schema: Record<string, unknown>; readonly values: readonly unknown[] }[] = [
  { schema: weather, values: [{ city: "Oslo" }, { city: "Oslo", units: "celsius", days: 3 }] },
  {
    schema: { type: "object", properties: { a: { type: "string" } }, additionalProperties: { type: "number" } },
    values: [{ a: "x", b: 1 }],
  },
  {
    schema: { type: "object", patternProperties: { "^x-": { type: "string" } }, properties: { n: { type: "number" } } },
    values: [{ "x-a": "b", n: 1 }],
  },
  { schema: { type: "array", prefixItems: [{ type: "string" }], items: { type: "boolean" } }, values: [[], ["a"], ["a", true]] },
  {
    schema: { anyOf: [{ type: "string" }, { type: "object", properties: { id: { type: ["integer", "null"] } }, required: ["id"] }] },
    values: ["a", { id: null }],
  },
  {
    schema: {
      $ref: "#/$defs/list",
      $defs: { list: { type: ["object", "null"], properties: { next: { $ref: "#/$defs/list" }, "*/": { const: [1, "a"] } } } },
    },
    values: [null, { next: { next: null } }, { "*/": [1, "a"] }],
  },
  {
    schema: { type: "object", properties: { "a\u2028b": { enum: ["\u2029", "`${x}`"] }, prototype: { type: "string" } } },
    values: [{ "a\u2028b": "\u2029" }],
  },
];

test("TypeScript accepts every form, and every value that the schema accepts", { timeout: patience(60_000) }, async () => {
  for (const { schema, values } of cases) {
    for (const value of values) expect(await compileSchema(schema)(value)).not.toHaveProperty("issues");
  }
  const lines = cases.flatMap(({ schema, values }, index) => {
    const { type, declarations } = schemaAsTypeScript(schema);
    const assigned = values.map((value) => `values.push(${JSON.stringify(value)});`);
    return [`export namespace N${index} {`, ...declarations, `const values: (${type})[] = [];`, ...assigned, "}"];
  });
  const folder = mkdtempSync(join(tmpdir(), "forms-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = join(folder, "forms.ts");
  writeFileSync(file, lines.join("\n"));
  const compiler = join(import.meta.dirname, "../../node_modules/typescript/bin/tsc");
  const { stdout, status } = spawnSync(process.execPath, [compiler, "--noEmit", "--strict", "--ignoreConfig", file], { encoding: "utf8" });
  expect({ stdout, status }).toEqual({ stdout: "", status: 0 });
});
