import type { Clock } from "../../src/base/wait.ts";

interface Timer {
  readonly at: number;
  readonly run: () => void;
}

/** Time that passes only when a test lets it. */
export class ManualClock implements Clock {
  readonly #timers = new Set<Timer>();
  #now = 1_750_000_000_000;

  now(): number {
    return this.#now;
  }

  after(milliseconds: number, run: () => void): ReturnType<Clock["after"]> {
    let timer: Timer | undefined;
    const stop = (): void => {
      if (timer !== undefined) this.#timers.delete(timer);
    };
    const restart = (): void => {
      stop();
      timer = { at: this.#now + milliseconds, run };
      this.#timers.add(timer);
    };
    restart();
    return { restart, [Symbol.dispose]: stop };
  }

  get pending(): number {
    return this.#timers.size;
  }

  /** Lets what is due happen, in its order, and all that follows from it. */
  async pass(milliseconds: number): Promise<void> {
    const until = this.#now + milliseconds;
    await settled();
    for (let next = this.#next(until); next !== undefined; next = this.#next(until)) {
      this.#timers.delete(next);
      this.#now = Math.max(this.#now, next.at);
      next.run();
      await settled();
    }
    this.#now = until;
  }

  #next(until: number): Timer | undefined {
    return [...this.#timers].filter(({ at }) => at <= until).sort((a, b) => a.at - b.at)[0];
  }
}

/** Every promise that can settle without time or outside help has, with what hangs on it. */
export async function settled(): Promise<void> {
  // Each turn of the loop runs all microtasks, however many follow from each other.
  for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve));
}
