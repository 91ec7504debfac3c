/** The text, cut to `most` UTF-16 code units, or one less to keep a character whole, with an ellipsis after them. */
export function shorten(text: string, most: number): string {
  if (text.length <= most) return text;
  const isHalf = /[\ud800-\udbff]/.test(text[most - 1] ?? "") && /[\udc00-\udfff]/.test(text[most]!);
  return `${text.slice(0, isHalf ? most - 1 : most)}…`;
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
