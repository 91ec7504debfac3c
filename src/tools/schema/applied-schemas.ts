import { isRecord } from "../../base/json.ts";
import {
  type Check,
  Evaluated,
  type EvaluationRun,
  type KeywordCompiler,
  pause,
  type SchemaContext,
  type SchemaFault,
} from "./evaluation-run.ts";
import type { SchemaNode } from "./schema-structure.ts";

/** Keywords that apply further schemas to the same value. */
export const applicators: readonly (readonly [string, KeywordCompiler])[] = [
  [
    "not",
    (schema, parent, evaluator) => (value, run) => !tryOut(schema, value, run, null, null, evaluator) || run.fail("not", parent, value, {}),
  ],
  ["anyOf", (schemas, parent, evaluator) => unionCheck("anyOf", schemas as readonly unknown[], parent, evaluator)],
  ["oneOf", (schemas, parent, evaluator) => unionCheck("oneOf", schemas as readonly unknown[], parent, evaluator)],
  ["allOf", (schemas, _, evaluator) => allOfCheck(schemas as readonly unknown[], evaluator)],
  ["if", (schema, parent, evaluator) => conditionCheck(schema, parent, evaluator)],
];

interface UnionProgress {
  readonly at: number;
  readonly fitting: number[];
  readonly branches: SchemaFault[];
  readonly own: Evaluated | null;
}

function unionCheck(keyword: "anyOf" | "oneOf", schemas: readonly unknown[], parent: SchemaNode, evaluator: SchemaContext): Check {
  return (value, run, seen) => {
    const before = run.isResuming ? run.restore<UnionProgress>() : undefined;
    const fitting = before?.fitting ?? [];
    const branches = before?.branches ?? [];
    let at = before?.at ?? 0;
    let own = before?.own ?? null;
    try {
      for (; at < schemas.length; at++) {
        own ??= seen === null ? null : new Evaluated();
        const fits = tryOut(schemas[at], value, run, own, run.faults === null ? null : branches, evaluator);
        if (fits) fitting.push(at);
        if (fits && own !== null) seen?.add(own);
        own = null;
        if (fits && keyword === "anyOf" && seen === null) return true;
        if (keyword === "oneOf" && fitting.length > 1) break;
      }
    } catch (error) {
      if (error === pause) run.save({ at, fitting, branches, own } satisfies UnionProgress);
      throw error;
    }
    if (fitting.length === 0) return run.fail(keyword, parent, value, { passingSchemas: null }, branches);
    return keyword === "anyOf" || fitting.length === 1 || run.fail(keyword, parent, value, { passingSchemas: fitting });
  };
}

function allOfCheck(schemas: readonly unknown[], evaluator: SchemaContext): Check {
  return (value, run, seen) => {
    let { at, fits } = run.isResuming ? run.restore<{ at: number; fits: boolean }>() : { at: 0, fits: true };
    try {
      for (; at < schemas.length; at++) {
        if (evaluator.checkOf(schemas[at])(value, run, seen)) continue;
        fits = false;
        if (!run.wantsAll) return false;
      }
    } catch (error) {
      if (error === pause) run.save({ at, fits });
      throw error;
    }
    return fits;
  };
}

interface ConditionProgress {
  readonly own: Evaluated | null;
  readonly condition: boolean | undefined;
}

function conditionCheck(schema: unknown, parent: SchemaNode, evaluator: SchemaContext): Check | null {
  const hasBranch = "then" in parent || "else" in parent;
  return (value, run, seen) => {
    let { own, condition }: ConditionProgress = run.isResuming
      ? run.restore<ConditionProgress>()
      : { own: seen === null ? null : new Evaluated(), condition: undefined };
    try {
      if (condition === undefined) {
        condition = tryOut(schema, value, run, own, null, evaluator);
        if (condition && own !== null) seen?.add(own);
        own = null;
      }
      const branch = condition ? "then" : "else";
      return !hasBranch || !(branch in parent) || evaluator.checkOf(parent[branch])(value, run, seen);
    } catch (error) {
      if (error === pause) run.save({ own, condition } satisfies ConditionProgress);
      throw error;
    }
  };
}

/** Whether the value would match: faults go to `branches`, and no defaults are applied. */
function tryOut(
  schema: unknown,
  value: unknown,
  run: EvaluationRun,
  seen: Evaluated | null,
  branches: SchemaFault[] | null,
  evaluator: SchemaContext,
): boolean {
  const { faults } = run;
  run.faults = branches;
  run.tentative++;
  try {
    return evaluator.checkOf(schema)(value, run, seen);
  } finally {
    run.tentative--;
    run.faults = faults;
  }
}

/** The type comes first: a value of the wrong type gets no other fault. */
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

/** A reference may enter another document, which then is the scope of dynamic references. */
function refCheck(target: unknown, evaluator: SchemaContext): Check {
  const base = evaluator.index.baseOf(target);
  if (!evaluator.index.hasDynamic) return (value, run, seen) => evaluator.checkOf(target)(value, run, seen);
  return (value, run, seen) => {
    run.scope.push(base);
    const fits = evaluator.checkOf(target)(value, run, seen);
    run.scope.pop();
    return fits;
  };
}

function dynamicCheck(reference: string, schema: Readonly<Record<string, unknown>>, evaluator: SchemaContext): Check {
  const { index } = evaluator;
  const target = index.resolve(reference, schema);
  const name = reference.slice(reference.indexOf("#") + 1);
  // Without a dynamic anchor of this name at its target, it is an ordinary `$ref`.
  if (!isRecord(target) || target["$dynamicAnchor"] !== name) return refCheck(target, evaluator);
  return (value, run, seen) => refCheck(index.findDynamic(name, run.scope) ?? target, evaluator)(value, run, seen);
}

function recursiveCheck(reference: string, schema: Readonly<Record<string, unknown>>, evaluator: SchemaContext): Check {
  const { index } = evaluator;
  const target = index.resolve(reference, schema);
  if (!isRecord(target) || target["$recursiveAnchor"] !== true) return refCheck(target, evaluator);
  return (value, run, seen) => refCheck(index.findRecursive(run.scope) ?? target, evaluator)(value, run, seen);
}
