// The longest that the runtime's timers know.
export const longestTimeout = 2_147_483_647;

/** A deadline that stands still while somebody holds it, and afterwards starts anew. */
export class HeldTimer implements Disposable {
  readonly #milliseconds: number;
  readonly #expired: () => void;
  #timer: NodeJS.Timeout | undefined;
  #holds = 0;
  #isOver = false;

  constructor(milliseconds: number, expired: () => void) {
    this.#milliseconds = Math.min(milliseconds, longestTimeout);
    this.#expired = expired;
    this.#start();
  }

  restart(): void {
    this.#timer?.refresh();
  }

  hold(): Disposable {
    this.#holds++;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    let isHeld = true;
    return {
      [Symbol.dispose]: () => {
        if (!isHeld) return;
        isHeld = false;
        this.#holds--;
        if (this.#holds === 0 && !this.#isOver) this.#start();
      },
    };
  }

  [Symbol.dispose](): void {
    this.#isOver = true;
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #start(): void {
    this.#timer = setTimeout(this.#expired, this.#milliseconds);
  }
}
