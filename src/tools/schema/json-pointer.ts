import { isRecord } from "../walk-schema.ts";

/** What a JSON pointer (without its first slash, as in a reference) leads to; undefined when it leads nowhere. */
export function resolvePointer(root: unknown, pointer: string): unknown {
  let at: unknown = root;
  for (const segment of pointer.split("/")) {
    const key = decoded(segment).replaceAll("~1", "/").replaceAll("~0", "~");
    if (!(isRecord(at) || Array.isArray(at)) || !Object.hasOwn(at, key)) return undefined;
    at = (at as Readonly<Record<string, unknown>>)[key];
  }
  return at;
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    // Not percent-encoded after all: it is taken as it stands.
    return segment;
  }
}
