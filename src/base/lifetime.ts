import { toError } from "./errors.ts";

/**
 * The time during which an owner may hold what it opens. Opening takes time, and the owner can close meanwhile: what
 * arrives after the end is closed at once and never handed out, so nothing outlives its owner.
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

  /** `over` makes the error for those who open something after the end. */
  constructor(over: () => Error) {
    this.#over = over;
  }

  get isOver(): boolean {
    return this.#controller.signal.aborted;
  }

  /** Fires at the end, with the error of `over` as its reason: what is being opened may stop early. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** @throws what `over` makes, after the end. */
  assertOpen(): void {
    if (this.isOver) throw this.#over();
  }

  /**
   * Opens something for the owner. After the end nothing is opened; what arrives after the end is closed.
   * @throws what `over` makes, when the owner closed before the thing arrived (with the failure of `close`, if there was
   * one, as its cause); what `open` throws.
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

  /** Ends it, once. Settles when nothing is being opened any more and what arrived late is closed. Never rejects; do not wait for it inside `open`. */
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
