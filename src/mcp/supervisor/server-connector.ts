import { HostError } from "../../base/errors.ts";
import type { Clock } from "../../base/wait.ts";
import type { McpServerSpec } from "../../formats/mcp/mcp-server-spec.ts";
import type { McpConnection, ProtocolEra } from "../connection/connection.ts";
import { CircuitBreaker, type RespawnPolicy } from "./circuit-breaker.ts";
import type { ServerError } from "./server-state.ts";
import type { StartSlots } from "./start-slots.ts";

/** The protocol that an earlier connection negotiated. */
interface KnownProtocol {
  readonly era: ProtocolEra;
  readonly protocolVersion: string;
}

export interface ConnectRequest {
  /** For roots and relative paths. The `cwd` of a local server's spec is absolute already. */
  readonly workingDirectory: string;
  /** Cancels the attempt: everything that was started has ended when the promise rejects. */
  readonly signal: AbortSignal;
  /** Milliseconds for connecting. */
  readonly timeout: number;
  /** Skips the request for the protocol. A wrong value fails the attempt; the next one does without. */
  readonly prior: KnownProtocol | undefined;
  /** Receives what a local server writes to stderr. */
  onStderr(text: string): void;
}

/**
 * Connects to a server once. Rejects with HostError: `MCP_UNAUTHORIZED` when the user must sign in, `MCP_NOT_STARTED` when
 * retrying cannot help (such as a command that does not exist), any other code when it may. The message is for people and
 * contains the exit code, if any. Disposing of the connection ends the server's whole process group in bounded time.
 *
 * A request on the connection rejects with `MCP_NOT_RUN` when the server certainly did not run it, because the connection
 * had ended or its session is unknown (HTTP 404): then it is repeated on a new connection.
 */
export type ServerConnector = (spec: McpServerSpec, request: ConnectRequest) => Promise<McpConnection>;

/** A protocol, and when it was negotiated, in milliseconds since the epoch. */
export interface DatedProtocol extends KnownProtocol {
  readonly foundAt: number;
}

// A server that learns the newer protocol still speaks the old one, so it has to be asked again at times.
const protocolLife = 7 * 24 * 60 * 60 * 1000;

/** What outlives the connections to a server: its failures, and the protocol that it speaks. */
export class ServerHistory {
  readonly breaker: CircuitBreaker;
  /** The last error. */
  failure: ServerError | undefined;
  readonly #clock: Clock;
  #protocol: DatedProtocol | undefined;

  constructor(policy: RespawnPolicy, clock: Clock, random: () => number) {
    this.breaker = new CircuitBreaker(policy, clock, random);
    this.#clock = clock;
  }

  /** Undefined when unknown or outdated. */
  get protocol(): DatedProtocol | undefined {
    const age = this.#clock.now() - (this.#protocol?.foundAt ?? 0);
    // Negative when the clock was set back, or when the file comes from another machine.
    return age >= 0 && age < protocolLife ? this.#protocol : undefined;
  }

  learn(protocol: DatedProtocol): void {
    this.#protocol = protocol;
  }

  forgetProtocol(): void {
    this.#protocol = undefined;
  }
}

const maxRemembered = 500;

/** The histories of all servers. The least recently used one is forgotten first. */
export class ServerHistories {
  readonly #byId = new Map<string, ServerHistory>();
  readonly #make: () => ServerHistory;

  constructor(make: () => ServerHistory) {
    this.#make = make;
  }

  of(id: string): ServerHistory {
    const history = this.#byId.get(id) ?? this.#make();
    this.#byId.delete(id);
    this.#byId.set(id, history);
    const [oldest] = this.#byId.keys();
    if (this.#byId.size > maxRemembered && oldest !== undefined) this.#byId.delete(oldest);
    return history;
  }
}

interface OpenParts extends Pick<ConnectRequest, "workingDirectory" | "timeout" | "onStderr"> {
  readonly connect: ServerConnector;
  readonly slots: StartSlots;
  readonly history: ServerHistory;
  readonly clock: Clock;
}

/**
 * Connects when a start slot is free, with the remembered protocol. If that turns out to be outdated, it is forgotten and
 * negotiated again within the same attempt. Rejects as the connector does, or with the signal's reason.
 */
export async function openConnection(spec: McpServerSpec, parts: OpenParts, signal: AbortSignal): Promise<McpConnection> {
  const slot = await parts.slots.take(signal);
  try {
    const prior = parts.history.protocol;
    const connection = await connectKnowing(prior, spec, parts, signal);
    const { era, protocolVersion } = connection;
    // A confirmed protocol keeps its date; otherwise it would never be negotiated again.
    if (prior?.era !== era || parts.history.protocol === undefined)
      parts.history.learn({ era, protocolVersion, foundAt: parts.clock.now() });
    return connection;
  } finally {
    slot[Symbol.dispose]();
  }
}

async function connectKnowing(
  prior: KnownProtocol | undefined,
  spec: McpServerSpec,
  parts: OpenParts,
  signal: AbortSignal,
): Promise<McpConnection> {
  const { connect, history, workingDirectory, timeout, onStderr } = parts;
  const known = prior && { era: prior.era, protocolVersion: prior.protocolVersion };
  try {
    return await connect(spec, { workingDirectory, signal, timeout, prior: known, onStderr });
  } catch (error) {
    if (known === undefined || signal.aborted || ["MCP_UNAUTHORIZED", "MCP_NOT_STARTED"].includes(codeOf(error))) throw error;
    history.forgetProtocol();
    // A server that did not answer for so long is not asked again at once.
    if (codeOf(error) === "MCP_TIMEOUT") throw error;
    return await connect(spec, { workingDirectory, signal, timeout, prior: undefined, onStderr });
  }
}

function codeOf(error: unknown): string {
  return error instanceof HostError ? error.code : "";
}
