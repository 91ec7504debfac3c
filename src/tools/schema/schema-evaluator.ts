import { createRequire } from "node:module";
import type * as Formats from "ajv-formats/dist/formats.js";
import { isRecord } from "../../base/json.ts";
import { applicators, referenceKeywords } from "./applied-schemas.ts";
import { arrayKeywords, canonicalText, objectKeywords } from "./container-keywords.ts";
import {
  type Check,
  Evaluated,
  type EvaluationRun,
  type EvaluatorParts,
  type KeywordCompiler,
  pause,
  type SchemaContext,
  type StringFormat,
} from "./evaluation-run.ts";
import { childSchemas, SchemaIndex, type SchemaNode } from "./schema-structure.ts";

/** Keywords about the value as a whole, numbers and strings. */
const valueKeywords: readonly (readonly [string, KeywordCompiler])[] = [
  ["const", (allowed, schema) => oneOfValues("const", [allowed], schema, { allowedValue: allowed })],
  ["enum", (allowed, schema) => oneOfValues("enum", allowed as readonly unknown[], schema, { allowedValues: allowed })],
  ["maximum", bound("maximum", (value, limit) => value <= limit)],
  ["minimum", bound("minimum", (value, limit) => value >= limit)],
  ["exclusiveMaximum", bound("exclusiveMaximum", (value, limit) => value < limit)],
  ["exclusiveMinimum", bound("exclusiveMinimum", (value, limit) => value > limit)],
  [
    "multipleOf",
    (divisor, schema) => numberCheck("multipleOf", schema, { multipleOf: divisor }, (value) => isMultiple(value, divisor as number)),
  ],
  ["maxLength", (limit, schema) => lengthCheck("maxLength", schema, limit as number, (length) => length <= (limit as number))],
  ["minLength", (limit, schema) => lengthCheck("minLength", schema, limit as number, (length) => length >= (limit as number))],
  ["pattern", (source, schema, evaluator) => patternCheck(source as string, schema, evaluator)],
  ["format", (name, schema, evaluator) => formatCheck(name as string, schema, evaluator)],
];

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

/** Compares by a set, so that many values cost no more than few; objects and arrays by their canonical text. */
function oneOfValues(keyword: string, allowed: readonly unknown[], schema: SchemaNode, params: SchemaNode): Check {
  const plain = new Set(allowed.filter((value) => typeof value !== "object" || value === null));
  const texts = new Set(allowed.filter((value) => typeof value === "object" && value !== null).map((value) => canonicalText(value)));
  const holds = (value: unknown, run: EvaluationRun): boolean => {
    if (typeof value !== "object" || value === null) return plain.has(value);
    return texts.size > 0 && texts.has(canonicalText(value, run));
  };
  return (value, run) => holds(value, run) || run.fail(keyword, schema, value, params);
}

function bound(keyword: string, fits: (value: number, limit: number) => boolean): KeywordCompiler {
  return (limit, schema) => numberCheck(keyword, schema, { limit }, (value) => fits(value, limit as number));
}

function numberCheck(keyword: string, schema: SchemaNode, params: SchemaNode, fits: (value: number) => boolean): Check {
  return (value, run) => typeof value !== "number" || fits(value) || run.fail(keyword, schema, value, params);
}

/** Decimal fractions have no exact form: 19.99 is a multiple of 0.01. */
function isMultiple(value: number, divisor: number): boolean {
  const quotient = value / divisor;
  return Math.abs(Math.round(quotient) - quotient) < 1e-9;
}

function lengthCheck(keyword: string, schema: SchemaNode, limit: number, fits: (length: number) => boolean): Check {
  const params = { limit };
  return (value, run) => typeof value !== "string" || fits(lengthOf(value, limit, run)) || run.fail(keyword, schema, value, params);
}

/** The length in characters, each of which has one or two UTF-16 units; counted only where the unit length does not decide. */
function lengthOf(text: string, limit: number, run: EvaluationRun): number {
  const units = text.length;
  if (units < limit || units / 2 > limit) return units < limit ? units : Math.ceil(units / 2);
  run.spend(units >> 3);
  let count = 0;
  for (let at = 0; at < units; at++, count++) if (isPair(text, at)) at++;
  return count;
}

function isPair(text: string, at: number): boolean {
  return (text.charCodeAt(at) & 0xfc00) === 0xd800 && (text.charCodeAt(at + 1) & 0xfc00) === 0xdc00;
}

function patternCheck(source: string, schema: SchemaNode, { parts }: SchemaContext): Check | null {
  const pattern = parts.toPattern(source);
  if (pattern === null) return null;
  const params = { pattern: source };
  return (value, run) => {
    if (typeof value !== "string") return true;
    run.spend(pattern.stepsFor(value));
    return pattern.test(value) || run.fail("pattern", schema, value, params);
  };
}

function formatCheck(name: string, schema: SchemaNode, { parts }: SchemaContext): Check | null {
  const format = parts.formats.get(name);
  if (format === undefined) return null;
  const params = { format: name };
  return (value, run) => {
    if (typeof value !== format.type) return true;
    if (typeof value === "string") run.spend(value.length >> 3);
    return format.test(value as never) || run.fail("format", schema, value, params);
  };
}

// The limit for formats that are not matched in linear time; valid values are never this long.
const longest = 8_192;
const ofAnyLength: ReadonlySet<string> = new Set(["uri", "uri-reference", "byte", "binary", "password"]);

const load: NodeJS.Require = createRequire(import.meta.url);
let formats: ReadonlyMap<string, StringFormat> | undefined;

/** Loaded with the first schema: many sessions check none. */
export function allFormats(): ReadonlyMap<string, StringFormat> {
  formats ??= readFormats((load("ajv-formats/dist/formats.js") as typeof Formats).fullFormats);
  return formats;
}

type Definition = (typeof Formats.fullFormats)[keyof typeof Formats.fullFormats];

function readFormats(all: Readonly<Record<string, Definition>>): ReadonlyMap<string, StringFormat> {
  return new Map(Object.entries(all).map(([name, definition]) => [name, readFormat(name, definition)]));
}

function readFormat(name: string, definition: Definition): StringFormat {
  if (typeof definition === "object" && !(definition instanceof RegExp) && "type" in definition && definition.type === "number") {
    return { type: "number", test: definition.validate as (value: never) => boolean };
  }
  const test = textTest(definition);
  return { type: "string", test: (text: string) => (text.length <= longest || ofAnyLength.has(name)) && test(text) };
}

function textTest(definition: Definition): (text: string) => boolean {
  if (typeof definition === "boolean") return () => definition;
  if (definition instanceof RegExp) return (text) => definition.test(text);
  if (typeof definition === "function") return definition as (text: string) => boolean;
  const { validate } = definition as { readonly validate: RegExp | ((text: string) => boolean) };
  return validate instanceof RegExp ? (text) => validate.test(text) : validate;
}
