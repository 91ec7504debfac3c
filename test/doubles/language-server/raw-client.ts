import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { createMessageConnection, type MessageConnection, StreamMessageReader, StreamMessageWriter } from "vscode-jsonrpc/node.js";
import { type LoopbackBackend, startLoopbackBackend } from "./loopback-backend.ts";

// biome-ignore lint/suspicious/noExplicitAny: tests look into it freely
type Json = any;

const success = (): unknown => [{ content: [{ value: "ok" }], status: "success" }, null];
const acceptance = (): unknown => [{ result: "accept" }, null];

/** The command that starts a language server: a program, or a script for this Node.js. */
function commandOf(server: string): readonly [string, readonly string[]] {
  return server.endsWith(".mjs") ? [process.execPath, [server, "--stdio"]] : [server, ["--stdio"]];
}

/**
 * An editor that sends and answers exactly what a scenario asks for, valid or not. It has its own language server, home
 * folder, workspace and loopback double of GitHub's backend.
 */
export class RawClient implements AsyncDisposable {
  readonly backend: LoopbackBackend;
  /** The home folder, where the server stores its state. */
  readonly home: string;
  readonly folder: string;
  /** The version of the server. */
  version = "";
  /** The requests that the server sent, in order. */
  readonly asked: { readonly method: string; readonly params: Json }[] = [];
  readonly progress: Json[] = [];
  /** Answers a call of a tool. */
  onInvoke: (params: Json) => unknown = success;
  onConfirm: (params: Json) => unknown = acceptance;
  readonly #connection: MessageConnection;
  readonly #child: ChildProcess;
  readonly #onEnd: (() => void)[] = [];
  #turns = 0;

  private constructor(backend: LoopbackBackend, root: string, server: string) {
    this.backend = backend;
    this.home = join(root, "home");
    this.folder = join(root, "workspace");
    mkdirSync(this.home);
    mkdirSync(this.folder);
    const [command, args] = commandOf(server);
    this.#child = spawn(command, args, { env: backend.environment(this.home), cwd: this.folder, stdio: "pipe" });
    this.#child.stderr?.resume();
    const connection = createMessageConnection(new StreamMessageReader(this.#child.stdout!), new StreamMessageWriter(this.#child.stdin!));
    connection.onRequest((method, params) => {
      this.asked.push({ method, params });
      if (method === "conversation/invokeClientTool") return this.onInvoke(params);
      return method === "conversation/invokeClientToolConfirmation" ? this.onConfirm(params) : null;
    });
    connection.onUnhandledProgress(({ value }) => {
      this.progress.push(value);
      if (value.kind === "end") for (const listener of this.#onEnd.splice(0)) listener();
    });
    connection.listen();
    this.#connection = connection;
  }

  static async start(server: string): Promise<RawClient> {
    const root = realpathSync(mkdtempSync(join(tmpdir(), "skillhost-lsp-")));
    const client = new RawClient(await startLoopbackBackend(), root, server);
    const folder = pathToFileURL(client.folder).href;
    const { serverInfo } = await client.request("initialize", {
      processId: process.pid,
      capabilities: { workspace: { workspaceFolders: true } },
      rootUri: folder,
      workspaceFolders: [{ uri: folder, name: "workspace" }],
      initializationOptions: { editorInfo: { name: "raw", version: "1" }, editorPluginInfo: { name: "raw", version: "1" } },
    });
    client.version = serverInfo.version;
    client.notify("initialized", {});
    client.configure({});
    await client.request("checkStatus", {});
    return client;
  }

  request(method: string, params: unknown): Promise<Json> {
    return this.#connection.sendRequest(method, params);
  }

  notify(method: string, params: unknown): void {
    void this.#connection.sendNotification(method, params);
  }

  configure(agent: object): void {
    this.notify("workspace/didChangeConfiguration", {
      settings: { telemetry: { telemetryLevel: "off" }, github: { copilot: { agent } } },
    });
  }

  /** Restores the initial state for the next scenario. */
  reset(): void {
    this.onInvoke = success;
    this.onConfirm = acceptance;
    this.backend.forget();
  }

  /** Resolves when the server reports the end of the next turn. */
  ended(): Promise<void> {
    return new Promise((resolve) => void this.#onEnd.push(resolve));
  }

  /** Runs a turn from request to end. Its reports are in `progress`. */
  async turn(request: string, extra: object = {}): Promise<Json> {
    this.progress.length = 0;
    this.asked.length = 0;
    const uri = pathToFileURL(this.folder).href;
    return this.request("conversation/create", {
      workDoneToken: `turn-${++this.#turns}`,
      turns: [{ request }],
      capabilities: {},
      source: "panel",
      chatMode: "Agent",
      needToolCallConfirmation: true,
      modelInfo: { id: "gpt-4.1" },
      model: "gpt-4.1",
      workspaceFolder: uri,
      workspaceFolders: [{ uri, name: "workspace" }],
      ...extra,
    });
  }

  /** How the calls of the last turn ended. */
  get calls(): readonly Json[] {
    const calls = new Map<string, Json>();
    for (const { editAgentRounds = [] } of this.progress)
      for (const { toolCalls = [] } of editAgentRounds) for (const call of toolCalls) calls.set(call.id, call);
    return [...calls.values()];
  }

  /** The tool results in the last request to the model. */
  get results(): readonly string[] {
    const { messages = [] } = this.backend.asked.at(-1) ?? {};
    return messages.filter(({ role }: Json) => role === "tool").map(({ content }: Json) => this.plain(content));
  }

  get end(): Json {
    return this.progress.findLast(({ kind }) => kind === "end");
  }

  /** Removes what differs between runs: identifiers, folders and stack lines. */
  plain(content: unknown): string {
    const text = typeof content === "string" ? content : JSON.stringify(content);
    return text
      .replaceAll(this.folder, "<workspace>")
      .replaceAll(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, "<id>")
      .replaceAll(/\n\s+at .*(?=\n|$)/g, "")
      .trimEnd();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const ended = new Promise((resolve) => this.#child.once("exit", resolve));
    if (this.#child.exitCode === null) {
      this.#child.kill("SIGKILL");
      await ended;
    }
    this.#connection.dispose();
    await this.backend[Symbol.asyncDispose]();
    rmSync(join(this.home, ".."), { recursive: true, force: true });
  }
}
