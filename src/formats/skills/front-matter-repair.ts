import { parseYaml } from "../text/parse-yaml.ts";

/**
 * The YAML with quotes around plain values that are not valid YAML but clearly meant as text: `description: Use when: …`,
 * `argument-hint: [a] [b]`, values that start with `@`, `*`, `%`. `depth` determines whether nested lines are changed too.
 * Every key keeps its line and column.
 */
export function quotePlainValues(source: string, depth: "top" | "all"): string {
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
export function scanLines(source: string): { data: Record<string, unknown>; keys: ReadonlyMap<string, number> } {
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
