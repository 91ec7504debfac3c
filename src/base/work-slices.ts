/** Lets the event loop run between pieces of a long synchronous work: after so many units, whatever the clock says. */
export class WorkSlices {
  readonly #size: number;
  #left: number;

  constructor(size: number) {
    this.#size = size;
    this.#left = size;
  }

  /** Notes work that was done. To be awaited where it gives something: others run first. */
  spend(units: number): Promise<void> | undefined {
    this.#left -= units;
    if (this.#left > 0) return undefined;
    this.#left = this.#size;
    return new Promise((resolve) => setImmediate(resolve));
  }
}
