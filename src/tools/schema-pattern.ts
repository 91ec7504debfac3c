import { RE2JS } from "re2js";

/** What a schema's `pattern` is matched with. */
export interface Pattern {
  test(text: string): boolean;
}

const maxPatternLength = 2_000;

/**
 * A pattern of a schema that the host's owner chose. JSON Schema means Unicode patterns; many schemas are written
 * without that in mind, so what is only valid without the flag is taken without it. Null: not a regular expression.
 */
export function trustedPattern(source: string): Pattern | null {
  for (const flags of ["u", ""]) {
    try {
      return new RegExp(source, flags);
    } catch {
      // Not valid with these flags; null says that it is not valid with any.
    }
  }
  return null;
}

/**
 * A pattern from a stranger, matched in time that grows with the text only. Null: it needs what cannot be done in
 * bounded time (look-around, back-references), is too long, or is not a regular expression.
 */
export function boundedPattern(source: string): Pattern | null {
  if (source.length > maxPatternLength) return null;
  try {
    const compiled = RE2JS.compile(source);
    return { test: (text) => compiled.test(text) };
  } catch {
    // Whatever the reason, the answer is the same: it cannot be matched safely.
    return null;
  }
}
