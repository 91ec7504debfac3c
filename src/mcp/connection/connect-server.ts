import { resolve } from "node:path";
import { HostError } from "../../base/errors.ts";
import { trafficTap } from "../../base/traffic-tap.ts";
import { onAbort, settlesWithin } from "../../base/wait.ts";
import type { LocalServerSpec, McpServerSpec, RemoteServerSpec } from "../../formats/mcp/mcp-server-spec.ts";
import { spawnProcess } from "../../io/process/child-process.ts";
import { ClientConnection } from "./client-connection.ts";
import { type ConnectOptions, defaultConnectTimeout, defaultMessageBytes, type McpConnection, type ProtocolEra } from "./connection.ts";
import { httpStatusOf, toConnectionError } from "./connection-errors.ts";
import { createFrameLog, type FrameListener } from "./frame-log.ts";
import { createHttpTransport } from "./http-transport.ts";
import { HeldTimer, InFlight, longestTimeout, ObservedPipe, ObservedTransport } from "./request-transport.ts";
import { loadSdk, type Sdk, type ServerLink } from "./server-link.ts";
import { ServerRequests } from "./server-requests.ts";
import { StdioTransport } from "./stdio-transport.ts";
import { ReplayedLink, recordMessages } from "./tapped-messages.ts";

export type { ConnectOptions } from "./connection.ts";

/**
 * Connects to an MCP server, in whichever of the protocol's two eras it speaks. Disposing of the connection ends it in
 * bounded time, and with it the whole process group of a local server.
 *
 * @throws HostError `MCP_NOT_STARTED` when retrying cannot help: the command, the folder or the address does not exist.
 * @throws HostError `MCP_UNAUTHORIZED` when the user must sign in.
 * @throws HostError `MCP_TIMEOUT`, `MCP_CANCELLED`, `MCP_CLOSED`, `MCP_ANSWER` or `MCP_ERROR` for any other failure. The
 * message is for people; that of a process which ended contains its exit code and the last line of its stderr. Everything
 * that was started has ended.
 */
export function connectServer(spec: McpServerSpec, options: ConnectOptions): Promise<McpConnection> {
  return spec.type === "stdio" ? connectLocal(spec, options) : connectRemote(spec, options);
}

// Servers of the older era answer an unknown request at once, or never.
const localProbeMs = 4000;

/**
 * Starts a local server and negotiates the protocol. The server is first asked which one it speaks: nearly all that do not
 * know the request reject it at once and then accept the older handshake in the same process. One that exits or hangs is
 * started a second time without being asked.
 */
async function connectLocal(spec: LocalServerSpec, options: ConnectOptions): Promise<McpConnection> {
  const tries: Tries = { sdk: await loadSdk(), spec, options, started: performance.now(), timeout: connectTimeoutOf(spec, options) };
  const { prior } = options;
  if (prior !== undefined) return outcome(await attempt(tries, prior.era, tries.timeout).shaken);
  const first = attempt(tries, undefined, Math.min(localProbeMs, tries.timeout / 4));
  // A stuck process is ended before another starts: two at a time would download, lock and listen twice.
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
  /** Milliseconds for all attempts together. */
  readonly timeout: number;
}

interface Attempt {
  readonly shaken: Promise<Handshake>;
  /** Ends the attempt, unless it has connected. */
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
  const tap = trafficTap();
  if (tap?.isReplay === true) return await shakeHands(sdk, new ReplayedLink(spec.name, tap), options, { serverName: spec.name, ...shake });
  const spawned = await spawnProcess({
    command: spec.command,
    args: spec.args,
    cwd: resolve(options.workingDirectory, spec.cwd ?? "."),
    env: spec.env,
  });
  if (spawned.kind !== "spawned") return failed("MCP_NOT_STARTED", `The MCP server ${spec.name} did not start. ${spawned.message}`);
  const link = new StdioTransport(spawned.process, {
    serverName: spec.name,
    maxMessageBytes: options.maxMessageBytes ?? defaultMessageBytes,
    log: options.log,
    onStderr: options.onStderr,
  });
  return await shakeHands(sdk, link, options, { serverName: spec.name, ...shake });
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

// Over HTTP, a server that does not know the request answers with an error; silence is a fault.
const remoteProbeMs = 10_000;

/** Connects over Streamable HTTP in the era that the server speaks, or else over the older transport with server-sent events. */
async function connectRemote(spec: RemoteServerSpec, options: ConnectOptions): Promise<McpConnection> {
  if (!URL.canParse(spec.url) || !/^https?:$/.test(new URL(spec.url).protocol)) {
    throw new HostError("MCP_NOT_STARTED", `The URL of the MCP server ${spec.name} is not an http or https URL.`);
  }
  const sdk = await loadSdk();
  const started = performance.now();
  const timeout = connectTimeoutOf(spec, options);
  const attempt = (kind: "http" | "sse", era: ProtocolEra | undefined): Promise<Handshake> => {
    const left = Math.max(1, timeout - (performance.now() - started));
    const probeTimeout = era === "modern" ? left : Math.min(remoteProbeMs, left / 3);
    const tap = trafficTap();
    const link = tap?.isReplay === true ? new ReplayedLink(spec.name, tap) : createHttpTransport(sdk, spec, kind, options);
    return shakeHands(sdk, link, options, { serverName: spec.name, era, timeout: left, probeTimeout, signal: options.signal });
  };
  if (spec.type === "sse") return outcome(await attempt("sse", "legacy"));
  const first = await attempt("http", options.prior?.era);
  if (first.kind === "connected") return first.connection;
  const plain = options.prior === undefined && wantsPlain(first.error, sdk) ? await attempt("http", "legacy") : first;
  if (plain.kind === "connected") return plain.connection;
  if (!knowsNoPost(plain.error, sdk)) throw plain.error;
  const old = await attempt("sse", "legacy");
  // Why the newer transport failed says more than that the older one does not exist.
  return outcome(old.kind === "connected" || old.error.code === "MCP_UNAUTHORIZED" ? old : plain);
}

/** Servers that fail on the request for their protocol, or do not answer it, may still accept the older handshake. */
function wantsPlain(error: HostError, sdk: Sdk): boolean {
  const status = httpStatusOf(error, sdk);
  if (status !== undefined) return status >= 500;
  return error.code === "MCP_ANSWER" || (error.code === "MCP_TIMEOUT" && error.cause !== undefined);
}

/** The specification's sign of a server of before 2025: it rejects the POST of the handshake. */
function knowsNoPost(error: HostError, sdk: Sdk): boolean {
  const status = httpStatusOf(error, sdk);
  return status !== undefined && status >= 400 && status < 500 && ![401, 403, 407, 408, 429].includes(status);
}

interface HandshakeOptions {
  readonly serverName: string;
  /** The era to assume; undefined: the server is asked. */
  readonly era: ProtocolEra | undefined;
  /** Milliseconds for this attempt. */
  readonly timeout: number;
  /** Milliseconds that the server may take to answer which protocol it speaks. */
  readonly probeTimeout: number;
  readonly signal: AbortSignal | undefined;
}

/** Why a handshake failed, and whether the server had already answered that it speaks the stateless protocol. */
interface FailedHandshake {
  readonly kind: "failed";
  readonly error: HostError;
  readonly wasDiscovered: boolean;
}

type Handshake = { readonly kind: "connected"; readonly connection: McpConnection } | FailedHandshake;

function connectTimeoutOf(spec: { readonly timeout: number | undefined }, options: ConnectOptions): number {
  return options.timeout ?? spec.timeout ?? defaultConnectTimeout;
}

/** Negotiates the protocol with a server, over a link of its own. If that fails, nothing remains of the link. */
async function shakeHands(sdk: Sdk, link: ServerLink, options: ConnectOptions, shake: HandshakeOptions): Promise<Handshake> {
  const { serverName } = shake;
  const inFlight = new InFlight();
  const frames = framesOf(serverName, options);
  const transport = new (link.pid === undefined ? ObservedTransport : ObservedPipe)(link, { frames, inFlight });
  const { workingDirectory, log, answers, extensions } = options;
  const requests = new ServerRequests({ serverName, workingDirectory, log, policy: options.requests, answers, extensions });
  const { TolerantClient } = await import("./tolerant-client.ts");
  const client = new TolerantClient({ requests, inFlight, probeTimeout: shake.probeTimeout });
  const limits = new HandshakeLimits(link, shake, options);
  try {
    const prior = shake.era === "legacy" ? { prior: { kind: "legacy" } as const } : {};
    await client.connect(transport, { ...prior, timeout: longestTimeout });
    const connection = new ClientConnection({ sdk, serverName, client, link, transport, inFlight, options });
    holdWhileSigningIn(connection, inFlight, options);
    return { kind: "connected", connection };
  } catch (error) {
    const why = limits.error ?? endError(link, error) ?? toConnectionError(error, sdk, serverName);
    await link.close();
    return { kind: "failed", error: why, wasDiscovered: transport.wasDiscovered };
  } finally {
    limits[Symbol.dispose]();
  }
}

/** What receives each message: the log, an observer, and a test that records them. Undefined: nothing does. */
function framesOf(serverName: string, { log, onMessage }: ConnectOptions): FrameListener | undefined {
  const tap = trafficTap();
  const recorded = tap === undefined || tap.isReplay ? undefined : recordMessages(tap, serverName);
  const listeners = [createFrameLog(serverName, log), onMessage, recorded].filter((listener) => listener !== undefined);
  if (listeners.length <= 1) return listeners[0];
  return (direction, message) => {
    for (const listener of listeners) listener(direction, message);
  };
}

/** Ends the link when the time is over or the signal fires, which fails the handshake. */
class HandshakeLimits implements Disposable {
  error: HostError | undefined;
  readonly #parts: Disposable[];

  constructor(link: ServerLink, { serverName, timeout, signal }: HandshakeOptions, { auth }: ConnectOptions) {
    const end = (error: HostError): void => {
      this.error ??= error;
      void link.close();
    };
    const timer = new HeldTimer(timeout, () => {
      end(new HostError("MCP_TIMEOUT", `The MCP server ${serverName} was not ready within ${Math.round(timeout)} ms.`));
    });
    let hold: Disposable | undefined;
    const waiting = auth?.onWaiting((isWaiting) => {
      hold?.[Symbol.dispose]();
      hold = isWaiting ? timer.hold() : undefined;
    });
    const cancelled = new HostError("MCP_CANCELLED", `Connecting to the MCP server ${serverName} was cancelled.`);
    const abort = signal === undefined ? undefined : onAbort(signal, () => end(cancelled));
    this.#parts = [timer, waiting, abort].filter((part) => part !== undefined);
  }

  [Symbol.dispose](): void {
    for (const part of this.#parts) part[Symbol.dispose]();
  }
}

/** Stops the clocks of all requests while the user signs in. */
function holdWhileSigningIn(connection: McpConnection, inFlight: InFlight, { auth }: ConnectOptions): void {
  if (auth === undefined) return;
  let hold: Disposable | undefined;
  const waiting = auth.onWaiting((isWaiting) => {
    hold?.[Symbol.dispose]();
    hold = isWaiting ? inFlight.hold() : undefined;
  });
  void connection.ended.then(() => waiting[Symbol.dispose]());
}

/** If the link ended by itself, that is the reason. The SDK also closes it when it rejects a message. */
function endError({ end }: ServerLink, cause: unknown): HostError | undefined {
  if (end === undefined || end.reason === "closed") return undefined;
  return new HostError("MCP_CLOSED", end.message, { cause });
}
