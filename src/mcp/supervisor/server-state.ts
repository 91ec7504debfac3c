import type { Clock } from "../../base/clock.ts";
import type { McpServerSpec } from "../../formats/mcp/mcp-server-spec.ts";
import type { McpConnection, ProtocolEra } from "../connection/connection.ts";

/**
 * Where a server stands:
 * - `idle`: nobody needed it yet, so it was not started.
 * - `starting`: being connected to, or waiting for the next try; after a crash, too.
 * - `ready`: connected, and its lists are there.
 * - `failed`: given up after several tries. A call or a new user tries once more, when some time has passed.
 * - `needs-auth`: it wants somebody to sign in.
 * - `needs-configuration`: its configuration lacks something, so it cannot be started.
 * - `disabled`: switched off, or none of its tools is wanted. It is not started.
 * - `stopped`: ended by request, or because everything ends.
 */
export type ServerState = "idle" | "starting" | "ready" | "failed" | "needs-auth" | "needs-configuration" | "disabled" | "stopped";

/** What went wrong with a server, for people. */
export interface ServerError {
  /** Stable, such as `MCP_CLOSED`. */
  readonly code: string;
  readonly message: string;
}

/** How a server is doing, as of when it was asked for. */
export interface SharedServerStatus {
  readonly name: string;
  /** The same for all who use one connection. Undefined: it has none, since it cannot be started. */
  readonly id: string | undefined;
  readonly type: McpServerSpec["type"] | undefined;
  readonly state: ServerState;
  /** When it came to that, in milliseconds since the epoch. */
  readonly since: number;
  /** Tries that failed since it last worked for some time. */
  readonly failures: number;
  /** What went wrong last, while it is not mended; of `disabled` and `needs-configuration`, why. */
  readonly error: ServerError | undefined;
  /** When the next try is due, or, of a failed one, when a call may try again. */
  readonly retryAt: number | undefined;
  /** The end of what it wrote to stderr, of the last process that it had. */
  readonly stderrTail: string;
  readonly pid: number | undefined;
  readonly era: ProtocolEra | undefined;
  readonly protocolVersion: string | undefined;
  readonly serverInfo: McpConnection["serverInfo"];
  /** Milliseconds that the last successful start took, up to having the lists. */
  readonly startedIn: number | undefined;
  /** How many users it has. */
  readonly users: number;
}

export interface RespawnPolicy {
  /** Failures in a row before a server is given up. */
  readonly maxFailures: number;
  /** Milliseconds before the first new try; each further wait is twice as long, up to `longestDelay`. */
  readonly firstDelay: number;
  readonly longestDelay: number;
  /** Milliseconds after which a server that was given up may be tried once more, when somebody needs it. */
  readonly coolDown: number;
  /** A server that worked for so long has not failed in a row. */
  readonly stableAfter: number;
}

export const defaultRespawn: RespawnPolicy = {
  maxFailures: 5,
  firstDelay: 200,
  longestDelay: 30_000,
  coolDown: 30_000,
  stableAfter: 30_000,
};

/** Counts a server's failures and says when it may be tried again. */
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

  /** As they count for what has worked for so many milliseconds. */
  failuresAfter(workedFor: number): number {
    return workedFor >= this.#policy.stableAfter ? 0 : this.#failures;
  }

  /** Given up: nothing is tried unless somebody needs it. */
  get isOpen(): boolean {
    return this.#retryAt !== undefined;
  }

  get retryAt(): number | undefined {
    return this.#retryAt;
  }

  /** Whether a try may be made now by somebody who needs it. */
  get mayTry(): boolean {
    return this.#retryAt === undefined || this.#clock.now() >= this.#retryAt;
  }

  /** It failed, after having worked for so many milliseconds; 0: it did not start. */
  fail(workedFor: number): void {
    if (workedFor >= this.#policy.stableAfter) this.reset();
    this.#failures += 1;
    if (this.#failures >= this.#policy.maxFailures) this.trip();
  }

  /** Trying again by itself cannot help. */
  trip(): void {
    this.#retryAt = this.#clock.now() + this.#policy.coolDown;
  }

  reset(): void {
    this.#failures = 0;
    this.#retryAt = undefined;
  }

  /** Milliseconds to wait before the next try: between half and all of the wait, so that what failed together does not come back together. */
  delay(): number {
    const full = Math.min(this.#policy.firstDelay * 2 ** Math.min(Math.max(this.#failures, 1) - 1, 30), this.#policy.longestDelay);
    return full * (0.5 + this.#random() / 2);
  }
}
