import { HostError } from "../../base/errors.ts";
import { onAbort } from "../../base/wait.ts";
import { ClientConnection } from "./client-connection.ts";
import { type ConnectOptions, defaultConnectTimeout, type McpConnection, type ProtocolEra } from "./connection.ts";
import { toConnectionError } from "./connection-errors.ts";
import { createFrameLog } from "./frame-log.ts";
import { HeldTimer, InFlight, longestTimeout, ObservedPipe, ObservedTransport } from "./request-transport.ts";
import type { Sdk, ServerLink } from "./server-link.ts";
import { ServerRequests } from "./server-requests.ts";

export interface HandshakeOptions {
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
export interface FailedHandshake {
  readonly kind: "failed";
  readonly error: HostError;
  readonly wasDiscovered: boolean;
}

export type Handshake = { readonly kind: "connected"; readonly connection: McpConnection } | FailedHandshake;

export function connectTimeoutOf(spec: { readonly timeout: number | undefined }, options: ConnectOptions): number {
  return options.timeout ?? spec.timeout ?? defaultConnectTimeout;
}

/** Negotiates the protocol with a server, over a link of its own. If that fails, nothing remains of the link. */
export async function shakeHands(sdk: Sdk, link: ServerLink, options: ConnectOptions, shake: HandshakeOptions): Promise<Handshake> {
  const { serverName } = shake;
  const inFlight = new InFlight();
  const frames = createFrameLog(serverName, options.log, options.onFrame);
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
