import { isRecord } from "../walk-schema.ts";
import type { Check, KeywordCompiler, SchemaEvaluator } from "./schema-evaluator.ts";

/** The type comes first: nothing else is said of a value of a wrong one. */
export const referenceKeywords: readonly (readonly [string, KeywordCompiler])[] = [
  ["type", (types, schema) => typeCheck(types, schema)],
  [
    "$ref",
    (reference, schema, evaluator) =>
      typeof reference === "string" ? refCheck(evaluator.index.resolve(reference, schema), evaluator) : null,
  ],
  ["$dynamicRef", (reference, schema, evaluator) => (typeof reference === "string" ? dynamicCheck(reference, schema, evaluator) : null)],
  [
    "$recursiveRef",
    (reference, schema, evaluator) => (typeof reference === "string" ? recursiveCheck(reference, schema, evaluator) : null),
  ],
];

function typeCheck(types: unknown, schema: Readonly<Record<string, unknown>>): Check | null {
  const listed = (Array.isArray(types) ? types : [types]) as readonly string[];
  const allowed = schema["nullable"] === true && !listed.includes("null") ? [...listed, "null"] : listed;
  const params = { type: types };
  const [only] = allowed;
  const test = allowed.length === 1 && only !== undefined ? tests[only] : undefined;
  if (test !== undefined) return (value, run) => test(value) || run.fail("type", schema, value, params);
  const all = allowed.map((name) => tests[name]).filter((each) => each !== undefined);
  return (value, run) => all.some((each) => each(value)) || run.fail("type", schema, value, params);
}

const tests: Readonly<Record<string, (value: unknown) => boolean>> = {
  string: (value) => typeof value === "string",
  number: (value) => typeof value === "number" && Number.isFinite(value),
  integer: (value) => Number.isInteger(value),
  boolean: (value) => typeof value === "boolean",
  object: isRecord,
  array: Array.isArray,
  null: (value) => value === null,
};

/** What is entered by a reference may be in another document, and is the scope of dynamic references then. */
function refCheck(target: unknown, evaluator: SchemaEvaluator): Check {
  const base = evaluator.index.baseOf(target);
  if (!evaluator.index.hasDynamic) return (value, run, seen) => evaluator.checkOf(target)(value, run, seen);
  return (value, run, seen) => {
    run.scope.push(base);
    const fits = evaluator.checkOf(target)(value, run, seen);
    run.scope.pop();
    return fits;
  };
}

function dynamicCheck(reference: string, schema: Readonly<Record<string, unknown>>, evaluator: SchemaEvaluator): Check {
  const { index } = evaluator;
  const target = index.resolve(reference, schema);
  const name = reference.slice(reference.indexOf("#") + 1);
  // Only where it leads to a dynamic anchor of this name is it more than a `$ref`.
  if (!isRecord(target) || target["$dynamicAnchor"] !== name) return refCheck(target, evaluator);
  return (value, run, seen) => refCheck(index.findDynamic(name, run.scope) ?? target, evaluator)(value, run, seen);
}

function recursiveCheck(reference: string, schema: Readonly<Record<string, unknown>>, evaluator: SchemaEvaluator): Check {
  const { index } = evaluator;
  const target = index.resolve(reference, schema);
  if (!isRecord(target) || target["$recursiveAnchor"] !== true) return refCheck(target, evaluator);
  return (value, run, seen) => refCheck(index.findRecursive(run.scope) ?? target, evaluator)(value, run, seen);
}
