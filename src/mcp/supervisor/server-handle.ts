import { canonicalJson } from "../../base/canonical-json.ts";
import { type Clock, endsWithin } from "../../base/clock.ts";
import { Emitter } from "../../base/emitter.ts";
import { HostError } from "../../base/errors.ts";
import type { Json } from "../../base/json.ts";
import type { McpServerSpec, UnconfiguredServer } from "../../formats/mcp/mcp-server-spec.ts";
import type { CallRequestOptions, McpConnection, RequestOptions } from "../connection/connection.ts";
import type { ReadyOptions, ServerChange, ServerLease, SupervisedServer } from "./server-lease.ts";
import type { ServerLists } from "./server-lists.ts";
import type { ServerState, SharedServerStatus } from "./server-state.ts";
import type { SharedServer, SharedServerUser } from "./shared-server.ts";

/** One server of a lease. It holds its connection from its making until `release`. */
class ServerHandle implements SupervisedServer, SharedServerUser {
  readonly spec: McpServerSpec | UnconfiguredServer;
  readonly #keeper: SharedServer | undefined;
  readonly #tell: (change: ServerChange) => void;
  readonly #since: number;
  #isReleased = false;

  /** Without a keeper it is one that is never started. */
  constructor(
    spec: McpServerSpec | UnconfiguredServer,
    keeper: SharedServer | undefined,
    since: number,
    tell: (change: ServerChange) => void,
  ) {
    this.spec = spec;
    this.#keeper = keeper;
    this.#since = since;
    this.#tell = tell;
    keeper?.retain(this);
  }

  get resolvedSpec(): McpServerSpec | undefined {
    return this.#keeper?.spec;
  }

  get name(): string {
    return this.spec.name;
  }

  get timeout(): number | undefined {
    return isConfigured(this.spec) ? this.spec.timeout : undefined;
  }

  get state(): ServerState {
    if (this.#keeper === undefined) return isConfigured(this.spec) ? "disabled" : "needs-configuration";
    return this.#isReleased ? "stopped" : this.#keeper.state;
  }

  get status(): SharedServerStatus {
    if (this.#keeper === undefined) return restingStatus(this.spec, this.state, this.#since);
    return { ...this.#keeper.status(this.name), state: this.state };
  }

  get lists(): ServerLists | undefined {
    return this.#isReleased ? undefined : this.#keeper?.lists;
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
    if (!this.#isReleased) this.#keeper?.startNow();
  }

  /** In the background, unless it was given up or stopped. */
  startIfIdle(): void {
    if (!this.#isReleased) this.#keeper?.start();
  }

  async stop(): Promise<void> {
    if (!this.#isReleased) await this.#keeper?.stop();
  }

  async restart(): Promise<void> {
    if (!this.#isReleased) await this.#keeper?.restart();
  }

  async decided(): Promise<void> {
    await this.#keeper?.decided();
  }

  changed(kind: ServerChange["kind"]): void {
    this.#tell({ server: this, kind });
  }

  release(): void {
    this.#isReleased = true;
    this.#keeper?.release(this);
  }

  async #use<T>(run: (connection: McpConnection) => Promise<T>, options: RequestOptions | undefined, isRepeatable: boolean): Promise<T> {
    return await this.#held().use({ name: this.name, signal: options?.signal, isRepeatable }, run);
  }

  #held(): SharedServer {
    if (this.#keeper !== undefined && !this.#isReleased) return this.#keeper;
    const why = this.status.error?.message ?? "No session uses it.";
    throw new HostError("MCP_UNAVAILABLE", `MCP server "${this.name}" is not available (${this.state}). ${why}`);
  }
}

function isConfigured(spec: McpServerSpec | UnconfiguredServer): spec is McpServerSpec {
  return !("reason" in spec);
}

/** Whether it may be started at all. */
function isStartable(spec: McpServerSpec | UnconfiguredServer): spec is McpServerSpec {
  return isConfigured(spec) && !spec.isDisabled && spec.tools?.length !== 0;
}

function restingStatus(spec: McpServerSpec | UnconfiguredServer, state: ServerState, since: number): SharedServerStatus {
  return {
    name: spec.name,
    id: undefined,
    type: spec.type,
    state,
    since,
    failures: 0,
    error: { code: isConfigured(spec) ? "MCP_DISABLED" : "MCP_UNCONFIGURED", message: restingReason(spec) },
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

function restingReason(spec: McpServerSpec | UnconfiguredServer): string {
  if (!isConfigured(spec)) return spec.reason;
  return spec.isDisabled
    ? "It is disabled in its configuration."
    : "Its configuration selects none of its tools (tools: []), so it is not started.";
}

type Spec = McpServerSpec | UnconfiguredServer;

interface LeaseParts {
  readonly clock: Clock;
  /** Milliseconds that `ready` waits unless told otherwise. */
  readonly readyWait: number;
  keeperOf(spec: McpServerSpec): SharedServer;
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
    const next = specs.map((spec) => take(before, canonicalJson(spec)) ?? this.#make(spec));
    this.#servers = Object.freeze(next);
    // Only now: a connection that is still used must not be without users in between.
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

  #make(spec: Spec): ServerHandle {
    const keeper = isStartable(spec) ? this.#parts.keeperOf(spec) : undefined;
    return new ServerHandle(spec, keeper, this.#parts.clock.now(), (change) => this.#changes.emit("change", change));
  }
}

function take<T>(from: Map<string, T>, key: string): T | undefined {
  const found = from.get(key);
  from.delete(key);
  return found;
}
