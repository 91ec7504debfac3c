import { toError } from "./errors.ts";

/**
 * The lifetime of an owner of resources. Opening takes time, and the owner may close before it completes: a resource that
 * arrives after the end is closed immediately and never returned, so that no resource outlives its owner.
 *
 * ```ts
 * readonly #life = new Lifetime(() => new HostError("SHELLS_CLOSED", "The shells are closed."));
 * const shell = await this.#life.open(() => startShell(), (late) => late.stop());
 * async close() { await this.#life.end(); … close what was handed out … }
 * ```
 */
export class Lifetime {
  readonly #controller = new AbortController();
  readonly #opening = new Set<Promise<unknown>>();
  readonly #over: () => Error;

  /** `over` creates the error for calls of `open` after the end. */
  constructor(over: () => Error) {
    this.#over = over;
  }

  get isOver(): boolean {
    return this.#controller.signal.aborted;
  }

  /** Aborted at the end, with the error of `over` as its reason, so that pending opens can stop early. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** @throws the error of `over`, after the end. */
  assertOpen(): void {
    if (this.isOver) throw this.#over();
  }

  /**
   * Opens a resource for the owner. After the end it opens nothing, and closes a resource that arrives late.
   * @throws the error of `over`, if the owner closed before the resource arrived (with the failure of `close`, if any, as its
   * cause); the errors of `open`.
   */
  async open<T>(open: (signal: AbortSignal) => T | PromiseLike<T>, close: (late: T) => unknown): Promise<T> {
    this.assertOpen();
    const opening = this.#receive(open, close);
    this.#opening.add(opening);
    try {
      return await opening;
    } finally {
      this.#opening.delete(opening);
    }
  }

  /**
   * Ends the lifetime, once. Settles when all pending opens have completed and late resources are closed. Never rejects; do not
   * await it inside `open`.
   */
  async end(): Promise<void> {
    if (!this.isOver) this.#controller.abort(this.#over());
    await Promise.allSettled([...this.#opening]);
  }

  async #receive<T>(open: (signal: AbortSignal) => T | PromiseLike<T>, close: (late: T) => unknown): Promise<T> {
    const opened = await open(this.signal);
    if (!this.isOver) return opened;
    const error = this.#over();
    try {
      await close(opened);
    } catch (cause) {
      error.cause = toError(cause);
    }
    throw error;
  }
}
