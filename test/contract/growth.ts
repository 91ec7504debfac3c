/**
 * Whether the time that a function takes for a text grows faster than the text. The text doubles until the function takes long
 * enough to be measured, and then on: two doublings in a row that each take thrice as long, or more, mean that it does. It is
 * processor time and a ratio, so that the speed of the machine, and what else runs on it, decide nothing.
 */
export function growsTooFast(run: (text: string) => unknown, part: string, most: number): string | undefined {
  let before: number | undefined;
  let strikes = 0;
  for (let length = 8_192; length <= most; length *= 2) {
    const text = part.repeat(Math.ceil(length / part.length));
    const taken = leastOf(() => run(text));
    const ratio = before === undefined || before < measurable ? 0 : taken / before;
    strikes = ratio > 3 ? strikes + 1 : 0;
    // It has been seen to grow over enough doublings.
    if (strikes === 0 && taken > enough) return undefined;
    if (strikes === 2) return `${length} characters of ${JSON.stringify(part)} take ${ratio.toFixed(1)} times as long as half of them`;
    before = taken;
  }
  return undefined;
}

/** Microseconds; the clock of the processor counts in steps. */
const measurable = 8_000;
const enough = 200_000;

function leastOf(run: () => unknown): number {
  let least = Number.POSITIVE_INFINITY;
  for (let round = 0; round < 3; round++) {
    const start = process.cpuUsage();
    run();
    const { user, system } = process.cpuUsage(start);
    least = Math.min(least, user + system);
    // What takes long is measured well enough at once.
    if (least < measurable || least > 50_000) break;
  }
  return least;
}

/** The characters that mean something in most formats. */
export const commonParts: readonly string[] = [" ", "\t", "\n", "<", "&", '"', "'", "`", "*", "[", "(", "{", "-", "#", "\\", ":", "a"];
