import { HostError } from "../../base/errors.ts";
import { onAbort } from "../../base/wait-for.ts";
import { ClientConnection } from "./client-connection.ts";
import { type ConnectOptions, defaultConnectTimeout, type McpConnection, type ProtocolEra } from "./connection.ts";
import { toConnectionError } from "./connection-errors.ts";
import { createFrameLog } from "./frame-log.ts";
import { HeldTimer, InFlight, longestTimeout, ObservedPipe, ObservedTransport } from "./request-transport.ts";
import type { Sdk, ServerLink } from "./server-link.ts";
import { ServerRequests } from "./server-requests.ts";

export interface HandshakeOptions {
  readonly serverName: string;
  /** What the server is taken to speak; undefined: it is asked. */
  readonly era: ProtocolEra | undefined;
  /** Milliseconds for this try. */
  readonly timeout: number;
  /** Milliseconds that the question which protocol it speaks may stay without an answer. */
  readonly probeTimeout: number;
  readonly signal: AbortSignal | undefined;
}

/** Why a handshake came to nothing, and whether the server had shown by then that it speaks the stateless protocol. */
export interface FailedHandshake {
  readonly kind: "failed";
  readonly error: HostError;
  readonly wasDiscovered: boolean;
}

export type Handshake = { readonly kind: "connected"; readonly connection: McpConnection } | FailedHandshake;

export function connectTimeoutOf(spec: { readonly timeout: number | undefined }, options: ConnectOptions): number {
  return options.timeout ?? spec.timeout ?? defaultConnectTimeout;
}

/** Agrees with a server on a protocol, over a link of its own. When that fails, nothing is left of the link. */
export async function shakeHands(sdk: Sdk, link: ServerLink, options: ConnectOptions, shake: HandshakeOptions): Promise<Handshake> {
  const { serverName } = shake;
  const inFlight = new InFlight();
  const frames = createFrameLog(serverName, options.log, options.onFrame);
  const transport = new (link.pid === undefined ? ObservedTransport : ObservedPipe)(link, { frames, inFlight });
  const requests = createRequests(serverName, options);
  const { TolerantClient } = await import("./tolerant-client.ts");
  const client = new TolerantClient({ requests, inFlight, probeTimeout: shake.probeTimeout });
  const gaveUp = new GiveUp(link, shake, options);
  try {
    const prior = shake.era === "legacy" ? { prior: { kind: "legacy" } as const } : {};
    await client.connect(transport, { ...prior, timeout: longestTimeout });
    const connection = new ClientConnection({ sdk, serverName, client, link, transport, inFlight, options });
    holdWhileSigningIn(connection, inFlight, options);
    return { kind: "connected", connection };
  } catch (error) {
    const why = gaveUp.error ?? endError(link, error) ?? toConnectionError(error, sdk, serverName);
    await link.close();
    return { kind: "failed", error: why, wasDiscovered: transport.wasDiscovered };
  } finally {
    gaveUp[Symbol.dispose]();
  }
}

/** Ends the link when the time is over or nobody wants it any more, which fails the handshake. */
class GiveUp implements Disposable {
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

function createRequests(serverName: string, options: ConnectOptions): ServerRequests {
  const { workingDirectory, log, requests, answers, extensions } = options;
  return new ServerRequests({ serverName, workingDirectory, log, policy: requests, answers, extensions });
}

/** While a person signs in, no request runs out of time. */
function holdWhileSigningIn(connection: McpConnection, inFlight: InFlight, { auth }: ConnectOptions): void {
  if (auth === undefined) return;
  let hold: Disposable | undefined;
  const waiting = auth.onWaiting((isWaiting) => {
    hold?.[Symbol.dispose]();
    hold = isWaiting ? inFlight.hold() : undefined;
  });
  void connection.ended.then(() => waiting[Symbol.dispose]());
}

/** When the link ended of itself, that is why. The SDK closes it, too, when it does not like what it hears. */
function endError({ end }: ServerLink, cause: unknown): HostError | undefined {
  if (end === undefined || end.reason === "closed") return undefined;
  return new HostError("MCP_CLOSED", end.message, { cause });
}
