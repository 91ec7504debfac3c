import { join } from "node:path";
import { parseArgs } from "node:util";
import { errorMessage } from "../base/errors.ts";
import { type Logger, type LogLevel, logLevels } from "../base/logger.ts";
import { startHost } from "../host/create-host.ts";
import type { Host } from "../host/host.ts";
import { isLoopback } from "../io/net/connection-gate.ts";
import { workspacePlugin } from "../plugin-host/bundled.ts";
import { loadConfig } from "./config.ts";
import { withFoundSkills } from "./found-skills.ts";
import { settlePackages, toHostOptions } from "./open-host.ts";
import { createOutput } from "./output.ts";
import type { CliIo } from "./process-io.ts";
import { readConsent, withheldCode } from "./project-consent.ts";

/** The command line of skillhost as the runtime of a Copilot SDK client. */
export interface HeadlessArguments {
  readonly transport: { readonly kind: "stdio" } | { readonly kind: "tcp"; readonly port: number; readonly host: string };
  /** Clients need no token unless one is set. Only on loopback addresses. */
  readonly allowsNoToken: boolean;
  readonly logLevel?: LogLevel;
  readonly logFile?: string;
  /** The environment variable with the token for model providers. */
  readonly authTokenVariable?: string;
  readonly idleTimeoutSeconds?: number;
  readonly allowsAll: boolean;
  /** Allows the project's code to run. */
  readonly trusts: boolean;
  readonly skills: readonly string[];
  readonly config?: string;
  readonly mcpConfig: readonly string[];
  readonly pluginDirectories: readonly string[];
  /** The port of an inspector; 0: any. */
  readonly inspect?: number;
}

type ParsedHeadless = { readonly ok: true; readonly value: HeadlessArguments } | { readonly ok: false; readonly problem: string };

// All arguments that SDK clients pass to their runtime, and the options common to all commands of skillhost.
const options = {
  headless: { type: "boolean" },
  stdio: { type: "boolean" },
  port: { type: "string" },
  host: { type: "string" },
  "no-token": { type: "boolean" },
  server: { type: "boolean" },
  "no-auto-update": { type: "boolean" },
  "no-auto-login": { type: "boolean" },
  "log-level": { type: "string" },
  "log-file": { type: "string" },
  "auth-token-env": { type: "string" },
  "session-idle-timeout": { type: "string" },
  remote: { type: "boolean" },
  yolo: { type: "boolean" },
  "allow-all-tools": { type: "boolean" },
  "allow-all": { type: "boolean" },
  "no-color": { type: "boolean" },
  "no-custom-instructions": { type: "boolean" },
  "disable-builtin-mcps": { type: "boolean" },
  quiet: { type: "boolean" },
  "plugin-dir": { type: "string", multiple: true },
  trust: { type: "boolean" },
  skills: { type: "string", multiple: true },
  config: { type: "string" },
  "mcp-config": { type: "string", multiple: true },
  inspect: { type: "string" },
} as const;

/** Parses the arguments of `--headless`. SDK clients use more log levels than skillhost has. */
export function parseHeadlessArguments(argv: readonly string[]): ParsedHeadless {
  try {
    const { values } = parseArgs({ args: withInspectorPort(argv), options, strict: true, allowPositionals: false });
    const port = numberOf("--port", values.port, 0, 65_535);
    const idleTimeoutSeconds = numberOf("--session-idle-timeout", values["session-idle-timeout"], 0, 2_147_483);
    if (values.stdio === true && port !== undefined) return { ok: false, problem: "--stdio and --port exclude each other." };
    const host = values.host ?? "127.0.0.1";
    const allowsNoToken = values["no-token"] === true;
    if (allowsNoToken && !isLoopback(host)) {
      return {
        ok: false,
        problem: `--no-token is allowed only for loopback addresses, but ${host} can be reached from other machines. Remove it.`,
      };
    }
    const value: HeadlessArguments = {
      transport: values.stdio === true ? { kind: "stdio" } : { kind: "tcp", port: port ?? 0, host },
      ...given("logLevel", logLevelOf(values["log-level"])),
      ...given("logFile", values["log-file"]),
      ...given("authTokenVariable", values["auth-token-env"]),
      ...given("idleTimeoutSeconds", idleTimeoutSeconds === 0 ? undefined : idleTimeoutSeconds),
      allowsNoToken,
      allowsAll: (values.yolo ?? values["allow-all"] ?? values["allow-all-tools"]) === true,
      trusts: values.trust === true,
      skills: values.skills ?? [],
      ...given("inspect", numberOf("--inspect", values.inspect, 0, 65_535)),
      ...given("config", values.config),
      mcpConfig: values["mcp-config"] ?? [],
      pluginDirectories: values["plugin-dir"] ?? [],
    };
    return { ok: true, value };
  } catch (error) {
    return { ok: false, problem: errorMessage(error) };
  }
}

/** The port of `--inspect` may be left out, which parseArgs does not know. */
function withInspectorPort(argv: readonly string[]): string[] {
  return argv.map((word, index) => (word === "--inspect" && !/^\d/.test(argv[index + 1] ?? "") ? "--inspect=0" : word));
}

function logLevelOf(level: string | undefined): LogLevel | undefined {
  if (level === undefined || level === "none" || level === "default") return level === "none" ? "error" : undefined;
  if (level === "all" || level === "trace") return "debug";
  if ((logLevels as readonly string[]).includes(level)) return level as LogLevel;
  throw new Error(`--log-level must be one of none, ${logLevels.join(", ")}, all.`);
}

function numberOf(name: string, text: string | undefined, from: number, to: number): number | undefined {
  if (text === undefined) return undefined;
  const number = Number(text);
  if (/^\d+$/.test(text) && number >= from && number <= to) return number;
  throw new Error(`${name} must be an integer from ${from} to ${to}, not ${JSON.stringify(text.slice(0, 50))}.`);
}

function given<K extends string, V>(key: K, value: V | undefined): { readonly [P in K]?: V } {
  return value === undefined ? {} : ({ [key]: value } as { readonly [P in K]?: V });
}

/** Opens the host of a Copilot SDK server: configured as for any command, and watching. */
export async function openHeadlessHost(options: HeadlessArguments, io: CliIo, log: Logger, home: string): Promise<Host> {
  const config = loadConfig(options.config, io.cwd);
  const { skills, mcpConfig } = options;
  const context = withFoundSkills({
    io,
    out: createOutput(io, { json: false, quiet: true, color: false, command: "headless" }),
    options: { ...(skills.length > 0 && { skills }), ...(mcpConfig.length > 0 && { mcpConfig }), color: false },
    config,
    consent: readConsent(io, { trust: options.trusts }),
    log,
  });
  for (const { code, message, file } of config.origin?.diagnostics ?? []) log.warning(message, { code, file });
  const withheld = withheldCode(context);
  if (withheld !== undefined) io.stderr.write(`error: ${withheld.code} ${withheld.message}\n`);
  const hostOptions = toHostOptions(context, [], true);
  await settlePackages(hostOptions, context);
  const kept = {
    sessionsDirectory: join(home, "sessions"),
    approvalsDirectory: join(home, "approvals"),
    pluginDataDirectory: join(home, "plugin-data"),
    mcp: { cacheDirectory: join(home, "mcp-cache"), credentialsDirectory: join(home, "oauth") },
  };
  // Clients of a Copilot runtime expect its built-in tools.
  return startHost({ ...hostOptions, ...kept }, [workspacePlugin]);
}
