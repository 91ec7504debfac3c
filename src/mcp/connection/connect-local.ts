import { isAbsolute, resolve } from "node:path";
import { HostError } from "../../base/errors.ts";
import { settlesWithin } from "../../base/wait-for.ts";
import type { LocalServerSpec } from "../../formats/mcp/mcp-server-spec.ts";
import { spawnProcess } from "../../io/process/child-process.ts";
import { type ConnectOptions, defaultMessageBytes } from "./connect-options.ts";
import type { McpConnection, ProtocolEra } from "./connection.ts";
import { connectTimeoutOf, type FailedHandshake, type Handshake, type HandshakeOptions, shakeHands } from "./handshake.ts";
import { loadSdk, type Sdk } from "./sdk.ts";
import { StdioTransport } from "./stdio-transport.ts";

// Old servers answer a question that they do not know at once, or never.
const silence = 4000;

/**
 * Starts a local server and agrees with it on a protocol. Servers are asked which one they speak in place: nearly all that
 * do not know the question say so at once and take the old handshake after it. One that ends, or does not get over the
 * question, is started anew and not asked.
 */
export async function connectLocal(spec: LocalServerSpec, options: ConnectOptions): Promise<McpConnection> {
  const tries: Tries = { sdk: await loadSdk(), spec, options, started: performance.now(), timeout: connectTimeoutOf(spec, options) };
  const { prior } = options;
  if (prior !== undefined) return outcome(await attempt(tries, prior.era, tries.timeout).shaken);
  const first = attempt(tries, undefined, Math.min(silence, tries.timeout / 4));
  // One that is stuck is ended before another starts: two at a time would download, lock and listen twice.
  const isStuck = !(await settlesWithin(first.shaken, tries.timeout / 2));
  if (isStuck) first.cancel();
  const early = await first.shaken;
  if (early.kind === "connected") return early.connection;
  if (!isStuck && !mayRetry(early)) throw early.error;
  return outcome(await attempt(tries, early.wasDiscovered ? "modern" : "legacy", tries.timeout).shaken);
}

interface Tries {
  readonly sdk: Sdk;
  readonly spec: LocalServerSpec;
  readonly options: ConnectOptions;
  readonly started: number;
  /** Milliseconds for all of them. */
  readonly timeout: number;
}

interface Attempt {
  readonly shaken: Promise<Handshake>;
  /** Ends it, unless it has connected. */
  readonly cancel: () => void;
}

function attempt(tries: Tries, era: ProtocolEra | undefined, probeTimeout: number): Attempt {
  const controller = new AbortController();
  const { signal } = tries.options;
  const either = signal === undefined ? controller.signal : AbortSignal.any([signal, controller.signal]);
  const timeout = Math.max(1, tries.timeout - (performance.now() - tries.started));
  return { shaken: start(tries, { era, timeout, probeTimeout, signal: either }), cancel: () => controller.abort() };
}

async function start({ sdk, spec, options }: Tries, shake: Omit<HandshakeOptions, "serverName">): Promise<Handshake> {
  if (shake.signal?.aborted === true) return failed("MCP_CANCELLED", `Connecting to the MCP server ${spec.name} was cancelled.`);
  const spawned = await spawnProcess({ command: spec.command, args: spec.args, cwd: folderOf(spec, options), env: spec.env });
  if (spawned.kind !== "spawned") return failed("MCP_NOT_STARTED", `The MCP server ${spec.name} did not start. ${spawned.message}`);
  const link = new StdioTransport(spawned.process, {
    serverName: spec.name,
    maxMessageBytes: options.maxMessageBytes ?? defaultMessageBytes,
    log: options.log,
    onStderr: options.onStderr,
  });
  return await shakeHands(sdk, link, options, { serverName: spec.name, ...shake });
}

function folderOf(spec: LocalServerSpec, { workingDirectory }: ConnectOptions): string {
  if (spec.cwd === undefined) return workingDirectory;
  return isAbsolute(spec.cwd) ? spec.cwd : resolve(workingDirectory, spec.cwd);
}

function mayRetry({ error }: FailedHandshake): boolean {
  return !["MCP_NOT_STARTED", "MCP_CANCELLED", "MCP_TIMEOUT", "MCP_UNAUTHORIZED"].includes(error.code);
}

function outcome(shaken: Handshake): McpConnection {
  if (shaken.kind === "connected") return shaken.connection;
  throw shaken.error;
}

function failed(code: string, message: string): FailedHandshake {
  return { kind: "failed", error: new HostError(code, message), wasDiscovered: false };
}
