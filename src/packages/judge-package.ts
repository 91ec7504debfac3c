import type { Diagnostic } from "../base/diagnostic.ts";
import { errorMessage } from "../base/errors.ts";
import { verifyProvenance } from "../trust/provenance/verify-provenance.ts";
import type { TrustSettings } from "../trust/trust-settings.ts";
import type { NpmOptions } from "./npm-options.ts";
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
    message: `The signature policy does not allow its skill ${path}.`,
  };
}

/**
 * Where a package says that it was built, if its registry has attestations of that, or if they are required. An error
 * keeps the package out; what is wrong where nothing is required is a warning.
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

/** Undefined: the registry has none. */
async function fetchAttestations(spec: string, npm: NpmOptions): Promise<unknown> {
  const { default: pacote } = await import("pacote");
  const manifest = await pacote.manifest(spec, npm as Parameters<typeof pacote.manifest>[1]);
  const { attestations } = (manifest.dist ?? {}) as { attestations?: { url?: unknown } };
  if (typeof attestations?.url !== "string") return undefined;
  const { default: fetch } = await import("npm-registry-fetch");
  // From the registry that serves the package, whatever host the address names: mirrors leave it as it is.
  return fetch.json(new URL(attestations.url).pathname, npm as Parameters<typeof fetch.json>[1]);
}
