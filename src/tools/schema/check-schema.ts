import type { Diagnostic, Severity } from "../../base/diagnostic.ts";
import { isRecord } from "../../base/json.ts";
import { issuesOf } from "./argument-issues.ts";
import { EvaluationRun, pause } from "./evaluation-run.ts";
import { SchemaEvaluator } from "./schema-evaluator.ts";
import { boundedPattern, nativePattern } from "./schema-pattern.ts";
import { type Dialect, dialectOf, SchemaIndex, type SchemaNode, walkSchema } from "./schema-structure.ts";

export interface SchemaCheckOptions {
  /** What the schema describes. Arguments must be an object; output, and the result that is expected of a call, may be anything. */
  readonly of?: "parameters" | "output" | "result";
  /** The schema comes from an untrusted source: patterns that cannot be matched in bounded time are reported. */
  readonly untrustedPatterns?: boolean;
}

/**
 * Validates a schema before its first use, without compiling it: against the meta-schema of its draft, for unresolvable references, for
 * patterns that cannot be matched, and for the top-level type of parameters.
 */
export function checkSchema(schema: unknown, options: SchemaCheckOptions = {}): readonly Diagnostic[] {
  const what = names[options.of ?? "parameters"];
  try {
    if (isSimple(schema)) return checkType(schema, what);
    return [...checkType(schema, what), ...checkAgainstMeta(schema, what), ...checkParts(schema, what, options.untrustedPatterns === true)];
  } catch {
    // Cyclic data, throwing getters, or nesting deeper than the stack: not a usable schema.
    return [report("error", "SCHEMA_INVALID", `${what} cannot be read as a JSON Schema. Use plain JSON data.`)];
  }
}

const names = { parameters: "parameters", output: "outputSchema", result: "schema" } as const;

function checkType(schema: unknown, what: string): readonly Diagnostic[] {
  if (!isRecord(schema)) return [];
  if (what !== names.parameters || schema["type"] === "object") return [];
  if (areProperties(schema)) {
    const [first = ""] = Object.keys(schema);
    const message = `${what} is a list of properties instead of a schema. Use { "type": "object", "properties": { ${JSON.stringify(first)}: …, } }.`;
    return [report("error", "SCHEMA_PROPERTIES", message)];
  }
  if (schema["type"] === undefined)
    return [report("warning", "SCHEMA_TYPE_MISSING", `${what} has no type, which some models reject. Add "type": "object".`)];
  return [report("error", "SCHEMA_NOT_OBJECT", `${what} has the type ${JSON.stringify(schema["type"])}, but it must be "object".`)];
}

/** Whether this is the content of `properties` without the schema around it. */
function areProperties(schema: SchemaNode): boolean {
  const values = Object.values(schema);
  return values.length > 0 && values.every((value) => isRecord(value) && saysWhatItIs(value));
}

function saysWhatItIs({ type, description, ...rest }: SchemaNode): boolean {
  if (typeof type === "string" || Array.isArray(type) || typeof description === "string" || typeof rest["$ref"] === "string") return true;
  return ["enum", "anyOf", "oneOf", "allOf"].some((keyword) => Array.isArray(rest[keyword]));
}

const metaSchemas: Readonly<Record<Dialect, string>> = {
  "2020-12": "https://json-schema.org/draft/2020-12/schema",
  "2019-09": "https://json-schema.org/draft/2019-09/schema",
  "draft-07": "http://json-schema.org/draft-07/schema",
};

/**
 * Whether a schema consists only of common keywords with values that every draft allows, and has no references and no patterns. Most
 * schemas do, and this costs a fraction of their check against the meta-schema. False says nothing about a schema.
 */
function isSimple(schema: unknown): boolean {
  return isRecord(schema) && isSimpleSchema(schema, { left: maxSimpleSchemas }, 0);
}

const maxSimpleSchemas = 5_000;
const maxSimpleDepth = 40;

interface Budget {
  left: number;
}

function isSimpleSchema(schema: unknown, budget: Budget, depth: number): boolean {
  if (typeof schema === "boolean") return true;
  if (!isRecord(schema) || depth > maxSimpleDepth || --budget.left < 0) return false;
  for (const keyword of Object.keys(schema)) {
    const kind = simpleKeywords.get(keyword);
    if (kind === undefined || !isValueOf(kind, schema[keyword], budget, depth + 1)) return false;
  }
  return true;
}

type ValueKind =
  | "any"
  | "draft"
  | "text"
  | "flag"
  | "number"
  | "positive"
  | "count"
  | "list"
  | "names"
  | "values"
  | "type"
  | "schema"
  | "schemas"
  | "named";

const simpleKeywords: ReadonlyMap<string, ValueKind> = new Map<string, ValueKind>([
  ...["const", "default"].map((keyword) => [keyword, "any"] as const),
  ...["title", "description", "$comment", "format"].map((keyword) => [keyword, "text"] as const),
  ...["uniqueItems", "deprecated", "readOnly", "writeOnly"].map((keyword) => [keyword, "flag"] as const),
  ...["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"].map((keyword) => [keyword, "number"] as const),
  ...["minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"].map((keyword) => [keyword, "count"] as const),
  ...["items", "additionalProperties", "propertyNames", "contains", "not"].map((keyword) => [keyword, "schema"] as const),
  ...["anyOf", "oneOf", "allOf"].map((keyword) => [keyword, "schemas"] as const),
  ["$schema", "draft"],
  ["properties", "named"],
  ["multipleOf", "positive"],
  ["examples", "list"],
  ["required", "names"],
  ["enum", "values"],
  ["type", "type"],
]);

const draftAddresses = new Set<unknown>([...Object.values(metaSchemas), `${metaSchemas["draft-07"]}#`]);
const typeNames = new Set<unknown>(["array", "boolean", "integer", "null", "number", "object", "string"]);

function isValueOf(kind: ValueKind, value: unknown, budget: Budget, depth: number): boolean {
  switch (kind) {
    case "any":
      return true;
    case "draft":
      return draftAddresses.has(value);
    case "text":
      return typeof value === "string";
    case "flag":
      return typeof value === "boolean";
    case "number":
      return Number.isFinite(value);
    case "positive":
      return Number.isFinite(value) && (value as number) > 0;
    case "count":
      return Number.isSafeInteger(value) && (value as number) >= 0;
    case "list":
      return Array.isArray(value);
    case "names":
      return isSetOf(value, (name) => typeof name === "string");
    case "values":
      return isSetOf(value, (item) => typeof item !== "object" || item === null) && (value as readonly unknown[]).length > 0;
    case "type":
      return typeNames.has(value) || (isSetOf(value, (name) => typeNames.has(name)) && (value as readonly unknown[]).length > 0);
    case "schema":
      return isSimpleSchema(value, budget, depth);
    case "schemas":
      return Array.isArray(value) && value.length > 0 && value.every((schema) => isSimpleSchema(schema, budget, depth));
    case "named":
      return isRecord(value) && Object.keys(value).every((name) => isSimpleSchema(value[name], budget, depth));
  }
}

function isSetOf(value: unknown, isItem: (item: unknown) => boolean): boolean {
  return Array.isArray(value) && value.every(isItem) && new Set(value).size === value.length;
}

function checkAgainstMeta(schema: unknown, what: string): readonly Diagnostic[] {
  if (!isRecord(schema)) return [report("error", "SCHEMA_INVALID", `${what} must be a JSON Schema object.`)];
  const evaluator = metaEvaluator(dialectOf(schema));
  const run = new EvaluationRun(evaluator.index.rootBase, { limit: maxSteps, faults: "first" });
  let fits = evaluator.advance(schema, run);
  while (fits === pause) fits = evaluator.advance(schema, run);
  return issuesOf(run.faults ?? [], schema).map((issue) =>
    report("error", "SCHEMA_INVALID", `${issue.path === "" ? what : `${what}.${issue.path}`} ${issue.message}.`),
  );
}

// A schema of a million characters takes a fraction of it.
const maxSteps = 2_000_000;

const metaEvaluators = new Map<Dialect, SchemaEvaluator>();

/** Prepared once per draft, then shared. */
function metaEvaluator(dialect: Dialect): SchemaEvaluator {
  const known = metaEvaluators.get(dialect);
  if (known !== undefined) return known;
  const address = metaSchemas[dialect];
  const evaluator = new SchemaEvaluator({ $schema: address, $ref: address }, { toPattern: nativePattern, formats: new Map() });
  metaEvaluators.set(dialect, evaluator);
  return evaluator;
}

function checkParts(schema: unknown, what: string, untrustedPatterns: boolean): readonly Diagnostic[] {
  const found: Diagnostic[] = [];
  const index = new SchemaIndex(schema);
  const add = (severity: Severity, code: string, path: readonly string[], text: string): void => {
    if (found.length < maxFound) found.push(report(severity, code, `${[what, ...path].join(".")}: ${text}`));
  };
  walkSchema(schema, (part, path) => {
    if (found.length >= maxFound) return;
    const reference = part["$ref"];
    if (typeof reference === "string" && !index.leadsSomewhere(reference, part)) {
      const text = `"$ref": ${JSON.stringify(reference)} does not exist in this schema. References are not fetched: copy the target into "$defs".`;
      add("error", "SCHEMA_REF_UNRESOLVED", path, text);
    }
    for (const pattern of patternsOf(part)) {
      const problem = patternProblem(pattern, untrustedPatterns);
      if (problem !== null) add("warning", "SCHEMA_PATTERN_UNSUPPORTED", path, `the pattern ${JSON.stringify(pattern)} ${problem}`);
    }
  });
  return found;
}

const maxFound = 8;

function patternsOf(part: SchemaNode): readonly string[] {
  if (part["pattern"] === undefined && part["patternProperties"] === undefined) return [];
  const own = typeof part["pattern"] === "string" ? [part["pattern"]] : [];
  return isRecord(part["patternProperties"]) ? [...own, ...Object.keys(part["patternProperties"])] : own;
}

function patternProblem(pattern: string, untrusted: boolean): string | null {
  if (nativePattern(pattern) === null) return "is not a valid regular expression, so it is not checked. Fix it.";
  if (untrusted && boundedPattern(pattern) === null)
    return "cannot be matched in bounded time (look-around, back-references), so it is not checked.";
  return null;
}

function report(severity: Severity, code: string, message: string): Diagnostic {
  return { severity, code, message };
}
