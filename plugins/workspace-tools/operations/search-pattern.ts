import { RE2JS } from "re2js";

/** What a search looks for. */
export interface SearchPattern {
  /** Whether it stands anywhere in a line, or in whole text for one that spans lines. */
  test(text: string): boolean;
  /** Where it stands in a text, from start to end; for one that spans lines. */
  find(text: string): Iterable<{ readonly start: number; readonly end: number }>;
}

export interface PatternOptions {
  readonly ignoreCase: boolean;
  /** `.` takes line breaks, and `^` and `$` still stand at lines. */
  readonly multiline: boolean;
}

const maxPatternLength = 1000;
// Compiled, `x{1000}` is a thousand steps that each character of a text may take. What people write has a few dozen.
const maxProgramSize = 2000;

/**
 * Reads a regular expression that a model wrote. It is matched by an engine whose time grows with the text only (RE2).
 * Otherwise the reason why it cannot be.
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
    // Whatever it says is about the engine; the model is told what it may write.
    return "it is not a supported regular expression (RE2: without look-around and back-references)";
  }
}

/** Looks for a text as it is. Otherwise the reason why it cannot be looked for. */
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
