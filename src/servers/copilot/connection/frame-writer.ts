/** Where frames go. Writing never throws. */
export interface WireOutput {
  write(text: string): void;
  /** Bytes that were written and not taken yet. */
  readonly pendingBytes: number;
}

/** More than this waits for whoever reads slowly: what is only news of the moment is left out. */
const crowdedBytes = 8 * 1024 * 1024;
/** And more than this is not kept: the reader has gone, for all that can be known. */
const fullBytes = 64 * 1024 * 1024;

/**
 * Puts messages into frames. What is written in one turn of the event loop goes out at once at its end, after the requests
 * to models and servers that somebody waits for.
 */
export class FrameWriter {
  readonly #output: WireOutput;
  readonly #onFull: () => void;
  #frames: string[] = [];
  #bytes = 0;
  #isClosed = false;

  /** `onFull`: the reader takes nothing any more. Nothing is written after that. */
  constructor(output: WireOutput, onFull: () => void) {
    this.#output = output;
    this.#onFull = onFull;
  }

  /** Whether the reader is behind by so much that it is better spared what it can do without. */
  get isCrowded(): boolean {
    return this.#bytes + this.#output.pendingBytes > crowdedBytes;
  }

  write(json: string): void {
    if (this.#isClosed) return;
    if (this.#bytes + this.#output.pendingBytes > fullBytes) {
      this.close();
      this.#onFull();
      return;
    }
    const length = Buffer.byteLength(json);
    if (this.#frames.length === 0) setImmediate(this.#flush);
    this.#frames.push(`Content-Length: ${length}\r\n\r\n${json}`);
    this.#bytes += length;
  }

  close(): void {
    this.#flush();
    this.#isClosed = true;
  }

  readonly #flush = (): void => {
    if (this.#frames.length === 0) return;
    const text = this.#frames.join("");
    this.#frames = [];
    this.#bytes = 0;
    if (!this.#isClosed) this.#output.write(text);
  };
}
