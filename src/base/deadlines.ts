// setTimeout treats longer delays as 1 ms.
const longestDelay = 2 ** 31 - 1;

/** Work with a deadline on the `performance.now()` clock. `dueAt` may change while it is listed. */
export interface Timed {
  readonly dueAt: number;
  expire(): void;
}

/**
 * The deadlines of a session's running calls, on a single timer. A timer per call, and even more `AbortSignal.timeout`, costs
 * as much as the call; this costs a set entry, and an iteration over the running calls when the earliest is due.
 */
export class Deadlines {
  readonly #listed = new Set<Timed>();
  #timer: NodeJS.Timeout | undefined;
  #firesAt = Number.POSITIVE_INFINITY;

  add(timed: Timed): void {
    this.#listed.add(timed);
    if (timed.dueAt < this.#firesAt) this.#arm(timed.dueAt);
  }

  delete(timed: Timed): void {
    if (this.#listed.delete(timed) && this.#listed.size === 0) this.#disarm();
  }

  #arm(at: number): void {
    clearTimeout(this.#timer);
    this.#firesAt = at;
    const delay = Math.ceil(at - performance.now());
    this.#timer = setTimeout(() => this.#fire(), Math.min(Math.max(delay, 1), longestDelay));
  }

  #disarm(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#firesAt = Number.POSITIVE_INFINITY;
  }

  #fire(): void {
    this.#disarm();
    const now = performance.now();
    for (const timed of [...this.#listed]) {
      if (timed.dueAt > now) continue;
      this.#listed.delete(timed);
      timed.expire();
    }
    let next = Number.POSITIVE_INFINITY;
    for (const timed of this.#listed) next = Math.min(next, timed.dueAt);
    if (next < this.#firesAt) this.#arm(next);
  }
}
