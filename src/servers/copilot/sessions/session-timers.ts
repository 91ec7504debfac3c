import { toError } from "../../../base/errors.ts";
import type { CopilotServer } from "../server.ts";
import type { WireSession } from "./wire-session.ts";

const defaultOrphanMs = 30_000;
const longestLookMs = 30_000;

/** Ends sessions that nobody came back to, and, where that is wanted, those in which nothing happens. */
export class SessionTimers implements Disposable {
  readonly #server: CopilotServer;
  readonly #orphans = new Map<WireSession, NodeJS.Timeout>();
  readonly #looking: NodeJS.Timeout | undefined;

  constructor(server: CopilotServer) {
    this.#server = server;
    const { idleTimeout } = server.options;
    if (idleTimeout === undefined) return;
    this.#looking = setInterval(() => this.#endIdle(idleTimeout), Math.max(10, Math.min(idleTimeout / 2, longestLookMs))).unref();
  }

  /** Ends a session that has lost its last client, unless one comes in time. */
  await(session: WireSession): void {
    clearTimeout(this.#orphans.get(session));
    const end = (): void => {
      this.#orphans.delete(session);
      if (session.people.length === 0) this.#end(session);
    };
    this.#orphans.set(session, setTimeout(end, this.#server.options.orphanTimeout ?? defaultOrphanMs).unref());
  }

  [Symbol.dispose](): void {
    clearInterval(this.#looking);
    for (const timer of this.#orphans.values()) clearTimeout(timer);
    this.#orphans.clear();
  }

  #endIdle(idleTimeout: number): void {
    const now = Date.now();
    for (const session of this.#server.sessions.values()) {
      if (!session.isBusy && now - session.touchedAt > idleTimeout) this.#end(session);
    }
  }

  #end(session: WireSession): void {
    if (this.#server.sessions.get(session.id) !== session) return;
    this.#server.end(session).catch((error) => this.#server.log.error("A session could not be ended.", { error: toError(error) }));
  }
}
