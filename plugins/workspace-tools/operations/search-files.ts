import { openFile, readWhole } from "./open-file.ts";
import type { SearchPattern } from "./search-pattern.ts";
import { decodeText } from "./text-encoding.ts";
import type { SearchSteps } from "./walk-files.ts";

/** A line of the result: a match or a line near one. */
export interface FoundLine {
  /** From 1. */
  readonly number: number;
  readonly text: string;
  readonly fits: boolean;
}

/** The matches in one file. */
export interface FileMatches {
  /** The number of matching lines; of matches for a pattern that spans lines. */
  readonly count: number;
  readonly lines: readonly FoundLine[];
}

export interface LookOptions {
  readonly pattern: SearchPattern;
  readonly multiline: boolean;
  /** Context lines before and after matches. */
  readonly before: number;
  readonly after: number;
  /** The maximum number of lines, including context. 0: only counts. */
  readonly maxLines: number;
  /** The step limit of the whole search. */
  readonly steps: SearchSteps;
}

/** Larger files are skipped. */
const maxFileBytes = 16 * 1024 * 1024;

/** Searches one file. Undefined: no match, or not a text file. */
export async function searchFile(path: string, options: LookOptions): Promise<FileMatches | undefined> {
  const opened = await openFile({ real: path });
  if (!opened.ok) return undefined;
  try {
    const bytes = await readWhole(opened.file, opened.size, maxFileBytes);
    options.steps.takeFile(bytes?.length ?? 0);
    const decoded = bytes === undefined ? undefined : decodeText(bytes);
    return decoded === undefined ? undefined : searchText(decoded.text, options);
  } finally {
    await opened.file.close();
  }
}

/** Searches a text. Undefined: no match. */
function searchText(text: string, options: LookOptions): FileMatches | undefined {
  const lines = splitLines(text);
  const fitting = options.multiline ? linesOfMatches(text, options.pattern) : linesThatFit(lines, options.pattern);
  if (fitting.count === 0) return undefined;
  return { count: fitting.count, lines: options.maxLines === 0 ? [] : withContext(lines, fitting.numbers, options) };
}

interface Fitting {
  readonly count: number;
  /** Line indexes, in order. */
  readonly numbers: readonly number[];
}

function splitLines(text: string): readonly string[] {
  const lines = text.split("\n");
  // The text after the last line break is not a line.
  if (lines.at(-1) === "") lines.pop();
  return lines;
}

function linesThatFit(lines: readonly string[], { test }: SearchPattern): Fitting {
  const numbers: number[] = [];
  for (let at = 0; at < lines.length; at++) if (test(withoutCr(lines[at]!))) numbers.push(at);
  return { count: numbers.length, numbers };
}

function linesOfMatches(text: string, pattern: SearchPattern): Fitting {
  const numbers = new Set<number>();
  let [line, from, count] = [0, 0, 0];
  const moveTo = (place: number): void => {
    for (let at = text.indexOf("\n", from); at !== -1 && at < place; at = text.indexOf("\n", from)) {
      line++;
      from = at + 1;
    }
  };
  for (const { start, end } of pattern.find(text)) {
    count++;
    moveTo(start);
    const first = line;
    moveTo(Math.max(start, end - 1));
    for (let at = first; at <= line; at++) numbers.add(at);
  }
  return { count, numbers: [...numbers] };
}

function withContext(lines: readonly string[], numbers: readonly number[], { before, after, maxLines }: LookOptions): readonly FoundLine[] {
  const found: FoundLine[] = [];
  const fitting = new Set(numbers);
  let next = 0;
  for (const number of numbers) {
    const end = Math.min(lines.length - 1, number + after);
    for (let at = Math.max(next, number - before); at <= end; at++) {
      found.push({ number: at + 1, text: withoutCr(lines[at]!), fits: fitting.has(at) });
      if (found.length >= maxLines) return found;
    }
    next = Math.max(next, end + 1);
  }
  return found;
}

function withoutCr(line: string): string {
  return line.endsWith("\r") ? line.slice(0, -1) : line;
}
