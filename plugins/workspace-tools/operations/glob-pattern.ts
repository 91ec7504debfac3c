/** A parsed pattern for paths. Matching time grows only with the lengths of pattern and path, even for hostile patterns. */
export interface GlobPattern {
  /** `path`: names separated by "/", without a slash at either end. */
  matches(path: string): boolean;
}

const maxPatternLength = 1000;
const maxAlternatives = 256;

/**
 * Parses a glob: `*` and `?` match within a name, `**` matches any folders, `[a-z]` and `[!a-z]` one character, `{a,b}`
 * either. Undefined: it is too long, or its braces expand to too many patterns.
 */
export function parseGlob(text: string): GlobPattern | undefined {
  if (text.length > maxPatternLength) return undefined;
  const spellings = expandBraces(text);
  if (spellings === undefined) return undefined;
  const patterns = spellings.map((spelling) => spelling.split("/").map(parseName));
  return {
    matches(path) {
      const names = path.split("/");
      return patterns.some((pattern) => matchesNames(pattern, names));
    },
  };
}

/** A pattern for one name: characters, character sets, `*`; or `**` for any number of names. */
type NamePattern = readonly Piece[] | "**";
type Piece = string | { readonly any: "one" | "some" } | CharacterSet;

interface CharacterSet {
  readonly isNegated: boolean;
  readonly ranges: readonly (readonly [from: string, to: string])[];
}

const one: Piece = { any: "one" };
const some: Piece = { any: "some" };

export function parseName(text: string): NamePattern {
  if (text === "**") return "**";
  const pieces: Piece[] = [];
  for (let at = 0; at < text.length; at++) {
    const char = text[at]!;
    const set = char === "[" ? readSet(text, at) : undefined;
    if (set !== undefined) {
      pieces.push(set.set);
      at = set.end;
    } else if (char === "*") {
      if (pieces.at(-1) !== some) pieces.push(some);
    } else if (char === "?") pieces.push(one);
    else if (char === "\\" && at + 1 < text.length) pieces.push(text[++at]!);
    else pieces.push(char);
  }
  return pieces;
}

function readSet(text: string, open: number): { set: CharacterSet; end: number } | undefined {
  const isNegated = text[open + 1] === "!" || text[open + 1] === "^";
  const start = open + (isNegated ? 2 : 1);
  // A bracket in first place is one of the characters.
  const end = text.indexOf("]", start + 1);
  if (end === -1) return undefined;
  const ranges: [string, string][] = [];
  for (let at = start; at < end; at++) {
    const isRange = text[at + 1] === "-" && at + 2 < end;
    ranges.push([text[at]!, text[isRange ? at + 2 : at]!]);
    if (isRange) at += 2;
  }
  return { set: { isNegated, ranges }, end };
}

/** Whether names match a pattern. Only the last `**` is ever retried: the match of an earlier one stays valid. */
export function matchesNames(pattern: readonly NamePattern[], names: readonly string[]): boolean {
  return matchesSequence(pattern, names, (part) => part === "**", matchesName);
}

function matchesName(pattern: NamePattern, name: string): boolean {
  return pattern === "**" || matchesSequence(pattern, [...name], (piece) => piece === some, matchesPiece);
}

function matchesPiece(piece: Piece, char: string): boolean {
  if (typeof piece === "string") return piece === char;
  if ("any" in piece) return true;
  return piece.ranges.some(([from, to]) => from <= char && char <= to) !== piece.isNegated;
}

function matchesSequence<P, T>(
  pattern: readonly P[],
  items: readonly T[],
  isMany: (part: P) => boolean,
  fits: (part: P, item: T) => boolean,
): boolean {
  let [at, next] = [0, 0];
  let retry: { readonly pattern: number; item: number } | undefined;
  while (next < items.length) {
    if (at < pattern.length && isMany(pattern[at]!)) {
      retry = { pattern: ++at, item: next };
    } else if (at < pattern.length && fits(pattern[at]!, items[next]!)) {
      at++;
      next++;
    } else {
      if (retry === undefined) return false;
      // Let the last `**` match one more name.
      next = ++retry.item;
      at = retry.pattern;
    }
  }
  while (at < pattern.length && isMany(pattern[at]!)) at++;
  return at === pattern.length;
}

/** All expansions of braces. Undefined: too many. */
function expandBraces(text: string): readonly string[] | undefined {
  const done: string[] = [];
  const open = [text];
  for (let steps = 0; open.length > 0; steps++) {
    if (steps > maxAlternatives * 4 || done.length + open.length > maxAlternatives) return undefined;
    const next = open.shift()!;
    const parts = splitBraces(next);
    if (parts === undefined) done.push(next);
    else open.push(...parts.choices.map((choice) => parts.before + choice + parts.after));
  }
  return done;
}

/** Splits at the first braces that contain a comma. */
function splitBraces(text: string): { before: string; choices: readonly string[]; after: string } | undefined {
  for (let open = text.indexOf("{"); open !== -1; open = text.indexOf("{", open + 1)) {
    const choices: string[] = [];
    let [depth, start] = [0, open + 1];
    for (let at = open; at < text.length; at++) {
      const char = text[at];
      if (char === "\\") at++;
      else if (char === "{") depth++;
      else if (char === "}") depth--;
      if ((char === "," && depth === 1) || depth === 0) {
        choices.push(text.slice(start, at));
        start = at + 1;
      }
      if (depth > 0) continue;
      if (choices.length > 1) return { before: text.slice(0, open), choices, after: text.slice(at + 1) };
      break;
    }
  }
  return undefined;
}
