import { createRequire } from "node:module";
import type * as Formats from "ajv-formats/dist/formats.js";
import { canonicalText } from "./array-keywords.ts";
import type { Check, EvaluationRun, KeywordCompiler, SchemaContext, StringFormat } from "./evaluation-run.ts";
import type { SchemaNode } from "./walk-schema.ts";

/** Keywords about the value as a whole, numbers and strings. */
export const valueKeywords: readonly (readonly [string, KeywordCompiler])[] = [
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
