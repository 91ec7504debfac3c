const turnMs = 10;

/**
 * When the calls that a worker has received begin. Messages that arrive together are received in one turn of the event loop; if their handlers compute, then after
 * 10 milliseconds the others wait for later turns, so that the worker's signs of life are sent in between.
 */
export class CallTurns {
  readonly #waiting: (() => void)[] = [];
  /** When the first call of this turn began. */
  #began: number | undefined;

  /** Undefined: the call may begin at once. */
  enter(): Promise<void> | undefined {
    if (this.#began === undefined) {
      this.#begin();
      return undefined;
    }
    if (this.#waiting.length === 0 && performance.now() - this.#began < turnMs) return undefined;
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  #begin(): void {
    this.#began = performance.now();
    setImmediate(() => {
      const next = this.#waiting.shift();
      if (next === undefined) this.#began = undefined;
      else {
        this.#begin();
        next();
      }
    });
  }
}
