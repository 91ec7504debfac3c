import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";
import { HostError } from "../../src/base/errors.ts";
import { createLogger, type Logger, type LogLevel } from "../../src/base/logger.ts";
import type { LocalServerSpec, McpServerSpec, RemoteServerSpec } from "../../src/formats/mcp/mcp-server-spec.ts";
import { type ConnectOptions, connectServer } from "../../src/mcp/connection/connect-server.ts";
import type { McpConnection } from "../../src/mcp/connection/connection.ts";
import type { Asks, ToolContext } from "../../src/tools/tool.ts";
import { bundleProgram } from "../bundle-program.ts";
import { patience } from "../slowness.ts";

const base = { name: "peer", tools: undefined, timeout: undefined, isDisabled: false } as const;

/** One of test/doubles/mcp-servers, as a local server. */
export function localDouble(file: string, ...args: string[]): LocalServerSpec {
  const program = fileURLToPath(new URL(`../doubles/mcp-servers/${file}`, import.meta.url));
  // The SDKs consist of hundreds of modules.
  return nodeProgram(/^v\d-/.test(file) ? bundleProgram(program) : program, ...args);
}

export function nodeProgram(path: string, ...args: string[]): LocalServerSpec {
  return { ...base, type: "stdio", command: process.execPath, args: [path, ...args], env: {}, cwd: undefined };
}

export function remote(url: string, more: Partial<RemoteServerSpec> = {}): RemoteServerSpec {
  return { ...base, type: "http", url, headers: {}, oauth: undefined, ...more };
}

export interface Recorded {
  readonly lines: string[];
  readonly log: Logger;
}

export function recordingLog(level: LogLevel = "info"): Recorded {
  const lines: string[] = [];
  return { lines, log: createLogger({ level, write: (line) => lines.push(line) }) };
}

/** A connection that ends with the test. */
export async function connect(spec: McpServerSpec, options: Partial<ConnectOptions> = {}): Promise<McpConnection> {
  const connection = await connectServer(spec, { workingDirectory: process.cwd(), log: recordingLog().log, ...options });
  onTestFinished(async () => await connection[Symbol.asyncDispose]());
  return connection;
}

/** Why something that was expected to fail did. */
export async function failure(work: Promise<unknown>): Promise<HostError> {
  try {
    await work;
  } catch (error) {
    if (error instanceof HostError) return error;
    throw error;
  }
  throw new Error("It did not fail.");
}

/** The text of a tool's result. */
export async function textOf(result: Promise<Readonly<Record<string, unknown>>>): Promise<string> {
  const content = (await result)["content"] as readonly { readonly text: string }[];
  return content.map((block) => block.text).join("\n");
}

export interface ContextOptions {
  readonly sessionId?: string;
  readonly workingDirectory?: string;
  readonly answer?: (kind: keyof Asks, data: unknown) => unknown;
}

/** A call's context whose requests are answered by a function; without one no user is available. */
export function callContext({ sessionId = "session-1", workingDirectory = process.cwd(), answer }: ContextOptions = {}): ToolContext {
  const invocation = {
    sessionId,
    toolCallId: "call-1",
    toolName: "t",
    arguments: {},
    signal: new AbortController().signal,
    workingDirectory,
    services: {},
  };
  return {
    invocation,
    ask: async (kind, data) => {
      if (answer === undefined) throw new HostError("ASK_UNANSWERED", "No user is available.");
      return (await answer(kind, data)) as never;
    },
    callTool: () => Promise.reject(new Error("not here")),
    progress() {},
    fileChanged() {},
    background() {},
  };
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    // What has ended and waits to be collected is no longer alive.
    return process.platform !== "linux" || !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    // No such process.
    return false;
  }
}

/** Polls where there is no event to wait for. */
export async function until(holds: () => boolean | Promise<boolean>, what: string): Promise<void> {
  for (const deadline = Date.now() + patience(8_000); Date.now() < deadline; await new Promise((resolve) => setTimeout(resolve, 10))) {
    if (await holds()) return;
  }
  throw new Error(`It never came to pass: ${what}`);
}
