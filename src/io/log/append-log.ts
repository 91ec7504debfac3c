import { closeSync, fdatasync, fstatSync, openSync, writeSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";
import { configure } from "safe-stable-stringify";
import type { Diagnostic } from "../../base/diagnostic.ts";
import { errorMessage, HostError } from "../../base/errors.ts";
import { defaultMaxLineBytes, type LogContents, type LogRecord, lineBreak, readLogLines, repairLog } from "./read-log.ts";

/** Records in the order of `append`; no record is ever changed or removed. A log has one writer, which its opener must ensure. */
export interface AppendLog {
  /**
   * Adds a copy of the record. `read` returns it at once; it is stored soon after, and `flush` waits for that.
   * @throws HostError `LOG_CLOSED`, `RECORD_TOO_LARGE`, `RECORD_INVALID` for a value without a JSON form. Nothing is added in
   * these cases.
   */
  append(record: object): void;
  /** All records, including those that are not stored yet. */
  read(): Promise<LogContents>;
  /**
   * Settles when all records added so far are stored, so that they outlive this process.
   * @throws HostError `LOG_NOT_WRITTEN` when they cannot be written now; they stay in memory, and writing is retried.
   */
  flush(): Promise<void>;
  /** Stores all pending records and closes the log. @throws HostError `LOG_NOT_WRITTEN` when that takes longer than some seconds. */
  close(): Promise<void>;
}

/** A log that lives as long as this process. */
export function createMemoryLog(options: { readonly maxLineBytes?: number } = {}): AppendLog {
  const { maxLineBytes = defaultMaxLineBytes } = options;
  const lines: string[] = [];
  let closed = false;
  return {
    append(record) {
      if (closed) throw logClosed();
      lines.push(toLine(record, maxLineBytes));
    },
    read: async () => ({ records: lines.map((line) => JSON.parse(line) as LogRecord), diagnostics: [] }),
    flush: async () => {},
    close: async () => {
      closed = true;
    },
  };
}

/** One record as one line, with its line break. @throws HostError `RECORD_TOO_LARGE`, `RECORD_INVALID`. */
export function toLine(record: object, maxLineBytes: number): string {
  const text = toJson(record);
  if (!text?.startsWith("{")) throw new HostError("RECORD_INVALID", "A log record must be an object that can be represented in JSON.");
  // UTF-8 takes at most three bytes for a UTF-16 unit: most texts need no counting.
  if (text.length * 3 >= maxLineBytes && Buffer.byteLength(text) >= maxLineBytes)
    throw new HostError("RECORD_TOO_LARGE", `A log record is longer than the limit of ${maxLineBytes} bytes. Shorten it.`);
  return `${text}\n`;
}

export function logClosed(): HostError {
  return new HostError("LOG_CLOSED", "This log is closed and accepts no more records.");
}

// For values that JSON refuses: cycles are cut, and a bigint becomes text.
const tolerant = configure({ bigint: true, circularValue: "[circular]", deterministic: false });

function toJson(record: object): string | undefined {
  try {
    return JSON.stringify(record);
  } catch {
    // An incomplete record is better than none.
    try {
      return tolerant(record);
    } catch (cause) {
      throw new HostError("RECORD_INVALID", "A log record could not be converted to JSON.", { cause });
    }
  }
}

export interface FileLogOptions {
  /**
   * When the file is synced to disk. Written records outlive the process in any case; they outlive a power cut only after a
   * sync. `flush`: with every `flush`, and on close. Default: `close`.
   */
  readonly sync?: "never" | "close" | "flush";
  /** Longer records are refused, and longer lines are skipped when reading. Default: 32 MiB. */
  readonly maxLineBytes?: number;
  /** Limit of the records kept in memory while the file cannot be written. Further records are lost, with a diagnostic. Default: 64 MiB. */
  readonly maxPendingBytes?: number;
  /** How long `close` retries to write pending records, in milliseconds. Default: 5,000. */
  readonly closeTimeout?: number;
  /** Receives a diagnostic for a torn last line, for a failed write, and for the recovery from it. */
  readonly onDiagnostic?: (diagnostic: Diagnostic) => void;
}

/** When more bytes than this are pending, they are written without waiting for the end of the tick. */
const maxBurstBytes = 8 * 1024 * 1024;
const [firstRetryMs, lastRetryMs] = [50, 5_000];
const syncData = promisify(fdatasync);

/**
 * Opens a log in a file of JSON lines, which is created if it does not exist. An incomplete last line of a killed writer is
 * moved to `<path>.torn` first. Appended records are written once per tick; while that fails, for example on a full disk, they
 * stay in memory and are retried, at the latest when the process exits.
 * @throws the system's error, or HostError `LOG_UNUSABLE` when it is not a regular file.
 */
export function openFileLog(path: string, options: FileLogOptions = {}): AppendLog {
  const file = openSync(path, "a+", 0o600);
  try {
    const stats = fstatSync(file);
    if (!stats.isFile()) throw new HostError("LOG_UNUSABLE", `${path} is not a regular file, so no log can be written there.`);
    const repaired = repairLog(file, path, stats.size, options.maxLineBytes ?? defaultMaxLineBytes);
    if (repaired !== undefined) options.onDiagnostic?.(repaired);
    return new FileLog(file, path, options);
  } catch (error) {
    closeSync(file);
    throw error;
  }
}

class FileLog implements AppendLog {
  readonly #path: string;
  readonly #options: FileLogOptions;
  readonly #maxLineBytes: number;
  readonly #pending = new PendingLines();
  /** Undefined after close: the system may have reused the descriptor for another file by then. */
  #file: number | undefined;
  #isScheduled = false;
  #failure: unknown;
  #retryMs = firstRetryMs;
  #retry: NodeJS.Timeout | undefined;
  #dropped = 0;
  #closed: Promise<void> | undefined;

  constructor(file: number, path: string, options: FileLogOptions) {
    this.#file = file;
    this.#path = path;
    this.#options = options;
    this.#maxLineBytes = options.maxLineBytes ?? defaultMaxLineBytes;
    writeAtExit(this);
  }

  append(record: object): void {
    if (this.#closed !== undefined) throw logClosed();
    const line = toLine(record, this.#maxLineBytes);
    if (this.#failure !== undefined) {
      const { maxPendingBytes = 64 * 1024 * 1024 } = this.#options;
      if (this.#pending.bytes + line.length <= maxPendingBytes) this.#pending.add(line);
      else if (this.#dropped++ === 0)
        this.#report(
          "error",
          "LOG_RECORDS_LOST",
          `This log cannot be written, and ${maxPendingBytes} bytes are already waiting: further records are lost.`,
        );
      return;
    }
    if (this.#pending.bytes > maxBurstBytes) this.write();
    this.#pending.add(line);
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      if (this.#failure === undefined) this.write();
    });
  }

  async read(): Promise<LogContents> {
    this.write();
    const pending = this.#pending.records();
    // Read only to this size: records that are pending now may be written while this reads.
    const maxBytes = this.#file === undefined ? Number.POSITIVE_INFINITY : fstatSync(this.#file).size;
    const { records, diagnostics } = await readLogLines(this.#path, { maxLineBytes: this.#maxLineBytes, maxBytes });
    return { records: [...records, ...pending], diagnostics };
  }

  async flush(): Promise<void> {
    if (!this.write()) throw this.#notWritten();
    if (this.#options.sync === "flush") await this.#sync();
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  /** Writes all pending records synchronously. Returns false when that failed; it is retried later. */
  write(): boolean {
    const file = this.#file;
    if (this.#pending.isEmpty || file === undefined) return this.#pending.isEmpty;
    try {
      this.#pending.writeTo((bytes) => writeSync(file, bytes));
    } catch (error) {
      this.#failed(error);
      return false;
    }
    this.#recovered();
    return true;
  }

  async #sync(): Promise<void> {
    if (this.#file === undefined) return;
    try {
      await syncData(this.#file);
    } catch (cause) {
      throw new HostError("LOG_NOT_WRITTEN", `${this.#path} could not be flushed to disk (${errorMessage(cause)}).`, { cause });
    }
  }

  #failed(error: unknown): void {
    if (this.#failure === undefined) {
      const kept = "New records are kept in memory and written later. Free disk space, or fix the folder's permissions.";
      this.#report("error", "LOG_NOT_WRITTEN", `This log cannot be written (${errorMessage(error)}). ${kept}`);
    }
    this.#failure = error;
    if (this.#retry !== undefined || this.#closed !== undefined) return;
    this.#retry = setTimeout(() => {
      this.#retry = undefined;
      this.#retryMs = Math.min(this.#retryMs * 2, lastRetryMs);
      this.write();
    }, this.#retryMs).unref();
  }

  #recovered(): void {
    if (this.#failure === undefined) return;
    this.#failure = undefined;
    this.#retryMs = firstRetryMs;
    clearTimeout(this.#retry);
    this.#retry = undefined;
    const lost =
      this.#dropped === 0 ? "No records were lost." : `${this.#dropped} records exceeded the memory limit in the meantime and were lost.`;
    this.#dropped = 0;
    this.#report("info", "LOG_WRITTEN_AGAIN", `This log is writable again. ${lost}`);
  }

  async #close(): Promise<void> {
    const { closeTimeout = 5_000, sync } = this.#options;
    clearTimeout(this.#retry);
    const until = performance.now() + closeTimeout;
    while (!this.write() && performance.now() < until) await delay(firstRetryMs);
    try {
      if (!this.#pending.isEmpty) throw this.#notWritten();
      if (sync !== "never") await this.#sync();
    } finally {
      logsToWriteAtExit.delete(this);
      if (this.#file !== undefined) closeSync(this.#file);
      this.#file = undefined;
    }
  }

  #notWritten(): HostError {
    const message = `${this.#path} cannot be written (${errorMessage(this.#failure)}): ${this.#pending.count} records wait in memory.`;
    return new HostError("LOG_NOT_WRITTEN", message, { cause: this.#failure });
  }

  #report(severity: Diagnostic["severity"], code: string, message: string): void {
    this.#options.onDiagnostic?.({ severity, code, message, file: this.#path });
  }
}

const logsToWriteAtExit = new Set<FileLog>();
let isWatchingExit = false;

function writeAtExit(log: FileLog): void {
  logsToWriteAtExit.add(log);
  if (isWatchingExit) return;
  isWatchingExit = true;
  process.once("exit", () => {
    for (const open of logsToWriteAtExit) open.write();
  });
}

/** Lines that are to be written to a file. It counts written bytes, so that a write that failed halfway resumes at the right byte. */
class PendingLines {
  #waiting: string[] = [];
  #waitingBytes = 0;
  /** The lines being written, and the number of bytes written so far. */
  #batch: Buffer = Buffer.alloc(0);
  #written = 0;
  #batchCount = 0;

  get isEmpty(): boolean {
    return this.#waiting.length === 0 && this.#written === this.#batch.length;
  }

  get bytes(): number {
    return this.#batch.length - this.#written + this.#waitingBytes;
  }

  /** The number of incompletely written lines; a batch whose write has begun counts as one. */
  get count(): number {
    return this.#waiting.length + this.#batchCount;
  }

  add(line: string): void {
    this.#waiting.push(line);
    this.#waitingBytes += Buffer.byteLength(line);
  }

  /** Writes until no line is pending. `write` returns how many bytes it wrote; its errors go to the caller. */
  writeTo(write: (bytes: Buffer) => number): void {
    while (!this.isEmpty) {
      if (this.#written === this.#batch.length) {
        this.#batch = Buffer.from(this.#waiting.join(""));
        this.#batchCount = this.#waiting.length;
        this.#waiting = [];
        this.#waitingBytes = 0;
      }
      while (this.#written < this.#batch.length) this.#written += write(this.#batch.subarray(this.#written));
      this.#batch = Buffer.alloc(0);
      this.#written = 0;
      this.#batchCount = 0;
    }
  }

  /** The records that are not completely in the file, oldest first. */
  records(): LogRecord[] {
    // A partly written line is incomplete in the file, so the whole line is returned from here.
    const from = this.#written === 0 ? 0 : this.#batch.lastIndexOf(lineBreak, this.#written - 1) + 1;
    const text = this.#batch.toString("utf8", from) + this.#waiting.join("");
    return text
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line) as LogRecord);
  }
}
