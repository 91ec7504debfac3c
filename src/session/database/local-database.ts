import { mkdir, readFile, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { errorMessage } from "../../base/errors.ts";
import { writeFileAtomic } from "../../io/atomic-write.ts";
import { noTodos, type SqlDatabase, type SqlOutcome, type SqlTodos } from "./sql-database.ts";
import { sqlLimits } from "./sql-limits.ts";
import { failed, SqlThread } from "./sql-thread.ts";

/** A thread that has nothing to do for so long ends; the next query starts another. */
const idleMs = 30_000;

/**
 * A database in a file, which a thread has in memory while it is used. After each query that writes, the file is replaced as a whole: it
 * is complete at any time, also when the process is killed.
 */
export class LocalDatabase implements SqlDatabase {
  readonly #file: string;
  #thread: SqlThread | undefined;
  #idle: NodeJS.Timeout | undefined;
  #last: Promise<unknown> = Promise.resolve();
  #isClosed = false;

  constructor(file: string) {
    this.#file = file;
  }

  run(sql: string, signal: AbortSignal): Promise<SqlOutcome> {
    return this.#alone(async () => {
      signal.throwIfAborted();
      const thread = await this.#open();
      try {
        const { outcome, bytes } = await thread.ask({ kind: "run", sql }, "ran", signal);
        // Stopped on its way, its changes are dropped with the thread.
        signal.throwIfAborted();
        if (bytes !== undefined) await this.#store(bytes);
        return outcome;
      } catch (error) {
        // What is in memory is not what is stored.
        await this.#end();
        throw error;
      }
    });
  }

  readTodos(): Promise<SqlTodos> {
    return this.#alone(async () => {
      if (this.#thread === undefined && (await sizeOf(this.#file)) === undefined) return noTodos;
      return (await (await this.#open()).ask({ kind: "todos" }, "todos")).todos;
    });
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#last;
    await this.#end();
  }

  async #open(): Promise<SqlThread> {
    if (this.#isClosed) throw failed("the session has ended");
    if (this.#thread?.hasEnded === false) return this.#thread;
    const bytes = await this.#read();
    const thread = new SqlThread();
    try {
      await thread.ask({ kind: "open", bytes }, "opened");
    } catch (error) {
      await thread.close();
      throw error;
    }
    this.#thread = thread;
    return thread;
  }

  /** Undefined: there is no database yet. */
  async #read(): Promise<Uint8Array | undefined> {
    const size = await sizeOf(this.#file);
    if (size === undefined) return undefined;
    if (size > sqlLimits.databaseBytes) throw failed(`${this.#file} has more than ${sqlLimits.databaseBytes} bytes`);
    try {
      return new Uint8Array(await readFile(this.#file));
    } catch (error) {
      throw failed(`it cannot be read (${errorMessage(error)})`, error);
    }
  }

  async #store(bytes: Uint8Array): Promise<void> {
    try {
      await mkdir(dirname(this.#file), { recursive: true, mode: 0o700 });
      await writeFileAtomic(this.#file, bytes, { mode: 0o600 });
    } catch (error) {
      throw failed(`it cannot be stored (${errorMessage(error)})`, error);
    }
  }

  async #end(): Promise<void> {
    clearTimeout(this.#idle);
    const thread = this.#thread;
    this.#thread = undefined;
    await thread?.close();
  }

  /** One after another: the thread has one database, and a file is read before it is written. */
  #alone<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#last.then(work).finally(() => this.#rest());
    this.#last = done.catch(() => {});
    return done;
  }

  #rest(): void {
    clearTimeout(this.#idle);
    if (this.#thread === undefined) return;
    this.#idle = setTimeout(() => void this.#alone(() => this.#end()), idleMs).unref();
  }
}

async function sizeOf(file: string): Promise<number | undefined> {
  try {
    return (await stat(file)).size;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}
