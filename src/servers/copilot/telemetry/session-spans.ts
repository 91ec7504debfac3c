import { isRecord, type Json, textOf } from "../../../base/json.ts";
import type { RecordedEvent } from "../../../session/history/events.ts";
import type { Session } from "../../../session/session.ts";
import type { SessionProvider } from "../../../session/turns/turn-options.ts";
import type { Environment } from "../copilot-options.ts";
import { now, parsePlace, Span, type SpanAttributes, type SpanKind, type SpanParent, type SpanTime } from "./span.ts";
import {
  asText,
  errorOf,
  hash,
  hookAttributes,
  numberAttribute,
  numberOf,
  parametersOf,
  partsOf,
  serverStates,
  textAttribute,
  usageAttributes,
} from "./span-attributes.ts";
import type { TelemetryFile } from "./telemetry-file.ts";

/** What the spans of a session say of it, beside its events. */
interface SpannedSession {
  readonly id: string;
  /** The provider of its model, as in `gen_ai.provider.name`. */
  provider(): string;
  /** The names of its active skills. */
  skills(): readonly string[];
  /** The names of its MCP servers. */
  servers(): readonly string[];
  isCustomAgent(name: string): boolean;
}

/** The spans of a session, by its options at the time. */
export function createSessionSpans(file: TelemetryFile, session: Session, environment: Environment): SessionSpans {
  return new SessionSpans(file, {
    id: session.id,
    provider: () => providerName(session.config.turn.provider, environment),
    skills: () => session.listSkills().map(({ name }) => name),
    servers: () => session.mcp.list().map(({ name }) => name),
    isCustomAgent: (name) => session.config.agents.custom.some((agent) => agent.name === name),
  });
}

function providerName(provider: SessionProvider | undefined, environment: Environment): string {
  const { type = "openai", baseUrl } = (provider ?? {}) as { readonly type?: string; readonly baseUrl?: string };
  return baseUrl !== undefined && baseUrl === environment["COPILOT_API_URL"] ? "github" : type;
}

/** One answer to a message, or one task of a sub-agent. */
interface AgentRun {
  readonly span: Span;
  /** Undefined: the session's own agent. */
  readonly name: string | undefined;
  readonly interactionId: unknown;
  chat: ChatRun | undefined;
  /** What the model has not been sent yet. */
  input: object[];
  /** The first input, and the last answer. */
  firstInput: readonly object[] | undefined;
  lastOutput: readonly object[] | undefined;
  /** Events of the next request to the model. */
  chatEvents: [name: string, attributes: SpanAttributes, time: SpanTime][];
  inputTokens: number;
  outputTokens: number;
  chats: number;
  calls: number;
  model: string | undefined;
  responseModel: string | undefined;
  finishReason: string | undefined;
}

interface ChatRun {
  readonly span: Span;
  readonly model: string;
  hasAnswer: boolean;
  /** When it ended without an answer. */
  failedAt: SpanTime | undefined;
}

interface CallRun {
  readonly span: Span;
  /** As it is exported. */
  readonly name: string;
  readonly agentName: string | undefined;
}

/** A message's place in the trace of the program that sent it. */
const placesKept = 200;
const mostEarlyEvents = 128;

/**
 * Makes spans of a session's events: `invoke_agent`, `chat`, `execute_tool`, `permission` and `external_tool`, by the conventions of
 * OpenTelemetry for generative AI and with the names of the official runtime. Without capturing content, names from outside are
 * hashed, and no text is exported.
 */
export class SessionSpans {
  readonly #file: TelemetryFile;
  readonly #session: SpannedSession;
  readonly #agents = new Map<string | undefined, AgentRun>();
  readonly #calls = new Map<string, CallRun>();
  /** Spans of permissions and of client's tools, by the request's id. */
  readonly #requests = new Map<string, Span>();
  readonly #places = new Map<string, SpanParent>();
  /** Events before the first message. */
  #early: AgentRun["chatEvents"] = [];
  /** The place of messages that name none. */
  #place: SpanParent | undefined;
  #instructions: string | undefined;

  constructor(file: TelemetryFile, session: SpannedSession) {
    this.#file = file;
    this.#session = session;
  }

  /** Takes the place in a trace that a request names for all messages, or for one. A malformed one is ignored. */
  placeAt(traceparent: unknown, tracestate: unknown, messageId?: string): void {
    const place = parsePlace(traceparent, tracestate);
    if (messageId === undefined) this.#place = place ?? this.#place;
    else if (place !== undefined) this.#places.set(messageId, place);
    for (const oldest of this.#places.keys()) if (this.#places.size > placesKept) this.#places.delete(oldest);
  }

  /** Takes an event as clients see it. Returns what is to be added to its data. */
  hear({ type, data, agentId }: RecordedEvent): object | undefined {
    const handle = Object.hasOwn(handlers, type) ? handlers[type] : undefined;
    return handle?.call(this, data, agentId);
  }

  /** Ends the spans of a session that ends. */
  close(): void {
    const reason = "The session was closed before this was over.";
    for (const span of this.#requests.values()) span.end();
    this.#requests.clear();
    for (const id of [...this.#calls.keys()]) this.#endCall(id, { type: "SessionClosedError", message: reason, code: "session_closed" });
    for (const [id, { span }] of [...this.#agents]) {
      span.fail("SessionClosedError", reason);
      this.#endAgent(id);
    }
  }

  get #captures(): boolean {
    return this.#file.settings.capturesContent;
  }

  #begin(name: string, kind: SpanKind, parent: SpanParent | undefined, attributes: SpanAttributes): Span {
    return new Span(this.#file, name, kind, parent, attributes);
  }

  #operation(name: string): SpanAttributes {
    return {
      "gen_ai.operation.name": name,
      "gen_ai.provider.name": this.#session.provider(),
      "gen_ai.conversation.id": this.#session.id,
    };
  }

  /** A name from outside: hashed unless content is captured. */
  #nameOf(name: string): string {
    return this.#captures ? name : hash(name);
  }

  #beginAgent(agentId: string | undefined, parent: SpanParent | undefined, name: string | undefined, interactionId: unknown): AgentRun {
    const isCustom = name !== undefined && this.#session.isCustomAgent(name);
    const shown = isCustom && !this.#captures ? "custom-agent" : name;
    const span = this.#begin(shown === undefined ? "invoke_agent" : `invoke_agent ${shown}`, "internal", parent, {
      ...this.#operation("invoke_agent"),
      ...(shown !== undefined && { "gen_ai.agent.name": shown }),
      "github.copilot.agent.type": isCustom ? "custom" : "builtin",
      "github.copilot.context.skills": JSON.stringify(this.#session.skills().map((skill) => this.#nameOf(skill))),
      "github.copilot.context.mcp_server_names": JSON.stringify(this.#session.servers().map((server) => this.#nameOf(server))),
    });
    if (agentId === undefined) for (const [event, attributes, time] of this.#early.splice(0)) span.addEvent(event, attributes, time);
    const run: AgentRun = {
      span,
      name: shown,
      interactionId,
      chat: undefined,
      input: [],
      firstInput: undefined,
      lastOutput: undefined,
      chatEvents: [],
      inputTokens: 0,
      outputTokens: 0,
      chats: 0,
      calls: 0,
      model: undefined,
      responseModel: undefined,
      finishReason: undefined,
    };
    this.#agents.set(agentId, run);
    return run;
  }

  #endAgent(agentId: string | undefined): void {
    const run = this.#agents.get(agentId);
    if (run === undefined) return;
    this.#agents.delete(agentId);
    this.#endChat(run);
    const { span, name, model, responseModel, finishReason, inputTokens, outputTokens, chats, calls } = run;
    if (finishReason !== undefined) span.attributes["gen_ai.response.finish_reasons"] = [finishReason];
    if (inputTokens + outputTokens > 0) {
      span.attributes["gen_ai.usage.input_tokens"] = inputTokens;
      span.attributes["gen_ai.usage.output_tokens"] = outputTokens;
    }
    span.attributes["github.copilot.turn_count"] = chats;
    if (this.#captures) {
      if (run.firstInput !== undefined) span.attributes["gen_ai.input.messages"] = JSON.stringify(run.firstInput);
      if (run.lastOutput !== undefined) span.attributes["gen_ai.output.messages"] = JSON.stringify(run.lastOutput);
      this.#addInstructions(span, agentId);
    }
    const seconds = span.end();
    const { metrics } = this.#file;
    const failed = errorOf(span);
    const agent = name === undefined ? {} : { "gen_ai.agent.name": name };
    metrics.record("gen_ai.client.operation.duration", seconds, {
      ...this.#measured("invoke_agent"),
      ...(model !== undefined && { "gen_ai.request.model": model }),
      ...(responseModel !== undefined && { "gen_ai.response.model": responseModel }),
      ...failed,
    });
    metrics.record("gen_ai.invoke_agent.duration", seconds, { ...agent, ...failed });
    metrics.record("gen_ai.invoke_agent.inference_calls", chats, agent);
    metrics.record("gen_ai.invoke_agent.tool_calls", calls, agent);
    metrics.record("github.copilot.agent.turn.count", chats, { "gen_ai.operation.name": "invoke_agent" });
  }

  #measured(operation: string): SpanAttributes {
    return { "gen_ai.operation.name": operation, "gen_ai.provider.name": this.#session.provider() };
  }

  // The instructions of sub-agents are not announced.
  #addInstructions(span: Span, agentId: string | undefined): void {
    if (agentId !== undefined || this.#instructions === undefined) return;
    span.attributes["gen_ai.system_instructions"] = JSON.stringify([{ type: "text", content: this.#instructions }]);
  }

  #endChat(run: AgentRun): void {
    const { chat } = run;
    if (chat === undefined) return;
    run.chat = undefined;
    const { span, model } = chat;
    if (!chat.hasAnswer) {
      span.endTime = chat.failedAt;
      span.attributes["gen_ai.response.finish_reasons"] = ["error"];
      run.finishReason = "error";
      if (span.failure === undefined) span.fail("_OTHER", "The request to the model failed.");
    }
    const answered = span.attributes["gen_ai.response.model"];
    this.#file.metrics.record("gen_ai.client.operation.duration", span.end(), {
      ...this.#measured("chat"),
      "gen_ai.request.model": model,
      ...(answered !== undefined && { "gen_ai.response.model": answered }),
      ...errorOf(span),
    });
  }

  /** Adds an event to what is happening now. */
  #note(agentId: string | undefined, name: string, attributes: SpanAttributes): void {
    const run = this.#agents.get(agentId);
    if (run !== undefined) (run.chat?.span ?? run.span).addEvent(name, attributes);
    else if (this.#early.length < mostEarlyEvents) this.#early.push([name, attributes, now()]);
  }

  #endCall(id: string, error?: { readonly type: string; readonly message: string; readonly code: string }): void {
    const call = this.#calls.get(id);
    if (call === undefined) return;
    this.#calls.delete(id);
    const { span, name, agentName } = call;
    const message = this.#captures ? error?.message : "Tool failed";
    if (error !== undefined) span.fail(error.type, message ?? "", { "github.copilot.error_code": error.code });
    const seconds = span.end();
    const { metrics } = this.#file;
    const failed = errorOf(span);
    const tool = { "gen_ai.tool.name": name };
    metrics.record("gen_ai.client.operation.duration", seconds, { ...this.#measured("execute_tool"), ...failed });
    metrics.record("gen_ai.execute_tool.duration", seconds, {
      ...failed,
      ...tool,
      "gen_ai.tool.type": "function",
      ...(agentName !== undefined && { "gen_ai.agent.name": agentName }),
    });
    metrics.record("github.copilot.tool.call.count", 1, { ...tool, success: error === undefined });
    metrics.record("github.copilot.tool.call.duration", seconds, tool);
  }

  #beginCall(data: Json, agentId: string | undefined): void {
    const id = textOf(data["toolCallId"]);
    const run = this.#agents.get(agentId);
    const parent = this.#calls.get(textOf(data["parentToolCallId"]))?.span ?? run?.span ?? this.#place;
    const [server, tool] = [textOf(data["mcpServerName"]), textOf(data["mcpToolName"])];
    const name = server === "" || this.#captures ? textOf(data["toolName"]) : `${hash(server)}/${hash(tool)}`;
    if (run !== undefined) run.calls += 1;
    const span = this.#begin(`execute_tool ${name}`, "internal", parent, {
      ...this.#operation("execute_tool"),
      "gen_ai.tool.name": name,
      "gen_ai.tool.call.id": id,
      "gen_ai.tool.type": "function",
      ...(this.#captures && { "gen_ai.tool.call.arguments": asText(data["arguments"]), ...parametersOf(data) }),
      ...(server !== "" && !this.#captures && { "github.copilot.tool.parameters.mcp_server_name_hash": hash(server) }),
    });
    this.#calls.set(id, { span, name, agentName: run?.name });
  }

  #completeCall(data: Json, agentId: string | undefined): void {
    const id = textOf(data["toolCallId"]);
    const span = this.#calls.get(id)?.span;
    const content = isRecord(data["result"]) ? textOf(data["result"]["content"]) : "";
    const error = isRecord(data["error"]) ? data["error"] : undefined;
    const message = textOf(error?.["message"]);
    const isSuccess = data["success"] === true;
    if (span !== undefined && isSuccess && this.#captures) span.attributes["gen_ai.tool.call.result"] = content;
    const part = { type: "tool_call_response", id, response: isSuccess ? content : message };
    this.#agents.get(agentId)?.input.push({ role: "tool", parts: [part] });
    this.#endCall(id, isSuccess ? undefined : { type: "ToolError", message, code: textOf(error?.["code"]) || "failure" });
  }

  #takeMessage(data: Json, agentId: string | undefined): void {
    const { content, transformedContent, source, interactionId, messageId } = data;
    const before = this.#agents.get(agentId);
    const isNew =
      agentId === undefined && (before === undefined || (before.interactionId !== interactionId && interactionId !== undefined));
    if (isNew && before !== undefined) this.#endAgent(undefined);
    const parent = this.#places.get(textOf(messageId)) ?? this.#place;
    const run = isNew || before === undefined ? this.#beginAgent(agentId, parent, undefined, interactionId) : before;
    const text = textOf(transformedContent) || textOf(content);
    run.input.push({ role: "user", parts: [{ type: "text", content: text }] });
    run.span.addEvent("github.copilot.user.message", {
      "github.copilot.user.message.source": textOf(source) || "user",
      ...textAttribute("github.copilot.user.message.agent_mode", data["agentMode"]),
      ...textAttribute("github.copilot.user.message.interaction_id", interactionId),
    });
  }

  #beginChat({ turnId, model }: Json, agentId: string | undefined): void {
    const run = this.#agents.get(agentId) ?? this.#beginAgent(agentId, this.#place, undefined, undefined);
    this.#endChat(run);
    const name = textOf(model);
    run.model ??= name;
    run.chats += 1;
    const span = this.#begin(`chat ${name}`, "client", run.span, {
      ...this.#operation("chat"),
      "gen_ai.request.model": name,
      ...textAttribute("github.copilot.turn_id", turnId),
      ...textAttribute("github.copilot.interaction_id", run.interactionId),
    });
    for (const event of run.chatEvents.splice(0)) span.addEvent(...event);
    const input = run.input.splice(0);
    run.firstInput ??= input;
    if (this.#captures) {
      if (input.length > 0) span.attributes["gen_ai.input.messages"] = JSON.stringify(input);
      this.#addInstructions(span, agentId);
    }
    run.chat = { span, model: name, hasAnswer: false, failedAt: undefined };
  }

  #measureChat(data: Json, agentId: string | undefined): void {
    const run = this.#agents.get(agentId);
    const chat = run?.chat;
    if (run === undefined || chat === undefined) return;
    chat.hasAnswer = true;
    const { span } = chat;
    span.endTime = now();
    run.finishReason = textOf(data["finishReason"]);
    run.responseModel = textOf(data["model"]);
    span.attributes["gen_ai.response.finish_reasons"] = [run.finishReason];
    span.attributes["gen_ai.response.model"] = run.responseModel;
    if (textOf(data["apiCallId"]) !== "") span.attributes["gen_ai.response.id"] = textOf(data["apiCallId"]);
    span.attributes["github.copilot.initiator"] = textOf(data["initiator"]);
    for (const [name, attribute] of usageAttributes) {
      if (typeof data[name] === "number" && (data[name] > 0 || !name.startsWith("cache"))) span.attributes[attribute] = data[name];
    }
    if (typeof data["timeToFirstTokenMs"] === "number")
      span.attributes["gen_ai.response.time_to_first_chunk"] = data["timeToFirstTokenMs"] / 1000;
    run.inputTokens += numberOf(data["inputTokens"]);
    run.outputTokens += numberOf(data["outputTokens"]);
    for (const [type, count] of [["input", data["inputTokens"]] as const, ["output", data["outputTokens"]] as const]) {
      if (typeof count !== "number") continue;
      this.#file.metrics.record("gen_ai.client.token.usage", count, {
        ...this.#measured("chat"),
        "gen_ai.request.model": chat.model,
        "gen_ai.response.model": run.responseModel,
        "gen_ai.token.type": type,
      });
    }
  }

  #takeAnswer(data: Json, agentId: string | undefined): void {
    const run = this.#agents.get(agentId);
    if (run?.chat === undefined) return;
    const output = [{ role: "assistant", parts: partsOf(data) }];
    run.lastOutput = output;
    if (this.#captures) run.chat.span.attributes["gen_ai.output.messages"] = JSON.stringify(output);
    this.#endChat(run);
  }

  #failAgent(agentId: string | undefined, type: string, message: string): void {
    const run = this.#agents.get(agentId);
    if (run === undefined || run.span.failure !== undefined) return;
    const shown = this.#captures ? message : "The agent failed.";
    if (run.chat !== undefined && !run.chat.hasAnswer) run.chat.span.fail(type, shown);
    this.#endChat(run);
    run.span.fail(type, shown);
  }

  static readonly handlers: Readonly<Record<string, Handler>> = {
    "system.message"(data) {
      this.#instructions = textOf(data["content"]);
    },
    "user.message"(data, agentId) {
      this.#takeMessage(data, agentId);
    },
    "session.usage_info"(data, agentId) {
      const attributes = {
        "github.copilot.token_limit": numberOf(data["tokenLimit"]),
        "github.copilot.current_tokens": numberOf(data["currentTokens"]),
        "github.copilot.messages_length": numberOf(data["messagesLength"]),
      };
      this.#agents.get(agentId)?.chatEvents.push(["github.copilot.session.usage_info", attributes, now()]);
    },
    "model.call_start"(data, agentId) {
      this.#beginChat(data, agentId);
    },
    "model.call_failure"(data, agentId) {
      const type = textOf(data["errorCode"]) || "_OTHER";
      const message = this.#captures ? textOf(data["errorMessage"]) : "The request to the model failed, and is sent again.";
      this.#note(agentId, "gen_ai.client.operation.exception", { "exception.type": type, "exception.message": message });
    },
    "assistant.usage"(data, agentId) {
      this.#measureChat(data, agentId);
    },
    "assistant.message"(data, agentId) {
      this.#takeAnswer(data, agentId);
    },
    "assistant.turn_end"(_data, agentId) {
      const run = this.#agents.get(agentId);
      if (run?.chat === undefined) return;
      if (run.chat.hasAnswer) this.#endChat(run);
      else run.chat.failedAt = now();
    },
    "session.error"(data, agentId) {
      this.#failAgent(agentId, textOf(data["errorType"]) || "_OTHER", `Session error: ${textOf(data["message"])}`);
    },
    abort(data, agentId) {
      const run = this.#agents.get(agentId);
      run?.span.addEvent("github.copilot.session.abort", { "github.copilot.abort_reason": textOf(data["reason"]) });
      this.#failAgent(agentId, "AbortError", "Operation aborted");
    },
    "assistant.idle"(data) {
      if (data["aborted"] === true) this.#failAgent(undefined, "AbortError", "Operation aborted");
      this.#endAgent(undefined);
    },
    "subagent.started"(data, agentId) {
      const call = this.#calls.get(textOf(data["toolCallId"]));
      const parent = call?.span ?? this.#agents.get(undefined)?.span ?? this.#place;
      if (agentId !== undefined) this.#beginAgent(agentId, parent, textOf(data["agentName"]), undefined);
    },
    "subagent.completed"(_data, agentId) {
      if (agentId !== undefined) this.#endAgent(agentId);
    },
    "subagent.failed"(data, agentId) {
      if (agentId === undefined) return;
      this.#failAgent(agentId, "SubagentError", textOf(data["error"]));
      this.#endAgent(agentId);
    },
    "tool.execution_start"(data, agentId) {
      this.#beginCall(data, agentId);
    },
    "tool.execution_complete"(data, agentId) {
      this.#completeCall(data, agentId);
    },
    "permission.requested"(data) {
      const request = isRecord(data["permissionRequest"]) ? data["permissionRequest"] : {};
      const kind = textOf(request["kind"]);
      const named =
        kind === "custom-tool" || kind === "mcp" ? textAttribute("github.copilot.permission.tool_name", request["toolName"]) : {};
      const span = this.#begin("permission", "internal", this.#calls.get(textOf(request["toolCallId"]))?.span ?? this.#place, {
        "gen_ai.conversation.id": this.#session.id,
        "github.copilot.permission.kind": kind,
        ...named,
      });
      this.#requests.set(textOf(data["requestId"]), span);
    },
    "permission.completed"(data) {
      const kind = isRecord(data["result"]) ? textOf(data["result"]["kind"]) : "";
      this.#endRequest(data["requestId"], { "github.copilot.permission.result": kind });
    },
    "external_tool.requested"(data) {
      const call = this.#calls.get(textOf(data["toolCallId"]))?.span;
      const name = this.#nameOf(textOf(data["toolName"]));
      const span = this.#begin(`external_tool ${name}`, "internal", call ?? this.#place, {
        "gen_ai.conversation.id": this.#session.id,
        "github.copilot.external_tool.name": name,
        "github.copilot.external_tool.call_id": textOf(data["toolCallId"]),
      });
      this.#requests.set(textOf(data["requestId"]), span);
      // A program with tracing of its own has said where its spans belong.
      return data["traceparent"] === undefined ? call?.headers : undefined;
    },
    "external_tool.completed"(data) {
      this.#endRequest(data["requestId"], {});
    },
    "hook.start"(data, agentId) {
      this.#note(agentId, "github.copilot.hook.start", hookAttributes(data));
    },
    "hook.end"(data, agentId) {
      const isError = data["success"] !== true;
      const message =
        isRecord(data["error"]) && this.#captures ? textAttribute("github.copilot.hook.error_message", data["error"]["message"]) : {};
      const name = isError ? "github.copilot.hook.error" : "github.copilot.hook.end";
      this.#note(agentId, name, { ...hookAttributes(data), ...(isError && message) });
    },
    "skill.invoked"(data, agentId) {
      this.#note(agentId, "github.copilot.skill.invoked", {
        "github.copilot.skill.name": this.#nameOf(textOf(data["name"])),
        ...textAttribute("github.copilot.skill.source", data["source"]),
        ...textAttribute("github.copilot.skill.invocation_trigger", data["trigger"]),
        ...(this.#captures && {
          ...textAttribute("github.copilot.skill.path", data["path"]),
          ...textAttribute("github.copilot.skill.content", data["content"]),
        }),
      });
    },
    "session.mcp_server_status_changed"(data) {
      const name = textOf(data["serverName"]);
      const state = serverStates[textOf(data["status"])];
      if (state === undefined) return;
      this.#note(undefined, "github.copilot.mcp.server.lifecycle", {
        "github.copilot.mcp.server.state": state,
        "github.copilot.mcp.server.name_hash": hash(name),
        ...(this.#captures && {
          "github.copilot.mcp.server.name": name,
          ...textAttribute("github.copilot.mcp.server.error", data["error"]),
        }),
      });
      if (state === "discovered") return;
      const outcome = state === "initialized" ? "success" : "failure";
      this.#file.metrics.record("github.copilot.mcp.server.connection.count", 1, { outcome });
    },
    "session.compaction_start"(_data, agentId) {
      this.#note(agentId, "github.copilot.session.compaction_start", {});
    },
    "session.compaction_complete"(data, agentId) {
      this.#note(agentId, "github.copilot.session.compaction_complete", {
        "github.copilot.success": data["success"] === true,
        ...numberAttribute("github.copilot.pre_tokens", data["preCompactionTokens"]),
        ...numberAttribute("github.copilot.post_tokens", data["postCompactionTokens"]),
        ...numberAttribute("github.copilot.tokens_removed", data["tokensRemoved"]),
        ...numberAttribute("github.copilot.messages_removed", data["messagesRemoved"]),
      });
    },
  };

  #endRequest(requestId: unknown, attributes: SpanAttributes): void {
    const span = this.#requests.get(textOf(requestId));
    if (span === undefined) return;
    this.#requests.delete(textOf(requestId));
    Object.assign(span.attributes, attributes);
    span.end();
  }
}

type Handler = (this: SessionSpans, data: Json, agentId: string | undefined) => object | undefined;

const { handlers } = SessionSpans;
