import { errorMessage } from "../../base/errors.ts";
import { logApproval } from "../../trust/approval-log.ts";
import { organisationPolicyFile, readOrganisationPolicies } from "../../trust/organisation-policy.ts";
import { readPackagePatterns, readRegistries } from "../../trust/package-rules.ts";
import { changeTrustFile, type PolicyFields, readTrustFile, type TrustFile, trustFileIn } from "../../trust/trust-file.ts";
import { pinPolicies, readDefinitions, readPolicy, readProvenance, skillhostHome, trustModes } from "../../trust/trust-policy.ts";
import { loadTrustSettings } from "../../trust/trust-settings.ts";
import { CliError, usageError } from "../cli-error.ts";
import type { CommandContext } from "../command-context.ts";
import { visibleLine } from "../terminal-style.ts";

export interface PolicyOptions {
  readonly repository?: string;
  readonly workflow?: string;
}

/** Shows what applies, and which file requires it. */
export async function showPolicy({ out, config }: CommandContext): Promise<number> {
  const { trust = {} } = config;
  const { policy, definitions } = loadTrustSettings(trust);
  const organisation = readOrganisationPolicies();
  const { provenance, registries, packages, deniedPackages, onlyKeys, ...rest } = trust;
  const ofProject = { policy: rest.policy, definitions: rest.definitions, provenance, registries, packages, deniedPackages, onlyKeys };
  const sources = [
    ...organisation.map(({ file, ...settings }) => ({ from: "organisation", file, settings: shownOf(settings) })),
    { from: "user", file: trustPath(), settings: shownOf(readTrustFile(trustPath())) },
    ...(config.origin === undefined ? [] : [{ from: "project", file: config.origin.file, settings: shownOf(ofProject as PolicyFields) }]),
  ];
  out.envelope({ ok: true, data: { effective: { policy, definitions }, sources }, diagnostics: [] });
  if (out.isJson) return 0;
  out.line("In effect, the strictest of all:");
  for (const [scope, mode] of Object.entries(policy)) out.line(`  policy.${scope} ${mode}`);
  for (const [scope, mode] of Object.entries(definitions)) out.line(`  definitions.${scope} ${mode}`);
  for (const { from, file, settings } of sources) {
    const lines = linesOf(settings);
    out.line(`${from} (${visibleLine(file)})${lines.length === 0 ? ": nothing" : ":"}`);
    for (const line of lines) out.line(`  ${visibleLine(line)}`);
  }
  if (organisation.length === 0) out.note(`Your organisation has no policy here (${organisationPolicyFile()}).`);
  return 0;
}

/** The settings without keys, folders and revocations, which have commands of their own. */
function shownOf(settings: PolicyFields): Readonly<Record<string, unknown>> {
  const { policy, definitions, provenance, registries, packages, deniedPackages, onlyKeys } = settings;
  const all = { policy, definitions, provenance, registries, packages, deniedPackages, onlyKeys };
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined && !isEmptyRecord(value)));
}

function isEmptyRecord(value: unknown): boolean {
  return typeof value === "object" && value !== null && !Array.isArray(value) && Object.keys(value).length === 0;
}

function linesOf(settings: Readonly<Record<string, unknown>>): readonly string[] {
  return Object.entries(settings).flatMap(([name, value]) => {
    if (Array.isArray(value)) return [`${name} ${value.length === 0 ? "(nothing)" : value.join(" ")}`];
    return Object.entries(value as Readonly<Record<string, unknown>>).map(([key, each]) => {
      const rule = typeof each === "object" && each !== null ? Object.values(each).filter(Boolean).join(" ") : String(each);
      return `${name}.${key} ${rule}`;
    });
  });
}

/** Changes one setting of the user's policy. `default` takes it back. */
export async function setPolicy(context: CommandContext, setting: string, value: string, options: PolicyOptions): Promise<number> {
  const { out } = context;
  const change = changeOf(setting, value, options);
  await changePolicy(`${setting} = ${[value, options.repository, options.workflow].filter(Boolean).join(" ")}`, change);
  out.envelope({ ok: true, data: { setting, value }, diagnostics: [] });
  if (!out.isJson) out.line(value === "default" ? `${setting} has its default again.` : `Set ${visibleLine(setting)} to ${value}.`);
  const stronger = strongerThan(setting, value, context);
  if (stronger !== undefined) out.note(stronger);
  return 0;
}

type Change = (before: TrustFile) => TrustFile;

function changeOf(setting: string, value: string, options: PolicyOptions): Change {
  const [, group = "", name] = /^(policy|definitions|provenance)(?:\.(.+))?$/.exec(setting) ?? [];
  const isDefault = value === "default";
  if ((options.repository !== undefined || options.workflow !== undefined) && group !== "provenance")
    throw usageError("--repository and --workflow are for provenance.<package>.");
  if (group === "policy" || group === "definitions") {
    const words = group === "policy" ? trustModes : pinPolicies;
    const scopes = group === "policy" ? ["user", "project", "package", "external"] : ["user", "project", "package"];
    if (name !== undefined && !scopes.includes(name)) throw usageError(`${group} has the scopes ${scopes.join(", ")}, not "${name}".`);
    if (!isDefault && !(words as readonly string[]).includes(value))
      throw usageError(`${setting} must be ${words.join(", ")} or default, not ${JSON.stringify(value)}.`);
    const read = group === "policy" ? readPolicy : readDefinitions;
    const given = isDefault ? {} : read(name === undefined ? value : { [name]: value }, setting);
    const gone = new Set(name === undefined ? scopes : [name]);
    return (before) => {
      const kept = Object.entries(before[group] ?? {}).filter(([scope]) => !gone.has(scope));
      return { ...before, [group]: { ...Object.fromEntries(kept), ...given } };
    };
  }
  if (group === "provenance" && name !== undefined) {
    asUsage(() => readPackagePatterns([name], setting));
    if (!isDefault && !(trustModes as readonly string[]).includes(value))
      throw usageError(`${setting} must be ${trustModes.join(", ")} or default, not ${JSON.stringify(value)}.`);
    const rule = isDefault ? {} : readProvenance({ [name]: { mode: value, ...options } }, "provenance");
    return (before) => {
      const { [name]: _, ...kept } = before.provenance ?? {};
      return { ...before, provenance: { ...kept, ...rule } };
    };
  }
  if (isDefault && (setting === "registries" || setting === "packages" || setting === "deniedPackages"))
    return ({ [setting]: _, ...kept }) => kept;
  const names =
    "policy[.<scope>], definitions[.<scope>], provenance.<package>; and, with the value default, registries, packages, deniedPackages";
  throw usageError(`${JSON.stringify(setting)} is not a setting. The settings are ${names}.`);
}

/** Other files stay in effect, so what the user sets may change nothing. */
function strongerThan(setting: string, value: string, { config }: CommandContext): string | undefined {
  const [, group, scope] = /^(policy|definitions)\.(\w+)$/.exec(setting) ?? [];
  if (group === undefined || scope === undefined || value === "default") return undefined;
  const { [group as "policy"]: effective } = loadTrustSettings(config.trust);
  const now = effective[scope as "user"];
  if (now === value) return undefined;
  return `In effect is ${setting} ${now}, because something else requires it. "skillhost trust policy show" shows what does.`;
}

/** Allows packages, or an address that packages may come from. */
export async function allow({ out }: CommandContext, given: readonly string[]): Promise<number> {
  const { registries, packages } = sorted(given);
  await changePolicy(`allow ${given.join(" ")}`, (before) => ({
    ...before,
    ...(registries.length > 0 && { registries: union(before.registries, registries) }),
    ...(packages.length > 0 && { packages: union(before.packages, packages) }),
    ...(before.deniedPackages && { deniedPackages: before.deniedPackages.filter((each) => !packages.includes(each)) }),
  }));
  return report(out);
}

/** Denies packages, or takes back an address that packages may come from. */
export async function deny({ out }: CommandContext, given: readonly string[]): Promise<number> {
  const { registries, packages } = sorted(given);
  const known = readTrustFile(trustPath()).registries ?? [];
  const unknown = registries.find((each) => !known.includes(each));
  if (unknown !== undefined) {
    const advice = "Addresses are allowed one by one, and all others are denied: allow the ones that you want.";
    throw new CliError("POLICY_UNKNOWN", `${unknown} is not among the addresses that your policy allows. ${advice}`, 1);
  }
  await changePolicy(`deny ${given.join(" ")}`, (before) => ({
    ...before,
    ...(before.registries && { registries: before.registries.filter((each) => !registries.includes(each)) }),
    ...(before.packages && { packages: before.packages.filter((each) => !packages.includes(each)) }),
    ...(packages.length > 0 && { deniedPackages: union(before.deniedPackages, packages) }),
  }));
  return report(out);
}

function sorted(given: readonly string[]): { readonly registries: readonly string[]; readonly packages: readonly string[] } {
  const isAddress = (text: string): boolean => /:\/\/|^[^@/]+@[^/]+:/.test(text);
  return asUsage(() => ({
    registries: readRegistries(given.filter(isAddress), "addresses"),
    packages: readPackagePatterns(
      given.filter((text) => !isAddress(text)),
      "packages",
    ),
  }));
}

/** A value that a reader refuses was typed on the command line. */
function asUsage<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw usageError(errorMessage(error));
  }
}

function union(before: readonly string[] = [], more: readonly string[]): readonly string[] {
  return [...new Set([...before, ...more])];
}

function report(out: CommandContext["out"]): number {
  const { registries, packages, deniedPackages } = readTrustFile(trustPath());
  const all = { ...(registries && { registries }), ...(packages && { packages }), ...(deniedPackages && { deniedPackages }) };
  out.envelope({ ok: true, data: all, diagnostics: [] });
  if (out.isJson) return 0;
  const say = (label: string, values: readonly string[] | undefined, none: string): void =>
    values === undefined ? undefined : out.line(`${label}: ${values.length === 0 ? none : visibleLine(values.join(", "))}.`);
  say("Packages may come only from", registries, "nowhere");
  say("Only these packages may be installed, with all that they depend on", packages, "none");
  say("Denied", deniedPackages, "none");
  return 0;
}

/** Logs a change, then makes it. */
async function changePolicy(what: string, change: Change): Promise<void> {
  await changeTrustFile(trustPath(), (before) => {
    const after = change(before);
    logApproval({ action: "changed", kind: "policy", id: what, by: "skillhost trust policy" });
    return after;
  });
}

function trustPath(): string {
  return trustFileIn(skillhostHome());
}
