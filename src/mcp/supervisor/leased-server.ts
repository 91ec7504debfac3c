import { HostError } from "../../base/errors.ts";
import type { McpServerSpec, UnconfiguredServer } from "../../formats/mcp/mcp-server-spec.ts";
import type { CallRequestOptions, McpConnection, RequestOptions } from "../connection/connection.ts";
import type { ServerChange, SupervisedServer } from "./lease.ts";
import type { KeeperUser, ServerKeeper } from "./server-keeper.ts";
import type { ServerLists } from "./server-lists.ts";
import type { ServerState, ServerStatus } from "./server-state.ts";

type Json = Readonly<Record<string, unknown>>;

/** One server of a lease. It holds its connection from its making until `release`. */
export class LeasedServer implements SupervisedServer, KeeperUser {
  readonly spec: McpServerSpec | UnconfiguredServer;
  readonly #keeper: ServerKeeper | undefined;
  readonly #tell: (change: ServerChange) => void;
  readonly #since: number;
  #isReleased = false;

  /** Without a keeper it is one that is never started. */
  constructor(
    spec: McpServerSpec | UnconfiguredServer,
    keeper: ServerKeeper | undefined,
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

  get status(): ServerStatus {
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

  #held(): ServerKeeper {
    if (this.#keeper !== undefined && !this.#isReleased) return this.#keeper;
    const why = this.status.error?.message ?? "No session uses it any more.";
    throw new HostError("MCP_UNAVAILABLE", `MCP server "${this.name}" is not available (${this.state}). ${why}`);
  }
}

function isConfigured(spec: McpServerSpec | UnconfiguredServer): spec is McpServerSpec {
  return !("reason" in spec);
}

/** Whether it may be started at all. */
export function isStartable(spec: McpServerSpec | UnconfiguredServer): spec is McpServerSpec {
  return isConfigured(spec) && !spec.isDisabled && spec.tools?.length !== 0;
}

function restingStatus(spec: McpServerSpec | UnconfiguredServer, state: ServerState, since: number): ServerStatus {
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
    ? "Its configuration has it disabled."
    : "Its configuration wants none of its tools (tools: []), so it is not started.";
}
