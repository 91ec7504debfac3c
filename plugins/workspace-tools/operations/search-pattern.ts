import { RE2JS } from "re2js";

/** A compiled search pattern. */
export interface SearchPattern {
  /** Whether it matches in a line, or in the whole text for a pattern that spans lines. */
  test(text: string): boolean;
  /** All matches in a text, in order; for a pattern that spans lines. */
  find(text: string): Iterable<{ readonly start: number; readonly end: number }>;
}

export interface PatternOptions {
  readonly ignoreCase: boolean;
  /** `.` matches line breaks; `^` and `$` still match at lines. */
  readonly multiline: boolean;
}

const maxPatternLength = 1000;
// Compiled, `x{1000}` has a thousand steps for each character of a text. Common patterns have a few dozen.
const maxProgramSize = 2000;

/**
 * Compiles a regular expression of a model with an engine of linear time (RE2), or returns the reason why it cannot be
 * compiled.
 */
export function parseSearchPattern(source: string, options: PatternOptions): SearchPattern | string {
  if (source === "") return "it is empty";
  if (source.length > maxPatternLength) return `it is longer than ${maxPatternLength} characters`;
  if (!options.multiline && /\\n|\n/.test(source)) return "it spans lines, for which multiline must be set";
  if (isLiteral.test(source) && !options.ignoreCase) return literalPattern(source);
  try {
    const flags = RE2JS.MULTILINE | (options.ignoreCase ? RE2JS.CASE_INSENSITIVE : 0) | (options.multiline ? RE2JS.DOTALL : 0);
    const compiled = RE2JS.compile(source, flags);
    if (compiled.programSize() > maxProgramSize) return "it repeats too much";
    return { test: (text) => compiled.test(text), find: (text) => findAll(compiled, text) };
  } catch {
    // The engine's message does not help a model; list what it may write instead.
    return "it is not a supported regular expression (RE2: without look-around and back-references)";
  }
}

/** A pattern that matches a literal text, or the reason why it cannot be searched. */
export function parseSearchText(wanted: string): SearchPattern | string {
  if (wanted === "") return "it is empty";
  if (wanted.length > maxPatternLength) return `it is longer than ${maxPatternLength} characters`;
  return wanted.includes("\n") ? "it spans lines" : literalPattern(wanted);
}

const isLiteral = /^[\w \-/:,'"=<>!@#%&;~`]+$/;

function literalPattern(wanted: string): SearchPattern {
  return {
    test: (text) => text.includes(wanted),
    *find(text) {
      for (let at = text.indexOf(wanted); at !== -1; at = text.indexOf(wanted, at + wanted.length))
        yield { start: at, end: at + wanted.length };
    },
  };
}

function* findAll(compiled: RE2JS, text: string): Iterable<{ start: number; end: number }> {
  const matcher = compiled.matcher(text);
  while (matcher.find()) yield { start: matcher.start(), end: matcher.end() };
}
