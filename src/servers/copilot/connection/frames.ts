import { isUtf8 } from "node:buffer";
import { hasTooManyValues, isNestedTooDeep, maxJsonDepth, maxJsonValues } from "../../../base/json-limits.ts";

/** A message may not be longer: whoever announces more is not waited for. @internal Exported for tests. */
export const maxFrameBytes: number = 64 * 1024 * 1024;

/** What a client may send before it is admitted: a token, and a few tries. */
export const introduction: FrameLimits = { frameBytes: 8 * 1024, totalBytes: 64 * 1024 };

const unlimited: FrameLimits = { frameBytes: maxFrameBytes, totalBytes: Number.POSITIVE_INFINITY };
const maxHeaderBytes = 8 * 1024;
/** Bodies that come in many small pieces are put together now and then, since each piece costs more than it holds. */
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
  /** A frame whose body is no JSON. The next one is read as if nothing had been. */
  unreadable(problem: string): void;
  /** Where the next frame begins cannot be known any more. Nothing is read after this. */
  lost(problem: string): void;
}

/**
 * Takes a stream apart into frames as the Language Server Protocol has them: `Content-Length: N`, an empty line, N bytes
 * of UTF-8. Holds no more than one frame.
 */
export class FrameReader {
  readonly #sink: FrameSink;
  #pieces: Buffer[] = [];
  #size = 0;
  /** Bytes of the body that is being read; undefined: a header is. */
  #wanted: number | undefined;
  #isLost = false;
  #limits = unlimited;
  #total = 0;

  constructor(sink: FrameSink) {
    this.#sink = sink;
  }

  /** Undefined: those of every client. */
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

  /** Lets go of what has come of a frame. */
  clear(): void {
    this.#isLost = true;
    this.#pieces = [];
  }

  /** Gives what follows the header, or nothing while the header has not ended. */
  #readHeader(chunk: Buffer): Buffer {
    const before = this.#size;
    const header = this.#take(chunk);
    // The end of the header may lie across two pieces.
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
    // Nothing follows it that a body could be read from, so it is read now.
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
    this.#read(body);
    return chunk.subarray(missing);
  }

  #read(body: Buffer): void {
    const parsed = parse(body);
    if (typeof parsed === "string") this.#sink.unreadable(parsed);
    else this.#sink.message(parsed.value);
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

/** The value, or what is wrong. */
function parse(body: Buffer): { readonly value: unknown } | string {
  if (!isUtf8(body)) return "A message is not UTF-8.";
  if (hasTooManyValues(body)) return `A message has more than ${maxJsonValues} values.`;
  try {
    const value: unknown = JSON.parse(body.toString("utf8"));
    return isNestedTooDeep(value) ? `A message is nested more than ${maxJsonDepth} levels deep.` : { value };
  } catch {
    // What the parser says quotes the message, which may hold anything.
    return "A message is not valid JSON.";
  }
}

/** The length that a header announces, or what is wrong with it. */
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
