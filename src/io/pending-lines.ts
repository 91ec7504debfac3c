import type { LogRecord } from "./append-log.ts";

const lineBreak = 0x0a;

/** Lines on their way into a file. What was written of them is known to the byte, so that a write that fails in between is gone on with. */
export class PendingLines {
  #waiting: string[] = [];
  #waitingBytes = 0;
  /** The lines being written, and how much of them is. */
  #batch: Buffer = Buffer.alloc(0);
  #written = 0;
  #batchCount = 0;

  get isEmpty(): boolean {
    return this.#waiting.length === 0 && this.#written === this.#batch.length;
  }

  get bytes(): number {
    return this.#batch.length - this.#written + this.#waitingBytes;
  }

  /** How many lines are not completely written; those of a batch that was begun are counted as one. */
  get count(): number {
    return this.#waiting.length + this.#batchCount;
  }

  add(line: string): void {
    this.#waiting.push(line);
    this.#waitingBytes += Buffer.byteLength(line);
  }

  /** Writes until nothing is left. `write` says how many of the bytes it took; what it throws goes to the caller. */
  writeTo(write: (bytes: Buffer) => number): void {
    while (!this.isEmpty) {
      if (this.#written === this.#batch.length) this.#nextBatch();
      while (this.#written < this.#batch.length) this.#written += write(this.#batch.subarray(this.#written));
      this.#batch = Buffer.alloc(0);
      this.#written = 0;
      this.#batchCount = 0;
    }
  }

  /** The records that are not completely in the file, oldest first. */
  records(): LogRecord[] {
    // A line that was begun is not complete in the file: it is taken whole from here.
    const from = this.#written === 0 ? 0 : this.#batch.lastIndexOf(lineBreak, this.#written - 1) + 1;
    const text = this.#batch.toString("utf8", from) + this.#waiting.join("");
    return text
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line) as LogRecord);
  }

  #nextBatch(): void {
    this.#batch = Buffer.from(this.#waiting.join(""));
    this.#batchCount = this.#waiting.length;
    this.#waiting = [];
    this.#waitingBytes = 0;
  }
}
