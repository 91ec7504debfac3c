/** A connection with more unread messages is not read. */
const mostWaiting = 256;

/** The messages of a connection that were not read yet. */
export class SocketMessages {
  readonly #waiting: string[] = [];
  readonly #pause: (isPaused: boolean) => void;
  #isPaused = false;
  #hasEnded = false;
  #error: Error | undefined;
  #wake: () => void = () => {};

  /** `pause` is called when too many messages wait, and again when they have been read. */
  constructor(pause: (isPaused: boolean) => void = () => {}) {
    this.#pause = pause;
  }

  add(message: string): void {
    if (this.#hasEnded) return;
    this.#waiting.push(message);
    if (this.#waiting.length > mostWaiting) this.#setPaused(true);
    this.#wake();
  }

  /** With an error, reading rejects with it after the messages before it. The first end counts. */
  end(error?: Error): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#error = error;
    this.#wake();
  }

  /** The next message; undefined after the end. */
  async next(): Promise<string | undefined> {
    for (;;) {
      const message = this.#waiting.shift();
      if (this.#waiting.length === 0) this.#setPaused(false);
      if (message !== undefined) return message;
      if (this.#error !== undefined) throw this.#error;
      if (this.#hasEnded) return undefined;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  #setPaused(isPaused: boolean): void {
    if (this.#isPaused === isPaused) return;
    this.#isPaused = isPaused;
    this.#pause(isPaused);
  }
}
