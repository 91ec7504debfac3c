import { isRecord } from "../../base/json.ts";
import { type Check, type EvaluationRun, type KeywordCompiler, pause, type SchemaContext, TooDeep } from "./evaluation-run.ts";
import type { Pattern } from "./schema-pattern.ts";
import type { SchemaNode } from "./schema-structure.ts";

export const objectKeywords: readonly (readonly [string, KeywordCompiler])[] = [
  // Defaults apply before any other check of the members.
  ["properties", (schemas) => defaultsCheck(schemas as SchemaNode)],
  ["maxProperties", (limit, schema) => sizeCheck("maxProperties", schema, limit as number, (size) => size <= (limit as number))],
  ["minProperties", (limit, schema) => sizeCheck("minProperties", schema, limit as number, (size) => size >= (limit as number))],
  ["required", (names, schema) => requiredCheck(names as readonly string[], schema)],
  [
    "dependentRequired",
    (names, schema, { index }) => (index.dialect === "draft-07" ? null : dependenciesCheck(names, schema, "dependentRequired")),
  ],
  ["dependencies", (names, schema, evaluator) => dependenciesCheck(names, schema, "dependencies", evaluator)],
  [
    "dependentSchemas",
    (schemas, schema, evaluator) =>
      evaluator.index.dialect === "draft-07" ? null : dependenciesCheck(schemas, schema, "dependencies", evaluator),
  ],
  ["propertyNames", (schema, parent, evaluator) => namesCheck(schema, parent, evaluator)],
  ["additionalProperties", (schema, parent, evaluator) => additionalCheck(schema, parent, evaluator)],
  ["properties", (schemas, parent, evaluator) => propertiesCheck(schemas as SchemaNode, parent, evaluator)],
  ["patternProperties", (schemas, _, evaluator) => patternsCheck(schemas as SchemaNode, evaluator)],
  ["unevaluatedProperties", (schema, parent, evaluator) => unevaluatedCheck(schema, parent, evaluator)],
];

/** Undefined and inherited members count as absent. */
function has(value: SchemaNode, name: string): boolean {
  return value[name] !== undefined && (!(name in Object.prototype) || Object.hasOwn(value, name));
}

function sizeCheck(keyword: string, schema: SchemaNode, limit: number, fits: (size: number) => boolean): Check {
  const params = { limit };
  return (value, run) => !isRecord(value) || fits(Object.keys(value).length) || run.fail(keyword, schema, value, params);
}

function requiredCheck(names: readonly string[], schema: SchemaNode): Check | null {
  if (names.length === 0) return null;
  return (value, run) => {
    if (!isRecord(value)) return true;
    run.spend(names.length >> 3);
    let fits = true;
    for (const name of names) {
      if (has(value, name)) continue;
      fits = run.fail("required", schema, value, { missingProperty: name });
      if (!run.wantsAll) break;
    }
    return fits;
  };
}

/** What a present property demands: further names, or, in `dependencies` and `dependentSchemas`, a matching schema. */
function dependenciesCheck(all: unknown, schema: SchemaNode, keyword: string, evaluator?: SchemaContext): Check {
  const entries = Object.entries(all as SchemaNode);
  return (value, run, seen) => {
    if (!isRecord(value)) return true;
    return eachOf(entries, run, ([property, asked]) => {
      if (!has(value, property)) return true;
      if (!Array.isArray(asked)) return evaluator === undefined || evaluator.checkOf(asked)(value, run, seen);
      run.spend(asked.length >> 3);
      const missing = asked.find((name: string) => !has(value, name));
      return missing === undefined || run.fail(keyword, schema, value, { property, missingProperty: missing });
    });
  };
}

function namesCheck(schema: unknown, parent: SchemaNode, evaluator: SchemaContext): Check {
  const check = evaluator.checkOf(schema);
  return (value, run) => {
    if (!isRecord(value)) return true;
    return eachOf(Object.keys(value), run, (name) => {
      const { faults } = run;
      run.faults = null;
      let fits: boolean;
      try {
        fits = check(name, run, null);
      } finally {
        run.faults = faults;
      }
      return fits || run.fail("propertyNames", parent, value, { propertyName: name });
    });
  };
}

/** Applies defaults, except while a branch is only tried. */
function defaultsCheck(schemas: SchemaNode): Check | null {
  const defaults = Object.entries(schemas).flatMap(([name, schema]) => {
    const given = isRecord(schema) ? schema["default"] : undefined;
    return given === undefined ? [] : [{ name, given }];
  });
  if (defaults.length === 0) return null;
  return (value, run) => {
    if (!isRecord(value) || run.tentative > 0) return true;
    for (const { name, given } of defaults) {
      if (has(value, name)) continue;
      run.spend(1);
      value[name] = typeof given === "object" ? structuredClone(given) : given;
    }
    return true;
  };
}

/** Every call runs this loop, so it is written for speed. */
function propertiesCheck(schemas: SchemaNode, { required }: SchemaNode, evaluator: SchemaContext): Check {
  const names = Object.keys(schemas);
  const needed = new Set<unknown>(Array.isArray(required) ? required : []);
  const checks = names.map((name) => evaluator.checkOf(schemas[name]));
  const inherited = names.map((name) => name in Object.prototype);
  return (value, run, seen) => {
    if (!isRecord(value)) return true;
    let at = 0;
    let fits = true;
    if (run.isResuming) ({ at, fits } = run.restore<PropertiesProgress>());
    else run.spend(names.length >> 3);
    try {
      for (; at < names.length; at++) {
        const name = names[at] as string;
        const member = value[name];
        if (member === undefined || (inherited[at] && !Object.hasOwn(value, name))) continue;
        if (member === null && run.omitsNulls && !needed.has(name) && !(checks[at] as Check)(null, run, null)) {
          delete value[name];
          continue;
        }
        if (seen !== null) seen.properties.add(name);
        if (run.faults !== null) run.path.push(name);
        const isFitting = (checks[at] as Check)(member, run, null);
        if (run.faults !== null) run.path.pop();
        if (isFitting) continue;
        fits = false;
        if (!run.wantsAll) return false;
      }
    } catch (error) {
      if (error === pause) run.save({ at, fits } satisfies PropertiesProgress);
      throw error;
    }
    return fits;
  };
}

interface PropertiesProgress {
  readonly at: number;
  readonly fits: boolean;
}

function patternsCheck(schemas: SchemaNode, evaluator: SchemaContext): Check {
  const patterns = Object.entries(schemas).flatMap(([source, schema]) => {
    const pattern = evaluator.parts.toPattern(source);
    return pattern === null ? [] : [{ pattern, check: evaluator.checkOf(schema) }];
  });
  return (value, run, seen) => {
    if (!isRecord(value)) return true;
    return eachOf(Object.keys(value), run, (name) =>
      eachOf(patterns, run, ({ pattern, check }) =>
        afterCostly(
          run,
          () => matches(pattern, name, run),
          (isMatch) => {
            if (!isMatch) return true;
            seen?.properties.add(name);
            return inMember(value, name, check, run);
          },
        ),
      ),
    );
  };
}

function additionalCheck(schema: unknown, parent: SchemaNode, evaluator: SchemaContext): Check {
  const { properties, patternProperties } = parent;
  const known = new Set(isRecord(properties) ? Object.keys(properties) : []);
  const sources = isRecord(patternProperties) ? Object.keys(patternProperties) : [];
  const patterns = sources.map(evaluator.parts.toPattern).filter((pattern) => pattern !== null);
  const check = evaluator.checkOf(schema);
  return (value, run, seen) => {
    if (!isRecord(value)) return true;
    if (seen !== null) seen.hasAllProperties = true;
    if (schema === true) return true;
    return eachOf(Object.keys(value), run, (name) =>
      afterCostly(
        run,
        () => known.has(name) || patterns.some((pattern) => matches(pattern, name, run)),
        (isKnown) => {
          if (isKnown) return true;
          if (schema === false) return run.fail("additionalProperties", parent, value, { additionalProperty: name });
          return inMember(value, name, check, run);
        },
      ),
    );
  };
}

function unevaluatedCheck(schema: unknown, parent: SchemaNode, evaluator: SchemaContext): Check {
  const check = evaluator.checkOf(schema);
  return (value, run, seen) => {
    if (!isRecord(value) || seen === null || seen.hasAllProperties) return true;
    const open = Object.keys(value).filter((name) => !seen.properties.has(name));
    const fits = eachOf(open, run, (name) => {
      if (schema === false) return run.fail("unevaluatedProperties", parent, value, { unevaluatedProperty: name });
      return inMember(value, name, check, run);
    });
    if (fits) seen.hasAllProperties = true;
    return fits;
  };
}

function matches(pattern: Pattern, name: string, run: EvaluationRun): boolean {
  run.spend(pattern.stepsFor(name));
  return pattern.test(name);
}

/**
 * Keeps a costly answer when the slice ends during its consequence. Computing it again in each slice could use up the slice each time, so
 * that the evaluation would never finish.
 */
function afterCostly<T>(run: EvaluationRun, ask: () => T, conclude: (answer: T) => boolean): boolean {
  const answer = run.isResuming ? run.restore<T>() : ask();
  try {
    return conclude(answer);
  } catch (error) {
    if (error === pause) run.save(answer);
    throw error;
  }
}

function inMember(value: SchemaNode, name: string, check: Check, run: EvaluationRun): boolean {
  if (run.faults !== null) run.path.push(name);
  const fits = check(value[name], run, null);
  if (run.faults !== null) run.path.pop();
  return fits;
}

interface Progress<T> {
  /** A copy from the start: the checked value may change its members meanwhile. */
  readonly all: readonly T[];
  readonly at: number;
  readonly fits: boolean;
}

function eachOf<T>(given: readonly T[], run: EvaluationRun, check: (each: T) => boolean): boolean {
  let { all, at, fits }: Progress<T> = run.isResuming ? run.restore<Progress<T>>() : { all: given, at: 0, fits: true };
  try {
    for (; at < all.length; at++) {
      if (run.isSliceOver) throw pause;
      if (check(all[at] as T)) continue;
      fits = false;
      if (!run.wantsAll) return false;
    }
  } catch (error) {
    if (error === pause) run.save({ all, at, fits } satisfies Progress<T>);
    throw error;
  }
  return fits;
}

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

interface ArrayProgress {
  readonly at: number;
  readonly fits: boolean;
}

/** `checks` is one check for all items, or one per item. */
function eachItem(items: readonly unknown[], from: number, to: number, checks: Check | readonly Check[], run: EvaluationRun): boolean {
  let at = from;
  let fits = true;
  if (run.isResuming) ({ at, fits } = run.restore<ArrayProgress>());
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
    if (error === pause) run.save({ at, fits } satisfies ArrayProgress);
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
