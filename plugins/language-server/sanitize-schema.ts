import { type Fields, isFields } from "./wire.ts";

/** A change to a schema. */
export interface SchemaChange {
  /** JSON pointer into the registration. */
  readonly pointer: string;
  readonly what: string;
}

export interface SanitizedSchema {
  readonly schema: Fields;
  readonly changes: readonly SchemaChange[];
}

/**
 * Converts a schema to the form that the server accepts: with `type`, `properties` and `required`, and with one type as a
 * string and a description for each property. Only this level is changed. The given schema is not modified; unchanged
 * parts are shared with it.
 */
export function sanitizeSchema(given: Fields): SanitizedSchema {
  const changes: SchemaChange[] = [];
  const change = (pointer: string, what: string): void => void changes.push({ pointer: `/inputSchema${pointer}`, what });
  const schema: Record<string, unknown> = { ...given };
  if (typeof schema["type"] !== "string") {
    schema["type"] = "object";
    change("/type", 'was set to "object"');
  }
  if (!isFields(schema["properties"])) {
    schema["properties"] = {};
    change("/properties", "was missing");
  }
  if (!Array.isArray(schema["required"])) {
    schema["required"] = [];
    change("/required", "was missing");
  }
  const required = (schema["required"] as readonly unknown[]).filter((name) => typeof name === "string");
  if (required.length !== (schema["required"] as readonly unknown[]).length) {
    schema["required"] = required;
    change("/required", "had entries that are not names");
  }
  const properties = Object.entries(schema["properties"] as Fields).map(([name, property]) => {
    return [name, sanitizeProperty(name, property, given, (key, what) => change(`/properties/${escaped(name)}${key}`, what))] as const;
  });
  // Own keys only, since a property may be named `__proto__`.
  schema["properties"] = Object.fromEntries(properties);
  return { schema, changes };
}

type Change = (pointer: string, what: string) => void;

function sanitizeProperty(name: string, given: unknown, root: Fields, change: Change): unknown {
  if (given !== true && !isFields(given)) return given;
  const property: Fields = given === true ? {} : given;
  const { type, description } = property;
  const fixed: Record<string, unknown> = { ...property };
  if (typeof type !== "string") {
    fixed["type"] = typeOf(property, root) ?? "string";
    change("/type", `was set to "${String(fixed["type"])}"${Array.isArray(type) ? `, of ${JSON.stringify(type)}` : ""}`);
  }
  if (typeof description !== "string") {
    fixed["description"] = describe(name, property, root);
    change("/description", "was missing");
  }
  return fixed;
}

const maxDepth = 16;

/** The most specific single type of a value. null only if there is no other. */
function typeOf(schema: unknown, root: Fields, depth = 0): string | undefined {
  if (!isFields(schema) || depth > maxDepth) return undefined;
  const { type } = schema;
  if (typeof type === "string") return type;
  if (Array.isArray(type)) return firstBut("null", type);
  const listed = [...listOf(schema["enum"]), ...("const" in schema ? [schema["const"]] : [])];
  if (listed.length > 0) return firstBut("null", listed.map(typeOfValue));
  const target = targetOf(schema["$ref"], root);
  if (target !== undefined) return typeOf(target, root, depth + 1);
  const parts = ["anyOf", "oneOf", "allOf"].flatMap((key) => listOf(schema[key]));
  if (parts.length > 0)
    return firstBut(
      "null",
      parts.map((part) => typeOf(part, root, depth + 1)),
    );
  if ("properties" in schema || "additionalProperties" in schema) return "object";
  return "items" in schema || "prefixItems" in schema ? "array" : undefined;
}

function firstBut(unwanted: string, types: readonly unknown[]): string | undefined {
  const known = types.filter((type): type is string => typeof type === "string");
  return known.find((type) => type !== unwanted) ?? known[0];
}

function typeOfValue(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  return typeof value;
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** The target of a reference within the schema. */
function targetOf(ref: unknown, root: Fields): unknown {
  if (typeof ref !== "string" || !ref.startsWith("#/")) return undefined;
  let at: unknown = root;
  for (const step of ref.slice(2).split("/")) {
    const key = decoded(step).replaceAll("~1", "/").replaceAll("~0", "~");
    if (typeof at !== "object" || at === null || !Object.hasOwn(at, key)) return undefined;
    at = (at as Fields)[key];
  }
  return at;
}

function decoded(step: string): string {
  try {
    return decodeURIComponent(step);
  } catch {
    // A percent sign without an escape stands for itself.
    return step;
  }
}

function describe(name: string, property: Fields, root: Fields): string {
  const parts = [property, targetOf(property["$ref"], root), ...["anyOf", "oneOf", "allOf"].flatMap((key) => listOf(property[key]))];
  for (const part of parts) {
    if (!isFields(part)) continue;
    for (const key of ["description", "title"]) if (typeof part[key] === "string" && part[key] !== "") return part[key] as string;
  }
  return name;
}

function escaped(key: string): string {
  return key.replaceAll("~", "~0").replaceAll("/", "~1");
}
