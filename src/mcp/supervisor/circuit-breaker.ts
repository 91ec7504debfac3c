import type { Clock } from "../../base/wait.ts";

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
