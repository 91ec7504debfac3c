import type { JsonSchema } from "../tools/tool.ts";
import type { ModelError } from "./model-error.ts";

/** A chat model, wherever it runs. */
export interface ChatModel {
  /** The model's name at its endpoint. */
  readonly id: string;
  /** Host and port of the endpoint, for telemetry and messages. */
  readonly address: string;
  /** Tokens that a request may have, where that is known. */
  readonly contextWindow?: number;
  /**
   * Asks for one assistant message. Trouble that may pass (too many requests, a broken connection) is tried again with
   * growing waits until part of the answer has gone to `onDelta`. What `onDelta` or `onRetry` throw ends the request
   * and comes out as it is.
   * @throws ModelError with a code that says what kind of trouble it was; `MODEL_ABORTED` when the signal fires.
   * @throws HostError `MODEL_OPTIONS` when a header of the request cannot be sent.
   */
  complete(request: ModelRequest, options: CompleteOptions): Promise<ModelReply>;
}

export interface CompleteOptions {
  readonly signal: AbortSignal;
  /** Hears of the answer while it comes, in order. */
  onDelta?(delta: ModelDelta): void;
  /** Hears of each try that failed and will be repeated. */
  onRetry?(retry: ModelRetry): void;
  /** What the request is for. */
  readonly origin?: RequestOrigin | undefined;
}

/** What a request to a model is for: passed to a `fetch` of the provider's options, never sent to the endpoint. */
export interface RequestOrigin {
  /** `aside`: a question about the conversation that does not become part of it. */
  readonly kind: "agent" | "subagent" | "sampling" | "compaction" | "aside";
  /** Absent: the session's own agent. */
  readonly agentId?: string | undefined;
  /** The sub-agent that started it. Absent: the session's own agent did, or there is none. */
  readonly parentAgentId?: string | undefined;
  /** One for all requests that follow from one message to the agent. */
  readonly interactionId?: string | undefined;
}

export interface ModelRequest {
  readonly messages: readonly ChatMessage[];
  readonly tools?: readonly ModelTool[];
  /** Which tools the model may call; `{ name }` makes it call that one. Left out when there are no tools. */
  readonly toolChoice?: "auto" | "none" | "required" | { readonly name: string };
  /** Whether the answer is asked for piece by piece. Default: when there is an `onDelta`. */
  readonly stream?: boolean;
  readonly temperature?: number;
  readonly maxOutputTokens?: number;
  /** As the endpoint calls it: `low`, `medium`, `high` and the like. */
  readonly reasoningEffort?: string;
  /** On top of the model's own, which they replace name by name. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** What a model is told of a tool. A `ToolDefinition` is one. */
export interface ModelTool {
  readonly name: string;
  readonly description?: string;
  readonly parameters?: JsonSchema;
  /** The endpoint makes sure that arguments fit the schema, if it can. */
  readonly strict?: boolean;
}

export type ChatMessage = SystemMessage | UserMessage | AssistantMessage | ToolMessage;

interface SystemMessage {
  readonly role: "system";
  readonly content: string;
}

interface UserMessage {
  readonly role: "user";
  readonly content: string | readonly MessagePart[];
}

export interface AssistantMessage {
  readonly role: "assistant";
  readonly content: string;
  readonly toolCalls?: readonly ModelToolCall[];
  /** `replay` of the reply that this message was. */
  readonly replay?: ReplayFields;
}

/** The result of a tool call. Stands right after the assistant message that made the call. */
export interface ToolMessage {
  readonly role: "tool";
  readonly toolCallId: string;
  readonly content: string;
  /** For models that see. Where a result itself can only be text, they are shown after the results. */
  readonly images?: readonly ImagePart[];
}

export type MessagePart = { readonly type: "text"; readonly text: string } | ImagePart;

export type ImagePart = {
  readonly type: "image";
  readonly detail?: "auto" | "low" | "high";
} & ({ readonly data: string; readonly mimeType: string } | { readonly url: string });

/** Fields that an endpoint wants to see again, as they came, with the message or call that they belong to. Plain JSON. */
export type ReplayFields = Readonly<Record<string, unknown>>;

export interface ModelToolCall {
  /** The endpoint's own id, or one made up where that is missing or taken. Unique in the conversation. */
  readonly id: string;
  /** As the model wrote it; empty when it wrote none. */
  readonly name: string;
  /** Frozen plain JSON without `__proto__` keys: an object, unless there is an `argumentsError`; then the text itself. */
  readonly arguments: unknown;
  /** What the model wrote. */
  readonly argumentsText: string;
  /** Why the text is no arguments, in a sentence that the model can read. */
  readonly argumentsError?: string;
  readonly replay?: ReplayFields;
}

export type FinishReason = "stop" | "tool-calls" | "length" | "content-filter" | "other";

export interface ModelUsage {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly totalTokens?: number;
  /** Of the input: read from the endpoint's prompt cache, and written to it. */
  readonly cachedTokens?: number;
  readonly cacheWriteTokens?: number;
  /** Of the output: spent on reasoning. */
  readonly reasoningTokens?: number;
}

export interface ModelReply {
  readonly content: string;
  readonly reasoning?: string;
  readonly toolCalls: readonly ModelToolCall[];
  readonly finishReason: FinishReason;
  /** The same in the endpoint's own word. */
  readonly providerFinishReason?: string;
  /** Absent when the endpoint does not count. */
  readonly usage?: ModelUsage;
  /** The model that answered, by its own account. */
  readonly model: string;
  /** The endpoint's id for the request (a header), and for the answer. */
  readonly requestId?: string;
  readonly callId?: string;
  /** How many pieces the answer came in: 1 when it was not streamed. */
  readonly chunkCount: number;
  /** How often the request was sent. */
  readonly attempts: number;
  /** Milliseconds of the try that succeeded, to its end and to the first piece of text, reasoning or tool input. */
  readonly duration: number;
  readonly timeToFirstToken?: number;
  /** To be given back with the assistant message in later requests. */
  readonly replay?: ReplayFields;
}

export type ModelDelta = (
  | { readonly kind: "text" | "reasoning"; readonly text: string }
  | { readonly kind: "tool-input"; readonly toolCallId: string; readonly toolName: string; readonly input: string }
) & {
  /** Bytes of the whole answer so far. */
  readonly receivedBytes: number;
};

export interface ModelRetry {
  readonly error: ModelError;
  /** The try that failed: 1 for the first. */
  readonly attempt: number;
  /** Milliseconds until the next. */
  readonly delay: number;
}
