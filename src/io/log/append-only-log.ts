import { configure } from "safe-stable-stringify";
import type { Diagnostic } from "../../base/diagnostic.ts";
import { HostError } from "../../base/errors.ts";

/** One record of a log: plain JSON. */
export type LogRecord = Readonly<Record<string, unknown>>;

export interface LogContents {
  /** Oldest first. */
  readonly records: readonly LogRecord[];
  /** What could not be read, with line numbers. All other records are in `records`. */
  readonly diagnostics: readonly Diagnostic[];
}

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

/** Default of the longest line of a log, in bytes. */
export const defaultMaxLineBytes: number = 32 * 1024 * 1024;

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
