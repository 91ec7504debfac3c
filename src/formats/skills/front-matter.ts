import type { Diagnostic, Position } from "../../base/diagnostic.ts";
import { findHidden, hiddenWords, withoutHidden } from "../../base/untrusted-text.ts";
import { hiddenMessage, hiddenTextCode, reportHidden } from "../text/decode-text.ts";
import { maxFrontMatterLength } from "../text/limits.ts";
import { parseYaml, parseYamlMap, type YamlFault } from "../text/parse-yaml.ts";
import { createTextReport, type TextReport } from "./text-report.ts";

/**
 * How the front matter was read. `parsed`: as YAML. `repaired`: as YAML, after quotes were added to some values. `scanned`:
 * line by line, because it is not valid YAML. `unclosed`, `unopened`: a `---` line is missing. `absent`: the text has no front
 * matter.
 */
export type FrontMatterState = "parsed" | "repaired" | "scanned" | "unclosed" | "unopened" | "absent";

export interface FrontMatter {
  /** Without a prototype; no key at any depth is `__proto__`. */
  readonly data: Readonly<Record<string, unknown>>;
  /** The text after the front matter, with `\n` line ends and without hidden characters. */
  readonly body: string;
  readonly bodyStartLine: number;
  readonly state: FrontMatterState;
  /** The position of each top-level key in the file. */
  readonly positions: ReadonlyMap<string, Position>;
  readonly problems: readonly Diagnostic[];
}

/**
 * Reads the YAML front matter of a Markdown text, leniently: common mistakes are repaired and reported, and a text without
 * front matter is all body. Never throws; the caller decides whether missing front matter is a problem.
 */
export function parseFrontMatter(text: string): FrontMatter {
  const source = text.replace(/^\uFEFF/, "").replace(/\r\n?/g, "\n");
  const report = createTextReport(source);
  const block = findFrontMatterBlock(source);
  const read = block && readBlock(source, block, report);
  // Faults of a block that turned out not to be front matter are ignored, unless it is at the place of front matter.
  if (read === undefined) return absent(source, block?.kind === "closed" ? report : createTextReport(source));
  const { data, positions, state } = read;
  const bodyStart = read.block.bodyStart;
  reportPlace(read.block, report);
  const isHiding = reportHidden(source, report.add);
  if (!isHiding) reportEscaped(read, report);
  const rest = source.slice(bodyStart);
  return {
    data,
    body: isHiding ? withoutHidden(rest) : rest,
    bodyStartLine: report.position(bodyStart).line,
    state,
    positions,
    problems: report.diagnostics,
  };
}

interface BlockRead {
  readonly block: FrontMatterBlock;
  readonly data: Record<string, unknown>;
  readonly positions: ReadonlyMap<string, Position>;
  readonly state: FrontMatterState;
}

function absent(source: string, report: TextReport): FrontMatter {
  if (isFenced(source)) {
    const message = "The front matter is inside a code fence, so it is not read. Remove the fence, so that the first line is ---.";
    report.add("warning", "FRONT_MATTER_FENCED", message, 0);
  }
  reportHidden(source, report.add);
  const data: Record<string, unknown> = Object.create(null);
  return { data, body: withoutHidden(source), bodyStartLine: 1, state: "absent", positions: new Map(), problems: report.diagnostics };
}

/** Hidden characters from YAML escapes, which are not visible in the file either. */
function reportEscaped({ data, positions }: BlockRead, report: TextReport): void {
  for (const [key, value] of Object.entries(data)) {
    const found = findHidden(textsIn(value).join(" "));
    if (found === undefined) continue;
    const start = positions.get(key);
    const message = hiddenMessage(`The value of \`${key}\` has ${hiddenWords(found)}`);
    report.take([{ severity: "warning", code: hiddenTextCode, message, ...(start && { range: { start } }) }]);
  }
}

function textsIn(value: unknown): readonly string[] {
  if (typeof value === "string") return [value];
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(textsIn) : [];
}

function readBlock(text: string, block: FrontMatterBlock, report: TextReport): BlockRead | undefined {
  const source = text.slice(block.start, Math.min(block.end, block.start + maxFrontMatterLength));
  if (block.end - block.start > maxFrontMatterLength) return scanBlock(block, source, report, tooLarge);
  const result = parseYamlMap(source);
  if (result.kind === "empty") return block.kind === "closed" ? found(block, { source, ...emptyMap() }, report) : undefined;
  if (result.kind === "map") return plausible(found(block, { source, state: "parsed", ...result }, report));
  if (result.kind === "other") return scanBlock(block, source, report, notMap);
  return plausible(repairBlock(text, block, report, { source, fault: result.fault }));
}

function repairBlock(text: string, block: FrontMatterBlock, report: TextReport, broken: Broken): BlockRead | undefined {
  const { source, fault } = broken;
  for (const depth of ["top", "all"] as const) {
    const quoted = isHostile(fault) ? source : quotePlainValues(source, depth);
    const result = quoted === source ? undefined : parseYamlMap(quoted);
    if (result?.kind !== "map") continue;
    const message = `The front matter is not YAML (${fault.message}). skillhost read it as if the values that need quotes had them. Add the quotes.`;
    report.add("warning", "FRONT_MATTER_REPAIRED", message, block.start + fault.offset);
    return found(block, { source: quoted, state: "repaired", ...result }, report);
  }
  // A thematic break of the body may have been read as the closing line; the text before it is Markdown then.
  const shorter = block.kind === "closed" && /\n\n#{1,6} /.test(source) ? unclosedBlock(text, block.start) : undefined;
  if (shorter !== undefined) return readBlock(text, shorter, report);
  return scanBlock(block, source, report, () => {
    const message = `The front matter is not YAML (${fault.message}). It was read line by line, so nested values are lost. Fix it, or put quotes around the value.`;
    report.add("warning", "FRONT_MATTER_SCANNED", message, block.start + fault.offset);
  });
}

interface Broken {
  readonly source: string;
  readonly fault: YamlFault;
}

interface Parsed {
  /** The text that the offsets of `keys` and `faults` refer to: the file's text, or the text with added quotes. */
  readonly source: string;
  readonly data: Record<string, unknown>;
  readonly keys: ReadonlyMap<string, number>;
  readonly state: FrontMatterState;
  readonly faults: readonly YamlFault[];
}

function emptyMap(): Omit<Parsed, "source"> {
  return { data: Object.create(null), keys: new Map(), state: "parsed", faults: [] };
}

// Quotes do not fix these faults, and trying is expensive.
function isHostile(fault: YamlFault): boolean {
  return fault.code === "TOO_DEEP" || fault.code === "TOO_MANY_NODES";
}

type Explain = (report: TextReport, block: FrontMatterBlock) => void;

function scanBlock(block: FrontMatterBlock, source: string, report: TextReport, explain: Explain): BlockRead | undefined {
  explain(report, block);
  const scanned = scanLines(source);
  return isSkillLike(scanned.keys) ? found(block, { source, state: "scanned", faults: [], ...scanned }, report) : undefined;
}

const tooLarge: Explain = (report, block) => {
  const message = `The front matter has ${block.end - block.start} characters; only the first ${maxFrontMatterLength} are read, line by line. Move long text into the body.`;
  report.add("warning", "FRONT_MATTER_TOO_LARGE", message, block.start);
};

const notMap: Explain = (report, block) => {
  const message = "The block between the --- lines is not a YAML mapping. Write `key: value` lines there, or use *** for a thematic break.";
  report.add("warning", "FRONT_MATTER_NOT_MAP", message, block.start);
};

// Quoting changes offsets but neither lines nor the columns of keys, so positions are computed in the parsed text.
function found(block: FrontMatterBlock, parsed: Parsed, report: TextReport): BlockRead {
  const above = report.position(block.start).line - 1;
  const own = createTextReport(parsed.source);
  const place = (offset: number): Position => {
    const { line, column } = own.position(offset);
    return { line: line + above, column };
  };
  report.take(
    parsed.faults.map(({ code, message, offset }) => ({
      severity: "warning",
      code: `FRONT_MATTER_${code}`,
      message,
      range: { start: place(offset) },
    })),
  );
  const positions = new Map([...parsed.keys].map(([key, offset]) => [key, place(offset)]));
  const missing = block.kind === "unclosed" || block.kind === "unopened" ? block.kind : undefined;
  return { block, data: parsed.data, positions, state: missing ?? parsed.state };
}

// Without a `---` line, only the keys distinguish front matter from a text that happens to contain a colon.
function plausible(read: BlockRead | undefined): BlockRead | undefined {
  return read !== undefined && (read.block.kind === "closed" || read.block.kind === "indented" || isSkillLike(read.positions))
    ? read
    : undefined;
}

function isSkillLike(keys: ReadonlyMap<string, unknown>): boolean {
  return keys.has("name") || keys.has("description");
}

function reportPlace(block: FrontMatterBlock, report: TextReport): void {
  const text = {
    closed: undefined,
    late: [
      "FRONT_MATTER_LATE",
      "Blank lines or comments precede the front matter. Make --- the first line of the file: other hosts read it only there.",
    ],
    indented: [
      "FRONT_MATTER_INDENTED",
      "The closing --- of the front matter is indented. Remove the spaces before it: other hosts read on to the next --- line.",
    ],
    unclosed: ["FRONT_MATTER_UNCLOSED", "The front matter has no closing --- line. Add one after its last key."],
    unopened: ["FRONT_MATTER_UNOPENED", "The front matter has no opening --- line. Make --- the first line of the file."],
  }[block.kind];
  if (text !== undefined) report.add("warning", text[0]!, text[1]!, block.kind === "indented" ? block.end : block.start);
}

/** The range of the front matter, `text.slice(start, end)`; the body begins at `bodyStart`. */
interface FrontMatterBlock {
  /**
   * `closed`: valid. `late`: after blank lines or comments. `indented`: the closing line is indented. `unclosed`, `unopened`:
   * one of the `---` lines is missing.
   */
  readonly kind: "closed" | "late" | "indented" | "unclosed" | "unopened";
  readonly start: number;
  readonly end: number;
  readonly bodyStart: number;
}

/** Finds the front matter of a text with `\n` line ends. The result is a candidate, because a document can begin with a thematic break. */
export function findFrontMatterBlock(text: string): FrontMatterBlock | undefined {
  const first = skipBlankAndComments(text);
  if (isRule(text, first)) {
    const start = nextLine(text, first);
    const closed = closedBlock(text, first === 0 ? "closed" : "late", start);
    return indentedBlock(text, start, closed?.end ?? text.length) ?? closed ?? unclosedBlock(text, start);
  }
  return /^(?:name|description)[ \t]*:/.test(text.slice(first, first + 40)) ? closedBlock(text, "unopened", first) : undefined;
}

/**
 * The block up to an indented `---`, if the following line is not YAML: it was meant to close the front matter, and YAML would
 * read it and the text below as part of the value above. Otherwise it is a line of a value.
 */
function indentedBlock(text: string, start: number, end: number): FrontMatterBlock | undefined {
  let found: FrontMatterBlock | undefined;
  for (let at = start; at < end; at = nextLine(text, at)) {
    const line = lineAt(text, at);
    if (found === undefined && /^[ \t]{1,8}---[ \t]{0,100}$/.test(line)) {
      found = { kind: "indented", start, end: at, bodyStart: nextLine(text, at) };
    } else if (found !== undefined && line.trim() !== "" && !yamlLine.test(line)) return found;
  }
  return end === text.length && found !== undefined ? found : undefined;
}

const yamlLine = /^(?:[A-Za-z_][\w .-]*:|[ \t]+\S|-[ \t]|#)/;

/**
 * The block of front matter without a closing line: it ends at the first line that is blank or not YAML. Also used when the
 * "closing line" turns out to be a thematic break further down.
 */
function unclosedBlock(text: string, start: number): FrontMatterBlock | undefined {
  let at = start;
  while (at < text.length && lineAt(text, at).trim() === "") at = nextLine(text, at);
  const first = at;
  while (at < text.length && yamlLine.test(lineAt(text, at))) at = nextLine(text, at);
  return at === first ? undefined : { kind: "unclosed", start, end: at, bodyStart: at };
}

/** Whether a document begins with a code fence around its front matter. */
function isFenced(text: string): boolean {
  return /^\s{0,100}(?:```|~~~)[ \t]{0,10}\w{0,20}[ \t]{0,10}\n---[ \t]{0,10}\n/.test(text.slice(0, 200));
}

function skipBlankAndComments(text: string): number {
  let at = 0;
  while (at < text.length) {
    if (text.startsWith("<!--", at)) {
      const end = text.indexOf("-->", at);
      if (end === -1) return at;
      at = end + 3;
    } else if (/\s/.test(text[at]!)) at++;
    else return at;
  }
  return at;
}

function closedBlock(text: string, kind: FrontMatterBlock["kind"], start: number): FrontMatterBlock | undefined {
  for (let at = start; at < text.length; at = nextLine(text, at)) {
    if (isRule(text, at)) return { kind, start, end: at, bodyStart: nextLine(text, at) };
  }
  return undefined;
}

function isRule(text: string, at: number): boolean {
  return text.startsWith("---", at) && lineAt(text, at).trimEnd() === "---";
}

function lineAt(text: string, at: number): string {
  const end = text.indexOf("\n", at);
  return text.slice(at, end === -1 ? text.length : end);
}

function nextLine(text: string, at: number): number {
  const end = text.indexOf("\n", at);
  return end === -1 ? text.length : end + 1;
}

/**
 * The YAML with quotes around plain values that are not valid YAML but clearly meant as text: `description: Use when: …`,
 * `argument-hint: [a] [b]`, values that start with `@`, `*`, `%`. `depth` determines whether nested lines are changed too.
 * Every key keeps its line and column.
 */
function quotePlainValues(source: string, depth: "top" | "all"): string {
  const lines = source.split("\n");
  const result: string[] = [];
  while (result.length < lines.length) {
    const at = result.length;
    const entry = readEntry(lines[at]!);
    if (entry === undefined || entry.value === "" || (depth === "top" && entry.indent > 0)) result.push(lines[at]!);
    else for (const line of quoteEntry(entry, lines.slice(at, lastLineOf(lines, at, entry.indent) + 1))) result.push(line);
  }
  return result.join("\n");
}

/**
 * The last resort: every unindented line that looks like `key: value`. Values are text or lists of text; a heading mark before
 * the key is ignored.
 */
function scanLines(source: string): { data: Record<string, unknown>; keys: ReadonlyMap<string, number> } {
  const data: Record<string, unknown> = Object.create(null);
  const keys = new Map<string, number>();
  const lines = source.split("\n");
  for (let at = 0, offset = 0; at < lines.length; offset += lines[at]!.length + 1, at++) {
    const entry = readEntry(lines[at]!.replace(/^#{1,6} /, ""));
    if (entry === undefined || entry.indent > 0 || entry.key === "__proto__" || keys.has(entry.key)) continue;
    keys.set(entry.key, offset);
    data[entry.key] = scannedValue(entry.value, lines.slice(at + 1, lastLineOf(lines, at, 0) + 1));
  }
  return { data, keys };
}

interface Entry {
  readonly indent: number;
  /** Everything up to and including the colon. */
  readonly head: string;
  readonly key: string;
  readonly value: string;
}

function readEntry(line: string): Entry | undefined {
  const match = /^([ \t]*(?:-[ \t]+)?)([A-Za-z_][\w.-]*)[ \t]*:(?:[ \t]+(.*))?$/.exec(line);
  if (match === null) return undefined;
  const [, space = "", key = "", value = ""] = match;
  return { indent: space.length, head: `${space}${key}:`, key, value: value.trim() };
}

// The lines of an entry: the following lines with more indentation, and blank lines among them.
function lastLineOf(lines: readonly string[], at: number, indent: number): number {
  let last = at;
  for (let next = at + 1; next < lines.length; next++) {
    const line = lines[next]!;
    if (line.trim() === "") continue;
    if (line.length - line.trimStart().length <= indent) break;
    last = next;
  }
  return last;
}

function quoteEntry(entry: Entry, lines: readonly string[]): readonly string[] {
  if (/^[|>]/.test(entry.value)) return lines;
  const below = lines.slice(1);
  const value = [entry.value, ...below.map((line) => line.trim())].join(" ").trim();
  return needsQuotes(value) ? [`${entry.head} ${JSON.stringify(withoutQuotes(value))}`, ...below.map(() => "")] : lines;
}

function needsQuotes(value: string): boolean {
  if (/^(?:[@`,\]}%*]|[-?][ \t])/.test(value)) return true;
  if (/^["'[{&!]/.test(value)) return !isYaml(value);
  return /:(?:[ \t]|$)/.test(value);
}

function isYaml(value: string): boolean {
  const document = parseYaml(value, "core");
  return !("message" in document) && document.warnings.length === 0 && document.contents !== null;
}

function withoutQuotes(value: string): string {
  const quote = value[0];
  return value.length > 1 && (quote === '"' || quote === "'") && value.endsWith(quote) ? value.slice(1, -1) : value;
}

function scannedValue(value: string, below: readonly string[]): unknown {
  const lines = below.map((line) => line.trim()).filter((line) => line !== "");
  if (value === "" && lines.length > 0 && lines.every((line) => line.startsWith("- "))) {
    return lines.map((line) => withoutQuotes(line.slice(2).trim()));
  }
  const head = /^[|>][+-]?\d?$/.test(value) ? "" : value;
  return withoutQuotes([head, ...lines].join(" ").trim());
}
