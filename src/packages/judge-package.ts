import type { Diagnostic } from "../base/diagnostic.ts";
import type { TrustSettings } from "../trust/trust-settings.ts";
import type { PreviewedPackage } from "./preview.ts";

/** What the policy on signatures says about a package's skills, where they were staged. An error keeps the package out. */
export function judgePackage({ name, skills }: PreviewedPackage, { skills: trust }: TrustSettings): readonly Diagnostic[] {
  return skills.flatMap((skill): readonly Diagnostic[] => {
    const admission = trust?.admit(skill.folder, { scope: "package" });
    if (admission === undefined) return [];
    const { name: skillName, version, tools = {} } = skill;
    const signed = skillName === undefined ? undefined : admission.identityFault(skillName, version);
    const known = Object.entries(tools).flatMap(([tool, { signature }]) =>
      signature === undefined ? [] : (admission.toolFault(tool, signature) ?? []),
    );
    admission.conclude(false);
    trust?.forget(skill.folder);
    const all = [...admission.diagnostics, ...(signed === undefined ? [] : [signed]), ...known];
    if (admission.kind === "refused" && !all.some(({ severity }) => severity === "error")) all.push(refused(name, skill.path));
    return all;
  });
}

function refused(name: string, path: string): Diagnostic {
  return {
    severity: "error",
    code: "PACKAGE_REFUSED",
    source: name,
    message: `The policy on signatures does not admit its skill ${path}.`,
  };
}
