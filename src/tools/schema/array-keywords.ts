import { type Check, type EvaluationRun, type KeywordCompiler, pause, type SchemaContext, TooDeep } from "./evaluation-run.ts";
import type { SchemaNode } from "./walk-schema.ts";

export const arrayKeywords: readonly (readonly [string, KeywordCompiler])[] = [
  ["maxItems", (limit, schema) => countCheck("maxItems", schema, limit as number, (count) => count <= (limit as number))],
  ["minItems", (limit, schema) => countCheck("minItems", schema, limit as number, (count) => count >= (limit as number))],
  [
    "uniqueItems",
    (isAsked, schema) => (isAsked === true ? (value, run) => !Array.isArray(value) || uniqueItems(value, schema, run) : null),
  ],
  ["contains", (schema, parent, evaluator) => containsCheck(schema, parent, evaluator)],
  [
    "prefixItems",
    (schemas, _, evaluator) => (evaluator.index.dialect === "2020-12" ? tupleCheck(schemas as readonly unknown[], evaluator) : null),
  ],
  [
    "items",
    (schemas, parent, evaluator) => {
      if (Array.isArray(schemas)) return tupleCheck(schemas, evaluator);
      const prefix = evaluator.index.dialect === "2020-12" && Array.isArray(parent["prefixItems"]) ? parent["prefixItems"].length : 0;
      return restCheck("items", schemas, prefix, parent, evaluator);
    },
  ],
  [
    "additionalItems",
    (schema, parent, evaluator) => {
      const { items } = parent;
      if (evaluator.index.dialect === "2020-12" || !Array.isArray(items)) return null;
      return restCheck("additionalItems", schema, items.length, parent, evaluator);
    },
  ],
  ["unevaluatedItems", (schema, parent, evaluator) => unevaluatedItems(schema, parent, evaluator)],
];

function countCheck(keyword: string, schema: SchemaNode, limit: number, fits: (count: number) => boolean): Check {
  const params = { limit };
  return (value, run) => !Array.isArray(value) || fits(value.length) || run.fail(keyword, schema, value, params);
}

interface ItemsFound {
  readonly at: number;
  readonly known: Map<unknown, number>;
}

/** Uses a set of keys instead of comparing each pair. */
function uniqueItems(items: readonly unknown[], schema: SchemaNode, run: EvaluationRun): boolean {
  let { at, known }: ItemsFound = run.isResuming ? run.restore<ItemsFound>() : { at: 0, known: new Map() };
  for (; at < items.length; at++) {
    if (run.isSliceOver) {
      run.save({ at, known } satisfies ItemsFound);
      throw pause;
    }
    const item = items[at];
    run.spend(1);
    const key = keyOf(item, run);
    const twin = known.get(key);
    if (twin !== undefined) return run.fail("uniqueItems", schema, items, { i: at, j: twin });
    known.set(key, at);
  }
  return true;
}

/** The leading quote keeps strings apart from the canonical texts of other values. */
function keyOf(item: unknown, run: EvaluationRun): unknown {
  if (typeof item === "string") return `"${item}`;
  return typeof item === "object" && item !== null ? canonicalText(item, run) : item;
}

function restCheck(keyword: string, schema: unknown, from: number, parent: SchemaNode, evaluator: SchemaContext): Check {
  const check = evaluator.checkOf(schema);
  return (value, run, seen) => {
    if (!Array.isArray(value)) return true;
    if (seen !== null) seen.hasAllItems = true;
    if (schema === false) return value.length <= from || run.fail(keyword, parent, value, { limit: from });
    return schema === true || eachItem(value, from, value.length, check, run);
  };
}

function tupleCheck(schemas: readonly unknown[], evaluator: SchemaContext): Check {
  const checks = schemas.map((schema) => evaluator.checkOf(schema));
  const defaults = schemas.flatMap((schema, index) => {
    const given = typeof schema === "object" && schema !== null ? (schema as SchemaNode)["default"] : undefined;
    return given === undefined ? [] : [{ index, given }];
  });
  return (value, run, seen) => {
    if (!Array.isArray(value)) return true;
    if (run.tentative === 0) for (const { index, given } of defaults) if (value[index] === undefined) value[index] = structuredClone(given);
    if (seen !== null) seen.itemsBefore = Math.max(seen.itemsBefore, schemas.length);
    return eachItem(value, 0, Math.min(schemas.length, value.length), checks, run);
  };
}

interface Progress {
  readonly at: number;
  readonly fits: boolean;
}

/** `checks` is one check for all items, or one per item. */
function eachItem(items: readonly unknown[], from: number, to: number, checks: Check | readonly Check[], run: EvaluationRun): boolean {
  let at = from;
  let fits = true;
  if (run.isResuming) ({ at, fits } = run.restore<Progress>());
  try {
    for (; at < to; at++) {
      const check = typeof checks === "function" ? checks : (checks[at] as Check);
      if (run.faults !== null) run.path.push(at);
      const isFitting = check(items[at], run, null);
      if (run.faults !== null) run.path.pop();
      if (isFitting) continue;
      fits = false;
      if (!run.wantsAll) return false;
    }
  } catch (error) {
    if (error === pause) run.save({ at, fits } satisfies Progress);
    throw error;
  }
  return fits;
}

interface Containing {
  readonly at: number;
  readonly count: number;
}

function containsCheck(schema: unknown, parent: SchemaNode, evaluator: SchemaContext): Check {
  const hasCounts = evaluator.index.dialect !== "draft-07";
  const least = hasCounts && typeof parent["minContains"] === "number" ? parent["minContains"] : 1;
  const most = hasCounts && typeof parent["maxContains"] === "number" ? parent["maxContains"] : Number.POSITIVE_INFINITY;
  const params = { minContains: least, ...(most !== Number.POSITIVE_INFINITY && { maxContains: most }) };
  const check = evaluator.checkOf(schema);
  const marksItems = evaluator.index.dialect === "2020-12";
  return (value, run, seen) => {
    if (!Array.isArray(value)) return true;
    let { at, count }: Containing = run.isResuming ? run.restore<Containing>() : { at: 0, count: 0 };
    const { faults } = run;
    run.faults = null;
    run.tentative++;
    try {
      for (; at < value.length; at++) {
        if (!check(value[at], run, null)) continue;
        count++;
        if (seen !== null && marksItems) seen.items.add(at);
      }
    } catch (error) {
      if (error === pause) run.save({ at, count } satisfies Containing);
      throw error;
    } finally {
      run.tentative--;
      run.faults = faults;
    }
    return (count >= least && count <= most) || run.fail("contains", parent, value, params);
  };
}

function unevaluatedItems(schema: unknown, parent: SchemaNode, evaluator: SchemaContext): Check {
  const check = evaluator.checkOf(schema);
  const accept = evaluator.checkOf(true);
  return (value, run, seen) => {
    if (!Array.isArray(value) || seen === null || seen.hasAllItems) return true;
    const open = value.findIndex((_, index) => index >= seen.itemsBefore && !seen.items.has(index));
    run.spend(value.length >> 3);
    if (open === -1) return true;
    if (schema === false) return run.fail("unevaluatedItems", parent, value, { len: open });
    const isOpen = (index: number): boolean => index >= seen.itemsBefore && !seen.items.has(index);
    const checks = value.map((_, index) => (isOpen(index) ? check : accept));
    const fits = eachItem(value, 0, value.length, checks, run);
    if (fits) seen.hasAllItems = true;
    return fits;
  };
}

const maxDepth = 1_000;

/** A text that is equal for equal JSON values, whatever the order of keys, and different for all others. */
export function canonicalText(value: unknown, run?: EvaluationRun): string {
  return write(value, run, 0);
}

function write(value: unknown, run: EvaluationRun | undefined, depth: number): string {
  if (typeof value === "string") {
    run?.spend(1 + (value.length >> 4));
    return JSON.stringify(value);
  }
  run?.spend(1);
  if (typeof value !== "object" || value === null) return String(value);
  if (depth > maxDepth) throw new TooDeep();
  if (Array.isArray(value)) return `[${value.map((item) => write(item, run, depth + 1)).join()}]`;
  const record = value as Readonly<Record<string, unknown>>;
  const keys = Object.keys(record).sort();
  return `{${keys.map((key) => `${JSON.stringify(key)}:${write(record[key], run, depth + 1)}`).join()}}`;
}
