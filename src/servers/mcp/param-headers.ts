import { isPlainRecord } from "../../base/read-fields.ts";

/** A parameter that clients repeat as a header, so that what stands between can route by it (`x-mcp-header` in its schema). */
interface HeaderParameter {
  readonly path: readonly string[];
  readonly header: string;
}

const ofSchemas = new WeakMap<object, readonly HeaderParameter[]>();

/**
 * Compares the `Mcp-Param-*` headers of a call with its arguments, as revision 2026-07-28 demands: whoever decides by a
 * header must not be led to decide about something else. Gives the name of a header that is missing or does not agree.
 */
export function disagreeingHeader(schema: object, args: unknown, headers: Headers): string | undefined {
  for (const { path, header } of parametersOf(schema)) {
    const text = textOf(path.reduce<unknown>((value, key) => (isPlainRecord(value) ? value[key] : undefined), args));
    if (text === undefined) continue;
    const given = decode(headers.get(header));
    if (given !== text && !areSameNumber(given, text)) return header;
  }
  return undefined;
}

function parametersOf(schema: object): readonly HeaderParameter[] {
  const known = ofSchemas.get(schema);
  if (known !== undefined) return known;
  const found: HeaderParameter[] = [];
  collect(schema, [], found);
  ofSchemas.set(schema, found);
  return found;
}

const maxDepth = 20;

function collect(schema: unknown, path: readonly string[], into: HeaderParameter[]): void {
  const properties = isPlainRecord(schema) ? schema["properties"] : undefined;
  if (!isPlainRecord(properties) || path.length >= maxDepth) return;
  for (const [key, property] of Object.entries(properties)) {
    const own = [...path, key];
    const name = isPlainRecord(property) ? property["x-mcp-header"] : undefined;
    if (typeof name === "string" && /^[!#$%&'*+\-.^_`|~\w]+$/.test(name)) into.push({ path: own, header: `Mcp-Param-${name}` });
    collect(property, own, into);
  }
}

function textOf(value: unknown): string | undefined {
  if (typeof value === "string") return value;
  if (typeof value === "boolean") return String(value);
  return Number.isSafeInteger(value) ? String(value) : undefined;
}

// What a header cannot hold as it is comes as `=?base64?…?=`; what only looks so is no value at all.
function decode(value: string | null): string | undefined {
  const encoded = /^=\?base64\?(.*)\?=$/s.exec(value ?? "")?.[1];
  if (encoded === undefined) return value ?? undefined;
  const isBase64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(encoded);
  return isBase64 ? Buffer.from(encoded, "base64").toString("utf8") : undefined;
}

function areSameNumber(given: string | undefined, text: string): boolean {
  return given !== undefined && /^-?\d+(\.\d+)?$/.test(given) && /^-?\d+$/.test(text) && Number(given) === Number(text);
}
