const turnMs = 10;

/**
 * When the calls that a worker has received begin. Messages that arrive together are received in one turn of the event loop. Each call begins when
 * the one before it has computed, or waits for something; if that takes 10 milliseconds, the next begins in a later turn, so that the worker's
 * signs of life are sent in between.
 */
export class CallTurns {
  readonly #waiting: (() => void)[] = [];
  #isBusy = false;

  /** Undefined: the call may begin at once. */
  enter(): Promise<void> | undefined {
    if (this.#isBusy) return new Promise((resolve) => this.#waiting.push(resolve));
    this.#isBusy = true;
    void this.#continue();
    return undefined;
  }

  async #continue(): Promise<void> {
    let began = performance.now();
    for (let isNewTurn = false; ; ) {
      // After all promises that are settled: a handler runs a few of them after its call began.
      await new Promise<void>((resolve) => process.nextTick(resolve));
      const next = this.#waiting.shift();
      const isLong = performance.now() - began >= turnMs;
      // A turn of the event loop costs more than a short call, so it is spared where nothing has waited for it.
      if (next === undefined && (isNewTurn || !isLong)) break;
      isNewTurn = next === undefined;
      if (isLong) {
        await new Promise((resolve) => setImmediate(resolve));
        began = performance.now();
      }
      next?.();
    }
    this.#isBusy = false;
  }
}
