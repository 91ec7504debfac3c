import { appendFileSync, closeSync, fsyncSync, ftruncateSync, openSync, readSync, writeSync } from "node:fs";
import type { Diagnostic } from "../base/diagnostic.ts";
import { errorMessage } from "../base/errors.ts";
import { toRecord } from "./append-log-lines.ts";

const lineBreak = 0x0a;
const chunkBytes = 64 * 1024;

/**
 * Makes sure that a log, open for appending, ends with a line break. What a killed writer left of its last line is moved
 * to `<path>.torn`; a last line that only lacks its line break is a record like any other.
 * @throws the system's error when neither moving it nor ending its line is possible.
 */
export function healLog(file: number, path: string, size: number, maxLineBytes: number): Diagnostic | undefined {
  const start = startOfLastLine(file, size);
  if (start === size) return undefined;
  if (isWhole(file, start, size, maxLineBytes)) {
    writeSync(file, "\n");
    return undefined;
  }
  const cut = `The last line of this log was cut after ${size - start} bytes, most likely because its writer was killed.`;
  try {
    keepAside(file, `${path}.torn`, start, size);
  } catch (error) {
    // A full disk. Ended as a line, the rest is in nobody's way, and reported as damaged when the log is read.
    writeSync(file, "\n");
    return torn(path, `${cut} It could not be moved to ${path}.torn (${errorMessage(error)}) and is passed over.`);
  }
  ftruncateSync(file, start);
  fsyncSync(file);
  return torn(path, `${cut} What there was of it is kept in ${path}.torn.`);
}

function startOfLastLine(file: number, size: number): number {
  const chunk = Buffer.allocUnsafe(Math.min(chunkBytes, size));
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

/** The bytes are on the disk before they are cut off: a crash in between leaves them twice, and never loses them. */
function keepAside(file: number, aside: string, start: number, size: number): void {
  const chunk = Buffer.allocUnsafe(Math.min(chunkBytes, size - start));
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
