import { isRecord } from "../../base/json.ts";
import { applicators, referenceKeywords } from "./applied-schemas.ts";
import { arrayKeywords } from "./array-keywords.ts";
import {
  type Check,
  Evaluated,
  type EvaluationRun,
  type EvaluatorParts,
  type KeywordCompiler,
  pause,
  type SchemaContext,
} from "./evaluation-run.ts";
import { objectKeywords } from "./object-keywords.ts";
import { SchemaIndex } from "./schema-index.ts";
import { valueKeywords } from "./value-keywords.ts";
import { childSchemas, type SchemaNode } from "./walk-schema.ts";

/** In order of evaluation: cheap and informative keywords come first. */
const keywords: readonly (readonly [string, KeywordCompiler])[] = [
  ...referenceKeywords,
  ...valueKeywords,
  ...applicators,
  ...arrayKeywords,
  ...objectKeywords,
];

/**
 * Checks values against a schema without generating code. A subschema is compiled when a value first reaches it, so a large schema costs
 * only what is used.
 */
export class SchemaEvaluator implements SchemaContext {
  readonly index: SchemaIndex;
  readonly parts: EvaluatorParts;
  readonly #checks = new Map<unknown, Check>();

  constructor(root: unknown, parts: EvaluatorParts) {
    this.index = new SchemaIndex(root);
    this.parts = parts;
  }

  /** Runs one slice of an evaluation: returns whether the value matches, or `pause` when another slice is needed. */
  advance(value: unknown, run: EvaluationRun): boolean | typeof pause {
    run.beginSlice();
    try {
      return this.checkOf(this.index.root)(value, run, null);
    } catch (error) {
      if (error === pause) return pause;
      throw error;
    }
  }

  /** The check of a subschema, compiled on first use. */
  checkOf(schema: unknown): Check {
    const known = this.#checks.get(schema);
    if (known !== undefined) return known;
    let prepared: Check | undefined;
    const check: Check = (value, run, seen) => {
      prepared ??= this.#prepare(schema);
      return prepared(value, run, seen);
    };
    this.#checks.set(schema, check);
    return check;
  }

  #prepare(schema: unknown): Check {
    if (schema === true) return () => true;
    if (!isRecord(schema)) return (value, run) => run.fail("false schema", {}, value, {});
    const checks: Check[] = [];
    for (const [keyword, compile] of keywords) {
      if (!Object.hasOwn(schema, keyword)) continue;
      const check = compile(schema[keyword], schema, this);
      if (check !== null) checks.push(check);
    }
    return checkAll(checks, { stopsEarly: Object.hasOwn(schema, "type"), asksWhatWasSeen: asksWhatWasSeen(schema) });
  }
}

function asksWhatWasSeen(schema: SchemaNode): boolean {
  return Object.hasOwn(schema, "unevaluatedProperties") || Object.hasOwn(schema, "unevaluatedItems");
}

interface Progress {
  readonly at: number;
  readonly fits: boolean;
  readonly own: Evaluated | null;
}

/** `stopsEarly`: the first check is the type, and a value of the wrong type gets no other fault. */
function checkAll(checks: readonly Check[], { stopsEarly, asksWhatWasSeen }: { stopsEarly: boolean; asksWhatWasSeen: boolean }): Check {
  return (value, run, seen) => {
    let at = 0;
    let fits = true;
    let own = seen;
    if (run.isResuming) ({ at, fits, own } = run.restore<Progress>());
    else {
      run.step();
      if (asksWhatWasSeen) own = new Evaluated();
    }
    run.descend();
    try {
      for (; at < checks.length; at++) {
        if (checks[at]!(value, run, own)) continue;
        fits = false;
        if (!run.wantsAll || (stopsEarly && at === 0)) break;
      }
    } catch (error) {
      if (error === pause) run.save({ at, fits, own } satisfies Progress);
      throw error;
    }
    run.ascend();
    if (asksWhatWasSeen && fits && seen !== null && own !== null) seen.add(own);
    return fits;
  };
}

/** A keyword with an invalid value. */
class KeywordFault extends Error {}

type Kind = "number" | "text" | "list" | "flag" | "object" | "schema" | "schema or schemas" | "text or list";

const kinds: ReadonlyMap<string, Kind> = new Map([
  ...kindOf("number", "maximum", "minimum", "exclusiveMaximum", "exclusiveMinimum", "multipleOf", "maxLength", "minLength"),
  ...kindOf("number", "maxItems", "minItems", "maxProperties", "minProperties", "maxContains", "minContains"),
  ...kindOf("text", "pattern", "format", "$ref", "$dynamicRef", "$recursiveRef"),
  ...kindOf("list", "enum", "required", "allOf", "anyOf", "oneOf", "prefixItems"),
  ...kindOf("flag", "uniqueItems"),
  ...kindOf("object", "properties", "patternProperties", "dependentRequired", "dependentSchemas", "dependencies"),
  ...kindOf("schema", "additionalProperties", "unevaluatedProperties", "propertyNames", "additionalItems", "unevaluatedItems"),
  ...kindOf("schema", "contains", "not", "if", "then", "else"),
  ...kindOf("schema or schemas", "items"),
  ...kindOf("text or list", "type"),
]);

function kindOf(kind: Kind, ...keywords: readonly string[]): readonly (readonly [string, Kind])[] {
  return keywords.map((keyword) => [keyword, kind]);
}

/**
 * Walks the reachable parts of a schema: each keyword must have a value of its kind, and each reference must resolve. Unreferenced
 * definitions are not checked.
 * @throws KeywordFault, UnresolvedReference
 */
export function checkKeywords(index: SchemaIndex): void {
  const seen = new Set<unknown>();
  const waiting: unknown[] = [index.root];
  for (let schema = waiting.pop(); schema !== undefined; schema = waiting.pop()) {
    if (!isRecord(schema) || seen.has(schema)) {
      if (typeof schema !== "boolean" && !isRecord(schema)) throw new KeywordFault(`schema must be object or boolean`);
      continue;
    }
    seen.add(schema);
    checkValues(schema);
    for (const keyword of ["$ref", "$dynamicRef", "$recursiveRef"]) {
      if (typeof schema[keyword] === "string") waiting.push(index.resolve(schema[keyword], schema));
    }
    for (const [child, keyword] of childSchemas(schema)) {
      if (keyword !== "$defs" && keyword !== "definitions" && !(keyword === "dependencies" && Array.isArray(child))) waiting.push(child);
    }
  }
}

function checkValues(schema: SchemaNode): void {
  for (const keyword of Object.keys(schema)) {
    const kind = kinds.get(keyword);
    if (kind !== undefined && !isOf(kind, schema[keyword])) throw new KeywordFault(`${keyword} must be a ${kind}`);
  }
}

function isOf(kind: Kind, value: unknown): boolean {
  switch (kind) {
    case "number":
      return typeof value === "number" && Number.isFinite(value);
    case "text":
      return typeof value === "string";
    case "flag":
      return typeof value === "boolean";
    case "list":
      return Array.isArray(value);
    case "object":
      return isRecord(value);
    case "schema":
      return typeof value === "boolean" || isRecord(value);
    case "schema or schemas":
      return typeof value === "boolean" || (typeof value === "object" && value !== null);
    case "text or list":
      return typeof value === "string" || Array.isArray(value);
  }
}
