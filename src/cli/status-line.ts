/** A line below everything that is printed on a terminal. It is removed before each output, and drawn again below it. */
export class StatusLine implements Disposable {
  readonly #print: (text: string) => void;
  readonly #columns: () => number | undefined;
  #text = "";
  #isDrawn = false;
  /** Text without a line break at its end is continued by the next output, so the line has to wait. */
  #isAtLineStart = true;

  constructor(print: (text: string) => void, columns: () => number | undefined) {
    this.#print = print;
    this.#columns = columns;
  }

  /** Shows a text instead of the last one; an empty text removes the line. */
  show(text: string): void {
    this.#erase();
    this.#text = text;
    this.#draw();
  }

  /** Call it before other output goes to the terminal, and `after` when it was written. */
  before(): void {
    this.#erase();
  }

  after(written: string | Uint8Array): void {
    if (written.length > 0) this.#isAtLineStart = written.at(-1) === "\n" || written.at(-1) === 10;
    this.#draw();
  }

  [Symbol.dispose](): void {
    this.show("");
  }

  #erase(): void {
    if (this.#isDrawn) this.#print("\r\u001b[K");
    this.#isDrawn = false;
  }

  #draw(): void {
    if (this.#text === "" || !this.#isAtLineStart) return;
    // A line that wraps could not be removed again.
    this.#print(this.#text.slice(0, Math.max(0, (this.#columns() ?? 80) - 1)));
    this.#isDrawn = true;
  }
}
