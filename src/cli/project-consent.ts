import type { Diagnostic } from "../base/diagnostic.ts";
import { errorMessage } from "../base/errors.ts";
import { isRecord } from "../base/json.ts";
import { fieldsReader, readTexts } from "../base/read-fields.ts";
import { counted } from "../base/text.ts";
import type { FieldReader } from "../formats/text/json-fields.ts";
import { findProject, packagesRoot } from "../skills/store/package-skills.ts";
import { discoverRoot, fixedPart, resolveRoot } from "../skills/store/skill-roots.ts";
import { type FolderChoice, FolderTrust, readTrustVariable, trustCommand, untrustedFolder } from "../trust/folder-trust.ts";
import { readPackagePatterns, readRegistries } from "../trust/package-rules.ts";
import { describeFolder, locationOf, trustFileIn, trustFolderIn } from "../trust/trust-file.ts";
import { onlyStricter, readDefinitions, readPolicy, readProvenance, skillhostHome } from "../trust/trust-policy.ts";
import type { TrustOptions } from "../trust/trust-settings.ts";
import { parseKeyList } from "../trust/trusted-keys.ts";
import { CliError } from "./cli-error.ts";
import { type CommandContext, type CommonOptions, type ConfiguredOptions, countsAsNamed, type ProjectConsent } from "./command-context.ts";
import { readConfiguredServers } from "./configured-servers.ts";
import { named } from "./describe.ts";
import type { CliIo } from "./process-io.ts";
import { visibleLine } from "./terminal-style.ts";

/** The project code that a command runs. */
export interface CodeUse {
  /** Skill directories from its arguments. */
  readonly directories?: readonly string[];
  /** An agent, by name or file. */
  readonly agent?: string | undefined;
  /** Whether it runs programs of the folder that cannot be listed in advance. */
  readonly always?: boolean;
}

/** Looks up whether the project around a folder is trusted, without asking the user. */
export function readConsent(io: Pick<CliIo, "cwd" | "env">, options: Pick<CommonOptions, "trust">): ProjectConsent {
  const folder = locationOf(io.cwd);
  const ofUser = options.trust === true ? true : readTrustVariable(io.env["SKILLHOST_TRUST"]);
  const home = skillhostHome();
  const trust = new FolderTrust({ file: trustFileIn(home), home, named: ofUser });
  const standing = trust.standingOf(folder);
  return { folder, standing, isTrusted: trust.allows(folder), trust, ofUser };
}

/**
 * Lets a command run code: returns its context once the project is trusted, or when it runs nothing of the project. At a terminal the
 * user is asked, and the answer is stored.
 * @throws CliError `FOLDER_UNTRUSTED`; HostError `FOLDER_TOO_WIDE`.
 */
export async function requireConsent(context: CommandContext, use: CodeUse): Promise<CommandContext> {
  const { consent, io, out } = context;
  if (consent.isTrusted) return context;
  const found = findCode(context, use);
  if (found.length === 0 && use.always !== true) return context;
  const canAsk = io.ask !== undefined && io.stdin.isTTY && io.stderr.isTTY && !out.isJson;
  if (!canAsk) throw refusal(consent, found);
  // Runs before the question: there is no question about a folder that cannot be trusted.
  describeFolder(consent.folder);
  if (!(await isAgreed(context, found))) throw refusal(consent, found);
  await trustFolderIn(trustFileIn(skillhostHome()), consent.folder);
  return { ...context, consent: { ...consent, standing: "trusted", isTrusted: true } };
}

/** The code that a command skips when it continues without trust. */
export function withheldCode(context: CommandContext, use: CodeUse = {}): Diagnostic | undefined {
  if (context.consent.isTrusted) return undefined;
  const found = findCode(context, use);
  return found.length === 0 ? undefined : untrustedFolder(context.consent.folder);
}

/** The folders whose code a host may run, in addition to those that the user trusts. */
export function runnableFolders(context: CommandContext, directories: readonly string[], roots: readonly string[]): FolderChoice {
  const { consent, options, config } = context;
  if (consent.ofUser === true) return true;
  const isOnCommandLine = directories.length > 0 || options.skills !== undefined;
  const areNamed = isOnCommandLine || consent.isTrusted || namesSkills(config);
  const ofConfig = countsAsNamed(context)
    ? [...(listedProjects(config) ?? []), ...pluginNames(config).filter((use) => /^(?:[/\\]|[a-zA-Z]:)/.test(use))]
    : [];
  return [...consent.ofUser, ...(consent.isTrusted ? [consent.folder] : []), ...(areNamed ? roots.map(fixedPart) : []), ...ofConfig];
}

/** Describes the project code that would run, one line each. */
function findCode(context: CommandContext, { directories = [], agent }: CodeUse): readonly string[] {
  const { config, options, io, consent } = context;
  const isConfigNamed = config.origin?.isNamed === true;
  const isImplicit = directories.length === 0 && options.skills === undefined;
  const roots =
    isImplicit && !namesSkills(config) ? (config.skillDirectories ?? ["./skills"]).map((entry) => resolveRoot(entry, io.cwd)) : [];
  const projects = isConfigNamed && listedProjects(config) !== undefined ? [] : (listedProjects(config) ?? [findProject(io.cwd)]);
  const packages = isImplicit && config.packageSkills !== false ? projects.map(packagesRoot) : [];
  const folders = [...roots, ...packages].flatMap((root) => discoverRoot(root).folders).filter((folder) => !consent.trust.allows(folder));
  const plugins = isConfigNamed ? [] : pluginNames(config);
  const servers = config.serversIn === undefined || isConfigNamed ? [] : serverNames(context);
  const isProjectAgent = agent !== undefined && !/\.md$|[\\/]/i.test(agent);
  return [
    ...(folders.length > 0
      ? [`${counted(folders.length, "skill")}: ${named(folders.map((folder) => folder.split(/[\\/]/).at(-1)!))}`]
      : []),
    ...(plugins.length > 0 ? [`${counted(plugins.length, "plugin")}: ${named(plugins)}`] : []),
    ...(servers.length > 0 ? [`${counted(servers.length, "MCP server")}: ${named(servers)}`] : []),
    ...(isProjectAgent ? [`the agent ${visibleLine(agent)}`] : []),
  ];
}

function serverNames(context: CommandContext): readonly string[] {
  const { file } = context.config.serversIn!;
  return readConfiguredServers(context).all.flatMap((each) => (each.file === file ? [each.server.name] : []));
}

function pluginNames({ plugins = [] }: ConfiguredOptions): readonly string[] {
  return plugins.map((plugin) => (typeof plugin === "string" ? plugin : plugin.use));
}

function listedProjects({ packageSkills }: ConfiguredOptions): readonly string[] | undefined {
  return Array.isArray(packageSkills) ? packageSkills : undefined;
}

function namesSkills({ origin, skillDirectories, foundSkills }: ConfiguredOptions): boolean {
  return origin?.isNamed === true && skillDirectories !== undefined && foundSkills === undefined;
}

async function isAgreed({ io, consent }: CommandContext, found: readonly string[]): Promise<boolean> {
  const { folder, standing } = consent;
  const shown = visibleLine(folder);
  const why =
    standing === "changed" ? "is not the folder that you trusted at this path" : "is not trusted yet, and none of its code has run";
  const lines = [`${shown} ${why}. If you trust it, this can run:`, ...found.map((line) => `  ${line}`)];
  const question = `${lines.join("\n")}\nTrust this folder and everything below it? [y/N] `;
  return /^y(es)?$/i.test((await io.ask!(question, io.signal)).trim());
}

function refusal({ folder, standing }: ProjectConsent, found: readonly string[]): CliError {
  const what = found.length === 0 ? "" : ` It would run ${found.join("; ")}.`;
  const why = standing === "changed" ? "is not the folder that you trusted at this path" : "is not trusted";
  const message = `${folder} ${why}, so none of its code was run.${what} Review it, then run: ${trustCommand(folder)}`;
  return new CliError("FOLDER_UNTRUSTED", message, 1);
}

/**
 * The trust settings of a configuration. It comes with a project, so it may be stricter than the user's settings but never weaker, and
 * cannot add trusted keys: the keys that it names restrict those that the user trusts.
 */
export function readConfiguredTrust(fields: FieldReader): TrustOptions | undefined {
  const value = fields.raw("trust");
  if (value === undefined) return undefined;
  if (isRecord(value) && (Object.hasOwn(value, "keys") || Object.hasOwn(value, "directory"))) {
    const what = Object.hasOwn(value, "keys") ? "keys" : "directory";
    const advice = 'List the expected keys in "trust.onlyKeys"; each user trusts them with "skillhost keys trust".';
    return fields.wrong(
      "trust",
      `"trust.${what}" is not allowed in a project's configuration: a project cannot decide whom its user trusts. ${advice}`,
    );
  }
  try {
    const { onlyKeys, ...asked } = readTrust(value, "trust");
    if (onlyKeys !== undefined) parseKeyList(onlyKeys, "trust.onlyKeys");
    return { ...onlyStricter(asked), ...(onlyKeys && { onlyKeys }) };
  } catch (error) {
    return fields.wrong("trust", errorMessage(error));
  }
}

const readTrust = fieldsReader({
  policy: readPolicy,
  definitions: readDefinitions,
  provenance: readProvenance,
  onlyKeys: readTexts,
  registries: readRegistries,
  packages: readPackagePatterns,
  deniedPackages: readPackagePatterns,
} as const) as (value: unknown, path: string) => Parameters<typeof onlyStricter>[0] & { readonly onlyKeys?: readonly string[] };
