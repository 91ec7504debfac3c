import { append } from "./append.ts";
import { usesCrlf } from "./edit-text.ts";
import type { Hunk } from "./patch-format.ts";

export type HunksApplied = { readonly ok: true; readonly text: string } | { readonly ok: false; readonly fault: string };

/**
 * Makes the changes of hunks in a text, in their order. Where several places meet a hunk and no header says which, it is
 * refused: what was meant cannot be told. Kept lines, and the line breaks of the text, stay as they are.
 */
export function applyHunks(text: string, hunks: readonly Hunk[]): HunksApplied {
  const lines = text.split("\n");
  // What follows the last line break is no line.
  const hasFinalBreak = lines.at(-1) === "" && lines.pop() !== undefined;
  const source: Source = { lines, readings: readings.map((read) => ({ read, lines: lines.map(read) })) };
  const end = usesCrlf(text) ? "\r" : "";
  const done: string[] = [];
  let at = 0;
  for (const hunk of hunks) {
    const found = findHunk(source, hunk, at);
    if ("fault" in found) return { ok: false, fault: `The hunk at line ${hunk.line} of the patch ${found.fault}` };
    const { place } = found;
    append(done, lines.slice(at, place));
    append(
      done,
      hunk.now.map((line) => (typeof line === "number" ? lines[place + line]! : line + end)),
    );
    at = place + hunk.old.length;
  }
  append(done, lines.slice(at));
  return { ok: true, text: joined(done, hasFinalBreak || text === "", end) };
}

/** A last line without a break keeps doing without, also when it is another one. */
function joined(lines: readonly string[], hasFinalBreak: boolean, end: string): string {
  if (lines.length === 0) return "";
  const text = lines.join("\n");
  if (hasFinalBreak) return `${text}\n`;
  return end !== "" && text.endsWith(end) ? text.slice(0, -end.length) : text;
}

interface Source {
  readonly lines: readonly string[];
  /** The lines as they are compared, the strictest way first. */
  readonly readings: readonly { readonly read: (line: string) => string; readonly lines: readonly string[] }[];
}

type Found = { readonly place: number } | { readonly fault: string };

/** How strictly lines are compared: as they are, without white space at their ends, without any around. */
const readings: readonly ((line: string) => string)[] = [
  (line) => (line.endsWith("\r") ? line.slice(0, -1) : line),
  (line) => line.trimEnd(),
  (line) => line.trim(),
];

function findHunk(source: Source, { headers, old, isAtEnd }: Hunk, from: number): Found {
  let start = from;
  for (const header of headers) {
    const place = findHeader(source, header, start);
    if (place === undefined) return { fault: `names "${shortened(header)}", and no such line follows. Read the file and try again.` };
    start = place + 1;
  }
  if (old.length === 0) return { place: headers.length === 0 || isAtEnd ? source.lines.length : start };
  // A header may be repeated as the first line of its hunk.
  const first = headers.length === 0 ? start : start - 1;
  for (const { read, lines } of source.readings) {
    const places = findLines(lines, old.map(read), first, isAtEnd);
    if (places.length === 1 || (places.length > 1 && headers.length > 0)) return { place: places[0]! };
    if (places.length > 1) {
      const numbers = places.map((place) => place + 1).join(", ");
      return { fault: `fits at lines ${numbers}. Add lines around it, or "@@" with a line that comes before it, and try again.` };
    }
  }
  const where = isAtEnd ? "at the end of the file" : from === 0 ? "in the file" : "behind the hunk before it";
  return { fault: `does not fit anywhere ${where}: its first line is "${shortened(old[0]!)}". Read the file and try again.` };
}

function findHeader(source: Source, header: string, from: number): number | undefined {
  for (const { read, lines } of source.readings) {
    const at = lines.indexOf(read(header), from);
    if (at !== -1) return at;
  }
  const wanted = header.trim();
  const at = source.lines.findIndex((line, index) => index >= from && line.trim().startsWith(wanted));
  return at === -1 ? undefined : at;
}

// More are not told apart.
const maxPlaces = 5;

function findLines(lines: readonly string[], wanted: readonly string[], from: number, isAtEnd: boolean): readonly number[] {
  const places: number[] = [];
  const last = lines.length - wanted.length;
  for (let at = isAtEnd ? Math.max(from, last) : from; at <= last && places.length < maxPlaces; at++) {
    if (wanted.every((line, index) => lines[at + index] === line)) places.push(at);
  }
  return places;
}

function shortened(line: string): string {
  return line.length > 100 ? `${line.slice(0, 100)}…` : line;
}
