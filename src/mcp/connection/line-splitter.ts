import { JsonValueCount } from "../../base/json-limits.ts";

const lineBreak = 0x0a;
const carriageReturn = 0x0d;
// The id of a message stands at its beginning or at its end, whoever wrote it.
const edge = 512;

/** The two ends of a line that is not read: it is too long, holds too many values, or is nested too deeply. */
export interface LongLine {
  readonly why: "bytes" | "values" | "depth";
  readonly head: string;
  readonly tail: string;
}

/** Hears of a line, and of how many values it holds, as far as that was counted: a line of one chunk has none. */
type LineListener = (line: string, values: number) => void;

/** Cuts a stream of bytes into lines of UTF-8. A line over the limits is not kept: only its ends are told. */
export class LineSplitter {
  readonly #limit: number;
  readonly #onLine: LineListener;
  readonly #onLong: (line: LongLine) => void;
  #chunks: Buffer[] = [];
  #length = 0;
  #head: string | undefined;
  #why: LongLine["why"] = "bytes";
  /** Of the line that is coming in, in more than one chunk. */
  #values = new JsonValueCount();

  constructor(limit: number, onLine: LineListener, onLong: (line: LongLine) => void) {
    this.#limit = limit;
    this.#onLine = onLine;
    this.#onLong = onLong;
  }

  push(chunk: Buffer): void {
    let start = 0;
    for (let at = chunk.indexOf(lineBreak); at !== -1; at = chunk.indexOf(lineBreak, start)) {
      this.#endLine(chunk.subarray(start, at));
      start = at + 1;
    }
    if (start < chunk.length) this.#keep(chunk.subarray(start));
  }

  #keep(part: Buffer): void {
    this.#chunks.push(part);
    this.#length += part.length;
    // As it comes, so that nobody waits for the whole to be looked through.
    if (this.#head === undefined) this.#values.add(part);
    if (this.#length <= this.#limit && !this.#values.isTooMany) return;
    if (this.#head === undefined && this.#length <= this.#limit) this.#why = "values";
    const all = Buffer.concat(this.#chunks);
    this.#head ??= all.toString("utf8", 0, edge);
    // A copy: a slice would keep the megabytes alive that it was cut from.
    this.#chunks = [Buffer.from(all.subarray(-edge))];
    this.#length = this.#limit;
  }

  #endLine(rest: Buffer): void {
    // What most lines are: a piece of one chunk.
    if (this.#chunks.length === 0 && rest.length <= this.#limit) {
      this.#emit(rest, 0);
      return;
    }
    this.#keep(rest);
    const line = Buffer.concat(this.#chunks);
    const head = this.#head;
    const why = this.#why;
    const { count } = this.#values;
    this.#chunks = [];
    this.#length = 0;
    this.#head = undefined;
    this.#why = "bytes";
    this.#values = new JsonValueCount();
    if (head === undefined) this.#emit(line, count);
    else this.#onLong({ why, head, tail: line.toString("utf8") });
  }

  #emit(line: Buffer, values: number): void {
    const end = line.at(-1) === carriageReturn ? line.length - 1 : line.length;
    if (end > 0) this.#onLine(line.toString("utf8", 0, end), values);
  }
}
