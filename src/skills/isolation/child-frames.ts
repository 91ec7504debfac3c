import { isRecord, isTextNestedTooDeep } from "../../base/json.ts";

/** What is sent to the other side of a channel: one JSON text per frame. */
export type ChildFrame = Readonly<Record<string, unknown>>;

/** The argument of a child process whose connections are made by the host. */
export const throughHost = "--connect-through-host";

/** Asks a child that has run no code of its skill yet what it sees at the paths of its mounts. */
export interface MountsAsked {
  readonly mounts: readonly string[];
}

/** The beginning of a frame that is a `MountsAsked`. */
export const mountsAsked = '{"mounts":';

/** A longer frame ends the channel. */
export const maxFrameLength: number = 64 * 1024 * 1024;

/** Deeper values end the channel, because code that walks through a value recursively would overflow the stack. */
const maxDepth = 500;

/** Parses a frame that untrusted code may have written. Undefined: it is not a valid frame. */
export function parseFrame(text: string): ChildFrame | undefined {
  if (text.length > maxFrameLength || isTextNestedTooDeep(text, maxDepth)) return undefined;
  try {
    const frame: unknown = JSON.parse(text);
    return isRecord(frame) ? frame : undefined;
  } catch {
    // Not JSON: the caller reports the frame.
    return undefined;
  }
}

/** Splits a stream of bytes into lines. Calls `overflow` once, and nothing else afterwards, when a line is too long. */
export class FrameSplitter {
  readonly #line: (text: string) => void;
  readonly #overflow: () => void;
  #parts: Buffer[] = [];
  #length = 0;

  constructor(line: (text: string) => void, overflow: () => void) {
    this.#line = line;
    this.#overflow = overflow;
  }

  add(chunk: Buffer): void {
    if (this.#length > maxFrameLength) return;
    let start = 0;
    for (let end = chunk.indexOf(10); end !== -1; end = chunk.indexOf(10, start)) {
      this.#parts.push(chunk.subarray(start, end));
      const text = Buffer.concat(this.#parts).toString("utf8");
      this.#parts = [];
      this.#length = 0;
      start = end + 1;
      this.#line(text);
    }
    if (start === chunk.length) return;
    this.#parts.push(chunk.subarray(start));
    this.#length += chunk.length - start;
    if (this.#length <= maxFrameLength) return;
    this.#parts = [];
    this.#overflow();
  }
}
