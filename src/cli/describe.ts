import type { Diagnostic, Position } from "../base/diagnostic.ts";
import { counted } from "../base/text.ts";
import type { SkillInfo } from "../host/host.ts";
import type { Drift } from "../packages/compare-locks.ts";
import type { Preview, PreviewedPackage, PreviewedSkill } from "../packages/preview.ts";
import type { PluginInfo } from "../plugin-host/plugin-entry.ts";
import type { ServerInfo, ServerStatus } from "../session/mcp/server-connections.ts";
import { type Isolation, tierFor } from "../skills/isolation/isolation-policy.ts";
import type { Protection } from "../skills/isolation/protection.ts";
import { discoverRoot, findDeeperSkills, fixedPart } from "../skills/store/skill-roots.ts";
import type { CommandServers } from "./configured-servers.ts";
import type { Output } from "./output.ts";
import { visibleLine } from "./terminal-style.ts";

/**
 * Describes what is about to be installed, for the user's consent. Long texts show their beginning and end, with the number of lines
 * between, unless `isCut` is false.
 */
export function describePreview(
  { packages, dependencies, removed }: Preview,
  out: Output,
  { isCut = true }: { readonly isCut?: boolean } = {},
): { readonly lines: readonly string[]; readonly isWhole: boolean } {
  const cut: Cut = { isCut, isWhole: true };
  const most = isCut ? 200 : Number.POSITIVE_INFINITY;
  const lines = packages.flatMap((each) => describePackage(each, out, cut));
  if (dependencies.length > 0)
    lines.push(`Also installs ${counted(dependencies.length, "package")} that it depends on: ${named(dependencies, most)}.`);
  if (removed.length > 0) lines.push(`Removes: ${named(removed, most)}.`);
  return { lines, isWhole: cut.isWhole && Math.max(dependencies.length, removed.length) <= most };
}

/** Records whether any text was cut. */
export interface Cut {
  readonly isCut: boolean;
  isWhole: boolean;
}

function describePackage(found: PreviewedPackage, out: Output, cut: Cut): string[] {
  const { style } = out;
  const was = found.replaces === undefined ? "" : ` ${style.dim(`(was ${visibleLine(found.replaces)})`)}`;
  const size =
    found.link === undefined ? `${counted(found.files, "file")}, ${kilobytes(found.bytes)}` : `a link to ${out.path(found.link)}`;
  return [
    `${style.bold(visibleLine(found.name))} ${visibleLine(found.version)}${was}  ${style.dim(size)}`,
    ...(found.resolved === undefined || found.link !== undefined ? [] : [`  ${style.dim("from")} ${visibleLine(found.resolved)}`]),
    ...(found.integrity === undefined ? [] : [`  ${style.dim(found.integrity)}`]),
    ...(found.hasScripts ? [`  ${style.yellow("has install scripts, which are not run")}`] : []),
    ...found.skills.flatMap((skill) => describeSkill(skill, out, cut)),
    ...found.changes.flatMap((change) => describeDrift(change, out).map((line) => `  ${line}`)),
  ];
}

export function describeSkill(skill: PreviewedSkill, { style }: Output, cut: Cut): string[] {
  const { name = skill.path, description = "", tools = {}, servers = {}, requires = {}, engines = {}, permissions } = skill;
  const pairs = (record: Readonly<Record<string, string>>): string =>
    Object.entries(record)
      .map(([key, value]) => `${key} ${value}`)
      .join(", ");
  return [
    `  ${style.dim("skill")} ${style.bold(visibleLine(name))}${description === "" ? "" : ` — ${shortened(description, cut)}`}`,
    ...permissionLines(permissions).map((line) => `    ${style.yellow(line)}`),
    ...Object.entries(tools).flatMap(([tool, { signature, definition, uses = [] }]) => [
      `    ${style.dim("tool")} ${style.cyan(visibleLine(tool))}  ${style.dim(signature?.slice(0, 12) ?? "")}`.trimEnd(),
      ...definition.map((line) => `      ${shortened(line, cut)}`),
      // Not cut: this is what the user agrees to.
      ...uses.map((line) => `      ${style.yellow(visibleLine(line))}`),
    ]),
    ...Object.entries(servers).map(([server, line]) => `    ${style.yellow("starts the MCP server")} ${visibleLine(`${server}: ${line}`)}`),
    ...(Object.keys(requires).length > 0 ? [`    ${style.dim("requires the skills")} ${visibleLine(pairs(requires))}`] : []),
    ...(Object.keys(engines).length > 0 ? [`    ${style.dim("requires")} ${visibleLine(pairs(engines))}`] : []),
  ];
}

export function hasTools({ tools = {} }: PreviewedSkill): boolean {
  return Object.keys(tools).length > 0;
}

/** Describes a difference from the lock file. */
export function describeDrift({ subject, message, diff = [] }: Drift, { style }: Output): readonly string[] {
  const paint = (line: string): string => (line.startsWith("+") ? style.green(visibleLine(line)) : style.red(visibleLine(line)));
  return [`${style.yellow("~")} ${visibleLine(subject)} ${message}`, ...diff.map((line) => `    ${paint(line)}`)];
}

export function kilobytes(bytes: number): string {
  return bytes < 1_000 ? `${bytes} bytes` : `${(bytes / 1_000).toFixed(bytes < 10_000 ? 1 : 0)} kB`;
}

function shortened(text: string, cut: Cut): string {
  const shown = visibleLine(text);
  if (!cut.isCut || shown.length <= 2_000) return shown;
  cut.isWhole = false;
  return `${shown.slice(0, 1_000)} … (${shown.length - 1_300} characters are not shown) … ${shown.slice(-300)}`;
}

/** Prints a plugin with its contributions and diagnostics. */
export function printPlugin(plugin: PluginInfo, out: Output): void {
  out.line(`  ${pluginHeading(plugin, out)}`);
  const parts = pluginParts(plugin);
  if (parts !== undefined) out.line(`    ${out.style.dim("adds")} ${parts}`);
  for (const diagnostic of plugin.diagnostics) out.line(`    ${out.diagnostic(diagnostic)}`);
}

/** `name 1.2.0  active  claude  plugins/name` */
function pluginHeading({ name, version, state, stale, bundle, specifier }: PluginInfo, { style, path }: Output): string {
  const color = { active: style.green, failed: style.red, disposed: style.dim }[state];
  const called = version === undefined ? style.bold(visibleLine(name)) : `${style.bold(visibleLine(name))} ${visibleLine(version)}`;
  const fate = stale ? `${color(state)} ${style.red("(stale: still serving the last working version)")}` : color(state);
  const from = bundle === undefined ? visibleLine(specifier ?? "") : path(bundle.folder);
  return [called, fate, bundle?.dialect ?? "", style.dim(from)].filter((part) => part !== "").join("  ");
}

/** Counts the contributions of a plugin: `2 skills, 1 agent`. Undefined: none. */
function pluginParts({ bundle, tools, agents, commands, hooks, mcpServers }: PluginInfo): string | undefined {
  const parts = [
    [bundle?.skills.length ?? 0, "skill"],
    [tools.length, "tool"],
    [agents.length, "agent"],
    [commands.length, "command"],
    [hooks.length, "kind of hooks"],
    [mcpServers.length, "MCP server"],
  ] as const;
  const some = parts.filter(([count]) => count > 0);
  return some.length === 0
    ? undefined
    : some.map(([count, noun]) => (noun === "kind of hooks" ? kinds(count) : counted(count, noun))).join(", ");
}

function kinds(count: number): string {
  return `${count} ${count === 1 ? "kind" : "kinds"} of hooks`;
}

/** A server as the command line lists it. */
export interface ListedServer extends ServerInfo {
  /** The file that configures it, if the command line has read it. */
  readonly file?: string;
  readonly range?: { readonly start: Position };
}

/** Adds the files from which the command line read the servers. */
export function withFiles(servers: readonly ServerInfo[], { all }: CommandServers): readonly ListedServer[] {
  const read = new Map(all.map((one) => [one.server.name, one]));
  return servers.map((info) => {
    const found = info.origin.kind === "host" ? read.get(info.name) : undefined;
    if (found === undefined) return info;
    const { server, file, start } = found;
    // The host does not know the transport of a server that cannot be started.
    const transport = info.transport ?? (server.state === "unconfigured" ? server.server.type : undefined);
    return { ...info, ...(transport !== undefined && { transport }), file, ...(start && { range: { start } }) };
  });
}

const words: Readonly<Record<ServerStatus, string>> = {
  connected: "connected",
  pending: "not started",
  failed: "failed",
  "needs-auth": "requires sign-in",
  disabled: "disabled",
  stopped: "stopped",
  not_configured: "needs configuration",
};

/** `name  stdio  not started  .mcp.json` */
export function serverHeading(server: ListedServer, { style, path }: Output): string {
  const { name, transport, status, origin, file } = server;
  const color = { connected: style.green, pending: style.green, failed: style.red }[status as string] ?? style.yellow;
  const from = file === undefined ? [origin.kind, origin.source].filter((part) => part !== undefined).join(" ") : path(file);
  const parts = [style.bold(visibleLine(name)), transport ?? "", color(words[status]), style.dim(visibleLine(from))];
  return parts.filter((part) => part !== "").join("  ");
}

/** `name 1.2.0  active  skills/name` */
export function skillHeading(skill: SkillInfo, { style, path }: Output): string {
  const version = skill.version === undefined ? "" : ` ${visibleLine(skill.version)}`;
  const { green, yellow, red, dim } = style;
  const color = { active: green, disabled: dim, shadowed: yellow, refused: red, untrusted: yellow, failed: red }[skill.state];
  const stale = skill.stale ? ` ${style.red("(stale: still serving the last working version)")}` : "";
  const trust = skill.trust === undefined ? "" : `  ${trustWords(skill.trust, style)}`;
  return `${style.bold(visibleLine(skill.name))}${version}  ${color(skill.state)}${stale}${trust}${packageWords(skill.package, style)}  ${style.dim(path(skill.folder))}`;
}

/** ` of left-pad@1.3.0`: the npm package that contains the skill. */
export function packageWords(found: SkillInfo["package"], style: Output["style"]): string {
  if (found === undefined) return "";
  const version = found.version === undefined ? "" : `@${found.version}`;
  return `  ${style.dim("of")} ${visibleLine(`${found.name}${version}`)}`;
}

/** The state of a skill's signature: `signed by alice@example.com`. */
export function trustWords({ status, key }: NonNullable<SkillInfo["trust"]>, style: Output["style"]): string {
  if (status === "unsigned") return style.dim("unsigned");
  const signer = key === undefined ? "" : ` by ${visibleLine(key.name === "" ? key.id : key.name)}`;
  return status === "signed" ? style.green(`signed${signer}`) : style.red(`signature${signer} is INVALID`);
}

/** The resources that a skill declares for its tools, one line per kind. */
export function permissionLines(permissions: SkillInfo["permissions"]): readonly string[] {
  const { env = [], hosts, programs, read, write, tools, servers } = permissions ?? {};
  const line = (what: string, items: readonly string[] | undefined): readonly string[] =>
    items === undefined || items.length === 0 ? [] : [`${what} ${items.map(visibleLine).join(", ")}`];
  return [
    ...line("may send the environment variables", env),
    ...line("may call the hosts", hosts),
    ...line("may run the programs", programs),
    ...line("may read", read),
    ...line("may change", write),
    ...line("may call the tools", tools),
    ...line("may call the tools of the MCP servers", servers),
  ];
}

/** Where the code of a skill runs, if not in the process of the host, and how far its limits are enforced. */
export async function isolationLines({ isolation }: Pick<SkillInfo, "isolation">): Promise<readonly string[]> {
  if (isolation === undefined) return [];
  return [isolation === "worker" ? inWorker : inProcess(await protectionHere())];
}

/** Where code of packages runs, for the consent to install one. */
export async function packageIsolationLine(isolation: Isolation): Promise<string> {
  const tier = tierFor(isolation, "package");
  if (tier === "off") return "Code of these skills runs in the process of the host, with all your rights.";
  if (tier === "worker") return `Code of these skills ${inWorker}.`;
  const protection = await protectionHere();
  if (tier === "strict" && protection.state !== "enforced")
    return `Code of these skills does not run on this machine: its limits are ${protectionText(protection)}.`;
  return `Code of these skills ${inProcess(protection)}.`;
}

const inWorker = "runs in a worker thread, which limits nothing that it reaches";

function inProcess(protection: Protection): string {
  return `runs in a process, whose limits are ${protectionText(protection)}`;
}

/** Most commands need none of this. */
async function protectionHere(): Promise<Protection> {
  const { findProtection } = await import("../skills/isolation/protection.ts");
  return findProtection();
}

/** `enforced (bubblewrap 0.8.0)`. */
export function protectionText({ state, reason }: Protection): string {
  return `${{ enforced: "enforced", partly: "partly enforced", "not-enforced": "not enforced" }[state]} (${reason})`;
}

/** Lists at most `most` names, then the number of others. */
export function named(names: readonly string[], most = 6): string {
  const shown = names.slice(0, most).map(visibleLine).join(", ");
  return names.length > most ? `${shown} and ${names.length - most} more` : shown;
}

/** Finds roots without a skill that contain skills in deeper folders: a host must be given the parents of skills. */
export function deeperSkillsIn(roots: readonly string[], out: Output): readonly DeeperHint[] {
  return roots.flatMap((root) => {
    if (fixedPart(root) !== root || discoverRoot(root).folders.length > 0) return [];
    const { parents, count, isCut } = findDeeperSkills(root);
    if (count === 0) return [];
    const shown = parents.slice(0, 5).map(out.path).join(", ");
    const others = parents.length > 5 ? ` and ${parents.length - 5} other folders` : "";
    const found = `${isCut ? "At least " : ""}${counted(count, "skill")}`;
    const message = `${found} found deeper in ${out.path(root)} than skillhost searches: in ${shown}${others}. Pass those folders with --skills; patterns are allowed.`;
    return [{ severity: "info", code: "SKILLS_DEEPER", file: root, message, parents } as const];
  });
}

/** A root without skills where a host searches, with the deeper folders that contain some. */
interface DeeperHint extends Diagnostic {
  readonly parents: readonly string[];
}
