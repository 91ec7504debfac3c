import { anyButLineEnd, anyChar, type CharSet, charSet, classEscapes, complement, ignoreCase, single } from "./charset.ts";

/** A regular expression as far as the analysis of its repetitions needs it. */
export type Pattern =
  | { readonly kind: "set"; readonly set: CharSet }
  | { readonly kind: "sequence" | "choice"; readonly parts: readonly Pattern[] }
  | {
      readonly kind: "repeat";
      readonly body: Pattern;
      readonly min: number;
      readonly max: number;
      readonly start: number;
      readonly end: number;
    }
  /** Matches no character and may fail: `^`, `$`, `\b`, a look-around. */
  | { readonly kind: "assert" };

/** Reads a pattern; undefined for what the analysis does not cover (back references, `\p{…}`, set notation) or what is malformed. */
export function parsePattern(source: string, flags: string): Pattern | undefined {
  if (source.length > 2000 || flags.includes("v")) return undefined;
  try {
    const reader = new PatternReader(source, flags);
    return reader.choice(0);
  } catch (error) {
    if (error instanceof NotCovered) return undefined;
    throw error;
  }
}

class NotCovered extends Error {}

const escapedCodes: Readonly<Record<string, number>> = { n: 10, r: 13, t: 9, v: 11, f: 12, "0": 0 };

class PatternReader {
  readonly #source: string;
  readonly #flags: string;
  #at = 0;

  constructor(source: string, flags: string) {
    this.#source = source;
    this.#flags = flags;
  }

  choice(depth: number): Pattern {
    if (depth > 60) throw new NotCovered();
    const parts = [this.#sequence(depth)];
    while (this.#take("|")) parts.push(this.#sequence(depth));
    if (depth === 0 && this.#at < this.#source.length) throw new NotCovered();
    return parts.length === 1 ? (parts[0] as Pattern) : { kind: "choice", parts };
  }

  #sequence(depth: number): Pattern {
    const parts: Pattern[] = [];
    while (this.#at < this.#source.length && !"|)".includes(this.#peek())) {
      const start = this.#at;
      parts.push(this.#repeated(this.#atom(depth), start));
    }
    return { kind: "sequence", parts };
  }

  #repeated(body: Pattern, start: number): Pattern {
    const counts = /^(?:[*+?]|\{(\d+)(,(\d*))?\})/.exec(this.#source.slice(this.#at, this.#at + 24));
    if (!counts) return body;
    const [text, low, range, high] = counts;
    this.#at += text.length;
    this.#take("?");
    const min = low === undefined ? (text === "+" ? 1 : 0) : Number(low);
    const max =
      low === undefined
        ? text === "?"
          ? 1
          : Number.POSITIVE_INFINITY
        : range === undefined
          ? min
          : high
            ? Number(high)
            : Number.POSITIVE_INFINITY;
    return { kind: "repeat", body, min, max, start, end: this.#at };
  }

  #atom(depth: number): Pattern {
    if (this.#take("(")) return this.#group(depth);
    if (this.#take("[")) return this.#class();
    if (this.#take("^") || this.#take("$")) return { kind: "assert" };
    if (this.#take(".")) return { kind: "set", set: this.#flags.includes("s") ? anyChar : anyButLineEnd };
    if (this.#take("\\")) {
      if (this.#take("b") || this.#take("B")) return { kind: "assert" };
      return this.#leaf(this.#escape());
    }
    return this.#leaf(single(this.#next()));
  }

  #group(depth: number): Pattern {
    const opening = /^\?(?:([=!])|<([=!])|:|<[^>]+>)/.exec(this.#source.slice(this.#at, this.#at + 80));
    if (this.#peek() === "?" && !opening) throw new NotCovered();
    this.#at += opening?.[0].length ?? 0;
    const body = this.choice(depth + 1);
    if (!this.#take(")")) throw new NotCovered();
    return opening?.[1] || opening?.[2] ? { kind: "assert" } : body;
  }

  #class(): Pattern {
    const isNegated = this.#take("^");
    const ranges: (readonly [number, number])[] = [];
    while (!this.#take("]")) {
      const low = this.#classMember();
      const isRange = this.#peek() === "-" && this.#source[this.#at + 1] !== "]" && low.length === 1 && low[0]?.[0] === low[0]?.[1];
      if (!isRange) {
        ranges.push(...low);
        continue;
      }
      this.#at++;
      const high = this.#classMember();
      if (high.length === 1 && high[0]?.[0] === high[0]?.[1]) ranges.push([low[0]?.[0] ?? 0, high[0]?.[0] ?? 0]);
      else ranges.push(...low, ...single(0x2d), ...high);
    }
    const set = this.#cased(charSet(ranges));
    return { kind: "set", set: isNegated ? complement(set) : set };
  }

  #classMember(): CharSet {
    if (!this.#take("\\")) return single(this.#next());
    return this.#take("b") ? single(8) : this.#escape();
  }

  #escape(): CharSet {
    const char = String.fromCodePoint(this.#next());
    const known = classEscapes.get(char);
    if (known) return known;
    // Back references and properties say something about text that a set of characters cannot.
    if (/[1-9pPk]/.test(char)) throw new NotCovered();
    const code = escapedCodes[char];
    if (code !== undefined) return single(code);
    const hex =
      char === "x"
        ? this.#hex(/^[\da-f]{2}/i)
        : char === "u"
          ? (this.#hex(/^[\da-f]{4}/i) ?? this.#hex(/^\{([\da-f]{1,6})\}/i))
          : undefined;
    if (hex !== undefined) return single(hex);
    if (char === "c") return single(this.#next() % 32);
    return single(char.codePointAt(0) ?? 0);
  }

  #hex(shape: RegExp): number | undefined {
    const match = shape.exec(this.#source.slice(this.#at, this.#at + 10));
    if (!match) return undefined;
    this.#at += match[0].length;
    return Number.parseInt(match[1] ?? match[0], 16);
  }

  #leaf(set: CharSet): Pattern {
    return { kind: "set", set: this.#cased(set) };
  }

  #cased(set: CharSet): CharSet {
    return this.#flags.includes("i") ? ignoreCase(set) : set;
  }

  #peek(): string {
    return this.#source[this.#at] ?? "";
  }

  #take(char: string): boolean {
    if (this.#source[this.#at] !== char) return false;
    this.#at++;
    return true;
  }

  #next(): number {
    const code = this.#source.codePointAt(this.#at);
    if (code === undefined) throw new NotCovered();
    this.#at += code > 0xffff ? 2 : 1;
    return code;
  }
}
