import { homedir } from "node:os";
import { join, sep } from "node:path";
import type { Diagnostic, Severity } from "../base/diagnostic.ts";
import { errorMessage, HostError } from "../base/errors.ts";
import { counted } from "../base/text.ts";
import { parseMcpConfig } from "../formats/mcp/mcp-config.ts";
import { adviseServers, createVariableLookup } from "../formats/mcp/mcp-dialects.ts";
import type { McpServerSpec } from "../formats/mcp/mcp-server-spec.ts";
import { maxJsonBytes } from "../formats/text/limits.ts";
import type { Host } from "../host/host.ts";
import { StderrTail } from "../io/process/stderr-tail.ts";
import { readTextFile } from "../io/read-bounded.ts";
import type { ServerConnector } from "../mcp/supervisor/server-connector.ts";
import type { ServerInfo } from "../session/mcp/server-connections.ts";
import type { CommandContext } from "./command-context.ts";
import { readConfiguredServers } from "./configured-servers.ts";
import { type ListedServer, withFiles } from "./describe.ts";
import { didYouMean } from "./did-you-mean.ts";

/**
 * The checks of each server, in this order. `start`: its program runs and answers. `tools`: it offers tools, including those that its
 * configuration names. `access`: its URL is reachable and accepts the connection. `time`: it answers within its timeout. `log`: its
 * output and protocol messages. `calls`: its tools are called.
 */
type StepName = "start" | "tools" | "access" | "time" | "log" | "calls";

export interface Step {
  readonly step: StepName;
  readonly state: "ok" | "failed" | "warning" | "skipped";
  readonly detail: string;
}

export interface CheckedServer {
  readonly name: string;
  readonly status: "ok" | "failed" | "needs-auth" | "not_configured" | "disabled" | "not_started";
  readonly steps: readonly Step[];
  readonly findings: readonly Diagnostic[];
  readonly error?: string;
  readonly stderrTail?: string;
}

export interface ServerCheckOptions {
  readonly connect: ServerConnector;
  readonly workingDirectory: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** The limit of this check in milliseconds, whatever timeout is configured. */
  readonly timeout: number;
  readonly recorded: RecordedCalls;
  /** Whether an error was found in its configuration. */
  isRefused(name: string): boolean;
  readonly signal: AbortSignal;
}

/** Starts a server, or connects to its URL, and reports how far that got. Stops what it started. Rejects only with the signal's reason. */
export async function checkServer({ info, spec }: GatheredServer, options: ServerCheckOptions): Promise<CheckedServer> {
  const check = new ServerCheck(info);
  if (info.status === "not_configured") {
    // A refused configuration is already reported as an error with its place.
    if (!options.isRefused(info.name)) check.find("warning", "DOCTOR_MCP_UNCONFIGURED", `it needs configuration. ${info.error ?? ""}`);
    return check.done("not_configured");
  }
  if (spec?.isDisabled === true) return check.done("disabled");
  if (spec === undefined) return check.done(info.status === "disabled" ? "disabled" : "not_started");
  for (const advice of adviseServers([spec], options.environment)) check.take(advice);
  if (spec.tools?.length === 0) return check.done("not_started");
  await tryOut(spec, check, options);
  check.step("calls", ...callsOf(spec.name, options.recorded));
  if (spec.type === "stdio") check.step("access", "skipped", "it has no URL");
  return check.done();
}

const stepNames: readonly StepName[] = ["start", "tools", "access", "time", "log", "calls"];

class ServerCheck {
  readonly stderr = new StderrTail();
  readonly #info: ListedServer;
  readonly #steps = new Map<StepName, Step>();
  readonly #findings: Diagnostic[] = [];
  #failure: { readonly status: CheckedServer["status"]; readonly error: string } | undefined;

  constructor(info: ListedServer) {
    this.#info = info;
  }

  step(step: StepName, state: Step["state"], detail: string): void {
    this.#steps.set(step, { step, state, detail });
  }

  take(finding: Diagnostic): void {
    const { file, range } = this.#info;
    this.#findings.push({ ...finding, ...(file !== undefined && { file }), ...(range && { range }) });
  }

  /** `message` follows the server's name. */
  find(severity: Severity, code: string, message: string): void {
    const { name } = this.#info;
    this.take({ severity, code, message: `MCP server ${JSON.stringify(name)}: ${message.trim()}`, source: name });
  }

  fail(status: CheckedServer["status"], error: string): void {
    this.#failure = { status, error };
  }

  done(status: CheckedServer["status"] = "ok"): CheckedServer {
    const stderrTail = this.stderr.text.trim();
    return {
      name: this.#info.name,
      status,
      steps: this.#steps.size === 0 ? [] : stepNames.map((name) => this.#steps.get(name) ?? notReached(name)),
      findings: this.#findings,
      ...this.#failure,
      ...(stderrTail !== "" && { stderrTail }),
    };
  }
}

function notReached(step: StepName): Step {
  return { step, state: "skipped", detail: "not reached" };
}

async function tryOut(spec: McpServerSpec, check: ServerCheck, options: ServerCheckOptions): Promise<void> {
  const { connect, workingDirectory, signal } = options;
  const own = spec.timeout ?? 60_000;
  const timeout = Math.min(own, options.timeout);
  const started = performance.now();
  const request = { workingDirectory, signal, timeout, prior: undefined, onStderr: (text: string) => check.stderr.add(text) };
  let hasAnswered = false;
  try {
    await using connection = await connect(spec, request);
    hasAnswered = true;
    const { serverInfo, protocolVersion } = connection;
    const who = serverInfo === undefined ? "" : `${serverInfo.name} ${serverInfo.version}, `;
    check.step("start", "ok", `answers (${who}protocol ${protocolVersion})`);
    if (spec.type !== "stdio") check.step("access", "ok", "the server accepted the connection");
    const tools = await connection.listTools({ signal, timeout });
    judgeTools(spec, tools, check);
    const milliseconds = performance.now() - started;
    const took = `${Math.round(milliseconds)} ms of the ${own} ms allowed`;
    check.step("time", milliseconds > own / 2 ? "warning" : "ok", took);
    if (milliseconds > own / 2) check.find("warning", "DOCTOR_MCP_SLOW", `it took ${took}. Set a longer "timeout", in milliseconds.`);
    const { lastLine } = check.stderr;
    check.step("log", "ok", lastLine === undefined ? "nothing on stderr" : `last on stderr: ${lastLine}`);
  } catch (error) {
    signal.throwIfAborted();
    explain(spec, error, check, { timeout, own, hasAnswered });
  }
}

function judgeTools(spec: McpServerSpec, tools: readonly Readonly<Record<string, unknown>>[], check: ServerCheck): void {
  const names = tools.flatMap(({ name }) => (typeof name === "string" ? [name] : []));
  const unknown = [...(spec.tools ?? []), ...(spec.excludedTools ?? [])].filter((name) => !names.includes(name));
  for (const name of unknown) {
    const hint = didYouMean(name, names) || " Fix the name, or remove it.";
    check.find(
      "warning",
      "DOCTOR_MCP_TOOL_UNKNOWN",
      `its configuration names tool ${JSON.stringify(name)}, which it does not have.${hint}`,
    );
  }
  if (names.length === 0) check.find("warning", "DOCTOR_MCP_TOOLS_NONE", "it has no tools. See its documentation for what it requires.");
  const offered = names.filter((name) => (spec.tools?.includes(name) ?? true) && spec.excludedTools?.includes(name) !== true).length;
  const isDoubtful = names.length === 0 || unknown.length > 0;
  check.step("tools", isDoubtful ? "warning" : "ok", `${offered} of its ${names.length} tools are available`);
}

interface Attempt {
  readonly timeout: number;
  readonly own: number;
  /** The server connected, but listing its tools failed. */
  readonly hasAnswered: boolean;
}

function explain(spec: McpServerSpec, error: unknown, check: ServerCheck, { timeout, own, hasAnswered }: Attempt): void {
  const code = error instanceof HostError ? error.code : "MCP_ANSWER";
  const message = errorMessage(error);
  check.fail(code === "MCP_UNAUTHORIZED" ? "needs-auth" : "failed", message);
  check.step(code === "MCP_TIMEOUT" ? "time" : hasAnswered ? "tools" : spec.type === "stdio" ? "start" : "access", "failed", message);
  const { lastLine } = check.stderr;
  const said = lastLine === undefined ? "nothing on stderr" : `last on stderr: ${lastLine}`;
  check.step("log", "ok", `${said}; --log-level debug shows each message`);
  const [finding, remedy] = hasAnswered && code !== "MCP_TIMEOUT" ? ["DOCTOR_MCP_TOOLS", listRemedy] : findingFor(spec, code);
  // The message already names the server.
  const sentence = /[.!?]$/.test(message) ? message : `${message}.`;
  check.take({
    severity: "error",
    code: finding,
    message: `${sentence} ${limitOf(code, timeout, own)}${remedy}`.trim(),
    source: spec.name,
  });
}

function limitOf(code: string, timeout: number, own: number): string {
  if (code !== "MCP_TIMEOUT" || timeout === own) return "";
  return `Its configured timeout is ${own} ms; pass a longer one with --timeout. `;
}

const listRemedy = "It answers but cannot list its tools. Report this to its author, or try another version.";

/** The diagnostic code and the remedy for a failed connection. */
function findingFor(spec: McpServerSpec, code: string): readonly [code: string, remedy: string] {
  const isLocal = spec.type === "stdio";
  if (code === "MCP_UNAUTHORIZED")
    return ["DOCTOR_MCP_ACCESS", `Sign in with "skillhost login ${spec.name}", or set a valid Authorization header in "headers".`];
  if (code === "MCP_TIMEOUT")
    return ["DOCTOR_MCP_TIMEOUT", 'If it is only slow, set a longer "timeout"; --log-level debug shows its output.'];
  if (code === "MCP_NOT_STARTED" && isLocal) return ["DOCTOR_MCP_START", ""];
  if (isLocal) return ["DOCTOR_MCP_START", 'Run its command by hand, with only the variables of its "env", to see why.'];
  return ["DOCTOR_MCP_ACCESS", 'Check "url", "type" and "headers", and that this machine can reach the address.'];
}

function callsOf(name: string, { sessions, calls }: RecordedCalls): readonly [Step["state"], string] {
  const count = calls.get(name) ?? 0;
  if (sessions === 0) return ["skipped", "no stored sessions that could have called its tools"];
  const last = `in the last ${counted(sessions, "session")}`;
  return ["ok", count === 0 ? `none of its tools was called ${last}` : `${counted(count, "call")} ${last}`];
}

/** A server with its configuration, if that is available here. */
export interface GatheredServer {
  readonly info: ListedServer;
  /** Absent: it is not configured, or a plugin does not expose its configuration. */
  readonly spec?: McpServerSpec;
}

/** Returns the servers that every session of a host has. */
export function gatherServers(context: CommandContext, host: Host): readonly GatheredServer[] {
  const configured = readConfiguredServers(context);
  const byName = new Map(configured.all.map(({ server }) => [server.name, server]));
  return withFiles(host.listServers(), configured).map((info) => {
    if (info.origin.kind === "skill") return ofSkill(info, context, host);
    const parsed = info.origin.kind === "host" ? byName.get(info.name) : undefined;
    return parsed?.state === "ready" ? { info, spec: parsed.spec } : { info };
  });
}

function ofSkill(info: ServerInfo, { io }: CommandContext, host: Host): GatheredServer {
  const skill = host.skills.find(({ name, state }) => name === info.origin.source && state === "active");
  if (skill === undefined) return { info };
  const { folder } = skill;
  const file = join(folder, "skill.json");
  const text = readTextFile(file, maxJsonBytes);
  if (!text.ok) return { info };
  const places = { folder, workspace: host.workingDirectory, home: homedir(), separator: sep };
  const variables = createVariableLookup({ environment: io.env, places });
  const read = parseMcpConfig(text.text, { file, dialect: "skill", folder, variables, at: ["mcpServers"] });
  const server = read.servers.find(({ name }) => name === info.name);
  const start = read.places.get(info.name);
  const listed = { ...info, file, ...(start && { range: { start } }) };
  return server?.state === "ready" ? { info: listed, spec: server.spec } : { info: listed };
}

/** How often tools of servers were called in the last stored sessions. */
interface RecordedCalls {
  readonly sessions: number;
  /** Calls by server. */
  readonly calls: ReadonlyMap<string, number>;
}

const mostSessions = 10;

/** Counts the calls of MCP tools in the logs of the last sessions. */
export async function readRecordedCalls(host: Host, signal: AbortSignal): Promise<RecordedCalls> {
  const sessions = (await host.listSessions()).slice(0, mostSessions);
  const calls = new Map<string, number>();
  let read = 0;
  for (const { sessionId } of sessions) {
    signal.throwIfAborted();
    const log = await exported(host, sessionId);
    if (log === undefined) continue;
    read++;
    for (const line of log.split("\n")) {
      const server = line.includes('"tool.execution_start"') ? serverOf(line) : undefined;
      if (server !== undefined) calls.set(server, (calls.get(server) ?? 0) + 1);
    }
  }
  return { sessions: read, calls };
}

async function exported(host: Host, sessionId: string): Promise<string | undefined> {
  try {
    return await host.exportSession(sessionId);
  } catch {
    // An unreadable log shows no calls; resuming that session reports the problem.
    return undefined;
  }
}

function serverOf(line: string): string | undefined {
  const event = JSON.parse(line) as { type?: unknown; data?: { mcpServerName?: unknown } };
  const name = event.type === "tool.execution_start" ? event.data?.mcpServerName : undefined;
  return typeof name === "string" ? name : undefined;
}
