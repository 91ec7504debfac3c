import { append } from "./append.ts";
import { usesCrlf } from "./edit-text.ts";
import type { Hunk } from "./patch-format.ts";

export type HunksApplied = { readonly ok: true; readonly text: string } | { readonly ok: false; readonly fault: string };

/**
 * Applies hunks to a text, in order. A hunk that matches several places without a header to choose one is refused. Kept
 * lines and the line breaks of the text do not change.
 */
export function applyHunks(text: string, hunks: readonly Hunk[]): HunksApplied {
  const lines = text.split("\n");
  // The text after the last line break is not a line.
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

/** If the text did not end with a line break, the new text does not either. */
function joined(lines: readonly string[], hasFinalBreak: boolean, end: string): string {
  if (lines.length === 0) return "";
  const text = lines.join("\n");
  if (hasFinalBreak) return `${text}\n`;
  return end !== "" && text.endsWith(end) ? text.slice(0, -end.length) : text;
}

interface Source {
  readonly lines: readonly string[];
  /** The lines in the forms in which they are compared, the strictest first. */
  readonly readings: readonly { readonly read: (line: string) => string; readonly lines: readonly string[] }[];
}

type Found = { readonly place: number } | { readonly fault: string };

/** Ways to compare lines: exactly, without trailing white space, without surrounding white space. */
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
  // A hunk may repeat its header as its first line.
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

// Only "several" matters beyond this number.
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
