import { createRequire } from "node:module";
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

/** A reference that does not resolve within its schema. Nothing is fetched. */
export class UnresolvedReference extends Error {
  readonly reference: string;

  constructor(reference: string) {
    super(`the reference ${JSON.stringify(reference)} has no target`);
    this.reference = reference;
  }
}

const load: NodeJS.Require = createRequire(import.meta.url);

/** Finds the parts of a schema by address (`$id`), by anchor and by pointer, according to its draft. */
export class SchemaIndex {
  readonly root: unknown;
  readonly dialect: Dialect;
  readonly rootBase: string;
  /** Whether any reference depends on the path by which it was reached. */
  hasDynamic = false;
  readonly #bases = new Map<object, string>();
  readonly #documents = new Map<string, unknown>();
  readonly #anchors = new Map<string, SchemaNode>();
  readonly #dynamicAnchors = new Map<string, SchemaNode>();

  constructor(root: unknown) {
    this.root = root;
    this.dialect = dialectOf(root);
    this.#documents.set("", root);
    this.#add(root, "");
    this.rootBase = this.baseOf(root);
    this.#documents.set(this.rootBase, root);
  }

  /** The base address of the references in this schema. */
  baseOf(schema: unknown): string {
    return (isRecord(schema) ? this.#bases.get(schema) : undefined) ?? "";
  }

  /** @throws UnresolvedReference */
  resolve(reference: string, from: SchemaNode): unknown {
    const [document, fragment] = splitFragment(resolveAddress(this.baseOf(from), reference));
    if (!this.#documents.has(document)) this.#addMetaSchema(document);
    if (!this.#documents.has(document)) throw new UnresolvedReference(reference);
    const root = this.#documents.get(document);
    const found = fragment === "" ? root : this.#find(document, root, fragment);
    if (found === undefined) throw new UnresolvedReference(reference);
    // A pointer may lead outside of schema positions.
    if (isRecord(found) && !this.#bases.has(found)) this.#add(found, document);
    return found;
  }

  leadsSomewhere(reference: string, from: SchemaNode): boolean {
    return this.find(reference, from) !== undefined;
  }

  /** Like `resolve`, for callers to which a missing target means nothing. */
  find(reference: string, from: SchemaNode): unknown {
    try {
      return this.resolve(reference, from);
    } catch (error) {
      if (error instanceof UnresolvedReference) return undefined;
      throw error;
    }
  }

  /** The target of a `$dynamicRef` after these schemas were entered, outermost first; undefined: its static target. */
  findDynamic(name: string, scope: readonly string[]): SchemaNode | undefined {
    for (const base of scope) {
      const found = this.#dynamicAnchors.get(`${base}#${name}`);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  /** The outermost entered schema with `$recursiveAnchor`, as long as all schemas within it have it too. */
  findRecursive(scope: readonly string[]): SchemaNode | undefined {
    let outermost: SchemaNode | undefined;
    for (const base of [...scope].reverse()) {
      const document = this.#documents.get(base);
      if (!isRecord(document) || document["$recursiveAnchor"] !== true) break;
      outermost = document;
    }
    return outermost;
  }

  #find(document: string, root: unknown, fragment: string): unknown {
    if (fragment.startsWith("/")) {
      // Resolves a JSON pointer; undefined when it leads nowhere.
      const pointer = fragment.slice(1);
      let at: unknown = root;
      for (const segment of pointer.split("/")) {
        const key = decoded(segment).replaceAll("~1", "/").replaceAll("~0", "~");
        if (!(isRecord(at) || Array.isArray(at)) || !Object.hasOwn(at, key)) return undefined;
        at = (at as Readonly<Record<string, unknown>>)[key];
      }
      return at;
    }
    return this.#anchors.get(`${document}#${fragment}`);
  }

  #add(root: unknown, base: string): void {
    const waiting: { readonly schema: unknown; readonly base: string }[] = [{ schema: root, base }];
    for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
      if (!isRecord(next.schema) || this.#bases.has(next.schema)) continue;
      const own = this.#note(next.schema, next.base);
      for (const [schema] of childSchemas(next.schema)) waiting.push({ schema, base: own });
    }
  }

  #note(schema: SchemaNode, outer: string): string {
    const id = schema["$id"];
    const address = typeof id === "string" ? splitFragment(resolveAddress(outer, id)) : undefined;
    const base = address?.[0] ?? outer;
    this.#bases.set(schema, base);
    if (address !== undefined && address[1] === "" && !this.#documents.has(base)) this.#documents.set(base, schema);
    // Up to draft 7 an anchor was an `$id` that began with "#".
    const names = [schema["$anchor"], schema["$dynamicAnchor"], address?.[1]].filter((name) => typeof name === "string" && name !== "");
    for (const name of names) this.#anchors.set(`${base}#${name}`, schema);
    if (typeof schema["$dynamicAnchor"] === "string") this.#dynamicAnchors.set(`${base}#${schema["$dynamicAnchor"]}`, schema);
    this.hasDynamic ||= "$dynamicRef" in schema || "$recursiveRef" in schema;
    return base;
  }

  #addMetaSchema(address: string): void {
    const file = metaSchemaFile(address);
    if (file === undefined) return;
    const schema: unknown = structuredClone(load(file));
    this.#documents.set(address, schema);
    this.#add(schema, address);
  }
}

/** The meta-schemas of the drafts, which the ajv package contains. */
function metaSchemaFile(address: string): string | undefined {
  const draft = /^https:\/\/json-schema\.org\/draft\/(2019-09|2020-12)\/(schema|meta\/[a-z-]+)$/.exec(address);
  if (draft !== null) return `ajv/dist/refs/json-schema-${draft[1]}/${draft[2]}.json`;
  const older = /^https?:\/\/json-schema\.org\/draft-0([67])\/schema$/.exec(address);
  return older === null ? undefined : `ajv/dist/refs/json-schema-draft-0${older[1]}.json`;
}

function splitFragment(address: string): readonly [document: string, fragment: string] {
  const at = address.indexOf("#");
  return at === -1 ? [address, ""] : [address.slice(0, at), address.slice(at + 1)];
}

function resolveAddress(base: string, reference: string): string {
  if (reference.startsWith("#")) return base + reference;
  try {
    return new URL(reference, base === "" ? "schema:///" : base).href;
  } catch {
    // Not a URL: it can still be the name of a part.
    return reference;
  }
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    // Not percent-encoded: used as it is.
    return segment;
  }
}
