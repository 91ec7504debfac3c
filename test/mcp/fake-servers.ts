import type { LocalServerSpec, McpServerSpec, UnconfiguredServer } from "../../src/formats/mcp/mcp-server-spec.ts";
import type { CallRequestOptions, RequestOptions } from "../../src/mcp/connection/connection.ts";
import type { ServerChange, ServerLease, ServerLists, SupervisedServer } from "../../src/mcp/supervisor/server-lease.ts";
import type { ServerState, SharedServerStatus } from "../../src/mcp/supervisor/server-state.ts";
import type { ToolContext } from "../../src/tools/tool.ts";

export type Json = Readonly<Record<string, unknown>>;

/** A request that a fake server got. */
export interface Received {
  readonly method: string;
  readonly params: Json;
  readonly options: CallRequestOptions;
}

type Answer = (received: Received) => Json | Promise<Json>;

export function localSpec(name: string, more: Partial<LocalServerSpec> = {}): LocalServerSpec {
  const own = { type: "stdio", command: "serve", args: [name], env: {}, cwd: "/work" } as const;
  return { name, ...own, tools: undefined, timeout: undefined, isDisabled: false, ...more };
}

function listsOf(more: Partial<ServerLists> = {}): ServerLists {
  const lists = { tools: [], prompts: [], resources: [], resourceTemplates: [], skills: [] };
  return { from: "server", capabilities: {}, serverInfo: undefined, instructions: undefined, ...lists, diagnostics: [], ...more };
}

export function toolNamed(name: string, more: Json = {}): Json {
  return { name, description: `Does ${name}.`, inputSchema: { type: "object" }, ...more };
}

/** A server that says what a test has it say, and remembers what it was asked. */
export class FakeServer implements SupervisedServer {
  readonly name: string;
  spec: McpServerSpec | UnconfiguredServer;
  state: ServerState = "ready";
  error: { readonly code: string; readonly message: string } | undefined;
  lists: ServerLists | undefined;
  readonly received: Received[] = [];
  answer: Answer = () => ({ content: [{ type: "text", text: "done" }] });
  readonly watched = new Map<string, () => void>();

  constructor(spec: McpServerSpec | UnconfiguredServer, lists?: Partial<ServerLists>) {
    this.name = spec.name;
    this.spec = spec;
    this.lists = lists && listsOf(lists);
  }

  get status(): SharedServerStatus {
    const { name, state, error } = this;
    return { name, id: `id of ${name}`, state, error } as unknown as SharedServerStatus;
  }

  callTool(name: string, args: Json, options: CallRequestOptions = {}): Promise<Json> {
    return this.#receive("tools/call", { name, arguments: args }, options);
  }

  getPrompt(name: string, args: Readonly<Record<string, string>>, options: CallRequestOptions = {}): Promise<Json> {
    return this.#receive("prompts/get", { name, arguments: args }, options);
  }

  readResource(uri: string, options: CallRequestOptions = {}): Promise<Json> {
    return this.#receive("resources/read", { uri }, options);
  }

  complete(params: Json, options: RequestOptions = {}): Promise<Json> {
    return this.#receive("completion/complete", params, options);
  }

  request(method: string, params: Json, options: RequestOptions = {}): Promise<Json> {
    return this.#receive(method, params, options);
  }

  async watchResource(uri: string, listener: () => void): Promise<AsyncDisposable> {
    this.watched.set(uri, listener);
    return { [Symbol.asyncDispose]: async () => void this.watched.delete(uri) };
  }

  start(): void {}
  async stop(): Promise<void> {}
  async restart(): Promise<void> {}

  async #receive(method: string, params: Json, options: CallRequestOptions): Promise<Json> {
    const received = { method, params, options };
    this.received.push(received);
    return this.answer(received);
  }
}

export class FakeLease implements ServerLease {
  servers: readonly FakeServer[];
  readonly #listeners = new Set<(change: ServerChange) => void>();

  constructor(...servers: readonly FakeServer[]) {
    this.servers = servers;
  }

  /** A server's list is another one from now on. */
  publish(server: FakeServer, lists: Partial<ServerLists>): void {
    server.lists = { ...(server.lists ?? listsOf()), ...lists };
    this.changed(server, "lists");
  }

  changed(server: FakeServer, kind: ServerChange["kind"]): void {
    for (const listener of this.#listeners) listener({ server, kind });
  }

  start(): void {}
  async ready(): Promise<void> {}
  update(): void {}

  subscribe(listener: (change: ServerChange) => void): Disposable {
    this.#listeners.add(listener);
    return { [Symbol.dispose]: () => void this.#listeners.delete(listener) };
  }

  [Symbol.dispose](): void {}
}

/** A context of a call for tests. */
export function contextOf(more: Partial<ToolContext> = {}, signal: AbortSignal = new AbortController().signal): ToolContext {
  const invocation = { sessionId: "s1", toolCallId: "c1", toolName: "t", arguments: {}, signal, workingDirectory: "/work", services: {} };
  const none = (): Promise<never> => Promise.reject(new Error("not in this test"));
  return { invocation, ask: none, callTool: none, progress: () => {}, fileChanged: () => {}, background: () => {}, ...more };
}

/** Settles with the next snapshot that a view publishes. */
export function nextChange(view: { subscribe(listener: () => void): Disposable }): Promise<void> {
  return new Promise((resolve) => {
    const hears = view.subscribe(() => {
      hears[Symbol.dispose]();
      resolve();
    });
  });
}

export const never: AbortSignal = new AbortController().signal;
