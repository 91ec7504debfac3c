import { satisfies, valid, validRange } from "semver";

/** How a version stands to a range: met or not, or why that cannot be said. */
export type RangeVerdict = "met" | "unmet" | "invalid-range" | "no-version" | "invalid-version";

const maxKnown = 4_096;
/** Parsing ranges is slow, and each change checks those of all skills again. */
const known = new Map<string, RangeVerdict>();

/** Judges a version by a range of semantic versions. A pre-release counts as the version it leads to; `*` takes anything. */
export function judgeRange(range: string, version: string | undefined): RangeVerdict {
  const key = `${range}\0${version}`;
  const verdict = known.get(key) ?? judge(range, version);
  if (known.size >= maxKnown) known.clear();
  known.set(key, verdict);
  return verdict;
}

/** Why a range is not met, as the continuation of "it requires …"; undefined when it is met. */
export function explainRange(range: string, version: string | undefined): string | undefined {
  switch (judgeRange(range, version)) {
    case "met":
      return undefined;
    case "unmet":
      return `version ${version} is installed`;
    case "no-version":
      return "it does not declare a version";
    case "invalid-version":
      return `its version ${JSON.stringify(version)} is not a valid semantic version`;
    case "invalid-range":
      return `${JSON.stringify(range)} is not a valid semver range; use one such as "^1.2.0"`;
  }
}

function judge(range: string, version: string | undefined): RangeVerdict {
  const read = validRange(range, true);
  if (read === null) return "invalid-range";
  if (read === "*" || read === "") return "met";
  if (version === undefined) return "no-version";
  if (valid(version, true) === null) return "invalid-version";
  return satisfies(version, range, { includePrerelease: true, loose: true }) ? "met" : "unmet";
}
