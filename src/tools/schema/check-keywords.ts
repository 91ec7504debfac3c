import { childSchemas, isRecord, type SchemaNode } from "../walk-schema.ts";
import type { SchemaIndex } from "./schema-index.ts";

/** A keyword whose value means nothing. */
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
 * Looks through all of a schema that values can get to: each keyword has a value of its kind, and each reference leads
 * somewhere. Definitions that nobody refers to are not looked at.
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
