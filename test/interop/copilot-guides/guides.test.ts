import { beforeAll, describe, expect, test } from "vitest";
import { compareRuns } from "./compare-runs.ts";
import { guides } from "./guides.ts";
import { knownDifferences } from "./known-differences.ts";
import { installRuntime, ourRuntime, runGuide } from "./run-guide.ts";

const missing = whyMissing();

/** Why the official runtime is not there. */
function whyMissing(): string | undefined {
  try {
    installRuntime();
    return undefined;
  } catch (error) {
    return String(error);
  }
}

if (missing !== undefined) process.stderr.write(`The official runtime cannot be installed: ${missing.slice(0, 500)}\n`);

describe.skipIf(missing !== undefined)("programs of the SDK's guides behave with skillhost as with the official runtime", () => {
  /** The reasons that explained a difference. */
  const used = new Set<string>();
  let runtime: string;

  beforeAll(() => {
    runtime = ourRuntime();
  });

  test.each(guides)("$name", async (guide) => {
    const [official, ours] = await Promise.all([runGuide(guide), runGuide(guide, runtime)]);
    const unknown = compareRuns(official, ours).filter((difference) => {
      const reasons = knownDifferences.filter(
        ({ guides: only, differences }) =>
          (only === undefined || only.includes(guide.name)) && differences.some((known) => matches(known, difference)),
      );
      for (const { reason } of reasons) used.add(reason);
      return reasons.length === 0;
    });
    expect(unknown).toEqual([]);
  });

  test("every known difference still exists", () => {
    expect(knownDifferences.map(({ reason }) => reason).filter((reason) => !used.has(reason))).toEqual([]);
  });
});

/** `*` stands for any text, `?` for a character. */
function matches(known: string, difference: string): boolean {
  const pattern = known
    .replaceAll(/[.+^${}()|[\]\\]/g, "\\$&")
    .replaceAll("*", "[^]*")
    .replaceAll("?", ".");
  return new RegExp(`^${pattern}$`).test(difference);
}
