import { canonicalJson } from "../../base/canonical-json.ts";
import { Emitter } from "../../base/emitter.ts";
import { HostError } from "../../base/errors.ts";
import type { Json } from "../../base/json.ts";
import { type Clock, endsWithin } from "../../base/wait.ts";
import type { McpServerSpec, UnconfiguredServer } from "../../formats/mcp/mcp-server-spec.ts";
import type { CallRequestOptions, McpConnection, RequestOptions } from "../connection/connection.ts";
import type { ReadyOptions, ServerChange, ServerLease, ServerLists, SupervisedServer } from "./server-lease.ts";
import type { ServerState, SharedServerStatus } from "./server-state.ts";
import type { SharedServer, SharedServerUser } from "./shared-server.ts";

/** One server of a lease. It holds its connection from its creation until `release`. */
class ServerHandle implements SupervisedServer, SharedServerUser {
  readonly spec: McpServerSpec | UnconfiguredServer;
  readonly #shared: SharedServer | undefined;
  readonly #notify: (change: ServerChange) => void;
  readonly #since: number;
  #isReleased = false;

  /** Without a shared server it is never started. */
  constructor(
    spec: McpServerSpec | UnconfiguredServer,
    shared: SharedServer | undefined,
    since: number,
    notify: (change: ServerChange) => void,
  ) {
    this.spec = spec;
    this.#shared = shared;
    this.#since = since;
    this.#notify = notify;
    shared?.retain(this);
  }

  get resolvedSpec(): McpServerSpec | undefined {
    return this.#shared?.spec;
  }

  get name(): string {
    return this.spec.name;
  }

  get timeout(): number | undefined {
    return isConfigured(this.spec) ? this.spec.timeout : undefined;
  }

  get state(): ServerState {
    if (this.#shared === undefined) return isConfigured(this.spec) ? "disabled" : "needs-configuration";
    return this.#isReleased ? "stopped" : this.#shared.state;
  }

  get status(): SharedServerStatus {
    if (this.#shared === undefined) return restingStatus(this.spec, this.state, this.#since);
    return { ...this.#shared.status(this.name), state: this.state };
  }

  get lists(): ServerLists | undefined {
    return this.#isReleased ? undefined : this.#shared?.lists;
  }

  callTool(name: string, args: Json, options?: CallRequestOptions): Promise<Json> {
    return this.#use((connection) => connection.callTool(name, args, options), options, false);
  }

  getPrompt(name: string, args: Readonly<Record<string, string>>, options?: CallRequestOptions): Promise<Json> {
    return this.#use((connection) => connection.getPrompt(name, args, options), options, true);
  }

  readResource(uri: string, options?: CallRequestOptions): Promise<Json> {
    return this.#use((connection) => connection.readResource(uri, options), options, true);
  }

  complete(params: Json, options?: RequestOptions): Promise<Json> {
    return this.#use((connection) => connection.complete(params, options), options, true);
  }

  request(method: string, params: Json, options?: RequestOptions): Promise<Json> {
    return this.#use((connection) => connection.request(method, params, options), options, false);
  }

  async watchResource(uri: string, listener: () => void): Promise<AsyncDisposable> {
    return await this.#held().watch(this.name, uri, listener);
  }

  start(): void {
    if (!this.#isReleased) this.#shared?.startNow();
  }

  /** In the background, unless it has been given up or stopped. */
  startIfIdle(): void {
    if (!this.#isReleased) this.#shared?.start();
  }

  async stop(): Promise<void> {
    if (!this.#isReleased) await this.#shared?.stop();
  }

  async restart(): Promise<void> {
    if (!this.#isReleased) await this.#shared?.restart();
  }

  async decided(): Promise<void> {
    await this.#shared?.decided();
  }

  changed(kind: ServerChange["kind"]): void {
    this.#notify({ server: this, kind });
  }

  release(): void {
    this.#isReleased = true;
    this.#shared?.release(this);
  }

  async #use<T>(run: (connection: McpConnection) => Promise<T>, options: RequestOptions | undefined, isRepeatable: boolean): Promise<T> {
    return await this.#held().use({ name: this.name, signal: options?.signal, isRepeatable }, run);
  }

  #held(): SharedServer {
    if (this.#shared !== undefined && !this.#isReleased) return this.#shared;
    const why = this.status.error?.message ?? "No session uses it.";
    throw new HostError("MCP_UNAVAILABLE", `MCP server "${this.name}" is not available (${this.state}). ${why}`);
  }
}

function isConfigured(spec: McpServerSpec | UnconfiguredServer): spec is McpServerSpec {
  return !("reason" in spec);
}

/** False: its configuration forbids or lacks something. */
function isStartable(spec: McpServerSpec | UnconfiguredServer): spec is McpServerSpec {
  return isConfigured(spec) && !spec.isDisabled && spec.tools?.length !== 0;
}

function restingStatus(spec: McpServerSpec | UnconfiguredServer, state: ServerState, since: number): SharedServerStatus {
  const unused = "Its configuration selects none of its tools (tools: []), so it is not started.";
  const error = isConfigured(spec)
    ? { code: "MCP_DISABLED", message: spec.isDisabled ? "It is disabled in its configuration." : unused }
    : { code: "MCP_UNCONFIGURED", message: spec.reason };
  return {
    name: spec.name,
    id: undefined,
    type: spec.type,
    state,
    since,
    failures: 0,
    error,
    retryAt: undefined,
    stderrTail: "",
    pid: undefined,
    era: undefined,
    protocolVersion: undefined,
    serverInfo: undefined,
    startedIn: undefined,
    users: 0,
  };
}

type Spec = McpServerSpec | UnconfiguredServer;

interface LeaseParts {
  readonly clock: Clock;
  /** Default for how many milliseconds `ready` waits. */
  readonly readyWait: number;
  sharedServerOf(spec: McpServerSpec): SharedServer;
  onError(error: Error): void;
  disposed(): void;
}

export class Lease implements ServerLease {
  readonly #parts: LeaseParts;
  readonly #changes: Emitter<{ change: ServerChange }>;
  #servers: readonly ServerHandle[] = [];
  #isStarted = false;
  #isDisposed = false;

  constructor(specs: readonly Spec[], parts: LeaseParts) {
    this.#parts = parts;
    this.#changes = new Emitter(parts.onError);
    this.update(specs);
  }

  get servers(): readonly SupervisedServer[] {
    return this.#servers;
  }

  start(): void {
    this.#isStarted = true;
    for (const server of this.#servers) server.startIfIdle();
  }

  async ready(signal: AbortSignal, { waitMs = this.#parts.readyWait, fresh = false }: ReadyOptions = {}): Promise<void> {
    signal.throwIfAborted();
    this.start();
    const awaited = this.#servers.filter((server) => (fresh ? server.lists?.from !== "server" : server.lists === undefined));
    if (awaited.length === 0) return;
    await endsWithin(Promise.all(awaited.map((server) => server.decided())), waitMs, this.#parts.clock, signal);
  }

  update(specs: readonly Spec[]): void {
    if (this.#isDisposed) return;
    const before = new Map(this.#servers.map((server) => [canonicalJson(server.spec), server]));
    const next = specs.map((spec) => {
      const key = canonicalJson(spec);
      const kept = before.get(key);
      before.delete(key);
      if (kept !== undefined) return kept;
      const shared = isStartable(spec) ? this.#parts.sharedServerOf(spec) : undefined;
      return new ServerHandle(spec, shared, this.#parts.clock.now(), (change) => this.#changes.emit("change", change));
    });
    this.#servers = Object.freeze(next);
    // Released last: a connection that is still used must not be without users in between.
    for (const server of before.values()) server.release();
    if (this.#isStarted) this.start();
  }

  subscribe(listener: (change: ServerChange) => void): Disposable {
    return this.#changes.on("change", listener);
  }

  [Symbol.dispose](): void {
    if (this.#isDisposed) return;
    this.#isDisposed = true;
    for (const server of this.#servers) server.release();
    this.#changes.clear();
    this.#parts.disposed();
  }
}
