import { accessSync, constants, type Dirent, existsSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { satisfies } from "semver";
import type { Diagnostic } from "../../base/diagnostic.ts";
import { errorMessage } from "../../base/errors.ts";
import { counted } from "../../base/text.ts";
import type { Host } from "../../host/host.ts";
import { type ResolvedHostOptions, resolveHostOptions } from "../../host/host-options.ts";
import { createConnector, type OwnedConnector } from "../../host/session-server-sets.ts";
import { cacheFolder } from "../../io/cache-folder.ts";
import { type CacheState, openTransformCache } from "../../io/disk-cache.ts";
import { findConfinement } from "../../io/process/confine-process.ts";
import { findProtection } from "../../skills/isolation/protection.ts";
import { createFileApprovals } from "../../trust/approvals.ts";
import type { FolderStanding } from "../../trust/folder-trust.ts";
import {
  type CheckedServer,
  checkServer,
  type GatheredServer,
  gatherServers,
  readRecordedCalls,
  type ServerCheckOptions,
  type Step,
} from "../check-server.ts";
import type { CommandContext } from "../command-context.ts";
import { readConfiguredServers } from "../configured-servers.ts";
import { findConnectedClients } from "../connect/connected-clients.ts";
import { protectionText } from "../describe.ts";
import { toHostOptions, withHost } from "../open-host.ts";
import type { Output } from "../output.ts";
import { withheldCode } from "../project-consent.ts";
import { visibleLine } from "../terminal-style.ts";

interface DoctorOptions {
  readonly timeout?: number;
  readonly clearCache?: boolean;
}

/** Reports problems of this machine and configuration. The exit code is 1 when there are any. */
export async function doctor(context: CommandContext, { timeout = 20_000, clearCache = false }: DoctorOptions): Promise<number> {
  const { out } = context;
  if (clearCache) return reportCleared(out);
  const report = await withHost(context, { listsDiagnostics: true }, (host) => examine(context, host, timeout));
  const ok = !report.findings.some(({ severity }) => severity === "error");
  if (out.isJson) out.envelope({ ok, data: toData(report), diagnostics: report.findings });
  else printReport(report, out);
  return ok ? 0 : 1;
}

async function examine(context: CommandContext, host: Host, timeout: number): Promise<DoctorReport> {
  const resolved = resolveHostOptions(toHostOptions(context, [], false));
  await firstSnapshots(host);
  const machine = await readMachine(resolved.roots);
  const found = [...checkMachine(machine), ...checkFolders(foldersOf(resolved))];
  const clients = findConnectedClients(context);
  const servers = await checkServers(context, host, resolved, clients.servers, timeout);
  const configured = readConfiguredServers(context).diagnostics;
  const withheld = withheldCode(context);
  const skills = summarize(host);
  const findings = [
    ...found,
    ...(withheld === undefined ? [] : [{ ...withheld, severity: "warning" as const, code: "DOCTOR_UNTRUSTED" }]),
    ...skillFindings(host),
    ...pluginFindings(host),
    ...configured,
    ...clients.diagnostics,
    ...ofOtherServers(host, configured),
    ...servers.flatMap(({ findings }) => findings),
    ...(await checkTrust(host, resolved, timeout, context.io.signal)),
  ];
  const { folder, standing } = context.consent;
  const cache = resolved.caches ? openTransformCache()?.state : undefined;
  return {
    machine,
    project: { folder, standing },
    cache,
    skills,
    servers,
    findings: findings.filter(({ code }) => code !== "FOLDER_UNTRUSTED"),
  };
}

/** Waits for the tool sources of plugins, which report then what they cannot reach. A session does that; it starts no server. */
async function firstSnapshots(host: Host): Promise<void> {
  if (!host.plugins.some(({ toolSources }) => toolSources.length > 0)) return;
  await using session = await host.createSession({ persist: false });
  await session.ready();
}

/** Removes what skillhost cached, and does nothing else. */
function reportCleared(out: Output): number {
  const cache = openTransformCache();
  const before = cache?.state;
  const isUsable = before !== undefined && before.problem === undefined;
  cache?.clear();
  const others = isUsable ? ["compiled", "skills"].flatMap((name) => cacheFolder(name) ?? []) : [];
  for (const folder of others) rmSync(folder, { recursive: true, force: true });
  if (out.isJson) out.envelope({ ok: true, data: { cleared: isUsable ? before : null }, diagnostics: [] });
  else out.line(`${isUsable ? "Cleared the cache" : "Nothing was cleared"}: ${describeCache(before)}.`);
  return 0;
}

function describeCache(cache: CacheState | undefined): string {
  if (cache === undefined) return "off";
  const folder = visibleLine(cache.folder);
  if (cache.problem !== undefined) return `${folder}, not used: ${visibleLine(cache.problem)}`;
  return `${folder}, ${counted(cache.entries, "file")}, ${(cache.bytes / 1_000_000).toFixed(1)} MB`;
}

function foldersOf({ sessionsDirectory, approvalsDirectory, mcp, trust }: ResolvedHostOptions): Parameters<typeof checkFolders>[0] {
  return [
    { what: "sessions", path: sessionsDirectory, isPrivate: false },
    { what: "approvals", path: approvalsDirectory, isPrivate: true },
    { what: "cached lists of MCP servers", path: mcp.cacheDirectory, isPrivate: false },
    { what: "sign-in tokens", path: mcp.credentialsDirectory, isPrivate: true },
    ...(trust.directory === undefined ? [] : [{ what: "keys and trust settings", path: trust.directory, isPrivate: true }]),
  ];
}

const atOnce = 4;

async function checkServers(
  context: CommandContext,
  host: Host,
  resolved: ResolvedHostOptions,
  clients: readonly GatheredServer[],
  timeout: number,
): Promise<DoctorReport["servers"]> {
  const gathered = [...gatherServers(context, host), ...clients];
  if (gathered.length === 0) return [];
  const { io, log } = context;
  using connector = openConnector(resolved);
  const options: ServerCheckOptions = {
    connect: connector.connect,
    workingDirectory: resolved.workingDirectory,
    environment: io.env,
    timeout,
    isRefused: (name) => readConfiguredServers(context).diagnostics.some(({ severity, source }) => severity === "error" && source === name),
    recorded: await readRecordedCalls(host, io.signal),
    signal: io.signal,
  };
  const checked = new Map<GatheredServer, CheckedServer>();
  const waiting = [...gathered];
  const work = async (): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      log.debug("Checking an MCP server.", { server: next.info.name });
      checked.set(next, await checkServer(next, options));
    }
  };
  await Promise.all(Array.from({ length: atOnce }, work));
  return gathered.map((server) => ({ ...checked.get(server)!, server }));
}

/** Uses stored sign-in tokens; does not ask the user to sign in. */
function openConnector({ log, mcp }: ResolvedHostOptions): OwnedConnector {
  const askToSignIn = () => () => Promise.reject(new Error("Interactive sign-in is not available here."));
  const policy = { elicitation: "deny", sampling: "deny" } as const;
  return createConnector({ log, policy, credentialsDirectory: mcp.credentialsDirectory, askToSignIn, isAttended: () => false });
}

function summarize({ skills }: Host): DoctorReport["skills"] {
  const diagnostics = skills.flatMap((skill) => skill.diagnostics);
  const count = (severity: Diagnostic["severity"]): number => diagnostics.filter((diagnostic) => diagnostic.severity === severity).length;
  const tools = skills.reduce((sum, skill) => sum + skill.tools.length, 0);
  return { loaded: skills.filter(({ state }) => state !== "failed").length, tools, errors: count("error"), warnings: count("warning") };
}

/** One finding per skill with errors; `list` shows the errors. */
function skillFindings({ skills }: Host): readonly Diagnostic[] {
  return skills.flatMap(({ name, folder, diagnostics }): readonly Diagnostic[] => {
    const errors = diagnostics.filter(({ severity }) => severity === "error");
    const [first] = errors;
    if (first === undefined) return [];
    const more = errors.length > 1 ? `, and ${errors.length - 1} more` : "";
    const message = `The skill ${JSON.stringify(name)} has errors: ${first.code} ${first.message}${more} Run "skillhost list" to see all.`;
    return [
      {
        severity: "error",
        code: "DOCTOR_SKILL",
        message,
        file: first.file ?? folder,
        ...(first.range && { range: first.range }),
        source: name,
      },
    ];
  });
}

/** The problems that keep plugins, or parts of them, from being used. */
function pluginFindings({ plugins }: Host): readonly Diagnostic[] {
  return plugins.flatMap(({ diagnostics }) => diagnostics.filter(({ severity, code }) => severity !== "info" && !code.startsWith("MCP_")));
}

/** Problems of servers of skills and plugins; those of configuration files are already reported with their place. */
function ofOtherServers({ diagnostics }: Host, configured: readonly Diagnostic[]): readonly Diagnostic[] {
  const seen = new Set(configured.map(({ message }) => message));
  return diagnostics.filter(({ code, message }) => code.startsWith("MCP_") && !seen.has(message));
}

function toData({ machine, project, cache, skills, servers }: DoctorReport): object {
  const listed = servers.map(({ server, findings: _findings, ...checked }) => {
    const { origin, transport, file } = server.info;
    return { ...checked, origin, ...(transport && { transport }), ...(file !== undefined && { file }) };
  });
  return { machine, project, cache: cache ?? null, skills, servers: listed };
}

const words: Readonly<Record<CheckedServer["status"], string>> = {
  ok: "works",
  failed: "failed",
  "needs-auth": "requires sign-in",
  not_configured: "needs configuration",
  disabled: "disabled",
  not_started: "not checked",
};

/** Prints the report: the checks, then the findings. */
function printReport({ machine, project, cache, skills, servers, findings }: DoctorReport, out: Output): void {
  const { style } = out;
  const isTrusted = project.standing !== "untrusted" && project.standing !== "changed";
  const limit = machine.watchLimit === undefined ? "" : `, ${machine.watchLimit} watches`;
  out.line(`${style.bold("machine")}  Node ${machine.nodeVersion}, ${counted(machine.folders, "folder")} to watch${limit}`);
  out.line(`${style.bold("shell")}    rules about paths and addresses are ${machine.confinement} for programs`);
  out.line(`${style.bold("isolated")} limits of isolated skills are ${machine.isolation}`);
  out.line(`${style.bold("project")}  ${visibleLine(project.folder)}, ${isTrusted ? style.green("trusted") : style.yellow("not trusted")}`);
  out.line(`${style.bold("cache")}    ${describeCache(cache)}`);
  out.line(`${style.bold("skills")}   ${counted(skills.loaded, "skill")}, ${counted(skills.tools, "tool")}`);
  for (const server of servers) printServer(server, out);
  if (findings.length > 0) out.line();
  for (const finding of findings) out.line(out.diagnostic(finding));
  out.line();
  out.line(verdict(findings.map(({ severity }) => severity)));
}

function printServer({ name, status, steps, stderrTail, server }: DoctorReport["servers"][number], out: Output): void {
  const { style, path } = out;
  const color = status === "ok" ? style.green : status === "failed" || status === "needs-auth" ? style.red : style.yellow;
  const { transport, file, origin } = server.info;
  const from = file === undefined ? [origin.kind, origin.source].filter((part) => part !== undefined).join(" ") : path(file);
  out.line(
    `${style.bold("server")}   ${[visibleLine(name), transport, color(words[status]), style.dim(visibleLine(from))].filter(Boolean).join("  ")}`,
  );
  for (const step of steps) printStep(step, out);
  if (status !== "failed" || stderrTail === undefined) return;
  for (const line of stderrTail.split("\n").slice(-5)) out.line(`         ${style.dim("|")} ${visibleLine(line)}`);
}

function printStep({ step, state, detail }: Step, { line, style }: Output): void {
  const color = { ok: style.green, failed: style.red, warning: style.yellow, skipped: style.dim }[state];
  line(`         ${step.padEnd(7)}${color(state.padEnd(8))}${visibleLine(detail)}`);
}

function verdict(severities: readonly string[]): string {
  const of = (severity: string): number => severities.filter((one) => one === severity).length;
  const parts = [
    of("error") > 0 && counted(of("error"), "error"),
    of("warning") > 0 && counted(of("warning"), "warning"),
    of("info") > 0 && counted(of("info"), "hint"),
  ].filter((part) => part !== false);
  return parts.length === 0 ? "No problems found." : `Found ${parts.join(", ")}.`;
}

/** The results of all checks. */
interface DoctorReport {
  readonly machine: MachineFacts;
  /** The project, and whether its code may run. */
  readonly project: { readonly folder: string; readonly standing: FolderStanding };
  /** The cache of transformed modules; undefined when it is off. */
  readonly cache: CacheState | undefined;
  readonly skills: { readonly loaded: number; readonly tools: number; readonly errors: number; readonly warnings: number };
  readonly servers: readonly (CheckedServer & { readonly server: GatheredServer })[];
  readonly findings: readonly Diagnostic[];
}

/** The Node.js versions that package.json allows. */
export const supportedNode = "^20.19.0 || >=22.12.0";

interface MachineFacts {
  readonly nodeVersion: string;
  /** The system's limit of watched folders per user; undefined where there is no such limit. */
  readonly watchLimit: number | undefined;
  /** The number of folders below the skill directories, up to the counting limit. */
  readonly folders: number;
  /** Whether rules about paths and URLs can be enforced for programs: "enforced (…)" or "not enforced (why)". */
  readonly confinement: string;
  /** How far the limits of isolated skills are enforced: "enforced (…)", "partly enforced (…)" or "not enforced (why)". */
  readonly isolation: string;
}

/** Collects facts about this machine that matter for skills in these directories. */
async function readMachine(roots: readonly string[]): Promise<MachineFacts> {
  const found = await findConfinement();
  const confinement = found.kind === "enforced" ? `enforced (${found.by})` : `not enforced (${found.why})`;
  const isolation = protectionText(await findProtection());
  return { nodeVersion: process.versions.node, watchLimit: readWatchLimit(), folders: countFolders(roots), confinement, isolation };
}

/** Reports problems of a machine. */
export function checkMachine({ nodeVersion, watchLimit, folders }: MachineFacts): readonly Diagnostic[] {
  const found: Diagnostic[] = [];
  if (!satisfies(nodeVersion, supportedNode, { includePrerelease: true })) {
    const message = `Node ${nodeVersion} is not supported. Install a supported version: ${supportedNode}.`;
    found.push({ severity: "error", code: "DOCTOR_NODE_VERSION", message });
  }
  if (watchLimit !== undefined && folders > watchLimit / 2) {
    const message = `There are ${folders} folders to watch, but this system allows at most ${watchLimit} watches for all programs of a user. Raise the limit (sysctl fs.inotify.max_user_watches=524288), or choose skill directories further down.`;
    found.push({ severity: "warning", code: "DOCTOR_WATCH_LIMIT", message });
  }
  return found;
}

function readWatchLimit(): number | undefined {
  if (process.platform !== "linux") return undefined;
  try {
    const limit = Number(readFileSync("/proc/sys/fs/inotify/max_user_watches", "utf8"));
    return Number.isInteger(limit) && limit > 0 ? limit : undefined;
  } catch {
    // Not every kernel exposes the limit.
    return undefined;
  }
}

const mostCounted = 200_000;

function countFolders(roots: readonly string[]): number {
  const waiting = [...roots];
  let count = 0;
  while (waiting.length > 0 && count < mostCounted) {
    const folder = waiting.pop()!;
    for (const entry of entriesOf(folder)) {
      if (!entry.isDirectory() || entry.name === "node_modules" || entry.name === ".git") continue;
      count++;
      waiting.push(join(folder, entry.name));
    }
  }
  return count;
}

function entriesOf(folder: string): readonly Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    // A folder that cannot be listed is not watched either; the skills' diagnostics report it.
    return [];
  }
}

/** A folder to which the host writes. */
interface WrittenFolder {
  readonly what: string;
  readonly path: string;
  /** Write access means deciding what is allowed, and read access means reading secrets. */
  readonly isPrivate: boolean;
}

/** Reports problems of the folders in which a host keeps its data. They need not exist yet. */
export function checkFolders(folders: readonly WrittenFolder[]): readonly Diagnostic[] {
  return folders.flatMap((folder) => checkFolder(folder));
}

function checkFolder({ what, path, isPrivate }: WrittenFolder): readonly Diagnostic[] {
  const existing = nearestExisting(path);
  const problem = whyNotWritable(existing);
  if (problem !== undefined) {
    const message = `The folder for ${what} is not writable (${problem}). Fix its permissions, or set SKILLHOST_HOME to a writable folder.`;
    return [{ severity: "error", code: "DOCTOR_FOLDER", message, file: path }];
  }
  if (!isPrivate || existing !== path || process.platform === "win32" || (statSync(path).mode & 0o022) === 0) return [];
  const message = `Other users can write to the folder for ${what}. Remove that permission (chmod go-w).`;
  return [{ severity: "error", code: "DOCTOR_FOLDER_OPEN", message, file: path }];
}

function nearestExisting(path: string): string {
  let at = path;
  while (!existsSync(at) && dirname(at) !== at) at = dirname(at);
  return at;
}

function whyNotWritable(path: string): string | undefined {
  try {
    if (!statSync(path).isDirectory()) return `${path} is a file`;
    accessSync(path, constants.W_OK | constants.X_OK);
    return undefined;
  } catch (error) {
    return errorMessage(error);
  }
}

/** Reports problems of signatures that did not prevent loading, and what waits for approval. */
async function checkTrust(
  host: Host,
  { approvalsDirectory }: ResolvedHostOptions,
  timeout: number,
  signal: AbortSignal,
): Promise<readonly Diagnostic[]> {
  const seen = await createFileApprovals({ directory: approvalsDirectory }).list({ kind: "mcp-seen" });
  // Without recorded definitions nothing can differ from them.
  const servers = seen.length > 0 ? await host.connectServers({ signal, timeout }) : [];
  const warned = host.skills.flatMap(({ diagnostics }) =>
    diagnostics.filter(({ code, severity }) => code.startsWith("TRUST_") && severity === "warning"),
  );
  return [
    ...warned,
    ...servers.flatMap(({ name, held }) => heldFinding(`MCP server ${JSON.stringify(name)}`, name, held)),
    ...host.skills.flatMap(({ name, held = [] }) => heldFinding(`Skill ${JSON.stringify(name)}`, name, held)),
    ...heldFinding("Tools that clients registered", "external", await host.heldTools()),
  ];
}

function heldFinding(what: string, source: string, held: readonly { readonly name: string }[]): readonly Diagnostic[] {
  if (held.length === 0) return [];
  const names = held.slice(0, 6).map(({ name }) => JSON.stringify(name));
  const more = held.length > names.length ? ` and ${held.length - names.length} more` : "";
  const message = `${what}: waiting for approval: ${names.join(", ")}${more}. Run "skillhost approve ${source}" to see what changed.`;
  return [{ severity: "warning", code: "DOCTOR_HELD", message, source }];
}
