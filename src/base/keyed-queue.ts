import { HostError, toError } from "./errors.ts";

interface Lane {
  running: AbortController;
  waiting: (() => Promise<void>) | undefined;
}

/**
 * One lane per key, one job at a time in it, the latest wins: a job that arrives while another runs aborts that
 * one's signal and takes the only waiting place, so a burst of saves costs two runs and not one per save.
 * Jobs report their own failures; whatever they throw all the same goes to `onError`.
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

  /** Takes no more jobs, drops the waiting ones, aborts the running ones and waits for them to end. */
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
