import { appendFileSync, closeSync, fsyncSync, ftruncateSync, openSync, readSync, writeSync } from "node:fs";
import type { Diagnostic } from "../../base/diagnostic.ts";
import { errorMessage } from "../../base/errors.ts";
import { lineBreak, toRecord } from "./read-log.ts";

const chunkBytes = 64 * 1024;

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

/** The bytes are synced before the log is truncated: a crash in between duplicates them, and never loses them. */
function copyAside(file: number, aside: string, start: number, size: number): void {
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
