/** The text, cut to `most` UTF-16 code units, or one less to keep a character whole, with an ellipsis after them. */
export function shorten(text: string, most: number): string {
  if (text.length <= most) return text;
  const isHalf = /[\ud800-\udbff]/.test(text[most - 1] ?? "") && /[\udc00-\udfff]/.test(text[most]!);
  return `${text.slice(0, isHalf ? most - 1 : most)}…`;
}

/** The longest beginning of a text that has at most `most` bytes in UTF-8, cut between two characters. */
export function headInBytes(text: string, most: number): string {
  // UTF-8 takes one to three bytes for a UTF-16 unit: most texts need no counting, and of a long one only the beginning.
  if (text.length * 3 <= most) return text;
  const bytes = Buffer.from(text.slice(0, most));
  if (bytes.length <= most) return text.slice(0, most);
  let end = most;
  while (end > 0 && (bytes[end]! & 0xc0) === 0x80) end--;
  return bytes.toString("utf8", 0, end);
}

/** A text as one word of a command line of a POSIX shell. */
export function shellQuoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/** `1 file`, `2 files`. */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

/**
 * Whether a text matches a pattern with `*` (any characters) and `?` (one character). All other characters are literal. The
 * time is bounded by the product of both lengths, because no regular expression is involved.
 */
export function matchesWildcard(pattern: string, text: string): boolean {
  return matchesSequence(pattern, text, (wanted, given) => wanted === "?" || wanted === given, "*");
}

/**
 * Whether a path matches a pattern, compared by segments: `**` matches any number of segments; `*` and `?` do not match a
 * slash. Names that begin with a dot are not special.
 */
export function matchesPath(pattern: string, path: string): boolean {
  return matchesSequence(pattern.split("/"), path.split("/"), matchesWildcard, "**");
}

/** Backtracks only to the last `many`: earlier ones cannot lead to another match. */
function matchesSequence<T>(pattern: ArrayLike<T>, items: ArrayLike<T>, isOne: (wanted: T, given: T) => boolean, many: T): boolean {
  let [p, i] = [0, 0];
  let back: { readonly p: number; i: number } | undefined;
  while (i < items.length) {
    if (p < pattern.length && pattern[p] === many) {
      back = { p: ++p, i };
    } else if (p < pattern.length && isOne(pattern[p]!, items[i]!)) {
      p++;
      i++;
    } else if (back !== undefined) {
      p = back.p;
      i = ++back.i;
    } else {
      return false;
    }
  }
  while (p < pattern.length && pattern[p] === many) p++;
  return p === pattern.length;
}
