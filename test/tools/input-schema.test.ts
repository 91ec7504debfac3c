import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Diagnostic } from "../../src/base/diagnostic.ts";
import { checkSchema } from "../../src/tools/schema/check-schema.ts";
import { compileSchema } from "../../src/tools/schema/json-schema-validator.ts";
import type { JsonSchema, Validated } from "../../src/tools/tool.ts";
import { haveOneHiddenClass } from "../hidden-class.ts";

const object = (properties: Record<string, unknown>, more: Record<string, unknown> = {}): JsonSchema => ({
  type: "object",
  properties,
  ...more,
});

/** The issues of arguments as "path: message"; empty for valid arguments. */
function issues(schema: JsonSchema, args: unknown, options = {}): readonly string[] {
  const validated = validateNow(schema, args, options);
  return validated.ok ? [] : validated.issues.map(({ path, message }) => `${path}: ${message}`);
}

/** Small arguments are checked synchronously. */
function validateNow(schema: JsonSchema, args: unknown, options = {}): Validated {
  const validated = compileSchema(schema, options)(args);
  if (validated instanceof Promise) throw new Error("It was checked in slices.");
  return validated;
}

const units = { enum: ["celsius", "fahrenheit"] };
const range = object({ start: { type: "integer" }, end: { type: "integer" } }, { required: ["start"] });
const union = {
  anyOf: [{ type: "string" }, { type: "object", required: ["name"], properties: { name: { type: "string" } } }],
};

test.each<[string, JsonSchema, unknown, readonly string[]]>([
  ["a missing argument", object({}, { required: ["city"] }), {}, ["city: is required"]],
  ["absent arguments", object({}, { required: ["city"] }), undefined, ["city: is required"]],
  ["a value outside an enum", object({ units }), { units: "kelvin" }, ['units: must be one of "celsius", "fahrenheit"']],
  ["a wrong constant", object({ v: { const: 2 } }), { v: 1 }, ["v: must be 2"]],
  ["a wrong type, without coercion", object({ n: { type: "number" } }), { n: "5" }, ["n: must be a number, not a string"]],
  ["one of two types", object({ n: { type: ["string", "null"] } }), { n: 5 }, ["n: must be a string or null, not a number"]],
  ["a fraction for a whole number", object({ n: { type: "integer" } }), { n: 1.5 }, ["n: must be an integer"]],
  ["a number that JSON has not", object({ n: { type: "number" } }), { n: Number.NaN }, ["n: must be a number, not NaN"]],
  ["a nested argument", object({ range }), { range: {} }, ["range.start: is required"]],
  ["an item", object({ tags: { items: { type: "string" } } }), { tags: ["a", "b", 3] }, ["tags[2]: must be a string, not a number"]],
  ["a name that needs quotes", object({ "two words": range }), { "two words": {} }, ['["two words"].start: is required']],
  ["an array in the place of the arguments", object({}), [], [": must be an object, not an array"]],
  ["an unknown argument", object({ city: {} }, { additionalProperties: false }), { town: 1 }, ["town: is not known (known: city)"]],
  [
    "numbers out of bounds",
    object({ a: { minimum: 1 }, b: { maximum: 9 } }),
    { a: 0, b: 10 },
    ["a: must be at least 1", "b: must be at most 9"],
  ],
  ["exclusive bounds", object({ a: { exclusiveMinimum: 1 } }), { a: 1 }, ["a: must be greater than 1"]],
  [
    "texts of a wrong length",
    object({ a: { minLength: 1 }, b: { maxLength: 2 } }),
    { a: "", b: "abc" },
    ["a: must have at least 1 character", "b: must have at most 2 characters"],
  ],
  ["lists of a wrong length", object({ a: { minItems: 2 } }), { a: [1] }, ["a: must have at least 2 items"]],
  [
    "a doubled item",
    object({ a: { uniqueItems: true } }),
    { a: [1, 2, 1] },
    ["a: must not contain duplicate items (items 0 and 2 are the same)"],
  ],
  ["a pattern", object({ id: { pattern: "^[a-z]+$" } }), { id: "A1" }, ['id: must match the pattern "^[a-z]+$"']],
  ["a format", object({ day: { format: "date" } }), { day: "2026-13-40" }, ['day: must have the format "date"']],
  [
    "a union of plain types",
    object({ a: { anyOf: [{ type: "string" }, { type: "array" }] } }),
    { a: 1 },
    ["a: must be a string or an array"],
  ],
  [
    "a union of forms",
    object({ who: union }),
    { who: {} },
    ["who: matches none of the allowed forms: who must be a string, not an object; or who.name is required"],
  ],
  [
    "a union through references, beside another fault",
    object(
      { who: { oneOf: [{ $ref: "#/$defs/a" }, { $ref: "#/$defs/b" }] } },
      { required: ["id"], $defs: { a: { type: "string" }, b: { type: "array" } } },
    ),
    { who: 1 },
    ["id: is required", "who: must be a string or an array"],
  ],
  [
    "a fault beside a union's, in one value",
    object(
      { who: { allOf: [{ required: ["id"] }, { anyOf: [{ required: ["a"] }, { $ref: "#b" }] }] } },
      { $defs: { b: { $anchor: "b", required: ["b"] } } },
    ),
    { who: {} },
    ["who.id: is required", "who: matches none of the allowed forms: who.a is required; or who.b is required"],
  ],
  [
    "more than one of exactly one form",
    object({ a: { oneOf: [{ type: "number" }, { minimum: 1 }] } }),
    { a: 2 },
    ["a: matches more than one of the forms of which exactly one must match"],
  ],
  ["a dependency", object({}, { dependentRequired: { a: ["b"] } }), { a: 1 }, [': must also have "b", because "a" is present']],
  ["a condition", object({}, JSON.parse('{ "if": { "required": ["a"] }, "then": { "required": ["b"] } }')), { a: 1 }, ["b: is required"]],
  ["an argument that is never allowed", object({ a: false as never }), { a: 1 }, ["a: is not allowed"]],
  [
    "a name that all objects have",
    object({ constructor: { type: "string" } }, { required: ["constructor"] }),
    {},
    ["constructor: is required"],
  ],
  [
    "an older draft's list of items",
    { ...object({ a: { items: [{ type: "string" }], additionalItems: false } }), $schema: "http://json-schema.org/draft-07/schema#" },
    { a: ["x", 1] },
    ["a: must have at most 1 item"],
  ],
  [
    "an older draft's list of items that says no draft",
    object({ a: { items: [{ type: "string" }] } }),
    { a: [1] },
    ["a[0]: must be a string, not a number"],
  ],
  ["an older draft's exclusive bound", object({ a: { minimum: 1, exclusiveMinimum: true } }), { a: 1 }, ["a: must be greater than 1"]],
  [
    "prefixItems of the current draft",
    object({ a: { prefixItems: [{ type: "string" }], items: false } }),
    { a: ["x", 1] },
    ["a: must have at most 1 item"],
  ],
])("an input schema refuses %s and names the argument and the rule", (_, schema, args, expected) => {
  expect(issues(schema, args)).toEqual(expected);
});

test.each<[string, JsonSchema, unknown]>([
  ["null where OpenAPI says nullable", object({ a: { type: "string", nullable: true } }), { a: null }],
  ["nullable without a type", object({ a: { anyOf: [{ type: "string" }], nullable: true } }), { a: "x" }],
  ["a type that no draft knows", object({ a: { type: "any" } }), { a: 1 }],
  ["draft 3's required and draft 4's id", object({ a: { type: "string", required: true, id: "a" } }), { a: "x" }],
  ["unknown keywords and formats", object({ a: { format: "color", "x-order": 1 } }), { a: "red" }],
  ["decimal multiples", object({ price: { multipleOf: 0.01 } }), { price: 19.99 }],
  ["a pattern that is only valid without the Unicode flag", object({ a: { pattern: "^[\\_\\w]+$" } }), { a: "a_b" }],
  [
    "a schema as an argument",
    object({ schema: { $ref: "http://json-schema.org/draft-07/schema#" } }, { $schema: "http://json-schema.org/draft-07/schema#" }),
    { schema: { type: "string" } },
  ],
  ["a schema that calls itself asynchronous", { $async: true, ...object({}) }, {}],
  ["a value without a prototype", object({ a: { type: "string" } }, { required: ["a"] }), Object.assign(Object.create(null), { a: "x" })],
])("an input schema accepts %s", (_, schema, args) => {
  expect(issues(schema, args)).toEqual([]);
});

test("an asynchronous schema is checked, too", () => {
  expect(issues({ $async: true, ...object({}, { required: ["a"] }) }, {})).toEqual(["a: is required"]);
});

describe("defaults of an input schema", () => {
  test("defaults are applied to a copy at every depth", () => {
    const schema = object({
      units: { default: "celsius" },
      range: object({ end: { default: 9 } }),
      list: { items: object({ n: { default: 1 } }) },
    });
    const args = Object.freeze({ range: Object.freeze({ start: 1 }), list: Object.freeze([Object.freeze({})]) });
    const validated = validateNow(schema, args);
    expect(validated).toEqual({ ok: true, value: { units: "celsius", range: { start: 1, end: 9 }, list: [{ n: 1 }] } });
    expect(args).toEqual({ range: { start: 1 }, list: [{}] });
  });

  test("defaults are applied behind references without changing the given arguments", () => {
    const schema: JsonSchema = { ...object({ a: { $ref: "#/x-shared/a" } }), "x-shared": { a: object({ n: { default: 1 } }) } };
    const args = { a: {} };
    expect(compileSchema(schema)(args)).toEqual({ ok: true, value: { a: { n: 1 } } });
    expect(args).toEqual({ a: {} });
  });

  test("defaults are new objects for each call", () => {
    const schema = object({ list: { default: [] } });
    const first = validateNow(schema, {});
    const second = validateNow(schema, {});
    expect(first.ok && second.ok && (first.value as { list: unknown }).list !== (second.value as { list: unknown }).list).toBe(true);
  });

  test.each([
    ["at the top", { limit: { type: "integer", default: 20 } }, {}],
    ["of each kind", { text: { default: "a" }, list: { default: [] }, flag: { default: true } }, {}],
    ["below the top", { range: object({ end: { default: 9 } }) }, { range: { start: 1 } }],
  ])("%s give arguments of one shape one hidden class", (_, properties, args) => {
    const validate = compileSchema(object({ query: { type: "string" }, ...properties }));
    const valueFor = (query: string): { readonly range?: object } => {
      const validated = validate(JSON.parse(JSON.stringify({ query, ...args }))) as Extract<Validated, { ok: true }>;
      return validated.value as object;
    };
    // V8 copies objects in its fast way only after a function has run several times.
    for (let n = 0; n < 1_000; n++) valueFor(`${n}`);
    const [one, other] = [valueFor("one"), valueFor("other")];
    expect(haveOneHiddenClass(one, other)).toBe(true);
    if (one.range !== undefined) expect(haveOneHiddenClass(one.range, other.range as object)).toBe(true);
  });

  test("a schema without defaults needs no copy of the arguments", () => {
    const args = { default: 1 };
    const validated = validateNow(object({ default: { type: "number" } }), args);
    expect(validated.ok && validated.value).toBe(args);
  });
});

describe("hostile arguments", () => {
  const tree: JsonSchema = { ...object({ child: { $ref: "#" }, n: { default: 1 } }) };
  const cyclic: Record<string, unknown> = {};
  cyclic["child"] = cyclic;
  let deep: Record<string, unknown> = {};
  for (let i = 0; i < 100_000; i++) deep = { child: deep };

  test.each([
    ["that contain themselves", cyclic],
    ["of endless depth", deep],
  ])("%s are refused without being followed", (_, args) => {
    expect(issues(tree, args)).toEqual([": is nested too deeply, or contains itself"]);
    expect(issues({ ...object({ child: { $ref: "#" } }) }, args)).toEqual([": is nested too deeply, or contains itself"]);
  });

  test("arguments with a getter that throws are refused", () => {
    const args = {
      get city(): string {
        throw new Error("secret");
      },
    };
    expect(issues(object({ city: { type: "string" } }), args)).toEqual([": cannot be read"]);
  });

  test("arguments with a million issues report only a few", () => {
    const args = { list: new Array(1_000_000).fill(1) };
    expect(issues(object({ list: { items: { type: "string" } } }), args)).toEqual(["list[0]: must be a string, not a number"]);
  });

  test("arguments with many issues report eight", () => {
    const names = Array.from({ length: 30 }, (_, i) => `arg${i}`);
    expect(issues(object({}, { required: names }), {})).toHaveLength(8);
  });

  test("an own __proto__ member of arguments is preserved", () => {
    const args: unknown = JSON.parse('{"__proto__": {"polluted": true}, "a": 1}');
    const validated = validateNow(object({ b: { default: 2 } }), args);
    expect(validated.ok).toBe(true);
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
    expect(issues(object({ a: {} }, { additionalProperties: false }), args)).toEqual(["__proto__: is not known (known: a)"]);
  });
});

describe("schemas from untrusted sources", () => {
  const untrusted = { untrustedPatterns: true };

  test("a pattern of an untrusted schema cannot run forever", () => {
    const schema = object({ text: { pattern: "^(a+)+$" } }, { patternProperties: { "^(b|bb)+$": { type: "string" } } });
    expect(issues(schema, { text: `${"a".repeat(5_000)}!`, [`${"b".repeat(5_000)}!`]: 1 }, untrusted)).toEqual([
      'text: must match the pattern "^(a+)+$"',
    ]);
  });

  test("untrusted schemas lose only the patterns that cannot be matched in bounded time", () => {
    const schema = object(
      { a: { type: "string", pattern: "^(?=.*x).+$" } },
      { patternProperties: { "^(?!a)": { type: "number" } }, additionalProperties: false },
    );
    expect(issues(schema, { a: "no", b: 1 }, untrusted)).toEqual([]);
    expect(issues(schema, { a: 1 }, untrusted)).toEqual(["a: must be a string, not a number"]);
    expect(issues(schema, { a: "no" })).toEqual(['a: must match the pattern "^(?=.*x).+$"']);
  });

  test("references in an untrusted schema cannot multiply the work", async () => {
    const $defs: Record<string, unknown> = { d0: { type: "string" } };
    for (let i = 1; i < 40; i++) $defs[`d${i}`] = { anyOf: [{ $ref: `#/$defs/d${i - 1}` }, { $ref: `#/$defs/d${i - 1}` }] };
    const validated = await compileSchema(object({ a: { $ref: "#/$defs/d39" } }, { $defs }))({ a: 1 });
    expect(validated).toEqual({ ok: false, issues: [{ path: "", message: expect.stringMatching(/^cannot be checked.*too long/) }] });
  });

  test("long chains of references are supported", () => {
    const $defs: Record<string, unknown> = { d0: { type: "string" } };
    for (let i = 1; i < 40; i++) $defs[`d${i}`] = { anyOf: [{ type: "number" }, { $ref: `#/$defs/d${i - 1}` }] };
    const schema = object({ a: { $ref: "#/$defs/d39" } }, { $defs });
    expect(issues(schema, { a: "x" }, untrusted)).toEqual([]);
    expect(issues(schema, { a: true }, untrusted)).toEqual(["a: must be a number or a string"]);
  });

  test("recursive references are supported", () => {
    const schema = object({ name: { type: "string" }, children: { type: "array", items: { $ref: "#" } } }, { required: ["name"] });
    expect(issues(schema, { name: "a", children: [{ name: "b" }, {}] }, untrusted)).toEqual(["children[1].name: is required"]);
  });
});

describe("a schema that cannot be compiled", () => {
  test.each([
    ["a reference to elsewhere", object({ a: { $ref: "https://example.com/a.json" } }), "SCHEMA_REF_UNRESOLVED", /example\.com.*\$defs/],
    ["a keyword with a value that means nothing", object({ a: { minLength: "three" } }), "SCHEMA_INVALID", /minLength/],
  ])("a schema that cannot be compiled refuses every call and reports the reason to its author: %s", (_, schema, code, message) => {
    const diagnostics: Diagnostic[] = [];
    const validate = compileSchema(schema, { onDiagnostic: (diagnostic) => diagnostics.push(diagnostic) });
    expect(diagnostics).toEqual([]);
    const validated = validate({});
    expect(validated).toEqual({
      ok: false,
      issues: [{ path: "", message: expect.stringMatching(/^cannot be checked: the schema of this tool/) }],
    });
    expect(JSON.stringify(validated)).not.toContain("example.com");
    void validate({});
    expect(diagnostics).toEqual([{ severity: "error", code, message: expect.stringMatching(message) }]);
  });

  test("a cyclic schema refuses every call", () => {
    const schema: Record<string, unknown> = { type: "object" };
    schema["properties"] = { self: schema };
    expect(issues(schema, {})).toEqual([": cannot be checked: the schema of this tool is not valid"]);
  });
});

describe("checkSchema", () => {
  const codes = (schema: unknown, options = {}): readonly string[] =>
    checkSchema(schema, options).map(({ severity, code }) => `${severity} ${code}`);

  test.each<[string, unknown, readonly string[]]>([
    ["a good schema", object({ a: { type: "string", pattern: "^a" } }, { required: ["a"] }), []],
    ["a good schema of draft 7", { ...object({ a: { items: [{}] } }), $schema: "http://json-schema.org/draft-07/schema#" }, []],
    ["a good schema of 2019-09", { ...object({ a: { items: [{}] } }), $schema: "https://json-schema.org/draft/2019-09/schema" }, []],
    ["a type that does not exist", object({ a: { type: "strin" } }), ["error SCHEMA_INVALID"]],
    ["a schema that is a list", [], ["error SCHEMA_INVALID"]],
    ["arguments that are not an object", { type: "array" }, ["error SCHEMA_NOT_OBJECT"]],
    ["arguments without a type", { properties: {} }, ["warning SCHEMA_TYPE_MISSING"]],
    ["a remote reference", object({ a: { $ref: "https://example.com/a.json" } }), ["error SCHEMA_REF_UNRESOLVED"]],
    ["a reference into nothing", object({ a: { $ref: "#/$defs/a" } }), ["error SCHEMA_REF_UNRESOLVED"]],
    [
      "references within",
      object({ a: { $ref: "#/$defs/a" }, b: { $ref: "#b" }, c: { $ref: "#" } }, { $defs: { a: {}, b: { $anchor: "b" } } }),
      [],
    ],
    ["a pattern that is invalid", object({ a: { pattern: "(" } }), ["warning SCHEMA_PATTERN_UNSUPPORTED"]],
    ["data that looks like a schema", object({ a: { default: { $ref: "nowhere" }, examples: [{ pattern: "(" }] } }), []],
  ])("checkSchema of %s", (_, schema, expected) => {
    expect(codes(schema)).toEqual(expected);
  });

  test("checkSchema names the place of the fault and the fix", () => {
    expect(checkSchema(object({ a: { type: "strin" } }))[0]?.message).toMatch(/^parameters\.properties\.a\.type .*"string"/);
    expect(checkSchema(object({ a: { $ref: "#/$defs/b" } }))[0]?.message).toMatch(
      /^parameters\.properties\.a: "\$ref": "#\/\$defs\/b" does not exist/,
    );
  });

  test("checkSchema reports the patterns of untrusted schemas that are not checked", () => {
    expect(codes(object({ a: { pattern: "(?=a)" } }))).toEqual([]);
    expect(codes(object({ a: { pattern: "(?=a)" } }), { untrustedPatterns: true })).toEqual(["warning SCHEMA_PATTERN_UNSUPPORTED"]);
  });

  test("checkSchema accepts output schemas of any type", () => {
    expect(codes({ type: "array" }, { of: "output" })).toEqual([]);
  });

  // An unknown keyword of any name takes a schema to its full check, which the check of simple schemas must agree with.
  test("checkSchema reports the same about a schema with and without a keyword that does not exist", () => {
    const values: unknown[] = [
      ...["string", "object", "date", "", 0, 1, -1, 1.5, 1e300, true, false, null, [], ["a"], ["a", "a"], ["string", "null"]],
      ...[
        [{}, true],
        [[]],
        [null, 1],
        [1, 1],
        [{ a: 1 }],
        {},
        { a: {} },
        { a: [] },
        { a: { type: "no" } },
        [{ type: 1 }],
        [{ a: 1 }, { a: 1 }],
      ],
    ];
    const keywords = [
      ...["type", "enum", "const", "default", "title", "description", "format", "$comment", "examples", "required", "items", "not"],
      ...["properties", "additionalProperties", "propertyNames", "contains", "anyOf", "oneOf", "allOf", "if", "then", "$defs", "pattern"],
      ...["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "minItems", "maxItems"],
      ...["minProperties", "maxProperties", "uniqueItems", "deprecated", "readOnly", "writeOnly", "nullable", "$ref", "$id", "$schema"],
    ];
    const dialects = ["https://json-schema.org/draft/2019-09/schema", "http://json-schema.org/draft-07/schema#"];
    const agree = (schema: object): void => {
      expect(checkSchema(schema, { of: "output" })).toEqual(checkSchema({ ...schema, "x-unknown": 1 }, { of: "output" }));
    };
    for (const keyword of keywords)
      for (const value of values) for (const $schema of [undefined, ...dialects]) agree({ ...($schema && { $schema }), [keyword]: value });
    const schema = fc.letrec<{ schema: JsonSchema }>((tie) => ({
      schema: fc.dictionary(
        fc.constantFrom(...keywords),
        fc.oneof({ maxDepth: 3 }, fc.constantFrom(...values), tie("schema"), fc.array(tie("schema"), { maxLength: 2 })),
        { maxKeys: 4 },
      ),
    })).schema;
    fc.assert(
      fc.property(schema, schema, fc.option(fc.constantFrom(...dialects), { nil: undefined }), (part, other, $schema) => {
        agree({ type: "object", properties: { part, other }, ...($schema && { $schema }) });
      }),
      { numRuns: 2_000 },
    );
  });

  test("checkSchema survives schemas that cannot be read", () => {
    const cyclic: Record<string, unknown> = { type: "object" };
    cyclic["not"] = cyclic;
    expect(codes(cyclic)).toEqual(["error SCHEMA_INVALID"]);
    expect(
      codes({
        get type(): string {
          throw new Error("no");
        },
      }),
    ).toEqual(["error SCHEMA_INVALID"]);
  });
});

test("compiling many different schemas keeps little memory", () => {
  const schemaNumber = (i: number): JsonSchema => object({ text: { type: "string", description: `state ${i}` } }, { required: ["text"] });
  const compileMany = (from: number, count: number): number => {
    for (let i = from; i < from + count; i++) {
      void compileSchema(schemaNumber(i))({ text: "" });
      checkSchema(schemaNumber(i));
    }
    gc();
    return process.memoryUsage().heapUsed;
  };
  const before = compileMany(0, 400);
  const after = compileMany(400, 1_600);
  expect((after - before) / 1_600).toBeLessThan(2_048);
});

function gc(): void {
  if (globalThis.gc === undefined) throw new Error("The tests run with --expose-gc.");
  globalThis.gc();
}
