import { Composer, type CST, type Document, isAlias, isMap, isScalar, isSeq, type Node, Parser, type YAMLMap } from "yaml";

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

const maxLines = 1_000;
// Characters with a special meaning in YAML: control characters, other white space and line breaks, byte order marks, lone
// surrogates.
const nonAscii = /[^\n\x20-\x7e]/;
const unusual = /[^\n\x20-\x7e\u00a0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\u{10000}-\u{10ffff}]|[^\S\n ]/u;

const keyLine = /^( *)([A-Za-z][\w-]{0,99}):(?: +(\S.*)|) *$/;
const itemLine = /^( *)(-) +(\S.*)$/;
const quotedText = /^(?:"((?:[^"\\]|\\["\\/nt])*)"|'((?:[^']|'')*)')$/;
const plainText = /^[A-Za-z][^\n]*$/;
const notPlain = /: |:$| #/;
const reserved = /^(?:null|true|false)$/i;
const versionText = /^\d{1,9}\.\d{1,9}\.\d{1,9}$/;
const decimal = /^(?:0|[1-9]\d{0,8})(?:\.\d{1,9})?$/;
const blockHeader = /^([|>])(-?)$/;

/** The lines of a text, and the next one to read. */
interface Lines {
  readonly texts: readonly string[];
  next: number;
}

/**
 * Reads the YAML of most front matter about ten times as fast as the YAML parser, with the same result: `key: text` lines,
 * lists and mappings of such texts one level below, and block texts with a single indentation. Undefined: the text has other
 * syntax, so the YAML parser must read it. @internal Exported for tests.
 */
export function readPlainYaml(source: string): YamlMapRead | undefined {
  if (nonAscii.test(source) && unusual.test(source)) return undefined;
  const lines: Lines = { texts: source.split("\n"), next: 0 };
  if (lines.texts.length > maxLines) return undefined;
  const data: Record<string, unknown> = Object.create(null);
  const keys = new Map<string, number>();
  let offset = 0;
  while (lines.next < lines.texts.length) {
    const start = lines.next++;
    const text = lines.texts[start]!;
    if (text !== "") {
      const [, indent, key, given] = keyLine.exec(text) ?? [];
      if (key === undefined || indent !== "" || keys.has(key) || reserved.test(key)) return undefined;
      const value = given === undefined ? readChildren(lines) : readValue(given, lines);
      if (value === undefined) return undefined;
      keys.set(key, offset);
      data[key] = value;
    }
    for (let at = start; at < lines.next; at++) offset += lines.texts[at]!.length + 1;
  }
  return keys.size === 0 ? undefined : { kind: "map", data, keys, faults: [] };
}

function readValue(given: string, lines: Lines): unknown {
  const [, style, chomping] = blockHeader.exec(given) ?? [];
  if (style !== undefined) return readBlock(lines, style === ">", chomping === "-");
  // An indented line continues a text; a line that does not begin with a key may continue one.
  const next = lines.texts[lines.next];
  return next === undefined || next === "" || keyLine.exec(next)?.[1] === "" ? readScalar(given) : undefined;
}

function readScalar(given: string): unknown {
  const text = given.trimEnd();
  const [isQuoted, double, single] = quotedText.exec(text) ?? [];
  if (isQuoted !== undefined) return double === undefined ? single!.replaceAll("''", "'") : JSON.parse(text);
  if (text === "true" || text === "false") return text === "true";
  if (versionText.test(text)) return text;
  if (decimal.test(text)) return Number(text);
  return plainText.test(text) && !notPlain.test(text) && !reserved.test(text) ? text : undefined;
}

/** The list or mapping below a key; all its lines have the same indentation. */
function readChildren(lines: Lines): unknown {
  const first = lines.texts[lines.next] ?? "";
  const isList = itemLine.test(first);
  const indent = (isList ? itemLine : keyLine).exec(first)?.[1];
  if (indent === undefined || (!isList && indent === "")) return undefined;
  const items: unknown[] = [];
  const members: Record<string, unknown> = {};
  for (; lines.next < lines.texts.length; lines.next++) {
    const text = lines.texts[lines.next]!;
    const [, at, name, given] = (isList ? itemLine : keyLine).exec(text) ?? [];
    if (name === undefined || at !== indent) {
      // Only a key of the outer mapping ends this one.
      if (
        text === ""
          ? lines.texts.slice(lines.next).some((rest) => rest.startsWith(" ") || rest.startsWith("-"))
          : keyLine.exec(text)?.[1] !== ""
      )
        return undefined;
      break;
    }
    const value = given === undefined ? undefined : readScalar(given);
    if (value === undefined || Object.hasOwn(members, name) || (!isList && reserved.test(name))) return undefined;
    if (isList) items.push(value);
    else members[name] = value;
  }
  return isList ? items : members;
}

/** The text of a block whose lines all have the indentation of the first; folded lines are joined by spaces. */
function readBlock(lines: Lines, isFolded: boolean, isStripped: boolean): string | undefined {
  const indent = /^ +(?=\S)/.exec(lines.texts[lines.next] ?? "")?.[0];
  if (indent === undefined) return undefined;
  const texts: string[] = [];
  for (; lines.next < lines.texts.length; lines.next++) {
    const text = lines.texts[lines.next]!;
    if (text !== "" && !text.startsWith(indent)) break;
    const content = text.slice(indent.length);
    if (/^ | $/.test(content)) return undefined;
    texts.push(content);
  }
  const after = lines.texts[lines.next];
  if (after !== undefined && keyLine.exec(after)?.[1] !== "") return undefined;
  while (texts.at(-1) === "") texts.pop();
  const joined = isFolded ? texts.join("\n").replace(/\n+/g, (breaks) => (breaks === "\n" ? " " : breaks.slice(1))) : texts.join("\n");
  return isStripped ? joined : `${joined}\n`;
}

/** A fault in a YAML text, at an offset in it. */
export interface YamlFault {
  readonly code: string;
  readonly message: string;
  readonly offset: number;
}

interface YamlMapRead {
  readonly kind: "map";
  /** Without a prototype at the top; plain objects below, and no key anywhere is `__proto__`. */
  readonly data: Record<string, unknown>;
  /** The offset of each top-level key. */
  readonly keys: ReadonlyMap<string, number>;
  /** Tolerated faults: duplicate keys, refused keys. */
  readonly faults: readonly YamlFault[];
}

type YamlMapResult =
  | YamlMapRead
  | { readonly kind: "empty" }
  | { readonly kind: "other" }
  | { readonly kind: "broken"; readonly fault: YamlFault };
