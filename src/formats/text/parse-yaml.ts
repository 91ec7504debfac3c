import { Composer, type CST, type Document, isAlias, isMap, isScalar, isSeq, type Node, Parser, type YAMLMap } from "yaml";
import { readPlainYaml } from "./plain-yaml.ts";
import type { YamlFault, YamlMapResult } from "./yaml-result.ts";

// Far more than in any real file.
const maxDepth = 64;

/**
 * Parses one YAML document, or returns its fault. The nesting is measured on the parser's tokens before any recursion, because
 * V8 ends the process instead of throwing when it compiles a regular expression on a nearly exhausted stack. The caller detects
 * duplicate keys, because the parser needs quadratic time for that.
 */
export function parseYaml(source: string, schema: "core" | "failsafe"): Document.Parsed | YamlFault {
  const tokens = [...new Parser().parse(source)];
  const deep = findTooDeep(tokens);
  if (deep !== undefined) return { code: "TOO_DEEP", message: `The YAML is nested more than ${maxDepth} levels deep.`, offset: deep };
  // logLevel "warn" would emit process warnings.
  const composer = new Composer({ schema, uniqueKeys: false, resolveKnownTags: false, logLevel: "error" });
  const [document, second] = composer.compose(tokens, true, source.length);
  if (second !== undefined) return { code: "MULTIPLE_DOCS", message: "The YAML has more than one document.", offset: second.range[0] };
  const error = document!.errors[0];
  return error === undefined ? (document as Document.Parsed) : { code: error.code, message: error.message, offset: error.pos[0] };
}

function findTooDeep(tokens: readonly CST.Token[]): number | undefined {
  const open: { readonly token: CST.Token; readonly depth: number }[] = tokens.map((token) => ({ token, depth: 0 }));
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { token, depth } = next;
    if (depth > maxDepth) return token.offset;
    for (const inner of innerTokens(token)) open.push({ token: inner, depth: depth + 1 });
  }
  return undefined;
}

function innerTokens(token: CST.Token): readonly CST.Token[] {
  if (token.type === "document") return token.value ? [token.value] : [];
  if (!("items" in token)) return [];
  return token.items.flatMap((item) => [item.key, item.value].filter((part) => part != null));
}

// A larger document, with aliases expanded, is an attack.
const maxNodes = 50_000;

/** Reads a YAML mapping with the core schema (YAML 1.2). Never throws; time and memory are bounded for all uses of aliases. */
export function parseYamlMap(source: string): YamlMapResult {
  return readPlainYaml(source) ?? parseFullYamlMap(source);
}

/** Like `parseYamlMap`, but always with the YAML parser. @internal Exported for tests. */
export function parseFullYamlMap(source: string): YamlMapResult {
  const document = parseYaml(source, "core");
  if ("message" in document) return { kind: "broken", fault: document };
  // Warnings report unknown tags: text that begins with an exclamation mark would lose its first word.
  const warning = document.warnings[0];
  if (warning !== undefined) return { kind: "broken", fault: { code: warning.code, message: warning.message, offset: warning.pos[0] } };
  if (document.contents === null || (isScalar(document.contents) && document.contents.value === null)) return { kind: "empty" };
  return isMap(document.contents) ? readMap(document.contents as YAMLMap<Node, Node | null>) : { kind: "other" };
}

interface Reading {
  readonly anchors: Map<string, { readonly value: unknown; readonly nodes: number }>;
  readonly faults: YamlFault[];
  readonly keys: Map<string, number>;
  nodes: number;
  failed: YamlFault | undefined;
}

function readMap(map: YAMLMap<Node, Node | null>): YamlMapResult {
  const reading: Reading = { anchors: new Map(), faults: [], keys: new Map(), nodes: 0, failed: undefined };
  const data: Record<string, unknown> = Object.create(null);
  fill(data, map, reading, reading.keys);
  if (reading.failed !== undefined) return { kind: "broken", fault: reading.failed };
  return { kind: "map", data, keys: reading.keys, faults: reading.faults };
}

function toValue(node: Node | null, reading: Reading): unknown {
  reading.nodes++;
  if (node === null || reading.failed !== undefined) return null;
  if (isAlias(node)) {
    // Also absent while the anchored value is being read, because an alias inside its own value would form a cycle.
    const target = reading.anchors.get(node.source);
    if (target === undefined)
      return fail(reading, "BAD_ALIAS", `The alias *${node.source} has no value. Put quotes around text that starts with *.`, node);
    reading.nodes += target.nodes;
    if (reading.nodes > maxNodes)
      return fail(reading, "TOO_MANY_NODES", `The YAML has more than ${maxNodes} values after aliases are expanded.`, node);
    return target.value;
  }
  if (reading.nodes > maxNodes)
    return fail(reading, "TOO_MANY_NODES", `The YAML has more than ${maxNodes} values after aliases are expanded.`, node);
  const before = reading.nodes;
  const value = isScalar(node) ? node.value : toCollection(node, reading);
  if (node.anchor !== undefined) reading.anchors.set(node.anchor, { value, nodes: reading.nodes - before + 1 });
  return value;
}

function toCollection(node: Node, reading: Reading): unknown {
  if (isSeq(node)) return node.items.map((item) => toValue(item as Node | null, reading));
  const object: Record<string, unknown> = {};
  if (isMap(node)) fill(object, node as YAMLMap<Node, Node | null>, reading, new Map());
  return object;
}

function fill(target: Record<string, unknown>, map: YAMLMap<Node, Node | null>, reading: Reading, seen: Map<string, number>): void {
  for (const { key, value } of map.items) {
    const name = keyName(key, reading);
    if (name === undefined) continue;
    if (seen.has(name)) tolerate(reading, "DUPLICATE_KEY", `The key "${name}" occurs twice; the last one is used. Remove the other.`, key);
    seen.set(name, key?.range?.[0] ?? 0);
    target[name] = toValue(value, reading);
  }
}

function keyName(key: Node | null, reading: Reading): string | undefined {
  const value = isAlias(key) ? reading.anchors.get(key.source)?.value : isScalar(key) ? key.value : key;
  if (typeof value === "object" && value !== null) {
    tolerate(reading, "KEY_REFUSED", "A key that is a list or a mapping is ignored. Use strings as keys.", key);
    return undefined;
  }
  if (value !== "__proto__") return value === null ? "" : String(value);
  tolerate(reading, "KEY_REFUSED", 'The key "__proto__" is ignored. Use another name.', key);
  return undefined;
}

function fail(reading: Reading, code: string, message: string, node: Node): null {
  reading.failed ??= { code, message, offset: node.range?.[0] ?? 0 };
  return null;
}

function tolerate(reading: Reading, code: string, message: string, node: Node | null): void {
  reading.faults.push({ code, message, offset: node?.range?.[0] ?? 0 });
}
