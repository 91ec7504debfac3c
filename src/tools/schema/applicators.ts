import type { SchemaNode } from "../walk-schema.ts";
import { Evaluated, type EvaluationRun, type Fault, pause } from "./evaluation-run.ts";
import type { Check, KeywordCompiler, SchemaEvaluator } from "./schema-evaluator.ts";

/** Schemas that are applied to the same value. */
export const applicators: readonly (readonly [string, KeywordCompiler])[] = [
  ["not", (schema, parent, evaluator) => notCheck(schema, parent, evaluator)],
  ["anyOf", (schemas, parent, evaluator) => unionCheck("anyOf", schemas as readonly unknown[], parent, evaluator)],
  ["oneOf", (schemas, parent, evaluator) => unionCheck("oneOf", schemas as readonly unknown[], parent, evaluator)],
  ["allOf", (schemas, _, evaluator) => allOfCheck(schemas as readonly unknown[], evaluator)],
  ["if", (schema, parent, evaluator) => conditionCheck(schema, parent, evaluator)],
];

function notCheck(schema: unknown, parent: SchemaNode, evaluator: SchemaEvaluator): Check {
  return (value, run) => !tryOut(schema, value, run, null, null, evaluator) || run.fail("not", parent, value, {});
}

interface UnionProgress {
  readonly at: number;
  readonly fitting: number[];
  readonly branches: Fault[];
  readonly own: Evaluated | null;
}

function unionCheck(keyword: "anyOf" | "oneOf", schemas: readonly unknown[], parent: SchemaNode, evaluator: SchemaEvaluator): Check {
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

function allOfCheck(schemas: readonly unknown[], evaluator: SchemaEvaluator): Check {
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

function conditionCheck(schema: unknown, parent: SchemaNode, evaluator: SchemaEvaluator): Check | null {
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

/** Whether it would fit: faults go to `branches`, and no defaults are applied. */
function tryOut(
  schema: unknown,
  value: unknown,
  run: EvaluationRun,
  seen: Evaluated | null,
  branches: Fault[] | null,
  evaluator: SchemaEvaluator,
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
