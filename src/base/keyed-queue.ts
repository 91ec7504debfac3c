import { HostError, toError } from "./errors.ts";

interface Lane {
  running: AbortController;
  waiting: (() => Promise<void>) | undefined;
}

/**
 * Runs one job at a time per key; the latest wins. A new job aborts the signal of the running one and replaces the waiting one,
 * so that a burst of saves costs two runs instead of one per save. Jobs report their own failures; unexpected errors go to
 * `onError`.
 */
export class KeyedQueue {
  readonly #lanes = new Map<string, Lane>();
  readonly #onError: (error: Error, key: string) => void;
  #idle: PromiseWithResolvers | undefined;
  #closed = false;

  constructor(onError: (error: Error, key: string) => void) {
    this.#onError = onError;
  }

  add(key: string, job: (signal: AbortSignal) => Promise<void>): void {
    if (this.#closed) throw new HostError("QUEUE_CLOSED", "This queue is closed and accepts no more work.");
    const lane = this.#lanes.get(key);
    if (lane === undefined) {
      const fresh: Lane = { running: new AbortController(), waiting: undefined };
      this.#lanes.set(key, fresh);
      void this.#drain(key, fresh, job);
      return;
    }
    lane.waiting = () => this.#run(key, lane, job);
    lane.running.abort();
  }

  /** Settles when every lane is empty. */
  idle(): Promise<void> {
    if (this.#lanes.size === 0) return Promise.resolve();
    this.#idle ??= withResolvers();
    return this.#idle.promise;
  }

  /** Refuses new jobs, drops the waiting ones, aborts the running ones and waits for their end. */
  async close(): Promise<void> {
    this.#closed = true;
    for (const lane of this.#lanes.values()) {
      lane.waiting = undefined;
      lane.running.abort();
    }
    await this.idle();
  }

  async #drain(key: string, lane: Lane, first: (signal: AbortSignal) => Promise<void>): Promise<void> {
    await this.#run(key, lane, first);
    for (let next = lane.waiting; next !== undefined; next = lane.waiting) {
      lane.waiting = undefined;
      lane.running = new AbortController();
      await next();
    }
    this.#lanes.delete(key);
    if (this.#lanes.size === 0) {
      this.#idle?.resolve();
      this.#idle = undefined;
    }
  }

  async #run(key: string, lane: Lane, job: (signal: AbortSignal) => Promise<void>): Promise<void> {
    try {
      await job(lane.running.signal);
    } catch (error) {
      this.#onError(toError(error), key);
    }
  }
}

interface PromiseWithResolvers {
  readonly promise: Promise<void>;
  readonly resolve: () => void;
}

// Promise.withResolvers is not in Node 20.
function withResolvers(): PromiseWithResolvers {
  let resolve: () => void = () => {};
  const promise = new Promise<void>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}
