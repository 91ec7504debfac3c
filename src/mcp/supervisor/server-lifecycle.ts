import { errorMessage, HostError, toError } from "../../base/errors.ts";
import type { Logger } from "../../base/logger.ts";
import { type Clock, endsWithin } from "../../base/wait.ts";
import type { McpServerSpec } from "../../formats/mcp/mcp-server-spec.ts";
import { StderrTail } from "../../io/process/stderr-tail.ts";
import type { McpConnection } from "../connection/connection.ts";
import { ListRefresher, type ListRefresherParts } from "./list-refresher.ts";
import { openConnection, type ServerConnector, type ServerHistory } from "./server-connector.ts";
import type { ServerLists } from "./server-lease.ts";
import type { ServerError, ServerState, SharedServerStatus } from "./server-state.ts";
import type { StartSlots } from "./start-slots.ts";

/** Milliseconds to wait for an earlier process to end before the next one starts beside it. */
const endTimeout = 10_000;

/**
 * The state machine of one server: it connects and keeps the lists current, restarts after crashes with growing pauses,
 * and gives up after repeated failures.
 */
export class ServerLifecycle {
  readonly #parts: LifecycleParts;
  readonly #owner: LifecycleOwner;
  readonly #endings = new PendingShutdowns();
  /** Of the latest process. */
  #stderr = new StderrTail();
  #state: ServerState = "idle";
  #since: number;
  #error: ServerError | undefined;
  #lists: ServerLists | undefined;
  #live: LiveConnection | undefined;
  #attempt: AbortController | undefined;
  #respawn: { readonly timer: Disposable; readonly at: number } | undefined;
  #startedIn: number | undefined;
  #hasTried = false;
  #wasReady = false;

  constructor(parts: LifecycleParts, owner: LifecycleOwner, lists: ServerLists | undefined) {
    this.#parts = parts;
    this.#owner = owner;
    this.#lists = lists;
    this.#since = parts.clock.now();
    this.#endings.add(parts.predecessor);
  }

  get state(): ServerState {
    return this.#state;
  }

  get error(): ServerError | undefined {
    return this.#error;
  }

  /** What the server offered last, whether it runs or not. */
  get lists(): ServerLists | undefined {
    return this.#lists;
  }

  get live(): LiveConnection | undefined {
    return this.#live;
  }

  /** No attempt has ended yet, and one is expected. */
  get isUndecided(): boolean {
    return !this.#hasTried && (this.#state === "idle" || this.#state === "starting");
  }

  get wasReady(): boolean {
    return this.#wasReady;
  }

  /** There is a connection or an attempt to end. */
  get isAtWork(): boolean {
    return this.#live !== undefined || this.#attempt !== undefined;
  }

  status(): Omit<SharedServerStatus, "name" | "users"> {
    const connection = this.#live?.connection;
    const { breaker } = this.#parts.history;
    return {
      id: this.#parts.id,
      type: this.#parts.spec.type,
      state: this.#state,
      since: this.#since,
      failures: breaker.failuresAfter(this.#live?.age ?? 0),
      error: this.#error,
      retryAt: this.#respawn?.at ?? (this.#state === "failed" ? breaker.retryAt : undefined),
      stderrTail: this.#stderr.text,
      pid: connection?.pid,
      era: connection?.era,
      protocolVersion: connection?.protocolVersion,
      serverInfo: connection?.serverInfo ?? this.#lists?.serverInfo,
      startedIn: this.#startedIn,
    };
  }

  /** In the background, unless it was given up recently or stopped. */
  start(): void {
    const isResting = this.#state === "idle" || this.#state === "failed" || this.#state === "needs-auth";
    if (!isResting || this.#live !== undefined) return;
    const { breaker, failure } = this.#parts.history;
    if (breaker.mayTry) this.#begin();
    // Other users have already seen the error.
    else if (this.#state === "idle") this.#giveUp(failure);
  }

  /** In the background, in whatever state it is. */
  startNow(): void {
    const isFine = this.#live !== undefined && this.#state !== "needs-auth";
    if (!isFine && this.#attempt === undefined) this.restart();
  }

  restart(): void {
    this.#parts.history.breaker.reset();
    this.#endAll();
    this.#hasTried = false;
    this.#begin();
  }

  /** Settles when nothing remains of it. */
  async stop(): Promise<void> {
    this.#endAll();
    this.#error = undefined;
    this.#set("stopped");
    await this.#endings.all();
  }

  /** A request on the connection succeeded. */
  worked(live: LiveConnection): void {
    if (this.#state === "needs-auth" && this.#live === live) this.#settle();
  }

  /** A request on the connection failed. */
  faulted(live: LiveConnection, error: Error): void {
    const failure = failureOf(error);
    if (failure.code === "MCP_UNAUTHORIZED") this.#refused(live, failure);
    if (failure.code === "MCP_NOT_RUN") this.#lost(live, failure, true);
  }

  #begin(): void {
    const attempt = new AbortController();
    this.#respawn?.timer[Symbol.dispose]();
    this.#respawn = undefined;
    this.#attempt = attempt;
    this.#set("starting");
    this.#endings.add(this.#try(attempt.signal));
  }

  async #try(signal: AbortSignal): Promise<void> {
    const startedAt = this.#parts.clock.now();
    try {
      const { clock, spec } = this.#parts;
      if (spec.type === "stdio") await this.#endings.settled(endTimeout, clock, signal);
      const stderr = new StderrTail();
      this.#stderr = stderr;
      const onStderr = (text: string): void => stderr.add(Buffer.from(text));
      const connection = await openConnection(spec, { ...this.#parts, timeout: this.#owner.timeout, onStderr }, signal);
      if (signal.aborted) await endConnection(connection, this.#parts.log);
      else this.#adopt(connection, startedAt);
    } catch (error) {
      if (!signal.aborted) {
        const failure = failureOf(toError(error));
        const { breaker } = this.#parts.history;
        this.#attempt = undefined;
        this.#hasTried = true;
        breaker.fail(0);
        if (failure.code === "MCP_NOT_STARTED" || failure.code === "MCP_UNAUTHORIZED") breaker.trip();
        this.#recover(failure, false);
      }
    }
  }

  #adopt(connection: McpConnection, startedAt: number): void {
    this.#attempt = undefined;
    const live: LiveConnection = new LiveConnection(connection, {
      name: this.#owner.name,
      clock: this.#parts.clock,
      previous: this.#lists,
      publish: (next) => this.#publish(next, startedAt),
      failed: (error) => this.faulted(live, error),
      onError: (error) => this.#parts.log.error("The features of an MCP server cannot be used.", { server: this.#owner.name, error }),
    });
    this.#live = live;
    void connection.ended.then(({ message }) => this.#lost(live, { code: "MCP_CLOSED", message }, false));
    // Requests need not wait for the lists.
    this.#owner.changed();
  }

  #publish(lists: ServerLists, startedAt: number): void {
    const { clock, log, id } = this.#parts;
    this.#lists = lists;
    if (this.#state === "starting") {
      this.#startedIn = clock.now() - startedAt;
      log.info("An MCP server is ready.", { server: this.#owner.name, id, tools: lists.tools.length, ms: this.#startedIn });
      this.#settle();
    }
    this.#owner.published(lists);
  }

  #settle(): void {
    this.#hasTried = true;
    this.#wasReady = true;
    this.#error = undefined;
    this.#set("ready");
  }

  /** It is connected, but something requires sign-in. Everything else stays available. */
  #refused(live: LiveConnection, failure: ServerError): void {
    if (this.#live !== live) return;
    this.#hasTried = true;
    this.#error = failure;
    this.#set("needs-auth");
  }

  /** The connection has ended or is about to. Counts once, however often it is reported. */
  #lost(live: LiveConnection, failure: ServerError, isSessionGone: boolean): void {
    if (this.#live !== live) return;
    const { breaker } = this.#parts.history;
    breaker.fail(live.age);
    this.#hasTried = true;
    this.#live = undefined;
    this.#endings.add(isSessionGone ? live.retire(this.#parts.log) : live.end(this.#parts.log));
    this.#recover(failure, isSessionGone && breaker.failures === 1);
  }

  #recover(failure: ServerError, atOnce: boolean): void {
    const { history } = this.#parts;
    this.#logFailure(failure);
    history.failure = failure;
    this.#error = failure;
    if (history.breaker.isOpen) this.#giveUp(failure);
    else if (!this.#owner.isWanted) this.#set("idle");
    else if (atOnce) this.#begin();
    else {
      const delay = history.breaker.delay();
      const { clock } = this.#parts;
      this.#respawn = { timer: clock.after(delay, () => this.#begin()), at: clock.now() + delay };
      this.#set("starting");
    }
  }

  #logFailure(failure: ServerError): void {
    const { log, history, id } = this.#parts;
    const data = { server: this.#owner.name, id, ...failure, failures: history.breaker.failures, stderr: this.#stderr.text.slice(-2_000) };
    if (history.breaker.isOpen) log.error("An MCP server failed and will not be restarted.", data);
    else log.warning("An MCP server failed.", data);
  }

  #giveUp(failure: ServerError | undefined): void {
    this.#hasTried = true;
    this.#error = failure;
    this.#set(failure?.code === "MCP_UNAUTHORIZED" ? "needs-auth" : "failed");
  }

  /** Ends everything without a restart. */
  #endAll(): void {
    this.#respawn?.timer[Symbol.dispose]();
    this.#respawn = undefined;
    this.#attempt?.abort(new HostError("MCP_CLOSED", "The server is being stopped."));
    this.#attempt = undefined;
    if (this.#live !== undefined) this.#endings.add(this.#live.end(this.#parts.log));
    this.#live = undefined;
  }

  #set(state: ServerState): void {
    if (state !== this.#state) this.#since = this.#parts.clock.now();
    this.#state = state;
    this.#owner.changed();
  }
}

function failureOf(error: Error): ServerError {
  return { code: error instanceof HostError ? error.code : "MCP_FAILED", message: errorMessage(error) };
}

export interface LifecycleParts {
  readonly id: string;
  /** With the real folder. */
  readonly spec: McpServerSpec;
  readonly workingDirectory: string;
  readonly connect: ServerConnector;
  readonly clock: Clock;
  readonly log: Logger;
  readonly slots: StartSlots;
  readonly history: ServerHistory;
  /** The end of an earlier connection to the same server, which may still hold what the next one needs. */
  readonly predecessor: Promise<unknown>;
}

/** What the state machine needs of its server, and reports to it. */
export interface LifecycleOwner {
  readonly name: string;
  /** Milliseconds for connecting. */
  readonly timeout: number;
  /** False: it has no users, so it is not restarted. */
  readonly isWanted: boolean;
  /** The state or the connection has changed. */
  changed(): void;
  published(lists: ServerLists): void;
}

/** A connection in use, with its lists. */
export class LiveConnection {
  readonly connection: McpConnection;
  readonly #lists: ListRefresher;
  readonly #clock: Clock;
  readonly #since: number;
  readonly #inFlight = new Set<Promise<unknown>>();

  constructor(connection: McpConnection, parts: ListRefresherParts) {
    this.connection = connection;
    this.#lists = new ListRefresher(connection, parts);
    this.#clock = parts.clock;
    this.#since = parts.clock.now();
  }

  /** Milliseconds since it connected. */
  get age(): number {
    return this.#clock.now() - this.#since;
  }

  async run<T>(request: (connection: McpConnection) => Promise<T>): Promise<T> {
    const running = request(this.connection);
    this.#inFlight.add(running);
    try {
      return await running;
    } finally {
      this.#inFlight.delete(running);
    }
  }

  async end(log: Logger): Promise<void> {
    this.#lists[Symbol.dispose]();
    await endConnection(this.connection, log);
  }

  /** Ends it once the requests in flight have completed, or after a while. */
  async retire(log: Logger): Promise<void> {
    this.#lists[Symbol.dispose]();
    await endsWithin(Promise.allSettled(this.#inFlight), retirementTimeout, this.#clock);
    await endConnection(this.connection, log);
  }
}

const retirementTimeout = 2_000;

/** Never rejects. */
async function endConnection(connection: McpConnection, log: Logger): Promise<void> {
  try {
    await connection[Symbol.asyncDispose]();
  } catch (error) {
    log.warning("The connection to an MCP server could not be closed properly.", { pid: connection.pid, error: errorMessage(error) });
  }
}

/** Connections that are ending, and attempts that were cancelled. */
export class PendingShutdowns {
  readonly #pending = new Set<Promise<unknown>>();

  add(ending: Promise<unknown>): void {
    const settled: Promise<unknown> = ending.then(
      () => this.#pending.delete(settled),
      () => this.#pending.delete(settled),
    );
    this.#pending.add(settled);
  }

  /** Waits for those that are pending now, up to so many milliseconds. Rejects with the signal's reason. */
  async settled(milliseconds: number, clock: Clock, signal: AbortSignal): Promise<void> {
    if (this.#pending.size > 0) await endsWithin(Promise.all(this.#pending), milliseconds, clock, signal);
  }

  /** Waits until none is pending, including those that are added in the meantime. */
  async all(): Promise<void> {
    while (this.#pending.size > 0) await Promise.all(this.#pending);
  }
}
