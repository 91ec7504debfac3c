import { formatPatch, OMIT_HEADERS, type StructuredPatchHunk, structuredPatch } from "diff";

const contextLines = 3;
const maxDiffChars = 100_000;

/** Texts that differ in more lines are shown as one hunk: a longer diff is not read line by line. */
const maxEdits = 300;
// Finding n edits compares up to n times as many lines as both texts have.
const maxComparisons = 180_000_000;

/** The change of one file as a unified diff. A text is undefined where the file does not exist. */
export function unifiedDiff(name: string, before: string | undefined, after: string | undefined): string {
  const [old, now] = withoutCarriageReturns(before ?? "", after ?? "");
  const diff = [`--- ${fileName("a", name, before)}`, `+++ ${fileName("b", name, after)}`, ...hunksBetween(old, now)].join("\n");
  return diff.length > maxDiffChars ? `${diff.slice(0, maxDiffChars)}\n[Diff truncated.]` : diff;
}

function hunksBetween(old: string, now: string): readonly string[] {
  if (old === now) return [];
  const stretch = changedStretch(old, now);
  const [oldPart, nowPart] = [old.slice(stretch.start, stretch.oldEnd), now.slice(stretch.start, stretch.nowEnd)];
  const maxEditLength = Math.min(maxEdits, Math.floor(maxComparisons / (breaksIn(oldPart) + breaksIn(nowPart) + 1)));
  const patch = structuredPatch("", "", oldPart, nowPart, undefined, undefined, { context: contextLines, maxEditLength });
  const linesBefore = breaksIn(old.slice(0, stretch.start));
  const hunks = (patch?.hunks ?? [wholeHunk(old, now, stretch)]).map((hunk) => ({
    ...hunk,
    oldStart: hunk.oldStart + linesBefore,
    newStart: hunk.newStart + linesBefore,
  }));
  return [formatPatch({ ...withoutNames, hunks }, OMIT_HEADERS).slice(0, -1)];
}

// The names that `diff` writes are hard to read: characters beyond ASCII, and the separators of Windows, are escaped.
const withoutNames = { oldFileName: undefined, newFileName: undefined, oldHeader: undefined, newHeader: undefined };

/** A replaced passage as a diff, where its place in the file is not known. */
export function passageDiff(name: string, before: string, after: string): string {
  return unifiedDiff(name, wholeLines(before), wholeLines(after));
}

function wholeLines(text: string): string {
  return text === "" || text.endsWith("\n") ? text : `${text}\n`;
}

/** Line breaks are shown only where nothing else changes. */
function withoutCarriageReturns(before: string, after: string): readonly [old: string, now: string] {
  const [old, now] = [before.replaceAll("\r\n", "\n"), after.replaceAll("\r\n", "\n")];
  return old === now ? [before, after] : [old, now];
}

/** A name with a line break in it must not look like lines of the diff. */
function fileName(side: "a" | "b", name: string, text: string | undefined): string {
  if (text === undefined) return "/dev/null";
  return /\p{Cc}/u.test(name) ? JSON.stringify(`${side}/${name}`) : `${side}/${name}`;
}

/** Offsets of the lines that differ, from the first to the last, and of those with the lines around them that are shown. */
interface Stretch {
  readonly start: number;
  readonly changeStart: number;
  readonly oldChangeEnd: number;
  readonly oldEnd: number;
  readonly nowChangeEnd: number;
  readonly nowEnd: number;
}

function changedStretch(old: string, now: string): Stretch {
  const shortest = Math.min(old.length, now.length);
  let head = 0;
  while (head < shortest && old[head] === now[head]) head++;
  const changeStart = lineStart(old, head);
  let tail = 0;
  while (tail < shortest - changeStart && old.at(-1 - tail) === now.at(-1 - tail)) tail++;
  tail = startsLine(old, old.length - tail) && startsLine(now, now.length - tail) ? tail : old.length - lineEnd(old, old.length - tail);
  let [start, oldEnd] = [changeStart, old.length - tail];
  for (let left = contextLines; left > 0 && start > 0; left--) start = lineStart(old, start - 1);
  for (let left = contextLines; left > 0; left--) oldEnd = lineEnd(old, oldEnd);
  const shown = oldEnd - (old.length - tail);
  const nowChangeEnd = now.length - tail;
  return { start, changeStart, oldChangeEnd: old.length - tail, oldEnd, nowChangeEnd, nowEnd: nowChangeEnd + shown };
}

function startsLine(text: string, at: number): boolean {
  return at === 0 || text[at - 1] === "\n";
}

function lineStart(text: string, at: number): number {
  return at === 0 ? 0 : text.lastIndexOf("\n", at - 1) + 1;
}

/** Behind the line break. */
function lineEnd(text: string, at: number): number {
  const end = text.indexOf("\n", at);
  return end === -1 ? text.length : end + 1;
}

function breaksIn(text: string): number {
  let count = 0;
  for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", at + 1)) count++;
  return count;
}

/** The stretch as one hunk, without a look at what is equal in it. */
function wholeHunk(old: string, now: string, stretch: Stretch): StructuredPatchHunk {
  const lines = [
    ...marked(" ", old.slice(stretch.start, stretch.changeStart)),
    ...marked("-", old.slice(stretch.changeStart, stretch.oldChangeEnd)),
    ...marked("+", now.slice(stretch.changeStart, stretch.nowChangeEnd)),
    ...marked(" ", old.slice(stretch.oldChangeEnd, stretch.oldEnd)),
  ];
  const count = (sign: string): number => lines.filter((line) => !line.startsWith(sign)).length;
  return { oldStart: 1, oldLines: count("+"), newStart: 1, newLines: count("-"), lines };
}

function marked(sign: " " | "-" | "+", text: string): string[] {
  if (text === "") return [];
  const lines = text.replace(/\n$/, "").split("\n");
  const marks = lines.map((line) => sign + line);
  if (!text.endsWith("\n")) marks.push(`${marks.pop()}\n\\ No newline at end of file`);
  return marks;
}
