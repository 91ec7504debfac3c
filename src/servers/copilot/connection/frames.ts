import { isUtf8 } from "node:buffer";
import { hasTooManyValues, isNestedTooDeep, maxJsonDepth, maxJsonValues } from "../../../base/json.ts";

/** The limit of a message. A longer one is refused when its length is announced. @internal Exported for tests. */
export const maxFrameBytes: number = 64 * 1024 * 1024;

/** What a client may send before it is admitted: enough for a few attempts with a token. */
export const introduction: FrameLimits = { frameBytes: 8 * 1024, totalBytes: 64 * 1024 };

const unlimited: FrameLimits = { frameBytes: maxFrameBytes, totalBytes: Number.POSITIVE_INFINITY };
const maxHeaderBytes = 8 * 1024;
/** A body in more pieces is joined as it arrives, since each small piece needs more memory than its content. */
const maxPieces = 1_024;

export interface FrameLimits {
  /** Bytes of the body of one frame. */
  readonly frameBytes: number;
  /** Bytes in all. */
  readonly totalBytes: number;
}

export interface FrameSink {
  /** A whole frame whose body is JSON. */
  message(value: unknown): void;
  /** A frame whose body is not JSON. Reading continues with the next frame. */
  unreadable(problem: string): void;
  /** The start of the next frame is unknown, so reading ends. */
  lost(problem: string): void;
}

/**
 * Splits a stream into the frames of the Language Server Protocol: `Content-Length: N`, an empty line, N bytes of UTF-8. Holds
 * no more than one frame.
 */
export class FrameReader {
  readonly #sink: FrameSink;
  #pieces: Buffer[] = [];
  #size = 0;
  /** The length of the current body. Undefined: a header is being read. */
  #wanted: number | undefined;
  #isLost = false;
  #limits = unlimited;
  #total = 0;

  constructor(sink: FrameSink) {
    this.#sink = sink;
  }

  /** Undefined: the limits of an admitted client. */
  limit(limits: FrameLimits = unlimited): void {
    this.#limits = limits;
  }

  push(chunk: Buffer): void {
    this.#total += chunk.length;
    if (this.#total > this.#limits.totalBytes) {
      this.#lose(`More than ${this.#limits.totalBytes} bytes were received before a valid connect request.`);
      return;
    }
    let rest = chunk;
    while (rest.length > 0 && !this.#isLost)
      rest = this.#wanted === undefined ? this.#readHeader(rest) : this.#readBody(rest, this.#wanted);
  }

  /** Ends reading, and drops an incomplete frame. */
  clear(): void {
    this.#isLost = true;
    this.#pieces = [];
  }

  /** Returns what follows the header, or an empty buffer while the header is incomplete. */
  #readHeader(chunk: Buffer): Buffer {
    const before = this.#size;
    const header = this.#take(chunk);
    // The end of the header may be split between two chunks.
    const end = header.indexOf("\r\n\r\n", Math.max(0, before - 3), "latin1");
    if (end > maxHeaderBytes || (end === -1 && header.length > maxHeaderBytes)) {
      return this.#lose(`A header is longer than ${maxHeaderBytes} bytes.`);
    }
    if (end === -1) {
      this.#keep(header);
      return nothing;
    }
    const length = contentLength(header.toString("latin1", 0, end), this.#limits.frameBytes);
    if (typeof length === "string") return this.#lose(length);
    this.#wanted = length;
    const rest = header.subarray(end + 4);
    // An empty body is complete without another chunk.
    return length === 0 ? this.#readBody(rest, 0) : rest;
  }

  #readBody(chunk: Buffer, wanted: number): Buffer {
    const missing = wanted - this.#size;
    if (chunk.length < missing) {
      this.#pieces.push(chunk);
      this.#size += chunk.length;
      if (this.#pieces.length > maxPieces) this.#keep(this.#take(nothing));
      return nothing;
    }
    const body = this.#take(chunk.subarray(0, missing));
    this.#wanted = undefined;
    const parsed = parse(body);
    if (typeof parsed === "string") this.#sink.unreadable(parsed);
    else this.#sink.message(parsed.value);
    return chunk.subarray(missing);
  }

  #take(last: Buffer): Buffer {
    const whole = this.#pieces.length === 0 ? last : Buffer.concat([...this.#pieces, last]);
    this.#pieces = [];
    this.#size = 0;
    return whole;
  }

  #keep(piece: Buffer): void {
    this.#pieces = [piece];
    this.#size = piece.length;
  }

  #lose(problem: string): Buffer {
    this.clear();
    this.#sink.lost(problem);
    return nothing;
  }
}

const nothing: Buffer = Buffer.alloc(0);

/** Returns the value, or the problem as a text. */
function parse(body: Buffer): { readonly value: unknown } | string {
  if (!isUtf8(body)) return "A message is not UTF-8.";
  if (hasTooManyValues(body)) return `A message has more than ${maxJsonValues} values.`;
  try {
    const value: unknown = JSON.parse(body.toString("utf8"));
    return isNestedTooDeep(value) ? `A message is nested more than ${maxJsonDepth} levels deep.` : { value };
  } catch {
    // The parser's own error quotes the message, which may contain anything.
    return "A message is not valid JSON.";
  }
}

/** Returns the length that a header announces, or the problem as a text. */
function contentLength(header: string, maxBytes: number): number | string {
  let length: number | undefined;
  for (const line of header.split("\r\n")) {
    const [, name, value] = /^([\w-]+):[ \t]*(.*?)[ \t]*$/.exec(line) ?? [];
    if (name === undefined) return "A header line does not have the form name: value.";
    if (name.toLowerCase() !== "content-length") continue;
    if (length !== undefined || value === undefined || !/^\d{1,15}$/.test(value)) return "Content-Length is not a single integer.";
    length = Number(value);
  }
  if (length === undefined) return "A header has no Content-Length.";
  return length <= maxBytes ? length : `A message has ${length} bytes; the limit is ${maxBytes}.`;
}

/** The destination of frames. Writing never throws. */
export interface WireOutput {
  write(text: string): void;
  /** Written bytes that the reader has not taken yet. */
  readonly pendingBytes: number;
}

/** With more waiting bytes than this, transient events are left out. */
const crowdedBytes = 8 * 1024 * 1024;
/** With more waiting bytes than this, the reader is considered dead. */
const fullBytes = 64 * 1024 * 1024;

/**
 * Writes messages as frames. All messages of one turn of the event loop are written together at its end, so that pending
 * requests to models and servers go first.
 */
export class FrameWriter {
  readonly #output: WireOutput;
  readonly #onFull: () => void;
  #frames: string[] = [];
  #bytes = 0;
  #isClosed = false;

  /** `onFull` is called when the reader no longer takes anything. Nothing is written after that. */
  constructor(output: WireOutput, onFull: () => void) {
    this.#output = output;
    this.#onFull = onFull;
  }

  /** Whether the reader is so slow that transient events should be left out. */
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
