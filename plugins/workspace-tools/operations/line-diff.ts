import { append } from "./append.ts";
import { bounded, diffOfNewFile, header, splitLines } from "./text-diff.ts";

/** The change of one file, wherever in it, as a unified diff. Undefined texts: the file was not, or is no longer there. */
export function diffOfTexts(name: string, before: string | undefined, after: string | undefined): string {
  if (before === undefined) return diffOfNewFile(name, after ?? "");
  const old = splitLines(before);
  if (after === undefined) {
    return bounded([...header(name, "/dev/null"), `@@ -1,${old.length} +0,0 @@`, ...old.map((line) => `-${line}`)].join("\n"));
  }
  const now = splitLines(after);
  return bounded([...header(name, name), ...hunksOf(old, now, stretchesBetween(old, now))].join("\n"));
}

/** Lines that gave way to others. Both ends are behind the last line. */
interface Stretch {
  readonly old: readonly [from: number, to: number];
  readonly now: readonly [from: number, to: number];
}

type Lines = readonly string[];

const contextLines = 3;

function hunksOf(old: Lines, now: Lines, stretches: readonly Stretch[]): readonly string[] {
  const lines: string[] = [];
  for (let at = 0; at < stretches.length; ) {
    let end = at + 1;
    // What is near enough to share its lines around is one hunk.
    while (end < stretches.length && stretches[end]!.old[0] - stretches[end - 1]!.old[1] <= contextLines * 2) end++;
    append(lines, hunk(old, now, stretches.slice(at, end)));
    at = end;
  }
  return lines;
}

function hunk(old: Lines, now: Lines, stretches: readonly Stretch[]): readonly string[] {
  const [first, last] = [stretches[0]!, stretches.at(-1)!];
  const start = Math.max(0, first.old[0] - contextLines);
  const end = Math.min(old.length, last.old[1] + contextLines);
  const shift = first.now[0] - first.old[0];
  const body: string[] = [];
  let next = start;
  for (const stretch of stretches) {
    append(body, shown(" ", old.slice(next, stretch.old[0])));
    append(body, shown("-", old.slice(...stretch.old)));
    append(body, shown("+", now.slice(...stretch.now)));
    next = stretch.old[1];
  }
  append(body, shown(" ", old.slice(next, end)));
  const added = body.filter((line) => !line.startsWith("-")).length;
  return [`@@ -${start + 1},${end - start} +${start + shift + 1},${added} @@`, ...body];
}

function shown(mark: " " | "-" | "+", lines: Lines): Lines {
  return lines.map((line) => mark + line);
}

function stretchesBetween(old: Lines, now: Lines): readonly Stretch[] {
  let head = 0;
  while (head < old.length && head < now.length && old[head] === now[head]) head++;
  let tail = 0;
  while (tail < old.length - head && tail < now.length - head && old.at(-1 - tail) === now.at(-1 - tail)) tail++;
  const kept = keptLines(old.slice(head, old.length - tail), now.slice(head, now.length - tail));
  return gapsBetween([...kept, [old.length - tail - head, now.length - tail - head]], head);
}

type Pair = readonly [old: number, now: number];

function gapsBetween(kept: readonly Pair[], head: number): readonly Stretch[] {
  const gaps: Stretch[] = [];
  let [old, now] = [0, 0];
  for (const [oldLine, nowLine] of kept) {
    if (oldLine > old || nowLine > now) gaps.push({ old: [head + old, head + oldLine], now: [head + now, head + nowLine] });
    [old, now] = [oldLine + 1, nowLine + 1];
  }
  return gaps;
}

/** Texts that differ in more lines are told as one stretch: nobody reads so long a diff line by line. */
const maxSteps = 300;

/** The lines that stay, by the shortest way from the one to the other (Myers' algorithm). */
function keptLines(old: Lines, now: Lines): readonly Pair[] {
  const reached = new Map<number, number>([[1, 0]]);
  const history: ReadonlyMap<number, number>[] = [];
  for (let steps = 0; steps <= Math.min(maxSteps, old.length + now.length); steps++) {
    history.push(new Map(reached));
    for (let diagonal = -steps; diagonal <= steps; diagonal += 2) {
      let x = comesFromAbove(reached, diagonal, steps) ? reached.get(diagonal + 1)! : reached.get(diagonal - 1)! + 1;
      while (x < old.length && x - diagonal < now.length && old[x] === now[x - diagonal]) x++;
      reached.set(diagonal, x);
      if (x >= old.length && x - diagonal >= now.length) return wayBack(history, old.length, now.length);
    }
  }
  return [];
}

function comesFromAbove(reached: ReadonlyMap<number, number>, diagonal: number, steps: number): boolean {
  return diagonal === -steps || (diagonal !== steps && (reached.get(diagonal - 1) ?? -1) < (reached.get(diagonal + 1) ?? -1));
}

function wayBack(history: readonly ReadonlyMap<number, number>[], oldEnd: number, nowEnd: number): readonly Pair[] {
  const kept: Pair[] = [];
  let [x, y] = [oldEnd, nowEnd];
  for (let steps = history.length - 1; steps >= 0; steps--) {
    const reached = history[steps]!;
    const before = comesFromAbove(reached, x - y, steps) ? x - y + 1 : x - y - 1;
    const fromX = reached.get(before) ?? 0;
    const fromY = fromX - before;
    while (x > fromX && y > fromY && x > 0 && y > 0) kept.push([--x, --y]);
    if (steps > 0) [x, y] = [fromX, fromY];
  }
  return kept.reverse();
}
