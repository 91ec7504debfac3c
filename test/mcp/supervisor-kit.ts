import { setTimeout } from "node:timers/promises";
import { onTestFinished } from "vitest";
import { HostError } from "../../src/base/errors.ts";
import { type Logger, silentLogger } from "../../src/base/logger.ts";
import { onAbort } from "../../src/base/wait.ts";
import type { LocalServerSpec, RemoteServerSpec } from "../../src/formats/mcp/mcp-server-spec.ts";
import type { ConnectionEnd, McpConnection, RequestOptions, ServerList } from "../../src/mcp/connection/connection.ts";
import type { ConnectRequest, ServerConnector } from "../../src/mcp/supervisor/server-connector.ts";
import { McpSupervisor, type SupervisorOptions } from "../../src/mcp/supervisor/supervisor.ts";
import { patience } from "../slowness.ts";
import { ManualClock } from "./manual-clock.ts";

type Json = Readonly<Record<string, unknown>>;

export function localSpec(name: string, more: Partial<LocalServerSpec> = {}): LocalServerSpec {
  const base = { tools: undefined, timeout: undefined, isDisabled: false, args: [], env: {}, cwd: undefined };
  return { ...base, type: "stdio", name, command: name, ...more };
}

export function remoteSpec(name: string, more: Partial<RemoteServerSpec> = {}): RemoteServerSpec {
  const base = { tools: undefined, timeout: undefined, isDisabled: false, headers: {}, oauth: undefined };
  return { ...base, type: "http", name, url: `https://${name}.test/mcp`, ...more };
}

/** What a fake server answers, by what is asked: `tools`, `prompts`, …, `call`. Changed by tests while it runs. */
type Answers = Record<string, () => Json | readonly Json[] | Promise<Json | readonly Json[]>>;

/** A connection as a test sees it: it can be made to end, to announce, to answer as wanted. */
class FakeConnection implements McpConnection {
  readonly era = "legacy";
  readonly protocolVersion = "2025-11-25";
  readonly serverInfo = { name: "fake", version: "1" };
  capabilities: Json = { tools: {} };
  readonly instructions = "Use it well.";
  readonly pid: number;
  readonly ended: Promise<ConnectionEnd>;
  readonly answers: Answers;
  readonly asked: string[] = [];
  /** What would cancel the requests for lists. */
  readonly listSignals: (AbortSignal | undefined)[] = [];
  readonly watched = new Map<string, () => void>();
  isDisposed = false;
  /** Held back until a test lets it go. */
  disposal: Promise<void> = Promise.resolve();
  readonly #listeners = new Set<(list: ServerList) => void>();
  #end: (end: ConnectionEnd) => void = () => {};

  constructor(pid: number, answers: Answers) {
    this.pid = pid;
    this.answers = answers;
    this.ended = new Promise((resolve) => {
      this.#end = resolve;
    });
  }

  crash(message = "It exited with code 1."): void {
    this.#end({ reason: "exited", message });
  }

  announce(list: ServerList): void {
    for (const listener of this.#listeners) listener(list);
  }

  listTools(options?: RequestOptions): Promise<readonly Json[]> {
    return this.#list("tools", options);
  }

  listPrompts(options?: RequestOptions): Promise<readonly Json[]> {
    return this.#list("prompts", options);
  }

  listResources(options?: RequestOptions): Promise<readonly Json[]> {
    return this.#list("resources", options);
  }

  listResourceTemplates(options?: RequestOptions): Promise<readonly Json[]> {
    return this.#list("resourceTemplates", options);
  }

  callTool(name: string, _args: Json, options?: RequestOptions): Promise<Json> {
    return this.#ask(`call ${name}`, "call", options);
  }

  getPrompt(name: string): Promise<Json> {
    return this.#ask(`prompt ${name}`, "prompt");
  }

  readResource(uri: string): Promise<Json> {
    return this.#ask(`read ${uri}`, "read");
  }

  complete(): Promise<Json> {
    return this.#ask("complete", "complete");
  }

  request(method: string, params: Json): Promise<Json> {
    return this.#ask(`${method} ${JSON.stringify(params)}`, method);
  }

  onListChanged(listener: (list: ServerList) => void): Disposable {
    this.#listeners.add(listener);
    return { [Symbol.dispose]: () => void this.#listeners.delete(listener) };
  }

  async watchResource(uri: string, listener: () => void): Promise<AsyncDisposable> {
    await this.answers["watch"]?.();
    this.watched.set(uri, listener);
    return { [Symbol.asyncDispose]: async () => void this.watched.delete(uri) };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.isDisposed = true;
    await this.disposal;
    this.#end({ reason: "closed", message: "It was closed." });
  }

  get listeners(): number {
    return this.#listeners.size;
  }

  async #list(name: string, options?: RequestOptions): Promise<readonly Json[]> {
    this.asked.push(name);
    this.listSignals.push(options?.signal);
    return ((await this.answers[name]?.()) ?? []) as readonly Json[];
  }

  async #ask(text: string, name: string, options?: RequestOptions): Promise<Json> {
    this.asked.push(text);
    options?.signal?.throwIfAborted();
    return ((await this.answers[name]?.()) ?? { from: this.pid }) as Json;
  }
}

interface Try {
  readonly name: string;
  readonly request: ConnectRequest;
  /** The connection comes about. */
  accept(): FakeConnection;
  refuse(code?: string, message?: string): void;
}

/** Servers that do what a test says, and what was asked of them. */
export class FakeServers {
  readonly tries: Try[] = [];
  readonly connections: FakeConnection[] = [];
  readonly answers: Answers;
  /** Accepts at once; else a test decides about each try. */
  isEager: boolean;

  constructor(answers: Answers = {}, isEager = true) {
    this.answers = answers;
    this.isEager = isEager;
  }

  readonly connect: ServerConnector = (spec, request) =>
    new Promise((resolve, reject) => {
      const accept = (): FakeConnection => {
        const connection = new FakeConnection(this.connections.length + 1, { ...this.answers });
        this.connections.push(connection);
        resolve(connection);
        return connection;
      };
      const refuse = (code = "MCP_CLOSED", message = "It exited with code 1."): void => reject(new HostError(code, message));
      this.tries.push({ name: spec.name, request, accept, refuse });
      onAbort(request.signal, () => reject(request.signal.reason));
      if (this.isEager) accept();
    });

  get last(): FakeConnection {
    return this.connections.at(-1)!;
  }

  get lastTry(): Try {
    return this.tries.at(-1)!;
  }
}

export interface Kit {
  readonly clock: ManualClock;
  readonly servers: FakeServers;
  readonly supervisor: McpSupervisor;
}

export function makeKit(servers: FakeServers = new FakeServers(), more: Partial<SupervisorOptions> = {}): Kit {
  const clock = new ManualClock();
  const supervisor = new McpSupervisor({
    connect: servers.connect,
    workingDirectory: "/work",
    log: silentLogger,
    clock,
    // Half of each pause is jitter: so pauses are as long as they get.
    random: () => 1,
    ...more,
  });
  onTestFinished(async () => {
    const ended = supervisor[Symbol.asyncDispose]();
    // What is being written takes real time, and the folder is removed next.
    if (more.cacheDirectory !== undefined) await Promise.race([ended, setTimeout(patience(2_000))]);
    await clock.pass(20_000);
    await ended;
  });
  return { clock, servers, supervisor };
}

/** A log that keeps its lines. */
export function keepingLog(): Logger & { readonly lines: { level: string; message: string; data: object | undefined }[] } {
  const lines: { level: string; message: string; data: object | undefined }[] = [];
  const at =
    (level: string) =>
    (message: string, data?: object): void =>
      void lines.push({ level, message, data });
  return { lines, error: at("error"), warning: at("warning"), info: at("info"), debug: at("debug"), enabled: () => true };
}

export const neverAborted: AbortSignal = new AbortController().signal;
