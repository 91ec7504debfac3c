import { randomUUID } from "node:crypto";
import type { Readable, Writable } from "node:stream";
import {
  createMessageConnection,
  type MessageConnection,
  ResponseError,
  StreamMessageReader,
  StreamMessageWriter,
} from "vscode-jsonrpc/node.js";
import { askModel, ModelFault, type ModelReply } from "./ask-model.ts";
import { makeCall } from "./double-calls.ts";
import { OpenDocuments } from "./double-tools.ts";
import { Refusal, ToolTable } from "./tool-table.ts";

// biome-ignore lint/suspicious/noExplicitAny: whatever came over the wire
type Json = any;

/** Faults that the double can have in addition to those of the real server. */
export interface DoubleFaults {
  /** Dies when a tool is called. */
  readonly diesOnCall?: boolean;
  /** Number of empty reports to send before each call. */
  readonly flood?: number;
  /** Sends the editor requests with unknown methods, and waits for the answers. */
  readonly asksNonsense?: boolean;
  /** Never answers `initialize`. */
  readonly isMute?: boolean;
  /** Names of tools that the server refuses to register. */
  readonly refuses?: readonly string[];
  /** Ignores requests to shut down. */
  readonly lingers?: boolean;
}

interface Conversation {
  readonly messages: Json[];
}

/**
 * A double of GitHub's Copilot language server 1.539. It validates requests and responses as the real server does, and calls
 * the tools that the model of the backend asks for. The same scenarios run with both.
 */
export class ServerDouble {
  readonly #connection: MessageConnection;
  readonly #environment: Readonly<Record<string, string | undefined>>;
  readonly #faults: DoubleFaults;
  readonly #tools = new ToolTable();
  readonly #documents = new OpenDocuments();
  readonly #conversations = new Map<string, Conversation>();
  readonly #turns = new Map<string | number, AbortController>();
  #settings: Json = {};

  constructor(input: Readable, output: Writable, environment: Readonly<Record<string, string | undefined>>, faults: DoubleFaults = {}) {
    this.#environment = environment;
    this.#faults = faults;
    this.#connection = createMessageConnection(new StreamMessageReader(input), new StreamMessageWriter(output));
    this.#connection.onRequest((method, params) => this.#answer(method, params));
    this.#connection.onNotification((method, params) => this.#hear(method, params));
    this.#connection.onClose(() => this.#end());
    this.#connection.listen();
  }

  async #answer(method: string, params: Json): Promise<unknown> {
    try {
      return await this.#serve(method, params);
    } catch (error) {
      if (error instanceof Refusal) return new ResponseError(error.code, error.message);
      throw error;
    }
  }

  #serve(method: string, params: Json): unknown {
    switch (method) {
      case "initialize":
        return this.#faults.isMute ? new Promise(() => {}) : greeting;
      case "shutdown":
        return this.#faults.lingers ? new Promise(() => {}) : null;
      case "checkStatus":
        return this.#status();
      case "copilot/models":
        return this.#models();
      case "conversation/registerTools":
        return this.#register(params);
      case "conversation/unregisterTools":
        return this.#tools.unregister(params);
      case "conversation/updateToolsStatus":
        return this.#tools.setStatus(params);
      case "conversation/create":
        return this.#create(params);
      case "conversation/turn":
        return this.#turn(params.conversationId, params.message, params);
      case "conversation/destroy":
        this.#conversations.delete(params.conversationId);
        return "OK";
      default:
        throw new Refusal(-32601, `Unhandled method ${method}`);
    }
  }

  #hear(method: string, params: Json): void {
    if (method === "exit") this.#end();
    if (method === "workspace/didChangeConfiguration") this.#settings = params.settings?.github?.copilot?.agent ?? {};
    if (method.startsWith("textDocument/")) this.#documents.hear(method, params);
    if (method === "window/workDoneProgress/cancel") this.#turns.get(params.token)?.abort();
  }

  #end(): void {
    if (this.#faults.lingers !== true) process.exit(0);
  }

  #register(params: Json): unknown {
    const refused = params?.tools?.find?.(({ name }: Json) => this.#faults.refuses?.includes(name));
    if (refused !== undefined) throw new Refusal(-32602, `There is something about ${refused.name}.`);
    return this.#tools.register(params);
  }

  async #status(): Promise<object> {
    const response = await fetch(`${this.#environment["GH_COPILOT_API_URL"]}/copilot_internal/v2/token`);
    return response.ok ? { status: "OK", user: this.#environment["GH_COPILOT_USER"] } : { status: "NotSignedIn" };
  }

  async #models(): Promise<unknown> {
    const response = await fetch(`${this.#url}/models`);
    const { data } = (await response.json()) as Json;
    return data.map(({ id, name, is_chat_default }: Json) => ({
      id,
      modelName: name,
      scopes: ["chat-panel", "inline", "agent-panel"],
      isChatDefault: is_chat_default,
    }));
  }

  #create(params: Json): Promise<unknown> {
    if (params.modelInfo?.id === undefined && params.model === undefined) {
      throw new Refusal(-32603, "Request conversation/create failed with message: A model id is required.");
    }
    const conversationId = randomUUID();
    this.#conversations.set(conversationId, { messages: [] });
    return this.#turn(conversationId, params.turns[0].request, params);
  }

  async #turn(conversationId: string, request: string, { workDoneToken, chatMode, modelInfo, model }: Json): Promise<unknown> {
    const turnId = randomUUID();
    const stop = new AbortController();
    this.#turns.set(workDoneToken, stop);
    const emit = (value: object): void => {
      void this.#connection.sendNotification("$/progress", { token: workDoneToken, value: { ...value, conversationId, turnId } });
    };
    stop.signal.addEventListener("abort", () => emit({ kind: "end", cancellationReason: "CancelledByUser" }));
    emit({ kind: "begin", title: `Conversation ${conversationId} Turn ${turnId}` });
    if (this.#faults.asksNonsense) await this.#askNonsense();
    const turn = { conversationId, turnId, isAgent: chatMode === "Agent", model: modelInfo?.id ?? model, stop, emit };
    const error = await this.#run(turn, request);
    if (!stop.signal.aborted) emit({ kind: "end", ...(error !== undefined && { error }) });
    this.#turns.delete(workDoneToken);
    return { conversationId, turnId, modelName: "GPT-4.1", modelInfo: { id: modelInfo?.id ?? model } };
  }

  async #run(turn: DoubleTurn, request: string): Promise<object | undefined> {
    const { stop } = turn;
    const conversation = this.#conversations.get(turn.conversationId) ?? { messages: [] };
    conversation.messages.push({ role: "user", content: request });
    try {
      for (let roundId = 1; !stop.signal.aborted; roundId++) {
        const reply = await this.#ask(turn, conversation);
        turn.emit({ kind: "report", editAgentRounds: [{ roundId, reply: reply.content }] });
        if (reply.toolCalls.length === 0) return undefined;
        conversation.messages.push({ role: "assistant", content: reply.content, tool_calls: reply.toolCalls });
        // Calls run one after the other, in the order of the message.
        for (const call of reply.toolCalls) conversation.messages.push(await this.#call(turn, roundId, call));
      }
    } catch (error) {
      if (stop.signal.aborted) return undefined;
      if (!(error instanceof ModelFault)) return { message: String(error), code: -1 };
      const { message, status, retryAfter } = error;
      return { message, code: status, ...(retryAfter !== null && { retryAfter: Number(retryAfter) }) };
    }
    return undefined;
  }

  #ask({ isAgent, model, stop }: DoubleTurn, { messages }: Conversation): Promise<ModelReply> {
    const offered = isAgent ? this.#tools.list() : [];
    const tools = offered.map(({ nameForModel, description, inputSchema }) => {
      return { type: "function", function: { name: nameForModel, description, parameters: inputSchema } };
    });
    return askModel(this.#url, { model, messages, tools }, stop.signal);
  }

  async #call(
    { conversationId, turnId, emit, model, stop }: DoubleTurn,
    roundId: number,
    call: ModelReply["toolCalls"][number],
  ): Promise<object> {
    const toMessage = (content: string): object => ({ role: "tool", tool_call_id: call.id, content });
    const tool = this.#tools.byModelName(call.name);
    if (tool === undefined) return toMessage(`Tool call failed with error: Tool with name ${call.name} not found in registered tools`);
    if (this.#faults.diesOnCall) process.kill(process.pid, "SIGKILL");
    for (let count = 0; count < (this.#faults.flood ?? 0); count++) emit({ kind: "report", editAgentRounds: [{ roundId, reply: "." }] });
    const input = JSON.parse(call.arguments || "{}") as Json;
    const report = (status: string, more: object = {}): void =>
      emit({
        kind: "report",
        editAgentRounds: [
          { roundId, reply: "", toolCalls: [{ id: call.id, name: tool.name, toolType: tool.type, status, input, ...more }] },
        ],
      });
    const place = {
      tools: this.#tools,
      documents: this.#documents,
      settings: this.#settings,
      request: (method: string, params: object) => this.#connection.sendRequest(method, params),
      complete: async (prompt: string) =>
        (await askModel(this.#url, { model, messages: [{ role: "user", content: prompt }] }, stop.signal)).content,
      running: () => report("running", { progressMessage: `Running ${tool.name} tool` }),
    };
    const { status, text } = await makeCall(tool, input, { conversationId, turnId, roundId, toolCallId: call.id }, place);
    report(status, status === "error" ? { error: text } : { result: [{ type: "text", value: text }] });
    return toMessage(text);
  }

  async #askNonsense(): Promise<void> {
    const ask = (method: string, params: Json): Promise<unknown> =>
      this.#connection.sendRequest(method, params).catch((error) => error.code);
    const answers = await Promise.all([
      ask("no/such/method", {}),
      ask("copilot/watchedFiles", {}),
      ask("window/showMessageRequest", {}),
      ask("__proto__", {}),
    ]);
    void this.#connection.sendNotification("window/logMessage", { type: 2, message: `answers ${JSON.stringify(answers)}` });
    void this.#connection.sendNotification("no/such/notification", [1, 2]);
  }

  get #url(): string {
    return this.#environment["GITHUB_COPILOT_OVERRIDE_CAPI_URL"] ?? "";
  }
}

/** A running turn. */
interface DoubleTurn {
  readonly conversationId: string;
  readonly turnId: string;
  readonly isAgent: boolean;
  readonly model: string;
  readonly stop: AbortController;
  emit(value: object): void;
}

const greeting = {
  capabilities: { textDocumentSync: { openClose: true, change: 2 }, workspace: { workspaceFolders: { supported: true } } },
  serverInfo: { name: "Double of the GitHub Copilot Language Server", version: "1.539.0", nodeVersion: process.versions.node },
};
