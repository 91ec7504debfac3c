import { isRecord } from "../../base/json.ts";
import type { Pattern } from "./schema-pattern.ts";
import { type Dialect, type SchemaNode, walkSchema } from "./walk-schema.ts";

const types = new Set(["string", "number", "integer", "boolean", "object", "array", "null"]);

/**
 * Converts keywords of older drafts and of OpenAPI, which servers still send under another dialect or none, to the schema's own dialect,
 * and removes patterns that `toPattern` cannot match. The validator would refuse the whole schema for each of them. Changes the schema in
 * place.
 */
export function repairSchema(root: unknown, dialect: Dialect, toPattern: (source: string) => Pattern | null): void {
  walkSchema(root, (schema) => {
    if (typeof schema["id"] === "string") delete schema["id"];
    if (typeof schema["required"] === "boolean") delete schema["required"];
    // An asynchronous validator would answer with a promise, which counts as "valid".
    delete schema["$async"];
    const { type } = schema;
    if (Array.isArray(type)) {
      const known = type.filter((name) => types.has(name));
      if (known.length < type.length) schema["type"] = known;
      if (known.length === 0) delete schema["type"];
    } else if (type !== undefined && !types.has(type as string)) {
      delete schema["type"];
    }
    // OpenAPI's `nullable` has no meaning beside a `$ref` or a union.
    if ("nullable" in schema && (schema["type"] === undefined || typeof schema["nullable"] !== "boolean")) delete schema["nullable"];
    repairPatterns(schema, toPattern);
    repairBound(schema, "exclusiveMinimum", "minimum");
    repairBound(schema, "exclusiveMaximum", "maximum");
    if (dialect === "2020-12" && Array.isArray(schema["items"])) {
      const items = schema["items"];
      if (items.length > 0) schema["prefixItems"] = items;
      delete schema["items"];
      const rest = schema["additionalItems"];
      if (isRecord(rest) || typeof rest === "boolean") schema["items"] = rest;
    }
  });
}

function repairPatterns(schema: SchemaNode, toPattern: (source: string) => Pattern | null): void {
  const { pattern, patternProperties } = schema;
  if (pattern !== undefined && (typeof pattern !== "string" || toPattern(pattern) === null)) delete schema["pattern"];
  if (!isRecord(patternProperties)) return;
  for (const name of Object.keys(patternProperties)) {
    if (toPattern(name) !== null) continue;
    delete patternProperties[name];
    // Without the pattern, allowed and additional properties cannot be distinguished.
    delete schema["additionalProperties"];
    delete schema["unevaluatedProperties"];
  }
}

function repairBound(schema: SchemaNode, exclusive: string, bound: string): void {
  if (typeof schema[exclusive] !== "boolean") return;
  const isExclusive = schema[exclusive];
  delete schema[exclusive];
  if (!isExclusive || typeof schema[bound] !== "number") return;
  schema[exclusive] = schema[bound];
  delete schema[bound];
}
