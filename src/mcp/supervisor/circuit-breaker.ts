import type { Clock } from "./clock.ts";

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
