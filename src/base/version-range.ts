import { satisfies, valid, validRange } from "semver";
import { LruMap } from "./lru-map.ts";

/** Whether a version satisfies a range, or why that is unknown. */
export type RangeVerdict = "met" | "unmet" | "invalid-range" | "no-version" | "invalid-version";

/** Parsing ranges is slow, and each change checks the ranges of all skills again. */
const known = new LruMap<string, RangeVerdict>(4_096);

/** Checks a version against a semver range. A pre-release counts as its release; `*` accepts any version. */
export function judgeRange(range: string, version: string | undefined): RangeVerdict {
  return known.getOrCreate(`${range}\0${version}`, () => judge(range, version));
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
