import { redactText } from "../../base/logger.ts";

const limit = 16 * 1024;

/** The end of what a program writes to stderr: however much it writes, only so much is kept. */
export class StderrTail {
  #chunks: Buffer[] = [];
  #length = 0;

  add(text: Buffer | string): void {
    const chunk = typeof text === "string" ? Buffer.from(text) : text;
    // A copy: a slice would keep what it was cut from.
    const part = chunk.length > limit ? Buffer.from(chunk.subarray(-limit)) : chunk;
    this.#chunks.push(part);
    this.#length += part.length;
    while (this.#length - (this.#chunks[0]?.length ?? 0) >= limit) this.#length -= this.#chunks.shift()?.length ?? 0;
  }

  /** Without what looks like a credential. */
  get text(): string {
    return redactText(Buffer.concat(this.#chunks).subarray(-limit).toString("utf8"));
  }

  /** For people: the last line that says anything, cut to fit into a message. */
  get lastLine(): string | undefined {
    const lines = this.text.split(/\r?\n/).map((line) => line.trim());
    return lines.findLast((line) => line !== "")?.slice(0, 300);
  }
}
