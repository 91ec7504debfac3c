import type { ChatMessage, ModelReply, ModelRequest } from "../../models/model.ts";
import type { ToolDefinition } from "../../tools/tool.ts";
import type { AgentScope, Pipeline } from "../calls/tool-call.ts";
import type { ToolCatalog } from "../catalog/tool-catalog.ts";
import type { History } from "../history/conversation-history.ts";
import type { Recording } from "../history/recording.ts";
import type { HookRunner } from "../hooks/run-hooks.ts";
import type { SessionContext } from "../session-context.ts";
import type { TraceContext } from "../telemetry.ts";
import type { TurnModel } from "./turn-options.ts";

/** A conversation with a model: a session's own, or that of one of its sub-agents. What it gives may differ each time it is asked. */
export interface TurnAgent {
  /** The sub-agent; absent for the session's own conversation. */
  readonly agentId?: string | undefined;
  /** The sub-agent that started it; absent: the session's own conversation did, or it is that. */
  readonly parentAgentId?: string | undefined;
  readonly history: History;
  readonly streaming: boolean;
  /** @throws HostError `MODEL_MISSING`. */
  model(): TurnModel;
  scope(turn: { readonly turnId: string; readonly signal: AbortSignal }): AgentScope;
  /** The tools of a catalog that the model sees. */
  tools(catalog: ToolCatalog): readonly ToolDefinition[];
  /** The system message for a catalog; emits an event for a new one. */
  instructions(catalog: ToolCatalog): string | Promise<string>;
  /** Keeps the conversation within what the model takes; absent: it is short enough. */
  readonly context?: ContextLimit | undefined;
  /** Called with each request before it goes to the model. Absent: no one looks at it. */
  sent?(request: ModelRequest, model: TurnModel): void;
  /** Takes what was said meanwhile into the conversation. False: nothing was. */
  takeSteeringMessages(): Promise<boolean>;
}

/** What the next request to the model consists of beside the conversation. */
export interface RequestParts {
  readonly model: TurnModel;
  readonly system: string;
  readonly tools: readonly ToolDefinition[];
}

/** Keeps a conversation within the context window of its model. */
export interface ContextLimit {
  /** Before a request: shortens the conversation when little room is left. Rejects when the signal fires. */
  makeRoom(parts: RequestParts, signal: AbortSignal): Promise<void>;
  /** After a request that was too long. False: the conversation cannot be shortened. */
  makeRoomAnyway(signal: AbortSignal): Promise<boolean>;
  /** Corrects the estimate of tokens by the count of the endpoint. */
  learn(reply: ModelReply): void;
}

/** What a turn works with, that of a sub-agent too. */
export interface TurnContext extends SessionContext {
  readonly hooks: HookRunner;
  readonly pipeline: Pipeline;
  readonly recording: Recording;
  /** Where summaries of the conversation are stored. Undefined: nowhere. */
  readonly checkpoints?: CheckpointStore | undefined;
}

/** Keeps summaries as files. */
export interface CheckpointStore {
  /** @throws HostError `WORKSPACE_FILE`. */
  addCheckpoint(title: string, content: string): Promise<{ readonly number: number; readonly path: string }>;
}

export interface TurnRun {
  /** One for everything that follows from one message of a user. */
  readonly interactionId: string;
  readonly signal: AbortSignal;
  /** How often the model may still be asked; each turn takes from it what it uses. */
  readonly budget: { left: number; readonly total: number };
  /** Counts the model's answers in the interaction. */
  readonly counter: { next: number };
  /** Sent with every request to the model. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** The answer is wanted in parts, also in a session that does not stream. */
  readonly streams?: boolean | undefined;
  /** Where in a trace it belongs, while tracing is on. Absent: where the caller is. */
  readonly trace?: TraceContext | undefined;
}

/** An assistant's message, as its sender receives it. */
export interface AssistantReply {
  readonly messageId: string;
  readonly content: string;
  readonly reasoningText?: string;
  readonly model: string;
  readonly interactionId: string;
}

export type TurnEnd =
  | { readonly kind: "ended"; readonly reason: "answered" | "terminal" | "rejected" | "limit"; readonly reply: AssistantReply | undefined }
  | { readonly kind: "aborted" }
  | { readonly kind: "failed"; readonly error: Error };

/** One request to a model, in its turn. */
export interface ModelCall {
  readonly agent: TurnAgent;
  readonly model: TurnModel;
  readonly messages: readonly ChatMessage[];
  readonly tools: readonly ToolDefinition[];
  /** Of the message that the answer becomes. */
  readonly messageId: string;
  readonly turnId: string;
  readonly run: TurnRun;
}
