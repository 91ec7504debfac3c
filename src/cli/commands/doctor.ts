import type { Diagnostic } from "../../base/diagnostic.ts";
import { counted } from "../../base/text.ts";
import type { Host } from "../../host/host.ts";
import { type ResolvedHostOptions, resolveHostOptions } from "../../host/host-options.ts";
import { createConnector, type OwnedConnector } from "../../host/session-server-sets.ts";
import type { FolderStanding } from "../../trust/folder-trust.ts";
import { checkFolders, checkMachine, checkTrust, type MachineFacts, readMachine } from "../check-machine.ts";
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

import { toHostOptions, withHost } from "../open-host.ts";
import type { Output } from "../output.ts";
import { withheldCode } from "../project-consent.ts";
import { visibleLine } from "../terminal-style.ts";

interface DoctorOptions {
  readonly timeout?: number;
}

/** Reports problems of this machine and configuration. The exit code is 1 when there are any. */
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

function toData({ machine, project, skills, servers }: DoctorReport): object {
  const listed = servers.map(({ server, findings: _findings, ...checked }) => {
    const { origin, transport, file } = server.info;
    return { ...checked, origin, ...(transport && { transport }), ...(file !== undefined && { file }) };
  });
  return { machine, project, skills, servers: listed };
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
function printReport({ machine, project, skills, servers, findings }: DoctorReport, out: Output): void {
  const { style } = out;
  const isTrusted = project.standing !== "untrusted" && project.standing !== "changed";
  const limit = machine.watchLimit === undefined ? "" : `, ${machine.watchLimit} watches`;
  out.line(`${style.bold("machine")}  Node ${machine.nodeVersion}, ${counted(machine.folders, "folder")} to watch${limit}`);
  out.line(`${style.bold("shell")}    rules about paths and addresses are ${machine.confinement} for programs`);
  out.line(`${style.bold("project")}  ${visibleLine(project.folder)}, ${isTrusted ? style.green("trusted") : style.yellow("not trusted")}`);
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
  readonly skills: { readonly loaded: number; readonly tools: number; readonly errors: number; readonly warnings: number };
  readonly servers: readonly (CheckedServer & { readonly server: GatheredServer })[];
  readonly findings: readonly Diagnostic[];
}
