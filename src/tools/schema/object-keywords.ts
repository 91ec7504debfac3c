import { isRecord } from "../../base/json.ts";
import { type Check, type EvaluationRun, type KeywordCompiler, pause, type SchemaContext } from "./evaluation-run.ts";
import type { Pattern } from "./schema-pattern.ts";
import type { SchemaNode } from "./walk-schema.ts";

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
