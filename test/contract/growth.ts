/**
 * Describes the first length at which the run time of a function grows faster than its text: for each doubling of the length it
 * may at most triple. The measure is a ratio of processor times, so the speed and the load of the machine do not matter. A ratio
 * that seems too high is measured again before it counts.
 */
export function growsTooFast(
  run: (text: string) => unknown,
  part: string,
  lengths: readonly number[],
  { repeats = 40 }: { readonly repeats?: number } = {},
): string | undefined {
  const times: number[] = [];
  for (const [index, length] of lengths.entries()) {
    times.push(timeOf(run, part, length));
    if (index === 0) continue;
    const before = lengths[index - 1]!;
    const allowed = 3 ** Math.log2(length / before);
    const ratio = (): number => times[index]! / Math.max(times[index - 1]!, measurable);
    for (let again = 0; again < repeats && ratio() > allowed; again++) {
      times[index - 1] = Math.max(times[index - 1]!, timeOf(run, part, before));
      times[index] = Math.min(times[index]!, timeOf(run, part, length));
    }
    if (ratio() > allowed) return `${length} characters of ${JSON.stringify(part)} take ${ratio().toFixed(1)} times as long as ${before}`;
  }
  return undefined;
}

/** The shortest reliable measurement in microseconds: the processor clock advances in steps. */
const measurable = 8_000;

function timeOf(run: (text: string) => unknown, part: string, length: number): number {
  const text = part.repeat(Math.ceil(length / part.length));
  const start = process.cpuUsage();
  run(text);
  const { user, system } = process.cpuUsage(start);
  return user + system;
}

/** Characters with a meaning in most formats. */
export const commonParts: readonly string[] = [" ", "\t", "\n", "<", "&", '"', "'", "`", "*", "[", "(", "{", "-", "#", "\\", ":", "a"];

/** Units that hostile texts can repeat. */
export const repeatedParts: readonly string[] = [
  ..." \t\n\raA0é😀<>&\"'`*[]({}-#\\/:|,_$!=~.@%;?+",
  ..." a·a ·- ·a:·a: ·{,·*a·[a](·\n- ·{{·${·$(·<a ·</·<!--·&#·> ·# ·---\n·\n\n· \n·\t\n·**·[!·!(·a=b ·>a·<<a\n·''·\"\"·\\\n·+a\n·@@\n·*** ·// ·...·--·```\n·|a·[a]·\r\n".split(
    "·",
  ),
];
