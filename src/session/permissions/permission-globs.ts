/**
 * Whether a text matches a pattern with `*` (any characters) and `?` (one), all others standing for themselves. Its time
 * is at most the product of both lengths, whatever they are: neither comes from a regular expression engine.
 */
export function matchesWildcard(pattern: string, text: string): boolean {
  return matchesSequence(pattern, text, (wanted, given) => wanted === "?" || wanted === given, "*");
}

/**
 * Whether a path matches a pattern, part by part between slashes: `**` stands for any number of parts, `*` and `?` do
 * not reach over a slash. Names that begin with a dot are names like others.
 */
export function matchesPath(pattern: string, path: string): boolean {
  return matchesSequence(pattern.split("/"), path.split("/"), matchesWildcard, "**");
}

/** Why a text cannot be a pattern here; undefined: it can. Whatever looks like a pattern and is none must not pass for a name. */
export function globFault(pattern: string): string | undefined {
  if (pattern.includes("\0")) return "it contains a NUL character";
  if (/[{}[\]]/.test(pattern)) return "braces and brackets are not supported: write one rule for each, or ? for a bracket in a name";
  return pattern.startsWith("!") ? "it begins with an exclamation mark: write a rule of the opposite sort" : undefined;
}

/** Matches from the left and goes back to the last `many` only: the ones before it need no second look. */
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
