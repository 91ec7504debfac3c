import { isRecord } from "../../base/json.ts";
/** A JSON Schema whose keywords are not checked yet. */
export type SchemaNode = Record<string, unknown>;

/**
 * Visits a schema and each of its subschemas once, parents first. Examples, defaults and enum values are data and are not visited. The
 * path consists of keywords and names: `["properties", "city"]`.
 */
export function walkSchema(root: unknown, visit: (schema: SchemaNode, path: readonly string[]) => void): void {
  const seen = new Set<object>();
  const waiting: Waiting[] = [{ schema: root, path: [] }];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const { schema, path } = next;
    if (!isRecord(schema) || seen.has(schema)) continue;
    seen.add(schema);
    visit(schema, path);
    for (const [child, keyword, name] of childSchemas(schema)) {
      waiting.push({ schema: child, path: name === undefined ? [...path, keyword] : [...path, keyword, name] });
    }
  }
}

interface Waiting {
  readonly schema: unknown;
  readonly path: readonly string[];
}

/** What a keyword holds: a schema, an array of schemas (or either), or named schemas. */
export const schemaKeywords: ReadonlyMap<string, "schema" | "named"> = new Map([
  ...["properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"].map((key) => [key, "named"] as const),
  ...["allOf", "anyOf", "oneOf", "prefixItems", "items", "additionalItems", "unevaluatedItems", "contains"].map(
    (key) => [key, "schema"] as const,
  ),
  ...["additionalProperties", "unevaluatedProperties", "propertyNames"].map((key) => [key, "schema"] as const),
  ...["not", "if", "then", "else"].map((key) => [key, "schema"] as const),
]);

/** The values in schema positions, each with its keyword, and with its name or index where the keyword has several. */
export function* childSchemas(schema: SchemaNode): Generator<readonly [child: unknown, keyword: string, name?: string]> {
  for (const keyword of Object.keys(schema)) {
    const kind = schemaKeywords.get(keyword);
    const value = kind === undefined ? undefined : schema[keyword];
    if (typeof value !== "object" || value === null) continue;
    if (kind === "schema" && !Array.isArray(value)) yield [value, keyword];
    else for (const [name, child] of Object.entries(value)) yield [child, keyword, name];
  }
}

export type Dialect = "2020-12" | "2019-09" | "draft-07";

/** The draft that `$schema` names; without one, the current draft. */
export function dialectOf(schema: unknown): Dialect {
  const named = isRecord(schema) ? schema["$schema"] : undefined;
  if (typeof named !== "string") return "2020-12";
  if (/draft-0[3-7]/.test(named)) return "draft-07";
  return named.includes("2019-09") ? "2019-09" : "2020-12";
}
