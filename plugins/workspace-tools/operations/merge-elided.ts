import { append } from "./append.ts";
import { usesCrlf } from "./edit-text.ts";
import { type Anchor, closingAnchors, extended, indentOf, isDeeper, uniqueAnchors } from "./line-anchors.ts";

/** Result of merging code with `...existing code...` into a text. */
export type Merged =
  /** Nothing is omitted: the code is the complete new text. */
  { readonly kind: "whole" } | { readonly kind: "merged"; readonly text: string } | { readonly kind: "unclear"; readonly why: string };

/** A comment, in any language, that stands for unchanged lines. */
const elision =
  /^(?:\/\/|\/\*|#|--|;+|%+|<!--|\{ ?\/\*|'|rem\b|"{3}|\(\*)?\s*(?:\.{3}|…)\s*existing code\s*(?:\.{3}|…)?\s*(?:\*\/ ?\}?|-->|\*\)|"{3})?$/i;

// A longer comment has another meaning.
const maxComment = 100;

function isElision(line: string): boolean {
  const text = line.trim();
  return text.length <= maxComment && elision.test(text);
}

/** Whether code omits something. */
export function isElided(code: string): boolean {
  return code.split("\n").some(isElision);
}

/**
 * Merges code into a text at the lines that it repeats. The stretches between the comments follow the order of the text.
 * Lines of a stretch that the text contains locate it: what the text has between two of them is replaced by what the code
 * has there, and other lines are inserted before the first and after the last of them. So only lines between two repeated
 * lines of one stretch are ever removed. If the place is not certain, nothing is changed.
 */
export function mergeElided(text: string, code: string): Merged {
  const stretches = splitAtElisions(code);
  if (stretches.length === 1) return { kind: "whole" };
  const lines = text.split("\n").map((line) => (line.endsWith("\r") ? line.slice(0, -1) : line));
  const done: string[] = [];
  let at = 0;
  for (const stretch of stretches) {
    if (stretch.lines.every((line) => line.trim() === "")) continue;
    const placed = placeStretch(lines, at, stretch);
    if ("why" in placed) return { kind: "unclear", why: placed.why };
    append(done, lines.slice(at, placed.from));
    append(done, withoutDoubles(lines, stretch, placed));
    at = placed.to;
  }
  append(done, lines.slice(at));
  return { kind: "merged", text: done.join(usesCrlf(text) ? "\r\n" : "\n") };
}

interface Stretch {
  readonly lines: readonly string[];
  /** Indentation of the comments around it. Undefined: there is no comment. */
  readonly before: number | undefined;
  readonly after: number | undefined;
}

function splitAtElisions(code: string): readonly Stretch[] {
  const lines = code.split(/\r?\n/);
  // The text after the last line break is not a line.
  if (lines.at(-1) === "") lines.pop();
  const marks = [...lines.keys()].filter((at) => isElision(lines[at]!));
  const depthOf = (mark: number | undefined): number | undefined => (mark === undefined ? undefined : indentOf(lines[mark]!));
  return [undefined, ...marks].map((mark, index) => ({
    lines: lines.slice(mark === undefined ? 0 : mark + 1, marks[index]),
    before: depthOf(mark),
    after: depthOf(marks[index]),
  }));
}

/** The lines of the text that a stretch replaces; none if both are equal. */
interface Placement {
  readonly from: number;
  readonly to: number;
  /** How many lines at the start and at the end of the stretch are new. */
  readonly head: number;
  readonly tail: number;
}

type Placed = Placement | { readonly why: string };

/** Removes empty lines next to comments where the text already has some. */
function withoutDoubles(
  lines: readonly string[],
  { lines: own, before, after }: Stretch,
  { from, to, head, tail }: Placement,
): readonly string[] {
  let [start, end] = [0, own.length];
  if (before !== undefined && isBlank(lines[from - 1])) while (start < head && isBlank(own[start])) start++;
  if (after !== undefined && isBlank(lines[to])) while (end > own.length - tail && end > start && isBlank(own[end - 1])) end--;
  return own.slice(start, end);
}

function isBlank(line: string | undefined): boolean {
  return line !== undefined && line.trim() === "";
}

function placeStretch(lines: readonly string[], start: number, stretch: Stretch): Placed {
  const { lines: own, before } = stretch;
  const unique = uniqueAnchors(lines, start, own);
  if (unique.some(([, place], index) => index > 0 && place < unique[index - 1]![1])) {
    return { why: `${quoted(own)} repeats lines of the file in a different order` };
  }
  const found = unique.length === 0 && before !== undefined ? closingAnchors(lines, start, own, -1) : unique;
  const anchors = withoutBlankEnds(own, extended(lines, start, own, found));
  if (anchors.length === 0) return placeUnanchored(lines, start, stretch);
  const [lastOwn, last] = anchors.at(-1)!;
  const all = [...anchors, ...closingAnchors(lines, last + 1, own, lastOwn)];
  const why = doubtAbout(lines, own, all);
  // All lines in between were repeated, so the stretch replaces them as a whole.
  if (why !== undefined) return { why: `${quoted(own)} ${why}` };
  const [[first, from], [end, to]] = [all[0]!, all.at(-1)!];
  return { from, to: to + 1, head: first, tail: own.length - 1 - end };
}

/** An empty line does not locate the lines next to it. */
function withoutBlankEnds(own: readonly string[], anchors: readonly Anchor[]): readonly Anchor[] {
  const filled = [...anchors.keys()].filter((index) => !isBlank(own[anchors[index]![0]]));
  const [first = 0, last = -1] = [filled[0], filled.at(-1)];
  const [start] = anchors[first] ?? [0];
  const [end] = anchors[last] ?? [0];
  const from = own.slice(0, start).every(isBlank) ? 0 : first;
  const to = own.slice(end + 1).every(isBlank) ? anchors.length : last + 1;
  return anchors.slice(from, to);
}

/** Code without anchors goes to the beginning or to the end of the text, unless it would enclose the rest. */
function placeUnanchored(lines: readonly string[], start: number, { lines: own, before, after }: Stretch): Placed {
  const filled = own.filter((line) => line.trim() !== "");
  if (before === undefined && after! <= indentOf(filled.at(-1)!)) return { from: start, to: start, head: own.length, tail: own.length };
  if (after === undefined && before! <= indentOf(filled[0]!)) {
    // After the last line, before the empty text that follows its line break.
    const end = Math.max(start, lines.at(-1) === "" ? lines.length - 1 : lines.length);
    return { from: end, to: end, head: own.length, tail: own.length };
  }
  return { why: `${quoted(own)} does not repeat a line that occurs only once in the file, so its place is ambiguous` };
}

/** Why repeated lines do not determine the change. */
function doubtAbout(lines: readonly string[], own: readonly string[], anchors: readonly Anchor[]): string | undefined {
  const [[first], [last]] = [anchors[0]!, anchors.at(-1)!];
  if (own.slice(0, first).some((line) => isDeeper(own[first]!, line))) {
    return "begins with lines that the file does not have, and what it repeats of the file lies deeper than they do";
  }
  if (own.slice(last + 1).some((line) => isDeeper(own[last]!, line))) {
    return "ends with lines that the file does not have, and what it repeats of the file lies deeper than they do";
  }
  for (const [index, [at, place]] of anchors.slice(1).entries()) {
    const [ownBefore, placeBefore] = anchors[index]!;
    const gone = lines.slice(placeBefore + 1, place);
    const put = own.slice(ownBefore + 1, at);
    const isLong = gone.length > put.length * 2 + 5;
    if (isLong || leavesBlock(gone, put, [own[ownBefore]!, own[at]!])) {
      return `would remove ${gone.length} lines of the file, from line ${placeBefore + 2} on`;
    }
  }
  return undefined;
}

/** Whether the removed lines leave the block of the lines around them, and the new lines do not. */
function leavesBlock(gone: readonly string[], put: readonly string[], [before, after]: readonly [string, string]): boolean {
  const level = Math.min(indentOf(before), indentOf(after));
  const outside = indentOf(before) === indentOf(after) ? level - 1 : level;
  const reaches = (all: readonly string[]): boolean => all.some((line) => line.trim() !== "" && indentOf(line) <= outside);
  return reaches(gone) && !reaches(put);
}

function quoted(own: readonly string[]): string {
  const line = own.find((each) => each.trim() !== "")?.trim() ?? "";
  return `The stretch that begins with "${line.length > 80 ? `${line.slice(0, 80)}…` : line}"`;
}
