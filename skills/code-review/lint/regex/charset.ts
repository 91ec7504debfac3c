/** A set of code points as sorted ranges that do not touch, both ends included. */
export type CharSet = readonly (readonly [number, number])[];

const last = 0x10ffff;

export function charSet(ranges: Iterable<readonly [number, number]>): CharSet {
  const merged: [number, number][] = [];
  for (const [low, high] of [...ranges].sort((a, b) => a[0] - b[0])) {
    const previous = merged.at(-1);
    if (previous && low <= previous[1] + 1) previous[1] = Math.max(previous[1], high);
    else merged.push([low, high]);
  }
  return merged;
}

export function complement(set: CharSet): CharSet {
  const gaps: [number, number][] = [];
  let from = 0;
  for (const [low, high] of set) {
    if (low > from) gaps.push([from, low - 1]);
    from = high + 1;
  }
  if (from <= last) gaps.push([from, last]);
  return gaps;
}

export function overlaps(a: CharSet, b: CharSet): boolean {
  let i = 0;
  let j = 0;
  while (i < a.length && j < b.length) {
    const [lowA, highA] = a[i] as readonly [number, number];
    const [lowB, highB] = b[j] as readonly [number, number];
    if (lowA <= highB && lowB <= highA) return true;
    if (highA < highB) i++;
    else j++;
  }
  return false;
}

/** Both cases of the ASCII letters in it. */
export function ignoreCase(set: CharSet): CharSet {
  const more: (readonly [number, number])[] = [...set];
  for (const [low, high] of set) {
    const upper = [Math.max(low, 0x41), Math.min(high, 0x5a)] as const;
    const lower = [Math.max(low, 0x61), Math.min(high, 0x7a)] as const;
    if (upper[0] <= upper[1]) more.push([upper[0] + 32, upper[1] + 32]);
    if (lower[0] <= lower[1]) more.push([lower[0] - 32, lower[1] - 32]);
  }
  return charSet(more);
}

export function single(code: number): CharSet {
  return [[code, code]];
}

const codes = (text: string): [number, number][] => [...text].map((char) => [char.codePointAt(0) ?? 0, char.codePointAt(0) ?? 0]);

const digit = charSet([[0x30, 0x39]]);
const word = charSet([
  [0x30, 0x39],
  [0x41, 0x5a],
  [0x5f, 0x5f],
  [0x61, 0x7a],
]);
const space = charSet([...codes("\t\n\v\f\r \u00a0\u1680\u2028\u2029\u202f\u205f\u3000\ufeff"), [0x2000, 0x200a]]);

/** `\d`, `\W` and so on. */
export const classEscapes: ReadonlyMap<string, CharSet> = new Map([
  ["d", digit],
  ["D", complement(digit)],
  ["w", word],
  ["W", complement(word)],
  ["s", space],
  ["S", complement(space)],
]);

export const anyChar: CharSet = [[0, last]];
export const anyButLineEnd: CharSet = complement(charSet(codes("\n\r\u2028\u2029")));
