import { RE2JS } from "re2js";

/** The compiled form of a schema's `pattern`. */
export interface Pattern {
  test(text: string): boolean;
  /** The cost of matching this text, in evaluation steps. */
  stepsFor(text: string): number;
}

const maxPatternLength = 2_000;

/**
 * A pattern from code that the host's owner trusts: matched in bounded time where possible, otherwise as JavaScript does. Null: not a
 * regular expression.
 */
export function trustedPattern(source: string): Pattern | null {
  return boundedPattern(source) ?? nativePattern(source);
}

/**
 * A pattern from untrusted data, matched in linear time. Null: it needs features without a time bound (look-around, back-references), is
 * too long, or is not a regular expression.
 */
export function boundedPattern(source: string): Pattern | null {
  // JavaScript decides what a valid pattern is, even if the other engine accepts more.
  if (source.length > maxPatternLength || nativePattern(source) === null) return null;
  try {
    const compiled = RE2JS.compile(withClassesOfJavaScript(RE2JS.translateRegExp(source)));
    const size = compiled.programSize();
    return { test: (text) => compiled.test(text), stepsFor: (text) => 1 + stepsOf(text.length, size) };
  } catch {
    // Whatever the error, the pattern cannot be matched safely.
    return null;
  }
}

/** Small programs run as an automaton, about 40 ns per character; big ones may be interpreted instruction by instruction. */
function stepsOf(length: number, size: number): number {
  return size <= 64 ? length >> 2 : Math.ceil((length * size) / 4);
}

const blanks = String.raw`\t-\r \x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}\x{feff}`;
const notBlanks = [
  String.raw`\x{0}-\x{8}\x{e}-\x{1f}!-\x{9f}\x{a1}-\x{167f}\x{1681}-\x{1fff}\x{200b}-\x{2027}\x{202a}-\x{202e}`,
  String.raw`\x{2030}-\x{205e}\x{2060}-\x{2fff}\x{3001}-\x{fefe}\x{ff00}-\x{10ffff}`,
].join("");

/** `\s` and `.` match more characters in JavaScript than in RE2. */
function withClassesOfJavaScript(source: string): string {
  let isInClass = false;
  return source.replace(/\\[\s\S]|[[\].]/g, (part) => {
    if (part === "[" || part === "]") isInClass = part === "[";
    if (part === "." && !isInClass) return String.raw`[^\n\r\x{2028}\x{2029}]`;
    const members = part === "\\s" ? blanks : part === "\\S" ? notBlanks : undefined;
    if (members === undefined) return part;
    return isInClass ? members : `[${members}]`;
  });
}

/**
 * JSON Schema prescribes Unicode patterns, but many schemas ignore that, so a pattern that is only valid without the flag is compiled
 * without it.
 */
export function nativePattern(source: string): Pattern | null {
  for (const flags of ["u", ""]) {
    try {
      const compiled = new RegExp(source, flags);
      return { test: (text) => compiled.test(text), stepsFor: (text) => 1 + (text.length >> 3) };
    } catch {
      // Invalid with these flags; null is returned when it is invalid with all.
    }
  }
  return null;
}
