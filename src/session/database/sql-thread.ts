import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { errorMessage, HostError } from "../../base/errors.ts";
import { packageRoot } from "../../base/package-root.ts";
import type { SqlOutcome, SqlTodos } from "./sql-database.ts";

export type SqlRequest =
  | { readonly kind: "open"; readonly bytes: Uint8Array | undefined }
  | { readonly kind: "run"; readonly sql: string }
  | { readonly kind: "todos" };

export type SqlReply =
  | { readonly kind: "opened" }
  | { readonly kind: "ran"; readonly outcome: SqlOutcome; readonly bytes?: Uint8Array }
  | { readonly kind: "todos"; readonly todos: SqlTodos }
  | { readonly kind: "failed"; readonly message: string };

// The built program: a thread of Node.js 20 cannot run TypeScript.
const program: string = join(packageRoot, "dist/session/database/sql-worker.js");
const maxHeapMegabytes = 512;
/** How long a statement has to notice that it is stopped. One that is busy in a single function does not. */
const stopMs = 2_000;

/** The thread that has a database: a statement that takes long keeps only its session waiting. */
export class SqlThread {
  readonly #worker: Worker;
  readonly #stop = new Int32Array(new SharedArrayBuffer(4));
  #settle: ((reply: SqlReply) => void) | undefined;
  #ended: string | undefined;

  constructor() {
    this.#worker = new Worker(program, {
      workerData: { stop: this.#stop.buffer },
      execArgv: [],
      env: {},
      resourceLimits: { maxOldGenerationSizeMb: maxHeapMegabytes },
    });
    this.#worker.on("message", (reply: SqlReply) => this.#settle?.(reply));
    this.#worker.on("error", (error) => this.#end(`its thread failed: ${errorMessage(error)}`));
    this.#worker.on("exit", () => this.#end("its thread has ended"));
    this.#worker.unref();
  }

  get hasEnded(): boolean {
    return this.#ended !== undefined;
  }

  /** One request at a time. @throws HostError `SESSION_DATABASE`; the signal's reason, and the thread may have ended then. */
  async ask<K extends Exclude<SqlReply["kind"], "failed">>(
    request: SqlRequest,
    kind: K,
    signal?: AbortSignal,
  ): Promise<SqlReply & { readonly kind: K }> {
    signal?.throwIfAborted();
    if (this.#ended !== undefined) throw failed(this.#ended);
    Atomics.store(this.#stop, 0, 0);
    let timer: NodeJS.Timeout | undefined;
    const stop = (): void => {
      Atomics.store(this.#stop, 0, 1);
      timer = setTimeout(() => void this.close(), stopMs);
    };
    signal?.addEventListener("abort", stop, { once: true });
    this.#worker.ref();
    try {
      const reply = await new Promise<SqlReply>((resolve) => {
        this.#settle = resolve;
        this.#worker.postMessage(request);
      });
      if (reply.kind === "failed") signal?.throwIfAborted();
      if (reply.kind === kind) return reply as SqlReply & { readonly kind: K };
      throw failed(reply.kind === "failed" ? reply.message : `the thread answered ${reply.kind}`);
    } finally {
      this.#settle = undefined;
      clearTimeout(timer);
      signal?.removeEventListener("abort", stop);
      this.#worker.unref();
    }
  }

  async close(): Promise<void> {
    await this.#worker.terminate();
  }

  #end(reason: string): void {
    this.#ended ??= reason;
    this.#settle?.({ kind: "failed", message: this.#ended });
  }
}

export function failed(why: string, cause?: unknown): HostError {
  return new HostError("SESSION_DATABASE", `The database of the session cannot be used: ${why}.`, { cause });
}
