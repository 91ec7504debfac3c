import { isRecord } from "../../src/base/json.ts";

type Schema = Readonly<Record<string, unknown>>;

const mapsOfSchemas = ["properties", "$defs", "definitions", "dependentSchemas"];
const listsOfSchemas = ["anyOf", "oneOf", "allOf"];
const schemas = ["items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames"];

/**
 * The schema of a tool in a form that a form can show. It decides nothing: the host checks what is sent against the schema as it is.
 * A choice between something and null becomes one type, a tuple is written as in draft 7, and branches without a title get one.
 * Patterns are left out, because a regular expression of a stranger can occupy the page for minutes.
 */
export function toFormSchema(schema: unknown): Schema {
  return isRecord(schema) ? simplify(schema, true) : {};
}

function simplify(schema: Schema, isRoot = false): Schema {
  const { pattern: _pattern, patternProperties: _patterns, $schema: _dialect, $id: _id, ...rest } = schema;
  const simple: Record<string, unknown> = { ...rest };
  for (const key of mapsOfSchemas) if (isRecord(simple[key])) simple[key] = mapValues(simple[key], simplifyAny);
  for (const key of listsOfSchemas) if (Array.isArray(simple[key])) simple[key] = simple[key].map(simplifyAny);
  for (const key of schemas) if (key in simple) simple[key] = simplifyAny(simple[key]);
  if (Array.isArray(simple["prefixItems"])) toDraft7Tuple(simple);
  for (const key of ["anyOf", "oneOf"]) mergeNull(simple, key);
  for (const key of ["anyOf", "oneOf"]) nameBranches(simple, key);
  // Arguments are an object, whatever their schema leaves open.
  if (isRoot && simple["type"] === undefined && simple["$ref"] === undefined) simple["type"] = "object";
  return simple;
}

function simplifyAny(schema: unknown): unknown {
  return isRecord(schema) ? simplify(schema) : schema;
}

function toDraft7Tuple(schema: Record<string, unknown>): void {
  const { prefixItems, items } = schema;
  delete schema["prefixItems"];
  schema["items"] = (prefixItems as readonly unknown[]).map(simplifyAny);
  // Tools that describe a tuple mostly mean one of this length: more is written in the JSON view.
  schema["additionalItems"] = isRecord(items) ? items : false;
  schema["type"] ??= "array";
}

/** `anyOf: [X, {type: "null"}]` is X that may be null, if X is a simple value. */
function mergeNull(schema: Record<string, unknown>, key: string): void {
  const branches = schema[key];
  if (!Array.isArray(branches) || branches.length !== 2) return;
  const value = branches.find((branch) => isRecord(branch) && branch["type"] !== "null");
  const isOnlyNull = (branch: unknown): boolean => isRecord(branch) && branch["type"] === "null";
  if (!branches.some(isOnlyNull) || !isRecord(value)) return;
  const type = value["type"] ?? (Array.isArray(value["enum"]) ? "string" : undefined);
  if (typeof type !== "string" || ["object", "array"].includes(type)) return;
  delete schema[key];
  Object.assign(schema, { ...value, ...schema, type: [type, "null"] });
  if (Array.isArray(value["enum"])) schema["enum"] = [...value["enum"].filter((member) => member !== null), null];
}

function nameBranches(schema: Record<string, unknown>, key: string): void {
  const branches = schema[key];
  if (!Array.isArray(branches)) return;
  schema[key] = branches.map((branch, index) =>
    isRecord(branch) && branch["title"] === undefined ? { ...branch, title: branchName(branch, index) } : branch,
  );
}

function branchName(branch: Schema, index: number): string {
  const properties = isRecord(branch["properties"]) ? Object.entries(branch["properties"]) : [];
  const constants = properties.filter(([, property]) => isRecord(property) && "const" in property);
  if (constants.length > 0) {
    return constants.map(([name, property]) => `${name}: ${JSON.stringify((property as Schema)["const"])}`).join(", ");
  }
  if (typeof branch["$ref"] === "string") return branch["$ref"].split("/").at(-1) || `Option ${index + 1}`;
  if (properties.length > 0) return properties.map(([name]) => name).join(", ");
  return typeof branch["type"] === "string" ? branch["type"] : `Option ${index + 1}`;
}

function mapValues(object: Schema, convert: (value: unknown) => unknown): Schema {
  // Object.fromEntries makes own properties of every name, `__proto__` included.
  return Object.fromEntries(Object.entries(object).map(([name, value]) => [name, convert(value)]));
}
