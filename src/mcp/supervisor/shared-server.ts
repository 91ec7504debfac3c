import { HostError, toError } from "../../base/errors.ts";
import { endsWithin } from "../../base/wait.ts";
import type { McpServerSpec } from "../../formats/mcp/mcp-server-spec.ts";
import type { McpConnection } from "../connection/connection.ts";
import { LastingSubscriptions } from "./lasting-subscriptions.ts";
import { type ListCache, toCachedServer } from "./list-cache.ts";
import type { ServerLists } from "./server-lease.ts";
import { type LifecycleOwner, type LifecycleParts, type LiveConnection, ServerLifecycle } from "./server-lifecycle.ts";
import type { ServerState, SharedServerStatus } from "./server-state.ts";

export interface SharedServerParts extends LifecycleParts {
  readonly cache: ListCache | undefined;
  /** Milliseconds that an unused connection is kept. */
  readonly linger: number;
  /** Milliseconds that a request waits for a server that is restarting. */
  readonly callWait: number;
  changed(): void;
  /** It has no users any more. `ended` settles when nothing remains of it. */
  closed(ended: Promise<void>): void;
}

export interface SharedServerUser {
  readonly name: string;
  /** Milliseconds for connecting. */
  readonly timeout: number | undefined;
  changed(kind: "state" | "lists"): void;
}

/** Who makes a request, and how. */
export interface Want {
  readonly name: string;
  readonly signal: AbortSignal | undefined;
  /** Running it twice is harmless. */
  readonly isRepeatable: boolean;
}

const defaultTimeout = 60_000;

/** The one connection to a server that all its users share, for as long as it has any. */
export class SharedServer {
  readonly id: string;
  readonly #parts: SharedServerParts;
  readonly #life: ServerLifecycle;
  readonly #users = new Set<SharedServerUser>();
  readonly #waiters = new Set<() => void>();
  readonly #watches = new LastingSubscriptions();
  #lingering: Disposable | undefined;
  #announced: { state: ServerState; error: unknown; lists: ServerLists | undefined };
  #isClosed = false;

  constructor(parts: SharedServerParts) {
    this.id = parts.id;
    this.#parts = parts;
    this.#life = new ServerLifecycle(parts, this.#owner(), recall(parts));
    this.#announced = { state: this.state, error: undefined, lists: this.lists };
  }

  get state(): ServerState {
    return this.#life.state;
  }

  get lists(): ServerLists | undefined {
    return this.state === "stopped" ? undefined : this.#life.lists;
  }

  get spec(): McpServerSpec {
    return this.#parts.spec;
  }

  get name(): string {
    const [user] = this.#users;
    return user?.name ?? this.#parts.spec.name;
  }

  /** It accepts no more users. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  status(name: string): SharedServerStatus {
    return { name, ...this.#life.status(), users: this.#users.size };
  }

  retain(user: SharedServerUser): void {
    this.#users.add(user);
    this.#lingering?.[Symbol.dispose]();
    this.#lingering = undefined;
  }

  release(user: SharedServerUser): void {
    if (!this.#users.delete(user) || this.#users.size > 0 || this.#isClosed) return;
    const { clock, linger } = this.#parts;
    if (this.#life.isAtWork) this.#lingering = clock.after(linger, () => void this.close());
    else void this.close();
  }

  /** In the background, unless it was given up recently or stopped. */
  start(): void {
    if (!this.#isClosed) this.#life.start();
  }

  startNow(): void {
    if (!this.#isClosed) this.#life.startNow();
  }

  async restart(): Promise<void> {
    if (this.#isClosed) return;
    this.#life.restart();
    await this.decided();
  }

  stop(): Promise<void> {
    return this.#life.stop();
  }

  /** Ends it; it cannot be started again. */
  close(): Promise<void> {
    const isFirst = !this.#isClosed;
    this.#isClosed = true;
    this.#lingering?.[Symbol.dispose]();
    const ended = this.#life.stop();
    if (isFirst) this.#parts.closed(ended);
    return ended;
  }

  /** Settles after the first attempt, if one is to be made. */
  async decided(): Promise<void> {
    while (this.#life.isUndecided) await this.#nextChange();
  }

  /** Runs a request on the connection, which is opened if necessary; and once more on another if the first certainly did not run it. */
  async use<T>(want: Want, run: (connection: McpConnection) => Promise<T>): Promise<T> {
    const live = this.#life.live ?? (await this.#connected(want));
    try {
      return await this.#run(live, run);
    } catch (error) {
      if (!(await this.#mayRepeat(error, live, want))) throw error;
    }
    return await this.#run(await this.#connected(want), run);
  }

  /** Watches a resource on this connection and its successors. */
  async watch(name: string, uri: string, listener: () => void): Promise<AsyncDisposable> {
    const want: Want = { name, signal: undefined, isRepeatable: true };
    return await this.use(want, (connection) => this.#watches.add(uri, listener, connection));
  }

  /** Opens the connection or waits for it. Rejects with `MCP_UNAVAILABLE` and `MCP_CANCELLED`. */
  async #connected({ name, signal }: Want): Promise<LiveConnection> {
    const { clock, callWait } = this.#parts;
    const until = clock.now() + callWait + (this.#life.wasReady ? 0 : this.#timeout());
    for (;;) {
      if (this.#life.live !== undefined) return this.#life.live;
      this.start();
      const mayCome = this.state === "starting" && (await this.#changesBy(until, signal));
      if (!mayCome && this.#life.live === undefined) throw this.#unavailable(name);
    }
  }

  /** Why there is no connection. */
  #unavailable(name: string): HostError {
    const reason = this.#life.error === undefined ? "" : ` ${this.#life.error.message}`;
    return new HostError("MCP_UNAVAILABLE", `MCP server "${name}" is not available (${this.state}).${reason} ${this.#remedy()}`);
  }

  #remedy(): string {
    switch (this.state) {
      case "needs-auth":
        return "Sign in to it, then start it.";
      case "failed":
        return "It is retried when it is used after some time. Restart it once the cause is fixed.";
      case "stopped":
        return this.#isClosed ? "No session uses it." : "Start it to use it.";
      default:
        return "It is still starting. Try again shortly.";
    }
  }

  async #run<T>(live: LiveConnection, run: (connection: McpConnection) => Promise<T>): Promise<T> {
    try {
      const result = await live.run(run);
      this.#life.worked(live);
      return result;
    } catch (error) {
      this.#life.faulted(live, toError(error));
      throw error;
    }
  }

  async #mayRepeat(error: unknown, live: LiveConnection, { signal, isRepeatable }: Want): Promise<boolean> {
    const code = error instanceof HostError ? error.code : "";
    const isOver = code === "MCP_CLOSED" && isRepeatable;
    // The connection first reports why it ended, and is replaced after that.
    if (isOver) await endsWithin(live.connection.ended, 1_000, this.#parts.clock);
    return (isOver || code === "MCP_NOT_RUN") && signal?.aborted !== true && this.#life.live !== live;
  }

  #changesBy(until: number, signal: AbortSignal | undefined): Promise<boolean> {
    const { clock } = this.#parts;
    return endsWithin(this.#nextChange(), Math.max(0, until - clock.now()), clock, signal).catch((cause: unknown) => {
      throw new HostError("MCP_CANCELLED", "The request was cancelled while its server was being started.", { cause });
    });
  }

  #timeout(): number {
    const wanted = [...this.#users].map((user) => user.timeout ?? defaultTimeout);
    return wanted.length === 0 ? defaultTimeout : Math.max(...wanted);
  }

  #owner(): LifecycleOwner {
    const shared = this;
    return {
      get name() {
        return shared.name;
      },
      get timeout() {
        return shared.#timeout();
      },
      get isWanted() {
        return shared.#users.size > 0;
      },
      changed: () => this.#changed(),
      published: (lists) => {
        const { cache, clock, history } = this.#parts;
        this.#changed();
        if (history.protocol !== undefined && lists.diagnostics.length === 0)
          cache?.write(this.id, toCachedServer(lists, history.protocol, clock.now()));
      },
    };
  }

  #changed(): void {
    const { state, lists } = this;
    const { error } = this.#life;
    const before = this.#announced;
    this.#announced = { state, error, lists };
    const waiters = [...this.#waiters];
    this.#waiters.clear();
    for (const wake of waiters) wake();
    if (this.#life.live !== undefined) this.#watches.moveTo(this.#life.live.connection);
    if (before.lists !== lists) this.#notify("lists");
    if (before.state === state && before.error === error) return;
    this.#notify("state");
    this.#parts.changed();
  }

  #notify(kind: "state" | "lists"): void {
    for (const user of [...this.#users]) user.changed(kind);
  }

  #nextChange(): Promise<void> {
    return new Promise((resolve) => this.#waiters.add(resolve));
  }
}

/** What the server offered last, from the cache. */
function recall({ cache, id, history }: SharedServerParts): ServerLists | undefined {
  const cached = cache?.read(id);
  if (cached === undefined) return undefined;
  if (history.protocol === undefined) history.learn(cached.verdict);
  return Object.freeze({ from: "cache", ...cached.lists, diagnostics: [] });
}
