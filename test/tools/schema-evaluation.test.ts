import { Ajv, type Options } from "ajv";
import { Ajv2019 } from "ajv/dist/2019.js";
import { Ajv2020 } from "ajv/dist/2020.js";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { EvaluationRun, pause, type RunOptions, type SchemaFault } from "../../src/tools/schema/evaluation-run.ts";
import { SchemaEvaluator } from "../../src/tools/schema/schema-evaluator.ts";
import { boundedPattern } from "../../src/tools/schema/schema-pattern.ts";
import { rounds } from "../rounds.ts";

const limit = 50_000_000;
/** Generated schemas may be endless: evaluations that need more steps are not compared. */
const limitOfGenerated = 20_000;

function evaluatorOf(schema: unknown): SchemaEvaluator {
  return new SchemaEvaluator(structuredClone(schema), { toPattern: boundedPattern, formats: new Map() });
}

interface Outcome {
  readonly fits: boolean;
  readonly steps: number;
  readonly slices: number;
  readonly faults: readonly SchemaFault[] | null;
}

function evaluate(schema: unknown, value: unknown, options: Partial<RunOptions> = {}): Outcome {
  const evaluator = evaluatorOf(schema);
  const run = new EvaluationRun(evaluator.index.rootBase, { limit, slice: limit, ...options });
  for (let slices = 1; ; slices++) {
    const fits = evaluator.advance(value, run);
    if (fits !== pause) return { fits, steps: run.stepsTaken, slices, faults: run.faults };
  }
}

/** Small, so that schemas and values often match. */
const key = fc.constantFrom("a", "b", "c", "__proto__");
const json: fc.Arbitrary<unknown> = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    fc.constantFrom(null, true, false, 0, -0, 1, 2, 1.5, "", "a", "ab", "é", "😀", "b1"),
    fc.array(tie("value"), { maxLength: 4 }),
    fc.uniqueArray(fc.tuple(key, tie("value")), { selector: ([name]) => name, maxLength: 3 }).map((entries) => record(entries)),
  ),
})).value;

/** As `JSON.parse` returns it: `__proto__` is an ordinary key. */
function record(entries: readonly (readonly [string, unknown])[]): unknown {
  return JSON.parse(`{${entries.map(([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`).join()}}`);
}

const types = ["string", "number", "integer", "boolean", "object", "array", "null"] as const;
const count = fc.integer({ min: 0, max: 3 });
const names = fc.uniqueArray(fc.constantFrom("a", "b", "c"), { maxLength: 2 });

/** Every keyword that has the same form in all drafts. */
function schemas(more: (schema: fc.Arbitrary<unknown>) => Record<string, fc.Arbitrary<unknown>>): fc.Arbitrary<unknown> {
  return fc.letrec((tie) => {
    const schema = tie("schema");
    const list = fc.array(schema, { minLength: 1, maxLength: 3 });
    const named = fc.dictionary(fc.constantFrom("a", "b", "c"), schema, { maxKeys: 3 });
    const model = {
      type: fc.oneof(fc.constantFrom(...types), fc.uniqueArray(fc.constantFrom(...types), { minLength: 1, maxLength: 3 })),
      const: json,
      enum: fc.array(json, { minLength: 1, maxLength: 3 }),
      minimum: count,
      maximum: count,
      exclusiveMinimum: count,
      exclusiveMaximum: count,
      multipleOf: fc.constantFrom(1, 2, 0.5),
      minLength: count,
      maxLength: count,
      pattern: fc.constantFrom("a", "^b", "\\d$", "^.$"),
      minItems: count,
      maxItems: count,
      uniqueItems: fc.boolean(),
      contains: schema,
      minProperties: count,
      maxProperties: count,
      required: names,
      properties: named,
      patternProperties: fc.dictionary(fc.constantFrom("a", "^b$", "."), schema, { maxKeys: 2 }),
      additionalProperties: schema,
      propertyNames: schema,
      allOf: list,
      anyOf: list,
      oneOf: list,
      not: schema,
      if: schema,
      // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
      then: schema,
      else: schema,
      $ref: fc.constantFrom("#/$defs/x", "#/$defs/y"),
      ...more(schema),
    };
    const keywords = Object.entries(model).map(([keyword, values]) => values.map((value) => [keyword, value] as const));
    const part = fc.array(fc.oneof(...keywords), { maxLength: 4 }).map((entries) => Object.fromEntries(entries));
    return { schema: fc.oneof({ maxDepth: 3 }, fc.boolean(), part) };
  }).schema;
}

const counted = { minContains: count, maxContains: count };
const drafts: readonly (readonly [string, string | undefined, new (options: Options) => Ajv, fc.Arbitrary<unknown>])[] = [
  [
    "2020-12",
    undefined,
    Ajv2020,
    schemas((schema) => ({
      ...counted,
      items: schema,
      prefixItems: fc.array(schema, { minLength: 1, maxLength: 2 }),
      dependentRequired: fc.dictionary(fc.constantFrom("a", "b"), names, { maxKeys: 2 }),
      dependentSchemas: fc.dictionary(fc.constantFrom("a", "b"), schema, { maxKeys: 2 }),
      unevaluatedProperties: schema,
      unevaluatedItems: schema,
    })),
  ],
  [
    "draft-07",
    "http://json-schema.org/draft-07/schema#",
    Ajv,
    schemas((schema) => ({
      items: fc.oneof(schema, fc.array(schema, { minLength: 1, maxLength: 2 })),
      additionalItems: schema,
      dependencies: fc.dictionary(fc.constantFrom("a", "b"), fc.oneof(names, schema), { maxKeys: 2 }),
    })),
  ],
  [
    "2019-09",
    "https://json-schema.org/draft/2019-09/schema",
    Ajv2019,
    schemas((schema) => ({
      ...counted,
      items: fc.oneof(schema, fc.array(schema, { minLength: 1, maxLength: 2 })),
      dependentSchemas: fc.dictionary(fc.constantFrom("a", "b"), schema, { maxKeys: 2 }),
      unevaluatedProperties: schema,
    })),
  ],
];

describe.each(drafts)("schemas of %s", (_name, dialect, Validator, schema) => {
  const whole = fc.record({ schema, x: schema, y: schema }).map(({ schema: root, x, y }) => ({
    ...(dialect !== undefined && { $schema: dialect }),
    $defs: { x, y },
    allOf: [root],
  }));

  test("schemas are evaluated as by another implementation", () => {
    const ajv = (): Ajv => new Validator({ strict: false, logger: false, validateFormats: false, ownProperties: true });
    fc.assert(
      fc.property(whole, fc.array(json, { minLength: 1, maxLength: 4 }), (root, values) => {
        fc.pre(!hasContainsBesideTuple(root));
        // Ajv also treats a member of this name as evaluated.
        fc.pre(!(hasKey(root, "unevaluatedProperties") && hasKey(values, "__proto__")));
        // Ajv does not treat items as evaluated by `contains`, as 2020-12 requires.
        fc.pre(!(hasKey(root, "unevaluatedItems") && hasKey(root, "contains")));
        const expected = verdictsOf(ajv(), root, values);
        fc.pre(expected !== undefined);
        const found = values.map((value) => verdictOf(root, value));
        fc.pre(!found.includes("endless"));
        expect(found).toEqual(expected);
      }),
      { numRuns: rounds(30, 600) },
    );
  });

  test("schemas give the same result and issues in one slice and in many", () => {
    fc.assert(
      fc.property(whole, json, fc.integer({ min: 1, max: 7 }), (root, value, slice) => {
        for (const faults of [undefined, "first", "all"] as const) {
          const options = faults === undefined ? {} : { faults };
          const atOnce = outcomeOf(root, value, options);
          // With small slices, each resumption takes as many steps as the evaluation is deep.
          const sliced = atOnce === "endless" ? atOnce : outcomeOf(root, value, { ...options, slice, limit });
          expect(sliced).toEqual(atOnce);
        }
      }),
      { numRuns: rounds(150, 4_000) },
    );
  });
});

test.each<[string, object]>([
  ["patternProperties", { patternProperties: { a: {} } }],
  ["additionalProperties beside patternProperties", { patternProperties: { b: {} }, additionalProperties: { type: "string" } }],
])("%s: a name whose match takes a whole slice does not prevent the evaluation of its member", (_keywords, schema) => {
  const name = "a".repeat(1_000);
  for (const value of [{ [name]: "x" }, { [name]: {} }]) {
    for (const slice of [1, 2, 100]) expect(outcomeOf(schema, value, { slice })).toEqual(outcomeOf(schema, value));
  }
});

test.each([
  { prefixItems: [{ properties: {} }] },
  { $schema: "https://json-schema.org/draft/2019-09/schema", items: [{ type: "object" }] },
])("contains rejects an empty array beside %j, too", (tuple) => {
  expect([[], [{}]].map((value) => verdictOf({ ...tuple, contains: {} }, value))).toEqual([false, true]);
  expect([[], [null]].map((value) => verdictOf({ ...tuple, contains: {}, minContains: 0 }, value))).toEqual([
    true,
    verdictOf(tuple, [null]),
  ]);
});

test("a member named __proto__ is evaluated like other members", () => {
  const schema = { unevaluatedProperties: { type: "string" }, oneOf: [{ patternProperties: { a: false } }, false] };
  expect(['{"__proto__":{}}', '{"__proto__":""}'].map((text) => verdictOf(schema, JSON.parse(text)))).toEqual([false, true]);
});

test("items that contains accepts are evaluated in 2020-12", () => {
  const schema = { contains: { type: "number" }, unevaluatedItems: { type: "string" } };
  expect([[1, "a"], [1, true], ["a"]].map((value) => verdictOf(schema, value))).toEqual([true, false, false]);
});

/** Ajv 8.20.0 checks `contains` only in arrays that are as long as the tuple beside it. */
function hasContainsBesideTuple(node: unknown): boolean {
  if (typeof node !== "object" || node === null) return false;
  const hasTuple = "prefixItems" in node || ("items" in node && Array.isArray(node.items));
  return ("contains" in node && hasTuple) || Object.values(node).some(hasContainsBesideTuple);
}

function hasKey(value: unknown, name: string): boolean {
  if (typeof value !== "object" || value === null) return false;
  return Object.hasOwn(value, name) || Object.values(value).some((member) => hasKey(member, name));
}

/** Undefined: Ajv cannot evaluate it. */
function verdictsOf(ajv: Ajv, schema: object, values: readonly unknown[]): readonly boolean[] | undefined {
  try {
    const validate = ajv.compile(schema);
    return values.map((value) => validate(value));
  } catch {
    // References to themselves.
    return undefined;
  }
}

function verdictOf(schema: unknown, value: unknown): boolean | "endless" {
  const outcome = outcomeOf(schema, value);
  return outcome === "endless" ? outcome : outcome.fits;
}

function outcomeOf(schema: unknown, value: unknown, options: Partial<RunOptions> = {}): Pick<Outcome, "fits" | "faults"> | "endless" {
  try {
    const { fits, faults } = evaluate(schema, value, { limit: limitOfGenerated, ...options });
    return { fits, faults };
  } catch {
    return "endless";
  }
}

const records = (length: number): readonly unknown[] => Array.from({ length }, (_, id) => ({ id, name: `n${id}`, tags: [{ id }] }));
const text = (length: number): string => "a".repeat(length);

describe("the work of a check grows linearly with the checked value:", () => {
  const each = { type: "object", required: ["id"], properties: { id: { type: "integer" } } };
  test.each<readonly [string, unknown, (n: number) => unknown]>([
    ["unique records", { uniqueItems: true }, records],
    ["unique texts", { uniqueItems: true }, (n) => records(n).map((item) => JSON.stringify(item))],
    ["lists of lists", { items: { uniqueItems: true } }, (n) => [records(n), records(n)]],
    ["records that contain one", { contains: { const: { id: -1 } } }, records],
    ["records that are one of many", { items: { enum: records(2_000) } }, (n) => records(Math.min(2_000, n))],
    ["records that are a constant", { items: { anyOf: [{ const: { id: 1 } }, each] } }, records],
    [
      "many members",
      { additionalProperties: { type: "integer" }, patternProperties: { "^x": false } },
      (n) => Object.fromEntries(records(n).map((_, id) => [`m${id}`, id])),
    ],
    ["names", { propertyNames: { pattern: "^(m+)+$|^m\\d+$" } }, (n) => Object.fromEntries(records(n).map((_, id) => [`m${id}`, id]))],
    ["a pattern that explodes elsewhere", { pattern: "^(a+)+$" }, (n) => `${text(n * 40)}!`],
    ["what nothing else evaluated", { prefixItems: [true], unevaluatedItems: each }, records],
  ])("%s", (_, schema, make) => {
    const costs = [500, 1_000, 2_000].map((n) => evaluate(schema, make(n)).steps);
    expect(costs[1]! / costs[0]!).toBeLessThan(2.2);
    expect(costs[2]! / costs[1]!).toBeLessThan(2.2);
  });

  test("members of a schema that is never referenced", () => {
    const costs = [500, 1_000, 2_000].map((n) => {
      const properties = Object.fromEntries(records(n).map((_, id) => [`m${id}`, each]));
      return evaluate({ properties }, {}).steps;
    });
    expect(costs[2]! / costs[1]!).toBeLessThan(2.2);
    expect(costs[2]!).toBeLessThan(2_000);
  });

  test("a value that takes many slices", () => {
    const schema = {
      items: { ...each, anyOf: [{ required: ["missing"] }, { properties: { name: { pattern: "^n" } } }] },
      uniqueItems: true,
    };
    const whole = evaluate(schema, records(5_000));
    const sliced = evaluate(schema, records(5_000), { slice: 1_000 });
    expect(sliced.slices).toBeGreaterThan(10);
    expect(sliced).toMatchObject({ fits: whole.fits, steps: expect.any(Number) });
    expect(sliced.steps / whole.steps).toBeLessThan(1.2);
  });
});
