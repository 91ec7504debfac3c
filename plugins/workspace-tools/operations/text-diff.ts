/** A change of one stretch of a text. */
export interface TextChange {
  readonly before: string;
  readonly after: string;
  readonly at: number;
  readonly removed: number;
  readonly added: number;
}

const contextLines = 3;
const maxDiffChars = 100_000;

/** The change of one file, for people who are to allow it: a unified diff with one hunk. */
export function diffOfChange(name: string, { before, after, at, removed, added }: TextChange): string {
  const first = lineAt(before, at);
  const old = linesAround(before, at, at + removed);
  const now = linesAround(after, at, at + added);
  const start = Math.max(1, first - contextLines);
  const lead = old.lines.slice(0, first - start);
  const body = [...changed("-", old, lead.length), ...changed("+", now, lead.length)];
  const tail = old.lines.slice(old.end);
  const sizes = `@@ -${start},${old.lines.length} +${start},${now.lines.length} @@`;
  return bounded([...header(name, name), sizes, ...lead.map(kept), ...body, ...tail.map(kept)].join("\n"));
}

/** A file that comes into being. */
export function diffOfNewFile(name: string, text: string): string {
  const lines = text === "" ? [] : splitLines(text);
  return bounded([...header("/dev/null", name), `@@ -0,0 +1,${lines.length} @@`, ...lines.map((line) => `+${line}`)].join("\n"));
}

/** The two lines that name the files; "/dev/null" is none. */
export function header(before: string, after: string): readonly string[] {
  return [before === none ? `--- ${none}` : `--- a/${before}`, after === none ? `+++ ${none}` : `+++ b/${after}`];
}

const none = "/dev/null";

interface Excerpt {
  readonly lines: readonly string[];
  /** The index after the last line that the stretch touches. */
  readonly end: number;
}

/** The lines that a stretch touches, with some around them. */
function linesAround(text: string, from: number, to: number): Excerpt {
  let start = lineStart(text, from);
  for (let left = contextLines; left > 0 && start > 0; left--) start = lineStart(text, start - 1);
  const last = lineEnd(text, to);
  let end = last;
  for (let left = contextLines; left > 0 && end < text.length; left--) end = lineEnd(text, end + 1);
  return { lines: splitLines(text.slice(start, end)), end: splitLines(text.slice(start, last)).length };
}

function changed(sign: string, { lines, end }: Excerpt, from: number): readonly string[] {
  return lines.slice(from, end).map((line) => sign + line);
}

function kept(line: string): string {
  return ` ${line}`;
}

function lineAt(text: string, at: number): number {
  let line = 1;
  for (let next = text.indexOf("\n"); next !== -1 && next < at; next = text.indexOf("\n", next + 1)) line++;
  return line;
}

function lineStart(text: string, at: number): number {
  return at === 0 ? 0 : text.lastIndexOf("\n", at - 1) + 1;
}

function lineEnd(text: string, at: number): number {
  const end = text.indexOf("\n", at);
  return end === -1 ? text.length : end;
}

/** Without their line breaks. */
export function splitLines(text: string): readonly string[] {
  return text.split("\n").map((line) => (line.endsWith("\r") ? line.slice(0, -1) : line));
}

export function bounded(diff: string): string {
  return diff.length > maxDiffChars ? `${diff.slice(0, maxDiffChars)}\n[Diff truncated.]` : diff;
}
