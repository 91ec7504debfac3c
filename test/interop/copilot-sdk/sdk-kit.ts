import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { buildPackage } from "../../built-package.ts";
import {
  chatAnswer,
  jsonAnswer,
  type ScriptedAnswer,
  type ScriptedModel,
  type ScriptedReply,
  startScriptedModel,
} from "../../doubles/scripted-model.ts";
import { installPeer } from "../install-peer.ts";

// biome-ignore lint/suspicious/noExplicitAny: the SDK has its own lock file, so its types are not always installed
export type Sdk = any;

const here = dirname(fileURLToPath(import.meta.url));

/** The official SDK from npm, installed from the lock file in this folder if it is missing. */
async function loadSdk(): Promise<Sdk> {
  const entry = installPeer(here, "node_modules/@github/copilot-sdk/dist/index.js");
  return import(pathToFileURL(entry).href);
}

/**
 * The runtime that the SDK starts. `COPILOT_TEST_RUNTIME` names another one, so that the expectations of these tests can be
 * checked against the official runtime.
 */
export function runtimePath(): string {
  return process.env["COPILOT_TEST_RUNTIME"] ?? buildPackage().bin;
}

/** One runtime and one model for all tests of a file; each test has its own folders, sessions and clients. */
export class Runtime implements AsyncDisposable {
  readonly sdk: Sdk;
  readonly model: ScriptedModel;
  /** The default working directory of the runtime. */
  readonly folder: string;
  readonly #answers: ScriptedAnswer[];
  readonly #clients: Sdk[] = [];
  readonly #bin: string = runtimePath();
  #shared: Sdk;

  private constructor(sdk: Sdk, model: ScriptedModel, answers: ScriptedAnswer[]) {
    this.sdk = sdk;
    this.model = model;
    this.#answers = answers;
    this.folder = mkdtempSync(join(tmpdir(), "skillhost-sdk-"));
  }

  static async start(): Promise<Runtime> {
    const answers: ScriptedAnswer[] = [];
    const model = await startScriptedModel(({ path }) => (isTurn(path) ? answers.shift() : lookUp(path)));
    return new Runtime(await loadSdk(), model, answers);
  }

  /** Queues the next answers of the model, in order. */
  says(...replies: readonly (ScriptedReply | string)[]): void {
    this.answers(...replies.map((reply) => chatAnswer(typeof reply === "string" ? { content: reply } : reply)));
  }

  answers(...answers: readonly ScriptedAnswer[]): void {
    this.#answers.push(...answers);
  }

  /** The requests to the model that it answers. */
  get requests(): ScriptedModel["requests"] {
    return this.model.requests.filter(({ path }) => isTurn(path));
  }

  /** The newest request to the model. */
  get asked(): Sdk {
    return this.requests.at(-1)?.body;
  }

  /** The text of the last tool result in the newest request to the model. */
  get lastToolResult(): string {
    return this.asked.messages.findLast(({ role }: Sdk) => role === "tool")?.content;
  }

  /** The shared client, which started the runtime. */
  async shared(): Promise<Sdk> {
    this.#shared ??= new this.sdk.CopilotClient({ ...this.options, connection: this.sdk.RuntimeConnection.forStdio({ path: this.#bin }) });
    await this.#shared.start();
    return this.#shared;
  }

  /** A client whose runtime other clients may join with the token. */
  listening(connectionToken: string): Sdk {
    const connection = this.sdk.RuntimeConnection.forTcp({ path: this.#bin, connectionToken });
    return this.#own(new this.sdk.CopilotClient({ ...this.options, connection }));
  }

  joining({ runtimePort }: Sdk, connectionToken?: string): Sdk {
    const connection = this.sdk.RuntimeConnection.forUri(`localhost:${runtimePort}`, { connectionToken });
    return this.#own(new this.sdk.CopilotClient({ connection }));
  }

  /** A client with its own runtime. */
  spawning(options: object = {}, args: readonly string[] = []): Sdk {
    const connection = this.sdk.RuntimeConnection.forStdio({ path: this.#bin, args });
    return this.#own(new this.sdk.CopilotClient({ ...this.options, connection, ...options }));
  }

  /** A session of the shared client, or of another, in its own folder. */
  async session(options: object = {}, client?: Sdk): Promise<Sdk> {
    const usual = { model: "claude-sonnet-4.5", onPermissionRequest: this.sdk.approveAll, workingDirectory: this.place() };
    return (client ?? (await this.shared())).createSession({ ...usual, ...options });
  }

  /** A folder with files. */
  place(files: Readonly<Record<string, string>> = {}): string {
    const folder = mkdtempSync(join(this.folder, "place-"));
    for (const [file, text] of Object.entries(files)) write(join(folder, file), text);
    return folder;
  }

  get env(): NodeJS.ProcessEnv {
    const { GH_TOKEN: _gh, GITHUB_TOKEN: _github, COPILOT_CLI_PATH: _path, ...environment } = process.env;
    return { ...environment, COPILOT_API_URL: this.model.url, COPILOT_DEBUG_GITHUB_API_URL: this.model.url, SKILLHOST_TRUST: this.folder };
  }

  get options(): { readonly env: NodeJS.ProcessEnv; readonly baseDirectory: string } {
    const { env, folder } = this;
    const baseDirectory = join(folder, ".home");
    return Object.assign({ env, baseDirectory }, { workingDirectory: folder, logLevel: "error", gitHubToken: "token-of-the-test" });
  }

  /** Ends the sessions and clients of a test and drops its scripted answers. */
  async clear(): Promise<void> {
    this.#answers.length = 0;
    for (const client of this.#clients.splice(0)) await client.stop().catch(() => client.forceStop());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.clear();
    await this.#shared?.stop();
    await this.model.close();
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 3 });
  }

  #own(client: Sdk): Sdk {
    this.#clients.push(client);
    return client;
  }
}

export function write(path: string, text: string | Uint8Array): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}

/** A model's call of a tool. */
export function calling(name: string, args: object = {}, id = "call-1"): ScriptedReply {
  return { toolCalls: [{ id, name, arguments: args }] };
}

/** Resolves with the next event of a session that matches. */
export function event(session: Sdk, type: string, fits: (data: Sdk) => boolean = () => true): Promise<Sdk> {
  return new Promise((resolve) => {
    session.on(type, (event: Sdk) => {
      if (fits(event.data)) resolve(event);
    });
  });
}

/** Collects all events of a session from now on. */
export function eventsOf(session: Sdk): Sdk[] {
  const events: Sdk[] = [];
  session.on((event: Sdk) => void events.push(event));
  return events;
}

export const named =
  (name: string): ((tool: Sdk) => boolean) =>
  (tool) =>
    tool.name === name;

/** Whether a request asks a model for a reply. */
export function isTurn(path: string): boolean {
  return /\/(chat\/completions|responses|messages)(\?|$)/.test(path);
}

/** What an account and its list of models are. */
export function lookUp(path: string): ScriptedAnswer {
  if (path.startsWith("/models")) return jsonAnswer({ data: [theModel] });
  if (path.startsWith("/copilot_internal/user"))
    return jsonAnswer({ login: "octocat", copilot_plan: "individual_pro", is_mcp_enabled: true });
  return { status: 404 };
}

const theModel = {
  id: "claude-sonnet-4.5",
  name: "Claude",
  vendor: "Anthropic",
  version: "1",
  object: "model",
  model_picker_enabled: true,
  capabilities: {
    type: "chat",
    family: "claude-sonnet-4.5",
    object: "model_capabilities",
    tokenizer: "o200k_base",
    supports: { tool_calls: true, parallel_tool_calls: true, vision: true, streaming: true },
    limits: { max_context_window_tokens: 200_000, max_prompt_tokens: 128_000, max_output_tokens: 8_000 },
  },
};
