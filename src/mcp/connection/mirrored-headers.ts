import { isRecord, type Json } from "../../base/json.ts";

/** An argument that is also sent as a header, so that proxies can route by it. */
interface Mirror {
  readonly path: readonly string[];
  readonly header: string;
}

type Mirrors = { readonly ok: true; readonly mirrors: readonly Mirror[] } | { readonly ok: false; readonly fault: string };

const annotation = "x-mcp-header";
const headerName = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const mirroredTypes = ["string", "integer", "boolean"];
const deepest = 64;
const found = new WeakMap<object, Mirrors>();

/** The fault in the `x-mcp-header` annotations of a tool's schema, if any. The specification requires such tools to be excluded. */
export function faultOfMirrors(inputSchema: unknown): string | undefined {
  const mirrors = mirrorsOf(inputSchema);
  return mirrors.ok ? undefined : mirrors.fault;
}

/** The headers of a call, by the annotations in its tool's schema; undefined without annotations. */
export function mirroredHeaders(inputSchema: unknown, args: Json): Readonly<Record<string, string>> | undefined {
  const mirrors = mirrorsOf(inputSchema);
  if (!mirrors.ok || mirrors.mirrors.length === 0) return undefined;
  const headers = mirrors.mirrors.flatMap(({ path, header }) => {
    const text = headerText(valueAt(args, path));
    return text === undefined ? [] : [[`Mcp-Param-${header}`, text]];
  });
  return Object.fromEntries(headers);
}

function mirrorsOf(schema: unknown): Mirrors {
  if (!isRecord(schema)) return { ok: true, mirrors: [] };
  const known = found.get(schema);
  if (known !== undefined) return known;
  const mirrors = findMirrors(schema);
  found.set(schema, mirrors);
  return mirrors;
}

function findMirrors(schema: Json): Mirrors {
  const mirrors: Mirror[] = [];
  const fault = visit(schema, [], true, mirrors);
  if (fault !== undefined) return { ok: false, fault };
  const names = mirrors.map(({ header }) => header.toLowerCase());
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  return twice === undefined ? { ok: true, mirrors } : { ok: false, fault: `two arguments use the header ${twice}` };
}

/** Only properties reached by `properties` alone may be mirrored: elsewhere it is unknown which value is meant. */
function visit(node: unknown, path: readonly string[], isPlain: boolean, mirrors: Mirror[], depth = 0): string | undefined {
  if (depth > deepest || typeof node !== "object" || node === null) return undefined;
  if (Array.isArray(node))
    return firstFault(
      node.map((item) => [item, path, false]),
      mirrors,
      depth,
    );
  const schema = node as Json;
  if (Object.hasOwn(schema, annotation)) {
    const fault = faultOf(schema, path, isPlain);
    if (fault !== undefined) return `${path.join(".") || "the schema itself"}: ${fault}`;
    mirrors.push({ path, header: schema[annotation] as string });
  }
  const parts = Object.entries(schema).flatMap(([keyword, value]): Part[] => {
    if (keyword === "properties" && isRecord(value)) {
      return Object.entries(value).map(([name, property]) => [property, [...path, name], isPlain]);
    }
    return subschemas.has(keyword) ? partsOf(keyword, value, path) : [];
  });
  return firstFault(parts, mirrors, depth);
}

type Part = readonly [node: unknown, path: readonly string[], isPlain: boolean];

function partsOf(keyword: string, value: unknown, path: readonly string[]): Part[] {
  const nodes = named.has(keyword) && isRecord(value) ? Object.values(value) : [value];
  return nodes.map((node) => [node, [...path, keyword], false]);
}

function firstFault(parts: readonly Part[], mirrors: Mirror[], depth: number): string | undefined {
  for (const [node, path, isPlain] of parts) {
    const fault = visit(node, path, isPlain, mirrors, depth + 1);
    if (fault !== undefined) return fault;
  }
  return undefined;
}

const named = new Set(["patternProperties", "dependentSchemas", "$defs", "definitions"]);
const subschemas = new Set([
  ...named,
  ...["items", "prefixItems", "contains", "additionalProperties", "unevaluatedProperties", "unevaluatedItems", "propertyNames"],
  ...["oneOf", "anyOf", "allOf", "not", "if", "then", "else"],
]);

function faultOf(schema: Json, path: readonly string[], isPlain: boolean): string | undefined {
  const name = schema[annotation];
  if (path.length === 0 || !isPlain) return `${annotation} is allowed only on a property that is always present`;
  if (typeof name !== "string" || !headerName.test(name)) return `${annotation} is not a valid header name`;
  const { type } = schema;
  return typeof type === "string" && mirroredTypes.includes(type)
    ? undefined
    : `${annotation} requires the type string, integer or boolean`;
}

function valueAt(root: Json, path: readonly string[]): unknown {
  let value: unknown = root;
  for (const name of path) value = isRecord(value) && Object.hasOwn(value, name) ? value[name] : undefined;
  return value;
}

function headerText(value: unknown): string | undefined {
  if (typeof value === "boolean") return String(value);
  if (typeof value === "number") {
    const isExact = Number.isSafeInteger(value) || (Number.isFinite(value) && !Number.isInteger(value));
    return isExact ? String(value) : undefined;
  }
  if (typeof value !== "string") return undefined;
  const isSafe = /^[\x20-\x7e\t]+$/.test(value) && value === value.trim() && !/^=\?base64\?.*\?=$/s.test(value);
  return isSafe ? value : `=?base64?${Buffer.from(value, "utf8").toString("base64")}?=`;
}
