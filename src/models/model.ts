import type { JsonSchema } from "../tools/tool.ts";
import type { ModelError } from "./model-error.ts";

/** A chat model. */
export interface ChatModel {
  /** The model's name at its endpoint. */
  readonly id: string;
  /** Host and port of the endpoint, for telemetry and messages. */
  readonly address: string;
  /** The token limit of a request, if it is known. */
  readonly contextWindow?: number;
  /**
   * Requests one assistant message. Temporary failures (too many requests, a broken connection) are retried with growing delays
   * until a part of the reply was passed to `onDelta`. An error thrown by `onDelta` or `onRetry` ends the request and is
   * rethrown unchanged.
   * @throws ModelError with a code for the kind of failure; `MODEL_ABORTED` when the signal fires.
   * @throws HostError `MODEL_OPTIONS` when a header of the request cannot be sent.
   */
  complete(request: ModelRequest, options: CompleteOptions): Promise<ModelReply>;
  /**
   * The body of the HTTP request that `complete` sends, in what the endpoint is known to accept by now. Absent: the model is not asked over
   * HTTP, or does not say.
   */
  bodyOf?(request: ModelRequest): string;
}

/**
 * Options of one request to a model.
 *
 * @example
 * ```ts
 * const options: CompleteOptions = { signal: AbortSignal.timeout(60_000), onDelta: (delta) => console.log(delta) };
 * ```
 */
export interface CompleteOptions {
  /** Ends the request when it fires. */
  readonly signal: AbortSignal;
  /** Receives the parts of the reply in order as they arrive. */
  onDelta?(delta: ModelDelta): void;
  /** Called for each failed attempt that will be repeated. */
  onRetry?(retry: ModelRetry): void;
  /** The purpose of the request. */
  readonly origin?: RequestOrigin | undefined;
}

/** The purpose of a request to a model: passed to a `fetch` in the provider's options, never sent to the endpoint. */
export interface RequestOrigin {
  /** `aside`: a question about the conversation that does not become part of it. */
  readonly kind: "agent" | "subagent" | "sampling" | "compaction" | "aside";
  /** Absent: the session's own agent. */
  readonly agentId?: string | undefined;
  /** The parent sub-agent. Absent: started by the session's own agent, or not a sub-agent. */
  readonly parentAgentId?: string | undefined;
  /** The same for all requests caused by one message to the agent. */
  readonly interactionId?: string | undefined;
}

/** A request to a model. */
export interface ModelRequest {
  readonly messages: readonly ChatMessage[];
  readonly tools?: readonly ModelTool[];
  /** Which tools the model may call; `{ name }` forces a call of that tool. Omitted without tools. */
  readonly toolChoice?: "auto" | "none" | "required" | { readonly name: string };
  /** Whether to stream the reply. Default: true with `onDelta`. */
  readonly stream?: boolean;
  readonly temperature?: number;
  readonly maxOutputTokens?: number;
  /** The endpoint's own value: `low`, `medium`, `high` and the like. */
  readonly reasoningEffort?: string;
  /** Added to the model's own headers; equal names replace them. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** The description of a tool for a model. A `ToolDefinition` is one. */
export interface ModelTool {
  readonly name: string;
  readonly description?: string;
  readonly parameters?: JsonSchema;
  /** Asks the endpoint to enforce the schema for arguments, if it supports this. */
  readonly strict?: boolean;
}

/** A message of a conversation with a model. */
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
  /** The `replay` of the original reply. */
  readonly replay?: ReplayFields;
}

/** The result of a tool call. It directly follows the assistant message with the call. */
export interface ToolMessage {
  readonly role: "tool";
  readonly toolCallId: string;
  readonly content: string;
  /** For models with image input. If the API allows only text in results, images follow the results. */
  readonly images?: readonly ImagePart[];
}

export type MessagePart = { readonly type: "text"; readonly text: string } | ImagePart | DocumentPart;

/** A PDF document, for APIs that take one as it is; others get a note instead. */
export interface DocumentPart {
  readonly type: "document";
  readonly mimeType: "application/pdf";
  /** Base64. */
  readonly data: string;
  readonly title?: string;
  /** Whether the model names the passages that its answer relies on. */
  readonly isCited?: boolean;
}

export type ImagePart = {
  readonly type: "image";
  readonly detail?: "auto" | "low" | "high";
  /** What it shows, for APIs on which the image of a tool follows its result. */
  readonly description?: string;
} & ({ readonly data: string; readonly mimeType: string } | { readonly url: string });

/** Fields that the endpoint requires unchanged with the message or call in later requests. Plain JSON. */
export type ReplayFields = Readonly<Record<string, unknown>>;

/** A call of a tool in the answer of a model. */
export interface ModelToolCall {
  /** The endpoint's own id, or a generated one if that is missing or already used. Unique in the conversation. */
  readonly id: string;
  /** As the model wrote it; empty if it wrote none. */
  readonly name: string;
  /** Frozen plain JSON without `__proto__` keys: an object, unless there is an `argumentsError`; then the text itself. */
  readonly arguments: unknown;
  /** The text of the model. */
  readonly argumentsText: string;
  /** The reason that the text is not valid arguments, as a sentence for the model. */
  readonly argumentsError?: string;
  readonly replay?: ReplayFields;
}

export type FinishReason = "stop" | "tool-calls" | "length" | "content-filter" | "other";

export interface ModelUsage {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly totalTokens?: number;
  /** Input tokens read from the endpoint's prompt cache, and written to it. */
  readonly cachedTokens?: number;
  readonly cacheWriteTokens?: number;
  /** Output tokens used for reasoning. */
  readonly reasoningTokens?: number;
}

/** The complete answer of a model. */
export interface ModelReply {
  readonly content: string;
  readonly reasoning?: string;
  readonly toolCalls: readonly ModelToolCall[];
  readonly finishReason: FinishReason;
  /** The endpoint's own value. */
  readonly providerFinishReason?: string;
  /** Absent if the endpoint does not report usage. */
  readonly usage?: ModelUsage;
  /** The model that the endpoint reports. */
  readonly model: string;
  /** The API that answered, as endpoints list it. `ws:`: over a WebSocket connection. Absent: another API. */
  readonly apiEndpoint?: "/chat/completions" | "/responses" | "/v1/messages" | "ws:/responses";
  /** The endpoint's ids of the request (a header) and of the response. */
  readonly requestId?: string;
  readonly callId?: string;
  /** The number of chunks: 1 without streaming. */
  readonly chunkCount: number;
  /** How often the request was sent. */
  readonly attempts: number;
  /** Milliseconds of the successful attempt, to its end and to the first part of text, reasoning or tool input. */
  readonly duration: number;
  readonly timeToFirstToken?: number;
  /** To be sent with the assistant message in later requests. */
  readonly replay?: ReplayFields;
}

/** A part of the answer of a model, as it arrives. */
export type ModelDelta = (
  | { readonly kind: "text" | "reasoning"; readonly text: string }
  | { readonly kind: "tool-input"; readonly toolCallId: string; readonly toolName: string; readonly input: string }
) & {
  /** The bytes received so far. */
  readonly receivedBytes: number;
};

export interface ModelRetry {
  readonly error: ModelError;
  /** The failed attempt: 1 for the first. */
  readonly attempt: number;
  /** Milliseconds until the next attempt. */
  readonly delay: number;
}
