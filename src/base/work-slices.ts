/** Lets the event loop run between slices of long synchronous work: after a number of units, independent of the clock. */
export class WorkSlices {
  readonly #size: number;
  #left: number;

  constructor(size: number) {
    this.#size = size;
    this.#left = size;
  }

  /** Counts completed work. Await the result if it is a promise, so that other work can run. */
  spend(units: number): Promise<void> | undefined {
    this.#left -= units;
    if (this.#left > 0) return undefined;
    this.#left = this.#size;
    return new Promise((resolve) => setImmediate(resolve));
  }
}
