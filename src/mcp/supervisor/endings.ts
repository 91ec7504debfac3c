import { type Clock, endsWithin } from "./clock.ts";

/** What is on its way out: connections that are being ended, tries that were given up. */
export class Endings {
  readonly #pending = new Set<Promise<unknown>>();

  add(ending: Promise<unknown>): void {
    const settled: Promise<unknown> = ending.then(
      () => this.#pending.delete(settled),
      () => this.#pending.delete(settled),
    );
    this.#pending.add(settled);
  }

  /** Waits for what is there now, and no longer than so many milliseconds. Rejects with the signal's reason. */
  async those(milliseconds: number, clock: Clock, signal: AbortSignal): Promise<void> {
    if (this.#pending.size > 0) await endsWithin(Promise.all(this.#pending), milliseconds, clock, signal);
  }

  /** Waits until nothing is left, also of what comes meanwhile. */
  async all(): Promise<void> {
    while (this.#pending.size > 0) await Promise.all(this.#pending);
  }
}
