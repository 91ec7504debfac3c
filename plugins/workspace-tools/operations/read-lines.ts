import type { FileHandle } from "node:fs/promises";
import { StringDecoder } from "node:string_decoder";
import { readHead, readWhole } from "./open-file.ts";
import { decodeText, encodingOf, probedBytes } from "./text-encoding.ts";

export interface LineRange {
  /** From 1. */
  readonly from: number;
  /** Inclusive; may be infinite. */
  readonly to: number;
}

export type LinesRead =
  | { readonly kind: "binary" }
  | {
      readonly kind: "lines";
      /** Without line breaks. After a final line break there is an empty last line. */
      readonly lines: readonly string[];
      /** The number of the first line that was omitted because of the character limit. */
      readonly cutAt: number | undefined;
      /** How many lines were read: all of them, unless the range or the limit ended before. */
      readonly seen: number;
    };

/** Reads a range of lines of a file of any size. Keeps only the returned lines in memory. */
export async function readLines(file: FileHandle, range: LineRange, maxChars: number): Promise<LinesRead> {
  const head = await readHead(file, probedBytes);
  const encoding = encodingOf(head);
  if (encoding === undefined) return { kind: "binary" };
  const collector = new LineCollector(range, maxChars);
  if (encoding === "utf-8") await feedFile(file, collector);
  else await feedWide(file, collector);
  return { kind: "lines", ...collector.result() };
}

const chunkBytes = 65_536;

async function feedFile(file: FileHandle, collector: LineCollector): Promise<void> {
  const decoder = new StringDecoder("utf8");
  const buffer = Buffer.allocUnsafe(chunkBytes);
  let isFirst = true;
  for (let at = 0; !collector.isFull; ) {
    const { bytesRead } = await file.read(buffer, 0, chunkBytes, at);
    const text = bytesRead === 0 ? decoder.end() : decoder.write(buffer.subarray(0, bytesRead));
    collector.add(isFirst && text.startsWith("\uFEFF") ? text.slice(1) : text);
    if (text !== "") isFirst = false;
    if (bytesRead === 0) break;
    at += bytesRead;
  }
  collector.end();
}

// Such files are rare and are read at once.
const maxWideBytes = 32 * 1024 * 1024;

async function feedWide(file: FileHandle, collector: LineCollector): Promise<void> {
  const bytes = await readWhole(file, (await file.stat()).size, maxWideBytes);
  if (bytes !== undefined) collector.add(decodeText(bytes)?.text ?? "");
  collector.end();
}

class LineCollector {
  isFull = false;
  readonly #range: LineRange;
  readonly #maxChars: number;
  readonly #lines: string[] = [];
  #chars = 0;
  #pending = "";
  #number = 1;
  #cutAt: number | undefined;

  constructor(range: LineRange, maxChars: number) {
    this.#range = range;
    this.#maxChars = maxChars;
  }

  add(text: string): void {
    let start = 0;
    while (!this.isFull) {
      const end = text.indexOf("\n", start);
      this.#take(text.slice(start, end === -1 ? undefined : end));
      if (end === -1 || this.isFull) return;
      this.#finishLine();
      start = end + 1;
    }
  }

  end(): void {
    if (!this.isFull) this.#finishLine();
  }

  result(): { lines: readonly string[]; cutAt: number | undefined; seen: number } {
    return { lines: this.#lines, cutAt: this.#cutAt, seen: this.#number - 1 };
  }

  #take(part: string): void {
    if (this.#number < this.#range.from || part === "") return;
    this.#pending += part;
    if (this.#chars + this.#pending.length <= this.#maxChars) return;
    // A single line that is too long is cut rather than omitted.
    if (this.#lines.length === 0) this.#lines.push(this.#pending.slice(0, this.#maxChars));
    this.#cutAt = this.#number;
    this.isFull = true;
  }

  #finishLine(): void {
    if (this.#number >= this.#range.from) {
      const line = this.#pending.endsWith("\r") ? this.#pending.slice(0, -1) : this.#pending;
      this.#lines.push(line);
      this.#chars += line.length + 1;
      this.#pending = "";
    }
    if (this.#number >= this.#range.to) this.isFull = true;
    this.#number++;
  }
}
