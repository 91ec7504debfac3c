import type { YamlMapRead } from "./yaml-result.ts";

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
 * syntax, so the YAML parser must read it.
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
