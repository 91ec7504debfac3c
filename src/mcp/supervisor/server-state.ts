import type { Clock } from "../../base/wait.ts";
import type { McpServerSpec } from "../../formats/mcp/mcp-server-spec.ts";
import type { McpConnection, ProtocolEra } from "../connection/connection.ts";

/**
 * The states of a server:
 * - `idle`: not started yet, since it was not needed.
 * - `starting`: connecting, or waiting for the next attempt, also after a crash.
 * - `ready`: connected, with its lists.
 * - `failed`: given up after several attempts. After a while, a call or a new user tries once more.
 * - `needs-auth`: the user must sign in.
 * - `needs-configuration`: its configuration lacks something, so it cannot be started.
 * - `disabled`: switched off, or its tools are all filtered out. It is not started.
 * - `stopped`: ended by request, or because the host closes.
 */
export type ServerState = "idle" | "starting" | "ready" | "failed" | "needs-auth" | "needs-configuration" | "disabled" | "stopped";

/** What went wrong with a server, for people. */
export interface ServerError {
  /** Stable, such as `MCP_CLOSED`. */
  readonly code: string;
  readonly message: string;
}

/** The status of a server at the time of the request. */
export interface SharedServerStatus {
  readonly name: string;
  /** The same for all users of one connection. Undefined: it cannot be started. */
  readonly id: string | undefined;
  readonly type: McpServerSpec["type"] | undefined;
  readonly state: ServerState;
  /** When it entered the state, in milliseconds since the epoch. */
  readonly since: number;
  /** Failed attempts since it last worked for some time. */
  readonly failures: number;
  /** The last error, until it is resolved; for `disabled` and `needs-configuration`, the reason. */
  readonly error: ServerError | undefined;
  /** When the next attempt is due or, once it has failed, when a call may try again. */
  readonly retryAt: number | undefined;
  /** The end of what its latest process wrote to stderr. */
  readonly stderrTail: string;
  readonly pid: number | undefined;
  readonly era: ProtocolEra | undefined;
  readonly protocolVersion: string | undefined;
  readonly serverInfo: McpConnection["serverInfo"];
  /** Milliseconds that the last successful start took, including the lists. */
  readonly startedIn: number | undefined;
  /** The number of its users. */
  readonly users: number;
}

export interface RespawnPolicy {
  /** Consecutive failures before a server is given up. */
  readonly maxFailures: number;
  /** Milliseconds before the first restart; each further pause is twice as long, up to `longestDelay`. */
  readonly firstDelay: number;
  readonly longestDelay: number;
  /** Milliseconds before a server that was given up may be tried again on demand. */
  readonly coolDown: number;
  /** Milliseconds of work that end a row of failures. */
  readonly stableAfter: number;
}

export const defaultRespawn: RespawnPolicy = {
  maxFailures: 5,
  firstDelay: 200,
  longestDelay: 30_000,
  coolDown: 30_000,
  stableAfter: 30_000,
};

/** Counts a server's failures and decides when it may be tried again. */
export class CircuitBreaker {
  readonly #policy: RespawnPolicy;
  readonly #clock: Clock;
  readonly #random: () => number;
  #failures = 0;
  /** When it may be tried next; undefined: it was not given up. */
  #retryAt: number | undefined;

  constructor(policy: RespawnPolicy, clock: Clock, random: () => number) {
    this.#policy = policy;
    this.#clock = clock;
    this.#random = random;
  }

  get failures(): number {
    return this.#failures;
  }

  /** The failures that count for a server that has worked for so many milliseconds. */
  failuresAfter(workedFor: number): number {
    return workedFor >= this.#policy.stableAfter ? 0 : this.#failures;
  }

  /** Given up: it is only tried on demand. */
  get isOpen(): boolean {
    return this.#retryAt !== undefined;
  }

  get retryAt(): number | undefined {
    return this.#retryAt;
  }

  /** Whether it may be tried on demand now. */
  get mayTry(): boolean {
    return this.#retryAt === undefined || this.#clock.now() >= this.#retryAt;
  }

  /** It failed, after it had worked for so many milliseconds; 0: it did not start. */
  fail(workedFor: number): void {
    if (workedFor >= this.#policy.stableAfter) this.reset();
    this.#failures += 1;
    if (this.#failures >= this.#policy.maxFailures) this.trip();
  }

  /** Gives it up at once: retrying cannot help. */
  trip(): void {
    this.#retryAt = this.#clock.now() + this.#policy.coolDown;
  }

  reset(): void {
    this.#failures = 0;
    this.#retryAt = undefined;
  }

  /**
   * Milliseconds before the next attempt: a random part from half to all of the pause, so that servers that fail together
   * do not restart together.
   */
  delay(): number {
    const full = Math.min(this.#policy.firstDelay * 2 ** Math.min(Math.max(this.#failures, 1) - 1, 30), this.#policy.longestDelay);
    return full * (0.5 + this.#random() / 2);
  }
}
