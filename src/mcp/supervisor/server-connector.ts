import type { Clock } from "../../base/clock.ts";
import { HostError } from "../../base/errors.ts";
import type { McpServerSpec } from "../../formats/mcp/mcp-server-spec.ts";
import type { McpConnection, ProtocolEra } from "../connection/connection.ts";
import { CircuitBreaker, type RespawnPolicy, type ServerError } from "./server-state.ts";
import type { StartSlots } from "./start-slots.ts";

/** What an earlier connection found out about the protocol that a server speaks. */
interface KnownProtocol {
  readonly era: ProtocolEra;
  readonly protocolVersion: string;
}

export interface ConnectRequest {
  /** Whose roots and relative paths count. The `cwd` of a local server's spec is absolute already. */
  readonly workingDirectory: string;
  /** Ends the try: what was started for it is ended before the promise rejects. */
  readonly signal: AbortSignal;
  /** Milliseconds for connecting. */
  readonly timeout: number;
  /** Spares finding out what the server speaks. A wrong one makes the try fail; the next one goes without. */
  readonly prior: KnownProtocol | undefined;
  /** What a local server writes to stderr, as it arrives. */
  onStderr(text: string): void;
}

/**
 * Connects to a server once. Rejects with HostError: `MCP_UNAUTHORIZED` when somebody must sign in, `MCP_NOT_STARTED` when
 * trying again cannot help (such as a command that does not exist), any other code when it may. The message is for people
 * and names the exit code where there is one. Disposing of the connection ends the server's whole process group, in
 * bounded time.
 *
 * A request of the connection rejects with `MCP_NOT_RUN` when it is certain that the server did not take it up, because
 * the connection was over or its session unknown (HTTP 404): then it is made anew, and the request sent again.
 */
export type ServerConnector = (spec: McpServerSpec, request: ConnectRequest) => Promise<McpConnection>;

/** A verdict and when it was found out, in milliseconds since the epoch. */
export interface DatedProtocol extends KnownProtocol {
  readonly foundAt: number;
}

// A server that learns the newer protocol still speaks the old one: only asking again finds that out.
const verdictLife = 7 * 24 * 60 * 60 * 1000;

/** What is known of one server beyond the life of a connection: how often it failed, and what protocol it speaks. */
export class IdentityMemory {
  readonly breaker: CircuitBreaker;
  /** What went wrong last. */
  trouble: ServerError | undefined;
  readonly #clock: Clock;
  #verdict: DatedProtocol | undefined;

  constructor(policy: RespawnPolicy, clock: Clock, random: () => number) {
    this.breaker = new CircuitBreaker(policy, clock, random);
    this.#clock = clock;
  }

  /** While it is worth something. */
  get verdict(): DatedProtocol | undefined {
    const age = this.#clock.now() - (this.#verdict?.foundAt ?? 0);
    // Below zero: the clock was set back, or the file comes from elsewhere.
    return age >= 0 && age < verdictLife ? this.#verdict : undefined;
  }

  learn(verdict: DatedProtocol): void {
    this.#verdict = verdict;
  }

  forgetVerdict(): void {
    this.#verdict = undefined;
  }
}

const maxRemembered = 500;

/** The memory of all servers that were met, the longest unused forgotten first. */
export class IdentityMemories {
  readonly #byId = new Map<string, IdentityMemory>();
  readonly #make: () => IdentityMemory;

  constructor(make: () => IdentityMemory) {
    this.#make = make;
  }

  of(id: string): IdentityMemory {
    const memory = this.#byId.get(id) ?? this.#make();
    this.#byId.delete(id);
    this.#byId.set(id, memory);
    const [oldest] = this.#byId.keys();
    if (this.#byId.size > maxRemembered && oldest !== undefined) this.#byId.delete(oldest);
    return memory;
  }
}

interface OpenParts extends Pick<ConnectRequest, "workingDirectory" | "timeout" | "onStderr"> {
  readonly connect: ServerConnector;
  readonly slots: StartSlots;
  readonly memory: IdentityMemory;
  readonly clock: Clock;
}

/**
 * Connects when there is a place for another start, with what is remembered of the server's protocol. Should that be
 * outdated, it is forgotten and found out anew within the same try. Rejects as the connector does, or with the signal's reason.
 */
export async function openConnection(spec: McpServerSpec, parts: OpenParts, signal: AbortSignal): Promise<McpConnection> {
  const slot = await parts.slots.take(signal);
  try {
    const prior = parts.memory.verdict;
    const connection = await connectKnowing(prior, spec, parts, signal);
    const { era, protocolVersion } = connection;
    // What was only confirmed keeps its date: else it would never be found out anew.
    if (prior?.era !== era || parts.memory.verdict === undefined) parts.memory.learn({ era, protocolVersion, foundAt: parts.clock.now() });
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
  const { connect, memory, workingDirectory, timeout, onStderr } = parts;
  const known = prior && { era: prior.era, protocolVersion: prior.protocolVersion };
  try {
    return await connect(spec, { workingDirectory, signal, timeout, prior: known, onStderr });
  } catch (error) {
    if (known === undefined || signal.aborted || isNoMatterOfProtocol(error)) throw error;
    memory.forgetVerdict();
    // One that did not answer for so long is not asked again at once.
    if (codeOf(error) === "MCP_TIMEOUT") throw error;
    return await connect(spec, { workingDirectory, signal, timeout, prior: undefined, onStderr });
  }
}

function isNoMatterOfProtocol(error: unknown): boolean {
  return ["MCP_UNAUTHORIZED", "MCP_NOT_STARTED"].includes(codeOf(error));
}

function codeOf(error: unknown): string {
  return error instanceof HostError ? error.code : "";
}
