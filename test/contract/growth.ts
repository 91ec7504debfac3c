/**
 * Whether the time that a function takes for a text grows faster than the text: from one length to the next, which is twice as long or
 * longer, it may become three times as long for each doubling. It is processor time and a ratio, so that the speed of the machine,
 * and what else runs on it, decide nothing. What seems to grow faster is measured again, as often as it takes to be sure.
 */
export function growsTooFast(run: (text: string) => unknown, part: string, lengths: readonly number[]): string | undefined {
  const times: number[] = [];
  for (const [index, length] of lengths.entries()) {
    times.push(timeOf(run, part, length));
    if (index === 0) continue;
    const before = lengths[index - 1]!;
    const allowed = 3 ** Math.log2(length / before);
    const ratio = (): number => times[index]! / Math.max(times[index - 1]!, measurable);
    for (let again = 0; again < 3 && ratio() > allowed; again++) {
      times[index - 1] = Math.max(times[index - 1]!, timeOf(run, part, before));
      times[index] = Math.min(times[index]!, timeOf(run, part, length));
    }
    if (ratio() > allowed) return `${length} characters of ${JSON.stringify(part)} take ${ratio().toFixed(1)} times as long as ${before}`;
  }
  return undefined;
}

/** Microseconds; the clock of the processor counts in steps. */
const measurable = 8_000;

function timeOf(run: (text: string) => unknown, part: string, length: number): number {
  const text = part.repeat(Math.ceil(length / part.length));
  const start = process.cpuUsage();
  run(text);
  const { user, system } = process.cpuUsage(start);
  return user + system;
}

/** The characters that mean something in most formats. */
export const commonParts: readonly string[] = [" ", "\t", "\n", "<", "&", '"', "'", "`", "*", "[", "(", "{", "-", "#", "\\", ":", "a"];

/** What strangers' texts can consist of, over and over. */
export const repeatedParts: readonly string[] = [
  ..." \t\n\raA0é😀<>&\"'`*[]({}-#\\/:|,_$!=~.@%;?+",
  ..." a·a ·- ·a:·a: ·{,·*a·[a](·\n- ·{{·${·$(·<a ·</·<!--·&#·> ·# ·---\n·\n\n· \n·\t\n·**·[!·!(·a=b ·>a·<<a\n·''·\"\"·\\\n·+a\n·@@\n·*** ·// ·...·--·```\n·|a·[a]·\r\n".split(
    "·",
  ),
];
