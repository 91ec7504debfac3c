import { AsyncLocalStorage } from "node:async_hooks";
import type { PendingRequest } from "./pending-request.ts";
import type { Asker } from "./server-requests.ts";

/** The requests of a connection that have no answer yet, and which of them a question of the server belongs to. */
export class InFlight {
  readonly #pending = new Set<PendingRequest>();
  readonly #current = new AsyncLocalStorage<PendingRequest>();

  get isEmpty(): boolean {
    return this.#pending.size === 0;
  }

  add(pending: PendingRequest): void {
    this.#pending.add(pending);
  }

  delete(pending: PendingRequest): void {
    this.#pending.delete(pending);
  }

  /** Runs what sends a request so that what comes on the stream of its answer belongs to it. */
  around<T>(pending: PendingRequest, run: () => T): T {
    return this.#current.run(pending, run);
  }

  hold(): Disposable {
    const holds = [...this.#pending].map((pending) => pending.hold());
    return { [Symbol.dispose]: () => holds.forEach((hold) => void hold[Symbol.dispose]()) };
  }

  /**
   * Where a question came on a call's own stream, it is that call's. On a stream that all share it is the latest call's,
   * as long as all calls are of one session: a person is never asked for what somebody else's session does.
   */
  asker(): Asker {
    const current = this.#current.getStore();
    if (current?.context !== undefined && this.#pending.has(current)) return askerOf(current);
    const calls = [...this.#pending].filter((pending) => pending.context !== undefined);
    const latest = calls.at(-1);
    if (latest === undefined) return { kind: "nobody" };
    const sessions = new Set(calls.map((pending) => pending.context?.invocation.sessionId));
    return sessions.size === 1 ? askerOf(latest) : { kind: "unclear" };
  }
}

/** A question that is known to be this request's. */
export function askerOf(pending: PendingRequest): Asker {
  const { context } = pending;
  return context === undefined ? { kind: "nobody" } : { kind: "call", context, hold: () => pending.hold() };
}
