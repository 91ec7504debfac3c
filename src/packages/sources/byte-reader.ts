import type { Readable } from "node:stream";
import { HostError } from "../../base/errors.ts";

/** Reads a stream in parts of known length or up to a separator. */
export class ByteReader {
  readonly #chunks: AsyncIterator<Buffer>;
  #rest: Buffer = Buffer.alloc(0);

  constructor(stream: Readable) {
    this.#chunks = stream[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  }

  /** The bytes before the next separator. Undefined: the stream has ended. */
  async until(separator: number): Promise<Buffer | undefined> {
    const parts: Buffer[] = [];
    for (;;) {
      const end = this.#rest.indexOf(separator);
      if (end !== -1) {
        parts.push(this.#rest.subarray(0, end));
        this.#rest = this.#rest.subarray(end + 1);
        return parts.length === 1 ? parts[0] : Buffer.concat(parts);
      }
      parts.push(this.#rest);
      if (!(await this.#more())) {
        if (parts.every(({ length }) => length === 0)) return undefined;
        throw endedEarly();
      }
    }
  }

  /** Exactly this many bytes. */
  async take(length: number): Promise<Buffer> {
    const parts: Buffer[] = [];
    for (let missing = length; ; ) {
      const part = this.#rest.subarray(0, missing);
      this.#rest = this.#rest.subarray(part.length);
      parts.push(part);
      missing -= part.length;
      if (missing === 0) return parts.length === 1 ? part : Buffer.concat(parts);
      if (!(await this.#more())) throw endedEarly();
    }
  }

  async #more(): Promise<boolean> {
    const next = await this.#chunks.next();
    if (next.done === true) return false;
    this.#rest = next.value;
    return true;
  }
}

function endedEarly(): HostError {
  return new HostError("GIT_FETCH", "git ended before all files were read. Run the command again.");
}
