import { configure } from "safe-stable-stringify";
import type { Diagnostic } from "../../base/diagnostic.ts";
import { HostError } from "../../base/errors.ts";

/** One record of a log: plain JSON. */
export type LogRecord = Readonly<Record<string, unknown>>;

export interface LogContents {
  /** Oldest first. */
  readonly records: readonly LogRecord[];
  /** What could not be read, with its line. The records around it are there all the same. */
  readonly diagnostics: readonly Diagnostic[];
}

/**
 * Records in the order they were added: none is ever changed or taken away. A log has one writer; whoever opens it sees
 * to that.
 */
export interface AppendLog {
  /**
   * Adds a record, as it is now: later changes to the object do not matter. It is read at once and kept soon;
   * `flush` tells when.
   * @throws HostError `LOG_CLOSED`, `RECORD_TOO_LARGE`, `RECORD_INVALID` for what has no JSON form. Nothing is added then.
   */
  append(record: object): void;
  /** Everything that was added, also what is not kept yet. */
  read(): Promise<LogContents>;
  /**
   * Settles when everything added so far is kept, so that it outlives this process.
   * @throws HostError `LOG_NOT_WRITTEN` when it cannot be now; it is kept in memory and tried again.
   */
  flush(): Promise<void>;
  /** Keeps what is left and ends. @throws HostError `LOG_NOT_WRITTEN` when that does not work within some seconds. */
  close(): Promise<void>;
}

/** The longest line of a log, in bytes, unless told otherwise. */
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

// For what JSON itself refuses: cycles are cut, big integers become numbers' texts.
const tolerant = configure({ bigint: true, circularValue: "[circular]", deterministic: false });

function toJson(record: object): string | undefined {
  try {
    return JSON.stringify(record);
  } catch {
    // Rather a record with a gap than none.
    return toTolerantJson(record);
  }
}

function toTolerantJson(record: object): string | undefined {
  try {
    return tolerant(record);
  } catch (cause) {
    throw new HostError("RECORD_INVALID", "A log record could not be converted to JSON.", { cause });
  }
}
