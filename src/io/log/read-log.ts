import { isUtf8 } from "node:buffer";
import { appendFileSync, closeSync, fsyncSync, ftruncateSync, openSync, readSync, writeSync } from "node:fs";
import { open } from "node:fs/promises";
import type { Diagnostic } from "../../base/diagnostic.ts";
import { errorMessage } from "../../base/errors.ts";

/** One record of a log: plain JSON. */
export type LogRecord = Readonly<Record<string, unknown>>;

/** What a log contains. */
export interface LogContents {
  /** Oldest first. */
  readonly records: readonly LogRecord[];
  /** What could not be read, with line numbers. All other records are in `records`. */
  readonly diagnostics: readonly Diagnostic[];
}

/** Default of the longest line of a log, in bytes. */
export const defaultMaxLineBytes: number = 32 * 1024 * 1024;

const chunkBytes = 256 * 1024;
const maxDiagnostics = 20;
/** The byte that ends a line. */
export const lineBreak = 0x0a;

interface ReadLinesOptions {
  readonly maxLineBytes?: number;
  /** The file is read up to this size. */
  readonly maxBytes?: number;
}

/**
 * Reads the complete lines of a log file, which another process may be writing to. A line that is damaged or longer than
 * `maxLineBytes` is reported and skipped. The text after the last line break is ignored, because it may be incomplete.
 */
export async function readLogLines(path: string, options: ReadLinesOptions = {}): Promise<LogContents> {
  const { maxLineBytes = defaultMaxLineBytes, maxBytes = Number.POSITIVE_INFINITY } = options;
  const reader = new LineReader(path, maxLineBytes);
  const file = await open(path, "r");
  try {
    for (let left = maxBytes; left > 0; ) {
      // A new buffer for each chunk, because the reader keeps slices of it.
      const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(chunkBytes), 0, Math.min(chunkBytes, left), null);
      if (bytesRead === 0) break;
      reader.add(buffer.subarray(0, bytesRead));
      left -= bytesRead;
    }
  } finally {
    await file.close();
  }
  return reader.contents();
}

/** The record in a line; undefined when the line is not a record. */
export function toRecord(line: Buffer): LogRecord | undefined {
  if (!isUtf8(line)) return undefined;
  try {
    const value: unknown = JSON.parse(line.toString("utf8"));
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as LogRecord) : undefined;
  } catch {
    // Not JSON: the caller says which line.
    return undefined;
  }
}

class LineReader {
  readonly #path: string;
  readonly #maxLineBytes: number;
  readonly #records: LogRecord[] = [];
  readonly #diagnostics: Diagnostic[] = [];
  #parts: Buffer[] = [];
  /** Bytes of the line so far. Bytes over the limit are counted but not kept. */
  #length = 0;
  #line = 1;
  #damaged = 0;

  constructor(path: string, maxLineBytes: number) {
    this.#path = path;
    this.#maxLineBytes = maxLineBytes;
  }

  add(chunk: Buffer): void {
    let from = 0;
    for (let end = chunk.indexOf(lineBreak); end !== -1; end = chunk.indexOf(lineBreak, from)) {
      this.#keep(chunk.subarray(from, end));
      if (this.#length > this.#maxLineBytes)
        this.#report("LOG_LINE_TOO_LONG", `has ${this.#length} bytes, which is more than the limit for a line`);
      else {
        const line = this.#parts.length === 1 ? this.#parts[0]! : Buffer.concat(this.#parts);
        const record = toRecord(line);
        if (record !== undefined) this.#records.push(record);
        else if (!isBlank(line))
          this.#report("LOG_LINE_DAMAGED", "is not a valid record: it was truncated, or another program wrote to the file");
      }
      this.#parts = [];
      this.#length = 0;
      this.#line++;
      from = end + 1;
    }
    this.#keep(chunk.subarray(from));
  }

  contents(): LogContents {
    const unnamed = this.#damaged - maxDiagnostics;
    if (unnamed > 0) this.#diagnostics.push(damage(this.#path, "LOG_LINE_DAMAGED", `${unnamed} more lines of this log are not valid.`));
    return { records: this.#records, diagnostics: this.#diagnostics };
  }

  #keep(part: Buffer): void {
    this.#length += part.length;
    if (this.#length <= this.#maxLineBytes) this.#parts.push(part);
    else this.#parts = [];
  }

  #report(code: string, what: string): void {
    if (this.#damaged++ >= maxDiagnostics) return;
    this.#diagnostics.push(damage(this.#path, code, `Line ${this.#line} of this log ${what}. It is ignored.`, this.#line));
  }
}

function isBlank(line: Buffer): boolean {
  return line.every((byte) => byte === 0x20 || byte === 0x0d || byte === 0x09);
}

function damage(file: string, code: string, message: string, line?: number): Diagnostic {
  const base = { severity: "warning" as const, code, message, file };
  return line === undefined ? base : { ...base, range: { start: { line, column: 1 } } };
}

const tailBytes = 64 * 1024;

/**
 * Makes sure that a log, open for appending, ends with a line break. The incomplete last line of a killed writer is moved to
 * `<path>.torn`; a last line that only lacks its line break is a valid record.
 * @throws the system's error when the line can neither be moved nor terminated.
 */
export function repairLog(file: number, path: string, size: number, maxLineBytes: number): Diagnostic | undefined {
  const start = startOfLastLine(file, size);
  if (start === size) return undefined;
  if (isWhole(file, start, size, maxLineBytes)) {
    writeSync(file, "\n");
    return undefined;
  }
  const cut = `The last line of this log was truncated after ${size - start} bytes, probably because its writer was killed.`;
  try {
    copyAside(file, `${path}.torn`, start, size);
  } catch (error) {
    // On a full disk, for example: the line is terminated instead, and reported as damaged when the log is read.
    writeSync(file, "\n");
    return torn(path, `${cut} It could not be moved to ${path}.torn (${errorMessage(error)}) and is ignored.`);
  }
  ftruncateSync(file, start);
  fsyncSync(file);
  return torn(path, `${cut} The fragment was moved to ${path}.torn.`);
}

function startOfLastLine(file: number, size: number): number {
  const chunk = Buffer.allocUnsafe(Math.min(tailBytes, size));
  for (let end = size; end > 0; ) {
    const length = readAt(file, chunk, Math.max(0, end - chunk.length), Math.min(chunk.length, end));
    const found = chunk.lastIndexOf(lineBreak, length - 1);
    if (length > 0 && found !== -1) return end - length + found + 1;
    end -= length;
  }
  return 0;
}

function isWhole(file: number, start: number, size: number, maxLineBytes: number): boolean {
  if (size - start > maxLineBytes) return false;
  const line = Buffer.allocUnsafe(size - start);
  return readAt(file, line, start, line.length) === line.length && toRecord(line) !== undefined;
}

/** The bytes are synced before the log is truncated: a crash in between duplicates them, and never loses them. */
function copyAside(file: number, aside: string, start: number, size: number): void {
  const chunk = Buffer.allocUnsafe(Math.min(tailBytes, size - start));
  const target = openSync(aside, "a", 0o600);
  try {
    for (let at = start; at < size; ) {
      const length = readAt(file, chunk, at, Math.min(chunk.length, size - at));
      appendFileSync(target, chunk.subarray(0, length));
      at += length;
    }
    appendFileSync(target, "\n");
    fsyncSync(target);
  } finally {
    closeSync(target);
  }
}

function readAt(file: number, into: Buffer, position: number, length: number): number {
  let filled = 0;
  while (filled < length) {
    const read = readSync(file, into, filled, length - filled, position + filled);
    if (read === 0) throw new Error("The log became shorter while it was read.");
    filled += read;
  }
  return filled;
}

function torn(file: string, message: string): Diagnostic {
  return { severity: "warning", code: "LOG_TORN_LINE", message, file };
}
