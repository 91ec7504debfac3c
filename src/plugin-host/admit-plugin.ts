import { dirname } from "node:path";
import { formatDiagnostic } from "../base/diagnostic.ts";
import { HostError } from "../base/errors.ts";
import { isSkillFolder } from "../skills/load/skill-path.ts";
import type { Admission, SkillTrust } from "../trust/skill-trust.ts";

/**
 * Checks the skill that a plugin lies in, as if it were loaded as a skill. Undefined: it lies in none, or nobody asks for the
 * signature of that one. Conclude the admission when the plugin is loaded.
 * @throws HostError `PLUGIN_UNTRUSTED` for a plugin in a skill that must be signed and is not, or not rightly
 */
export function admitPlugin(path: string, trust: SkillTrust | undefined): Admission | undefined {
  const folder = trust === undefined ? undefined : skillFolderOf(path);
  const admission = folder === undefined ? undefined : trust?.admit(folder);
  if (admission?.kind !== "refused") return admission;
  const why = admission.diagnostics.map((each) => formatDiagnostic(each)).join("\n");
  throw new HostError("PLUGIN_UNTRUSTED", `The plugin lies in a skill that must not be used: ${why}`);
}

function skillFolderOf(path: string): string | undefined {
  for (let folder = path; ; folder = dirname(folder)) {
    if (isSkillFolder(folder)) return folder;
    if (dirname(folder) === folder) return undefined;
  }
}
