import type { Diagnostic } from "../base/diagnostic.ts";
import { judgeRange } from "../base/version-range.ts";
import type { SkillText } from "./read-skill.ts";

/** Says why a skill cannot run on this host: `engines.skillhost` names a range of versions that it does not meet. */
export function checkEngines({ manifest, manifestFile, name }: SkillText, hostVersion: string): Diagnostic | undefined {
  const range = manifest?.engines?.["skillhost"];
  const verdict = range === undefined ? "met" : judgeRange(range, hostVersion);
  if (range === undefined || verdict === "met") return undefined;
  const message =
    verdict === "invalid-range"
      ? `"engines.skillhost" is ${JSON.stringify(range)}, which is not a valid semver range. Write one such as "^${hostVersion}".`
      : `This skill needs skillhost ${range} and this is ${hostVersion}. Update skillhost, or take a version of the skill that suits it.`;
  return { severity: "error", code: "SKILL_ENGINE", file: manifestFile, source: name, message };
}
