import { errorMessage, HostError } from "../../../base/errors.ts";
import { type AppendLog, defaultMaxLineBytes, type LogRecord, logClosed, toLine } from "../../../io/log/append-log.ts";
import { toRecord } from "../../../io/log/read-log.ts";
import type { ClientFiles } from "./client-files.ts";

/** The log of a session in a file at its client. What the client cannot take now is kept here, and tried again. */
export function createClientLog(files: ClientFiles): AppendLog {
  return new ClientLog(files);
}

class ClientLog implements AppendLog {
  readonly #files: ClientFiles;
  readonly #path: string;
  #waiting = "";
  #writing: Promise<void> | undefined;
  #hasFolder = false;
  #isClosed = false;

  constructor(files: ClientFiles) {
    this.#files = files;
    this.#path = files.path("events.jsonl");
  }

  append(record: object): void {
    if (this.#isClosed) throw logClosed();
    this.#waiting += toLine(record, defaultMaxLineBytes);
    // Whoever flushes hears of a failure.
    queueMicrotask(() => void this.flush().catch(() => {}));
  }

  async read(): Promise<{ readonly records: readonly LogRecord[]; readonly diagnostics: readonly [] }> {
    await this.#writing?.catch(() => {});
    const text = `${(await this.#files.read(this.#path)) ?? ""}${this.#waiting}`;
    const lines = text.split("\n").filter((line) => line !== "");
    const records = lines.map((line) => toRecord(Buffer.from(line)));
    return { records: records.filter((record) => record !== undefined), diagnostics: [] };
  }

  async flush(): Promise<void> {
    while (this.#writing !== undefined || this.#waiting !== "") {
      this.#writing ??= this.#write().finally(() => {
        this.#writing = undefined;
      });
      await this.#writing;
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.flush();
  }

  async #write(): Promise<void> {
    const text = this.#waiting;
    this.#waiting = "";
    try {
      if (!this.#hasFolder) await this.#files.makeFolder(this.#files.statePath);
      this.#hasFolder = true;
      await this.#files.append(this.#path, text);
    } catch (cause) {
      this.#waiting = text + this.#waiting;
      throw new HostError("LOG_NOT_WRITTEN", `The client does not keep the session's log: ${errorMessage(cause)}`, { cause });
    }
  }
}
