import { appendFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { PassThrough } from "node:stream";
import { createMessageConnection, type MessageConnection, StreamMessageReader, StreamMessageWriter } from "vscode-jsonrpc/node.js";
import { silentLogger } from "../../../src/base/logger.ts";
import { startHost } from "../../../src/host/create-host.ts";
import type { HostOptions } from "../../../src/host/host-options.ts";
import type { CopilotServerOptions } from "../../../src/servers/copilot/copilot-options.ts";
import { CopilotServer } from "../../../src/servers/copilot/copilot-server.ts";
import { families } from "../../../src/servers/copilot/methods/dispatch.ts";
import { unsupported } from "../../../src/servers/copilot/methods/unsupported.ts";
import type { RecordedEvent } from "../../../src/session/history/events.ts";
import { chatAnswer, type ModelScript, type ScriptedModel, type ScriptedReply, startScriptedModel } from "../../doubles/scripted-model.ts";
import { loadContract } from "./wire-contract.ts";

// biome-ignore lint/suspicious/noExplicitAny: answers of a protocol, looked into freely
export type Json = any;

export interface ServedOptions {
  readonly server?: Partial<CopilotServerOptions>;
  readonly host?: Partial<HostOptions>;
  /** Files in the working directory. */
  readonly files?: Readonly<Record<string, string>>;
  readonly script?: ModelScript;
}

/** A server over a host in its own folder, with a model that gives scripted answers. */
export class Served implements AsyncDisposable {
  readonly folder: string;
  readonly model: ScriptedModel;
  readonly server: CopilotServer;
  /** What was sent to clients and is not as the official runtime sends it. */
  readonly #violations = new Set<string>();

  private constructor(folder: string, model: ScriptedModel, options: ServedOptions) {
    this.folder = folder;
    this.model = model;
    const home = join(folder, ".home");
    this.server = new CopilotServer({
      openHost: () =>
        startHost({
          workingDirectory: folder,
          skillDirectories: ["./skills"],
          plugins: [],
          logger: silentLogger,
          sessionsDirectory: join(home, "sessions"),
          approvalsDirectory: join(home, "approvals"),
          mcp: { cacheDirectory: join(home, "cache"), credentialsDirectory: join(home, "oauth") },
          ...options.host,
        }),
      log: silentLogger,
      environment: { COPILOT_API_URL: model.url },
      sessionsDirectory: join(home, "sessions"),
      pluginLibraryDirectory: join(home, "plugins"),
      pluginDataDirectory: join(home, "plugin-data"),
      mcpConfigFile: join(home, "mcp-config.json"),
      ...options.server,
    });
  }

  static async start(options: ServedOptions = {}): Promise<Served> {
    const folder = mkdtempSync(join(tmpdir(), "skillhost-wire-"));
    // It is named, so it must be there.
    mkdirSync(join(folder, "skills"));
    const served = new Served(folder, await startScriptedModel(options.script), options);
    for (const [file, text] of Object.entries(options.files ?? {})) served.write(file, text);
    return served;
  }

  write(file: string, text: string): void {
    const path = join(this.folder, file);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
  }

  /** What the model says next, in order. */
  says(...replies: readonly (ScriptedReply | string)[]): void {
    this.model.answer(...replies.map((reply) => chatAnswer(typeof reply === "string" ? { content: reply } : reply)));
  }

  /** The newest request to the model, without the dates of its messages. */
  get asked(): Json {
    const body: Json = this.model.requests.findLast(({ method }) => method === "POST")?.body;
    return Array.isArray(body?.messages) ? { ...body, messages: body.messages.map(withoutDate) } : body;
  }

  /** A client that has said connect. */
  async connect(): Promise<TestClient> {
    const client = this.open();
    await client.request("connect", {});
    return client;
  }

  /** A client that has said nothing yet. */
  open(): TestClient {
    const toServer = new PassThrough();
    const fromServer = new PassThrough();
    const output = {
      write: (text: string) => void fromServer.write(text),
      get pendingBytes() {
        return fromServer.readableLength;
      },
    };
    const { wire } = this.server.acceptParent({ input: toServer, output });
    void wire.closed.then(() => fromServer.end());
    return new TestClient(toServer, fromServer, this.#violations);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.server.close();
    await this.model.close();
    rmSync(this.folder, { recursive: true, force: true });
    if (this.#violations.size > 0) throw new Error([...this.#violations].join("\n"));
  }
}

/** A client of the protocol, by the library that the SDK's clients use. */
export class TestClient {
  readonly connection: MessageConnection;
  readonly toServer: PassThrough;
  readonly events: { readonly sessionId: string; readonly event: RecordedEvent }[] = [];
  readonly lifecycle: { readonly type: string; readonly sessionId: string }[] = [];
  readonly closed: Promise<void>;
  readonly #waiting = new Set<() => void>();
  /** Undefined: no server sends to this client, only a test. */
  readonly #violations: Set<string> | undefined;

  constructor(toServer: PassThrough, fromServer: PassThrough, violations?: Set<string>) {
    this.toServer = toServer;
    this.#violations = violations;
    this.connection = createMessageConnection(new StreamMessageReader(fromServer), new StreamMessageWriter(toServer));
    this.connection.onNotification("session.event", (received: { sessionId: string; event: RecordedEvent }) => {
      this.#checkEvent(received.event);
      this.events.push(received);
      for (const look of [...this.#waiting]) look();
    });
    this.connection.onNotification("session.lifecycle", (received: { type: string; sessionId: string }) => {
      this.lifecycle.push(received);
      for (const look of [...this.#waiting]) look();
    });
    this.closed = new Promise((resolve) => this.connection.onClose(() => resolve()));
    this.connection.listen();
  }

  async request(method: string, params: object = {}): Promise<Json> {
    const result = await this.connection.sendRequest(method, params);
    this.#record({ method, result });
    this.#note(loadContract()?.result(method, result));
    return result;
  }

  #record(frame: object): void {
    if (frameFolder === undefined || this.#violations === undefined) return;
    appendFileSync(join(frameFolder, `${process.pid}.jsonl`), `${JSON.stringify(frame)}\n`);
  }

  #checkEvent(event: RecordedEvent): void {
    this.#record({ event });
    this.#note(loadContract()?.event(event));
  }

  #note(violation: string | undefined): void {
    if (violation !== undefined) this.#violations?.add(violation);
  }

  /** The message of the error that a request comes to. */
  async refusal(method: string, params: object = {}): Promise<{ readonly code: number; readonly message: string }> {
    try {
      const answer = await this.request(method, params);
      throw new Error(`${method} was answered: ${JSON.stringify(answer)}`);
    } catch (error) {
      const { code, message } = error as { code: number; message: string };
      if (code === undefined) throw error;
      return { code, message };
    }
  }

  answers(method: string, handler: (params: Json) => unknown): void {
    this.connection.onRequest(method, (params: Json) => {
      this.#record({ method, params });
      this.#note(loadContract()?.request(method, params));
      return handler(params);
    });
  }

  /** Makes a session with what the SDK always sends, and gives its id. */
  async create(options: object = {}): Promise<string> {
    const { sessionId } = await this.request("session.create", { ...minimal, ...options });
    return sessionId;
  }

  /** The first event of a type that fits, whether it came already or comes. */
  event(type: string, fits: (event: RecordedEvent) => boolean = () => true): Promise<RecordedEvent> {
    return this.eventually(() => this.events.find(({ event }) => event.type === type && fits(event))?.event);
  }

  /** The first value that is not undefined, checked after every notification. */
  eventually<T>(look: () => T | undefined): Promise<T> {
    return new Promise((resolve) => {
      const attempt = (): void => {
        const found = look();
        if (found === undefined) return;
        this.#waiting.delete(attempt);
        resolve(found);
      };
      this.#waiting.add(attempt);
      attempt();
    });
  }

  /** Sends a message, and settles when the session has come to rest after it. */
  async say(sessionId: string, prompt: string, options: object = {}): Promise<void> {
    const before = this.count("session.idle", sessionId);
    await this.request("session.send", { sessionId, prompt, ...options });
    await this.eventually(() => (this.count("session.idle", sessionId) > before ? true : undefined));
  }

  count(type: string, sessionId?: string): number {
    return this.events.filter((received) => received.event.type === type && (sessionId === undefined || received.sessionId === sessionId))
      .length;
  }

  types(): readonly string[] {
    return this.events.map(({ event }) => event.type);
  }

  /** Answers every permission, and calls of tools by name. */
  serve(tools: Readonly<Record<string, (args: Json) => unknown>> = {}): void {
    this.connection.onNotification("session.event", (received: { sessionId: string; event: RecordedEvent }) => {
      this.#checkEvent(received.event);
      this.events.push(received);
      for (const look of [...this.#waiting]) look();
      void this.#answer(received.sessionId, received.event, tools);
    });
  }

  async #answer(sessionId: string, { type, data }: RecordedEvent, tools: Readonly<Record<string, (args: Json) => unknown>>): Promise<void> {
    const { requestId } = data;
    if (type === "permission.requested") {
      const result = { kind: "approve-once" };
      await this.request("session.permissions.handlePendingPermissionRequest", { sessionId, requestId, result });
    }
    const handler = type === "external_tool.requested" ? tools[String(data["toolName"])] : undefined;
    if (handler === undefined) return;
    await this.request("session.tools.handlePendingToolCall", { sessionId, requestId, result: await handler(data["arguments"]) });
  }

  /** Ends the line without a word. */
  drop(): void {
    this.toServer.end();
    this.connection.dispose();
  }
}

/** The folder in which `npm run test:interop` collects all messages, for the readers of other languages. */
const frameFolder = process.env["SKILLHOST_TEST_FRAMES"];

export const minimal = {
  toolFilterPrecedence: "excluded",
  requestPermission: true,
  requestUserInput: false,
  requestElicitation: false,
  requestExitPlanMode: false,
  requestAutoModeSwitch: false,
  hooks: false,
  includeSubAgentStreamingEvents: true,
  envValueMode: "direct",
};

/** A tool as clients declare it. */
export const weather = {
  name: "get_weather",
  description: "Returns the weather of a city.",
  parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
} as const;

export function calling(name: string, args: object = {}, id = "call-1"): ScriptedReply {
  return { toolCalls: [{ id, name, arguments: args }] };
}

/** The methods that are answered, except those that a connection begins with. */
export async function answeredMethods(): Promise<readonly string[]> {
  const loaded = await Promise.all(families.map(([, load]) => load()));
  return loaded.flatMap((family) => Object.keys(family));
}

/** The methods that are refused, with a reason. */
export const refusedMethods: readonly string[] = Object.values(unsupported).flat();

function withoutDate(message: Json): Json {
  const { content } = message;
  return typeof content === "string"
    ? { ...message, content: content.replace(/<current_datetime>[^<]*<\/current_datetime>\n\n/, "") }
    : message;
}
