import { RE2JS } from "re2js";

/** What a schema's `pattern` is matched with. */
export interface Pattern {
  test(text: string): boolean;
  /** What matching this text costs, in steps of an evaluation. */
  stepsFor(text: string): number;
}

const maxPatternLength = 2_000;

/**
 * A pattern of a schema that code of the host's owner brought: matched in bounded time where that is possible, and
 * otherwise as JavaScript does. Null: not a regular expression.
 */
export function trustedPattern(source: string): Pattern | null {
  return boundedPattern(source) ?? nativePattern(source);
}

/**
 * A pattern that somebody declared, matched in time that grows with the text only. Null: it needs what cannot be done in
 * bounded time (look-around, back-references), is too long, or is not a regular expression.
 */
export function boundedPattern(source: string): Pattern | null {
  // What is no pattern in JavaScript is none in a schema, though the other engine may take it.
  if (source.length > maxPatternLength || nativePattern(source) === null) return null;
  try {
    const compiled = RE2JS.compile(withClassesOfJavaScript(RE2JS.translateRegExp(source)));
    const size = compiled.programSize();
    return { test: (text) => compiled.test(text), stepsFor: (text) => 1 + stepsOf(text.length, size) };
  } catch {
    // Whatever the reason, the answer is the same: it cannot be matched safely.
    return null;
  }
}

/** Small programs run as an automaton, some 40 ns a character; big ones may have to be followed instruction by instruction. */
function stepsOf(length: number, size: number): number {
  return size <= 64 ? length >> 2 : Math.ceil((length * size) / 4);
}

const blanks = String.raw`\t-\r \x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}\x{feff}`;
const notBlanks = [
  String.raw`\x{0}-\x{8}\x{e}-\x{1f}!-\x{9f}\x{a1}-\x{167f}\x{1681}-\x{1fff}\x{200b}-\x{2027}\x{202a}-\x{202e}`,
  String.raw`\x{2030}-\x{205e}\x{2060}-\x{2fff}\x{3001}-\x{fefe}\x{ff00}-\x{10ffff}`,
].join("");

/** `\s` and `.` are about more characters in JavaScript than in RE2. */
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
 * JSON Schema means Unicode patterns; many schemas are written without that in mind, so what is only valid without the
 * flag is taken without it.
 */
export function nativePattern(source: string): Pattern | null {
  for (const flags of ["u", ""]) {
    try {
      const compiled = new RegExp(source, flags);
      return { test: (text) => compiled.test(text), stepsFor: (text) => 1 + (text.length >> 3) };
    } catch {
      // Not valid with these flags; null says that it is not valid with any.
    }
  }
  return null;
}
