import { closeSync, fdatasync, fstatSync, openSync, writeSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";
import type { Diagnostic } from "../../base/diagnostic.ts";
import { errorMessage, HostError } from "../../base/errors.ts";
import { type AppendLog, defaultMaxLineBytes, type LogContents, type LogRecord, logClosed, toLine } from "./append-log.ts";
import { healLog, readLogLines } from "./read-log.ts";

export interface FileLogOptions {
  /**
   * When the system is told to bring what was written to the disk: it outlives the process without, and a power cut only
   * with it. `flush`: with every `flush`, and when it is closed. Default: `close`.
   */
  readonly sync?: "never" | "close" | "flush";
  /** Longer records are refused, and longer lines passed over. Default: 32 MiB. */
  readonly maxLineBytes?: number;
  /** How much is kept in memory while the file cannot be written. What comes beyond is lost, with a diagnostic. Default: 64 MiB. */
  readonly maxPendingBytes?: number;
  /** How long `close` tries to write what is left, in milliseconds. Default: 5,000. */
  readonly closeTimeout?: number;
  /** Hears of a torn last line, and of trouble with writing and its end. */
  readonly onDiagnostic?: (diagnostic: Diagnostic) => void;
}

/** A busy writer that has more than this waiting does not wait for the end of the tick. */
const maxBurstBytes = 8 * 1024 * 1024;
const [firstRetryMs, lastRetryMs] = [50, 5_000];
const syncData = promisify(fdatasync);

/**
 * Opens a log in a file of JSON lines, made if it does not exist. A last line that a killed writer left unfinished is
 * moved to `<path>.torn` first. What is appended is written once per tick; while that fails, on a full disk say, it stays
 * in memory and is tried again, and what is left when the process exits is written then.
 * @throws the system's error, or HostError `LOG_UNUSABLE` when it is not a regular file.
 */
export function openFileLog(path: string, options: FileLogOptions = {}): AppendLog {
  const file = openSync(path, "a+", 0o600);
  try {
    const stats = fstatSync(file);
    if (!stats.isFile()) throw new HostError("LOG_UNUSABLE", `${path} is not a regular file, so no log can be written there.`);
    const healed = healLog(file, path, stats.size, options.maxLineBytes ?? defaultMaxLineBytes);
    if (healed !== undefined) options.onDiagnostic?.(healed);
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
  /** Undefined once it is closed: the system may have given its number to another file by then. */
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
      this.#keepInMemory(line);
      return;
    }
    if (this.#pending.bytes > maxBurstBytes) this.write();
    this.#pending.add(line);
    this.#schedule();
  }

  async read(): Promise<LogContents> {
    this.write();
    const pending = this.#pending.records();
    // No further than this: what is written meanwhile may be what is pending now.
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

  /** Writes what is there, at once. False: it did not work; what is left is tried again later. */
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

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      if (this.#failure === undefined) this.write();
    });
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
      this.#say("error", "LOG_NOT_WRITTEN", `This log cannot be written (${errorMessage(error)}). ${kept}`);
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
    this.#say("info", "LOG_WRITTEN_AGAIN", `This log is writable again. ${lost}`);
  }

  #keepInMemory(line: string): void {
    const { maxPendingBytes = 64 * 1024 * 1024 } = this.#options;
    if (this.#pending.bytes + line.length <= maxPendingBytes) this.#pending.add(line);
    else if (this.#dropped++ === 0)
      this.#say(
        "error",
        "LOG_RECORDS_LOST",
        `This log cannot be written, and ${maxPendingBytes} bytes are already waiting: further records are lost.`,
      );
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

  #say(severity: Diagnostic["severity"], code: string, message: string): void {
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

const lineBreak = 0x0a;

/** Lines on their way into a file. What was written of them is known to the byte, so that a write that fails in between is gone on with. */
class PendingLines {
  #waiting: string[] = [];
  #waitingBytes = 0;
  /** The lines being written, and how much of them is. */
  #batch: Buffer = Buffer.alloc(0);
  #written = 0;
  #batchCount = 0;

  get isEmpty(): boolean {
    return this.#waiting.length === 0 && this.#written === this.#batch.length;
  }

  get bytes(): number {
    return this.#batch.length - this.#written + this.#waitingBytes;
  }

  /** How many lines are not completely written; those of a batch that was begun are counted as one. */
  get count(): number {
    return this.#waiting.length + this.#batchCount;
  }

  add(line: string): void {
    this.#waiting.push(line);
    this.#waitingBytes += Buffer.byteLength(line);
  }

  /** Writes until nothing is left. `write` says how many of the bytes it took; what it throws goes to the caller. */
  writeTo(write: (bytes: Buffer) => number): void {
    while (!this.isEmpty) {
      if (this.#written === this.#batch.length) this.#nextBatch();
      while (this.#written < this.#batch.length) this.#written += write(this.#batch.subarray(this.#written));
      this.#batch = Buffer.alloc(0);
      this.#written = 0;
      this.#batchCount = 0;
    }
  }

  /** The records that are not completely in the file, oldest first. */
  records(): LogRecord[] {
    // A line that was begun is not complete in the file: it is taken whole from here.
    const from = this.#written === 0 ? 0 : this.#batch.lastIndexOf(lineBreak, this.#written - 1) + 1;
    const text = this.#batch.toString("utf8", from) + this.#waiting.join("");
    return text
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line) as LogRecord);
  }

  #nextBatch(): void {
    this.#batch = Buffer.from(this.#waiting.join(""));
    this.#batchCount = this.#waiting.length;
    this.#waiting = [];
    this.#waitingBytes = 0;
  }
}
