import type { Diagnostic } from "../base/diagnostic.ts";
import { errorMessage } from "../base/errors.ts";
import type { SkillScope } from "../trust/trust-policy.ts";
import type { TrustSettings } from "../trust/trust-settings.ts";
import { verifyProvenance } from "../trust/verify-provenance.ts";
import type { NpmOptions } from "./npm-options.ts";
import type { PreviewedPackage } from "./preview.ts";

/** Applies the signature policy to the staged skills of a package. An error prevents its installation. */
export function judgePackage(
  { name, skills }: PreviewedPackage,
  { skills: trust }: TrustSettings,
  scope: SkillScope = "package",
): readonly Diagnostic[] {
  return skills.flatMap((skill): readonly Diagnostic[] => {
    const admission = trust?.admit(skill.folder, { scope });
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
    message: `The signature policy does not allow its skill ${path}.`,
  };
}

/**
 * Checks where a package was built, if its registry has attestations or the policy requires them. An error prevents its installation; if
 * nothing is required, a problem is a warning.
 */
export async function checkProvenance(
  { name, version, integrity, resolved }: Pick<PreviewedPackage, "name" | "version" | "integrity" | "resolved">,
  settings: Pick<TrustSettings, "provenanceRule">,
  npm: NpmOptions,
): Promise<readonly Diagnostic[]> {
  const rule = settings.provenanceRule(name);
  if (integrity === undefined || rule?.mode === "off") return [];
  const severity = rule?.mode === "require" ? "error" : "warning";
  try {
    const attestations = resolved?.startsWith("file:") === true ? undefined : await fetchAttestations(`${name}@${version}`, npm);
    if (attestations === undefined && rule?.mode !== "require") return [];
    const verdict = await verifyProvenance(attestations, { name, version, integrity }, { rule });
    if (verdict.kind === "absent") return [];
    if (verdict.kind === "refused") return [{ ...verdict.diagnostic, severity }];
    const message = `${name}@${version} was built from ${verdict.repository} by ${verdict.workflow} (${verdict.ref}).`;
    return [{ severity: "info", code: "PROVENANCE_VERIFIED", source: name, message }];
  } catch (error) {
    const message = `The provenance of ${name}@${version} cannot be looked up: ${errorMessage(error)}`;
    return [{ severity, code: "PROVENANCE_UNAVAILABLE", source: name, message }];
  }
}

/** Undefined when the registry has no attestations. */
async function fetchAttestations(spec: string, npm: NpmOptions): Promise<unknown> {
  const { default: pacote } = await import("pacote");
  const manifest = await pacote.manifest(spec, npm as Parameters<typeof pacote.manifest>[1]);
  const { attestations } = (manifest.dist ?? {}) as { attestations?: { url?: unknown } };
  if (typeof attestations?.url !== "string") return undefined;
  const { default: fetch } = await import("npm-registry-fetch");
  // From the registry that serves the package, whatever host the URL names: mirrors keep the original URL.
  return fetch.json(new URL(attestations.url).pathname, npm as Parameters<typeof fetch.json>[1]);
}
