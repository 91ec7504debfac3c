import { type Clock, onAbort } from "../../base/wait.ts";

/**
 * Limits how many servers start at a time: a hundred programs that start at once slow each other down until all are late.
 * First come, first served. One that takes long gives up its slot and continues to start.
 */
export class StartSlots {
  readonly #max: number;
  readonly #holdFor: number;
  readonly #clock: Clock;
  readonly #waiting = new Set<() => void>();
  #taken = 0;

  constructor(max: number, holdFor: number, clock: Clock) {
    this.#max = max;
    this.#holdFor = holdFor;
    this.#clock = clock;
  }

  /** Disposing releases the slot. Rejects with the signal's reason. */
  async take(signal: AbortSignal): Promise<Disposable> {
    signal.throwIfAborted();
    if (this.#taken >= this.#max) {
      let aborted: Disposable | undefined;
      await new Promise<void>((resolve, reject) => {
        const take = (): void => {
          this.#waiting.delete(take);
          resolve();
        };
        this.#waiting.add(take);
        aborted = onAbort(signal, () => {
          if (this.#waiting.delete(take)) reject(signal.reason);
        });
      });
      aborted?.[Symbol.dispose]();
    } else this.#taken += 1;
    return this.#hold();
  }

  #hold(): Disposable {
    let isHeld = true;
    const giveUp = (): void => {
      if (!isHeld) return;
      isHeld = false;
      timer[Symbol.dispose]();
      // The slot passes directly to the next in line, so that a later caller cannot take it in between.
      const [next] = this.#waiting;
      if (next === undefined) this.#taken -= 1;
      else next();
    };
    const timer = this.#clock.after(this.#holdFor, giveUp);
    return { [Symbol.dispose]: giveUp };
  }
}
