import type { Diagnostic } from "../../base/diagnostic.ts";
import type { Host } from "../../host/host.ts";
import { type ResolvedHostOptions, resolveHostOptions } from "../../host/host-options.ts";
import { createConnector, type OwnedConnector } from "../../host/session-server-sets.ts";
import type { CommandContext } from "../command-context.ts";
import { readConfiguredServers } from "../configured-servers.ts";
import { checkFolders, checkMachine, checkTrust, readMachine } from "../doctor/check-machine.ts";
import {
  type CheckedServer,
  checkServer,
  type GatheredServer,
  gatherServers,
  readRecordedCalls,
  type ServerCheckOptions,
} from "../doctor/check-server.ts";
import { type DoctorReport, printReport } from "../doctor/print-report.ts";
import { toHostOptions, withHost } from "../open-host.ts";
import { withheldCode } from "../project-consent.ts";

export interface DoctorOptions {
  readonly timeout?: number;
}

/** Says what is wrong with this machine and this set-up. The exit code is 1 when something is. */
export async function doctor(context: CommandContext, { timeout = 20_000 }: DoctorOptions): Promise<number> {
  const { out } = context;
  const report = await withHost(context, { listsDiagnostics: true }, (host) => examine(context, host, timeout));
  const ok = !report.findings.some(({ severity }) => severity === "error");
  if (out.isJson) out.envelope({ ok, data: toData(report), diagnostics: report.findings });
  else printReport(report, out);
  return ok ? 0 : 1;
}

async function examine(context: CommandContext, host: Host, timeout: number): Promise<DoctorReport> {
  const resolved = resolveHostOptions(toHostOptions(context, [], false));
  const machine = await readMachine(resolved.roots);
  const found = [...checkMachine(machine), ...checkFolders(foldersOf(resolved))];
  const servers = await checkServers(context, host, resolved, timeout);
  const configured = readConfiguredServers(context).diagnostics;
  const withheld = withheldCode(context);
  const skills = summarize(host);
  const findings = [
    ...found,
    ...(withheld === undefined ? [] : [{ ...withheld, severity: "warning" as const, code: "DOCTOR_UNTRUSTED" }]),
    ...skillFindings(host),
    ...pluginFindings(host),
    ...configured,
    ...ofOtherServers(host, configured),
    ...servers.flatMap(({ findings }) => findings),
    ...(await checkTrust(host, resolved, timeout, context.io.signal)),
  ];
  const { folder, standing } = context.consent;
  return { machine, project: { folder, standing }, skills, servers, findings: findings.filter(({ code }) => code !== "FOLDER_UNTRUSTED") };
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
  timeout: number,
): Promise<DoctorReport["servers"]> {
  const gathered = gatherServers(context, host);
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

/** With sign-in tokens before; nobody is asked to now. */
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

/** One line for each skill that has errors: what they are, `list` says. */
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

/** What keeps plugins, or parts of them, from being used. */
function pluginFindings({ plugins }: Host): readonly Diagnostic[] {
  return plugins.flatMap(({ diagnostics }) => diagnostics.filter(({ severity, code }) => severity !== "info" && !code.startsWith("MCP_")));
}

/** What is wrong with servers of skills and plugins; those of files are told with their place already. */
function ofOtherServers({ diagnostics }: Host, configured: readonly Diagnostic[]): readonly Diagnostic[] {
  const told = new Set(configured.map(({ message }) => message));
  return diagnostics.filter(({ code, message }) => code.startsWith("MCP_") && !told.has(message));
}

function toData({ machine, project, skills, servers }: DoctorReport): object {
  const listed = servers.map(({ server, findings: _findings, ...checked }) => {
    const { origin, transport, file } = server.info;
    return { ...checked, origin, ...(transport && { transport }), ...(file !== undefined && { file }) };
  });
  return { machine, project, skills, servers: listed };
}
