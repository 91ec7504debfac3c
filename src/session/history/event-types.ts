import type { ModelReply } from "../../models/model.ts";
import type { BinaryResult, PermissionAsk } from "../../tools/tool.ts";

/**
 * An event of a session: its type decides what `data` holds. Frozen. The field names and most types are those of the
 * Copilot SDK. Logs written by another version of skillhost may hold other types.
 */
export type SessionEvent<T extends SessionEventType = SessionEventType> = { readonly [K in T]: EventEnvelope<K> }[T];

/** The names of all events that a session emits. */
export type SessionEventType = keyof SessionEventData;

// Type aliases throughout: unlike interfaces, they can be read as a record of unknown fields.

type EventEnvelope<K extends SessionEventType> = {
  readonly type: K;
  readonly data: SessionEventData[K];
  readonly id: string;
  /** ISO 8601. */
  readonly timestamp: string;
  /** The event before it that is kept; null for the first. */
  readonly parentId: string | null;
  /** Present and true: it is not part of the session's history. */
  readonly ephemeral?: true;
  /** The sub-agent it belongs to. */
  readonly agentId?: string;
};

/** What each event carries in `data`. */
export interface SessionEventData
  extends SessionLifeEvents,
    SessionStateEvents,
    MessageEvents,
    ModelEvents,
    ToolEvents,
    QuestionEvents,
    AgentEvents,
    ServerEvents,
    CommandEvents {}

/** Counts are of tokens; times are milliseconds unless the name says otherwise. */
type SessionLifeEvents = {
  readonly "session.start": SessionFacts & {
    readonly sessionId: string;
    /** Of the log's format. */
    readonly version: number;
    readonly producer: string;
    readonly copilotVersion: string;
    readonly startTime: string;
    /** Where a fork comes from. */
    readonly forkedFrom?: { readonly sessionId: string; readonly eventId?: string | undefined };
  };
  readonly "session.resume": SessionFacts & {
    readonly resumeTime: string;
    readonly eventCount: number;
    /** It was open in this process. */
    readonly sessionWasActive: boolean;
    readonly continuePendingWork?: boolean | undefined;
  };
  readonly "session.options_changed": { readonly options: Fields };
  readonly "session.shutdown": {
    readonly shutdownType: "routine" | "error";
    /** Milliseconds since 1970. */
    readonly sessionStartTime: number;
    readonly totalApiDurationMs: number;
    readonly codeChanges: { readonly linesAdded: number; readonly linesRemoved: number; readonly filesModified: readonly string[] };
    readonly modelMetrics: { readonly [model: string]: ModelMetric };
    readonly currentModel?: string;
  };
  /** The last turn has ended, and so has all work in the background. */
  readonly "session.idle": { readonly aborted?: boolean };
  /** The last turn has ended; work in the background may continue. */
  readonly "assistant.idle": { readonly aborted?: boolean };
  readonly abort: { readonly reason: string };
  readonly "session.error": Notice & {
    readonly errorType: string;
    readonly errorCode?: string;
    readonly statusCode?: number;
    readonly providerCallId?: string;
  };
  readonly "session.warning": Notice & { readonly warningType: string };
  readonly "session.info": Notice & { readonly infoType: string; readonly tip?: string };
};

type SessionStateEvents = {
  readonly "session.title_changed": { readonly title: string };
  /** The session works in another folder, or a client has reported facts about its repository. */
  readonly "session.context_changed": { readonly cwd: string; readonly [gitFact: string]: string };
  readonly "session.mode_changed": { readonly previousMode: string; readonly newMode: string };
  readonly "session.model_change": { readonly newModel: string; readonly previousModel?: string; readonly reasoningEffort?: string };
  readonly "session.plan_changed": { readonly operation: FileOperation };
  /** The model has written its todos: read them with `session.readSqlTodos()`. */
  readonly "session.todos_changed": Fields;
  readonly "session.workspace_file_changed": { readonly operation: FileOperation; readonly path: string };
  readonly "session.compaction_start": ContextSize & { readonly model: string; readonly trigger: string };
  readonly "session.compaction_complete": {
    readonly trigger: string;
    readonly success: boolean;
    readonly customInstructions?: string;
    readonly error?: string;
    readonly checkpointNumber?: number;
    /** The file of the summary, in a session that is stored. */
    readonly checkpointPath?: string;
    readonly summaryContent?: string;
    readonly messagesRemoved?: number;
    readonly tokensRemoved?: number;
    readonly preCompactionMessagesLength?: number;
    readonly preCompactionTokens?: number;
    readonly postCompactionTokens?: number;
    readonly compactionTokensUsed?: Fields;
  };
  readonly "session.context_cleared": { readonly messagesCleared: number; readonly initialMessage: string };
  readonly "session.history_truncated": { readonly eventId: string; readonly eventsRemoved: number };
  readonly "session.snapshot_rewind": { readonly upToEventId: string; readonly eventsRemoved: number };
  readonly "session.usage_info": ContextSize & { readonly messagesLength: number };
  readonly "session.tools_updated": { readonly model: string; readonly version: number };
  readonly "session.skills_loaded": { readonly skills: readonly SkillFacts[] };
  readonly "session.background_tasks_changed": Fields;
  readonly "session.custom_notification": { readonly name: string; readonly source: string; readonly payload: Fields };
  readonly "session.managed_settings_resolved": Fields;
  readonly "session.extensions_loaded": { readonly extensions: readonly Fields[] };
  readonly "session.extensions.attachments_pushed": { readonly attachments: readonly object[] };
  readonly "capabilities.changed": { readonly ui: { readonly elicitation: boolean } };
  readonly "pending_messages.modified": Fields;
  readonly "hook.start": { readonly hookInvocationId: string; readonly hookType: string; readonly input: unknown };
  readonly "hook.end": {
    readonly hookInvocationId: string;
    readonly hookType: string;
    readonly success: boolean;
    readonly output?: unknown;
    readonly error?: { readonly message: string };
  };
};

type MessageEvents = {
  readonly "system.message": { readonly role: "system"; readonly content: string };
  readonly "system.notification": { readonly content: string; readonly kind: unknown };
  readonly "user.message": {
    readonly content: string;
    /** What the model reads in place of `content`. */
    readonly transformedContent?: string;
    readonly attachments?: readonly object[];
    readonly delivery?: "idle" | "queued" | "steering";
    readonly interactionId?: string;
    readonly messageId?: string;
    readonly agentMode?: string;
    /** Absent: a person. */
    readonly source?: string;
  };
  readonly "assistant.turn_start": { readonly turnId: string; readonly interactionId: string; readonly model: string };
  readonly "assistant.turn_end": { readonly turnId: string; readonly model?: string };
  readonly "assistant.message": {
    readonly messageId: string;
    readonly interactionId: string;
    readonly turnId: string;
    readonly model: string;
    readonly content: string;
    readonly toolRequests: readonly ToolRequest[];
    readonly reasoningText?: string;
    readonly outputTokens?: number;
    readonly requestId?: string;
    readonly apiCallId?: string;
    readonly chunkCount?: number;
    /** What the model's endpoint wants back with the next request. */
    readonly replay?: unknown;
  };
  readonly "skill.invoked": {
    readonly name: string;
    readonly path: string;
    readonly content: string;
    readonly description?: string | undefined;
    readonly source: string;
    readonly trigger: "agent-invoked" | "user-invoked" | "context-load";
  };
};

/** The parts of an answer, while it comes in, only with `streaming`. */
type ModelEvents = {
  readonly "assistant.message_start": { readonly messageId: string };
  readonly "assistant.message_delta": { readonly messageId: string; readonly deltaContent: string };
  readonly "assistant.reasoning": { readonly reasoningId: string; readonly content: string };
  readonly "assistant.reasoning_delta": { readonly reasoningId: string; readonly deltaContent: string };
  readonly "assistant.tool_call_delta": {
    readonly toolCallId: string;
    readonly toolName?: string | undefined;
    readonly toolType: "function";
    readonly inputDelta: string;
  };
  readonly "assistant.streaming_delta": { readonly totalResponseSizeBytes: number };
  readonly "assistant.usage": {
    readonly model: string;
    readonly initiator: string;
    readonly inputTokens?: number;
    readonly outputTokens?: number;
    readonly cacheReadTokens?: number;
    readonly cacheWriteTokens?: number;
    readonly reasoningTokens?: number;
    readonly duration: number;
    readonly timeToFirstTokenMs?: number;
    readonly finishReason: string;
    readonly contentFilterTriggered?: boolean;
    readonly availableToolCount: number;
    /** By the estimate of `session.usage_info`. */
    readonly toolTokenCount: number;
    readonly numToolCalls: number;
    /** By the tool's name. */
    readonly toolCounts: Readonly<Record<string, number>>;
    readonly interactionType: "conversation-agent" | "conversation-subagent";
    readonly maxPromptTokens: number;
    readonly apiEndpoint?: Exclude<ModelReply["apiEndpoint"], undefined>;
    readonly transport?: "http" | "websocket";
    readonly apiCallId?: string;
    readonly providerCallId?: string;
  };
  readonly "model.call_start": { readonly turnId: string; readonly model: string };
  /** A request to the model failed and is sent again after `retryDelayMs`. */
  readonly "model.call_failure": {
    readonly model: string;
    readonly interactionId: string;
    readonly errorCode: string;
    readonly errorMessage: string;
    readonly attempt: number;
    readonly source: "top_level" | "subagent";
    readonly retryDelayMs: number;
    readonly statusCode?: number;
  };
};

type ToolEvents = {
  readonly "tool.execution_start": {
    readonly toolCallId: string;
    readonly toolName: string;
    readonly arguments: unknown;
    readonly mcpServerName?: string;
    readonly mcpToolName?: string;
    readonly model?: string;
    readonly turnId?: string;
    /** The call whose handler makes this one. */
    readonly parentToolCallId?: string;
  };
  readonly "tool.execution_progress": { readonly toolCallId: string; readonly progressMessage: string };
  /** All output of a call so far. */
  readonly "tool.execution_partial_result": { readonly toolCallId: string; readonly partialOutput: string };
  readonly "tool.execution_complete": {
    readonly toolCallId: string;
    readonly success: boolean;
    /** Only where a hook rewrote them. */
    readonly arguments?: unknown;
    readonly result: {
      readonly content: string;
      readonly detailedContent: string;
      /** The blocks of MCP that the tool gave. */
      readonly contents?: readonly unknown[];
      readonly structuredContent?: unknown;
      readonly binaryResultsForLlm?: readonly BinaryResult[];
    };
    /** `code`: `failure`, `rejected`, `denied` or another kind of result. */
    readonly error?: { readonly message: string; readonly code: string };
    readonly sessionLog?: string;
    readonly toolTelemetry: Fields;
    readonly mcpMeta?: Fields;
    readonly parentToolCallId?: string;
    readonly turnId?: string;
  };
  readonly "tool_search.activated": { readonly strategy: "regex" | "custom"; readonly toolNames: readonly string[] };
};

/** Each question has one `requestId`, by which a client answers it; `completed` comes however it ends. */
type QuestionEvents = {
  readonly "permission.requested": { readonly requestId: string; readonly permissionRequest: PermissionAsk };
  readonly "permission.completed": { readonly requestId: string; readonly result: PermissionOutcome; readonly toolCallId?: string };
  /** A call of a tool of a client. */
  readonly "external_tool.requested": {
    readonly requestId: string;
    readonly sessionId: string;
    readonly toolCallId: string;
    readonly toolName: string;
    readonly arguments: unknown;
    readonly workingDirectory: string;
    readonly traceparent?: string;
    readonly tracestate?: string;
  };
  readonly "external_tool.completed": Request;
  readonly "user_input.requested": Question & {
    readonly question: string;
    readonly choices?: readonly string[];
    readonly allowFreeform?: boolean;
  };
  readonly "user_input.completed": Request & { readonly answer?: string; readonly wasFreeform?: boolean };
  readonly "elicitation.requested": Question & {
    readonly message: string;
    readonly mode: "form" | "url";
    readonly requestedSchema?: Fields;
    readonly url?: string;
    /** The MCP server that asks. */
    readonly elicitationSource?: string;
  };
  readonly "elicitation.completed": Request & { readonly action?: "accept" | "decline" | "cancel"; readonly content?: Fields };
  readonly "sampling.requested": Question & { readonly serverName: string; readonly mcpRequestId: string; readonly request: Fields };
  readonly "sampling.completed": Request;
  readonly "roots.requested": Question;
  readonly "roots.completed": Request;
  readonly "exit_plan_mode.requested": Question & {
    readonly summary: string;
    readonly planContent: string;
    readonly actions: readonly string[];
    readonly recommendedAction: string;
  };
  readonly "exit_plan_mode.completed": Request & {
    readonly approved?: boolean;
    readonly selectedAction?: string;
    readonly autoApproveEdits?: boolean;
    readonly feedback?: string;
  };
  readonly "mcp.oauth_required": Request & {
    readonly serverName: string;
    readonly serverUrl: string;
    readonly reason: "initial" | "refresh" | "reauth" | "upscope";
    readonly wwwAuthenticateParams?: { readonly scope?: string; readonly resourceMetadataUrl?: string; readonly error?: string };
    readonly resourceMetadata?: string;
    /** Where the user signs in. */
    readonly authorizationUrl?: string;
    readonly redirectUrl?: string;
  };
  readonly "mcp.oauth_completed": Request & { readonly outcome: "token" | "cancelled" };
};

type AgentEvents = {
  readonly "subagent.selected": {
    readonly agentName: string;
    readonly agentDisplayName: string;
    readonly tools: readonly string[] | null;
  };
  readonly "subagent.deselected": Fields;
  readonly "subagent.started": AgentFacts & { readonly agentDescription: string };
  readonly "subagent.completed": AgentFacts & AgentCost & { readonly cancelled?: boolean };
  readonly "subagent.failed": AgentFacts & Partial<AgentCost> & { readonly error: string };
  readonly "session.custom_agents_updated": {
    readonly agents: readonly Fields[];
    readonly errors: readonly string[];
    readonly warnings: readonly string[];
  };
};

type ServerEvents = {
  readonly "session.mcp_servers_loaded": { readonly servers: readonly ServerFacts[] };
  readonly "session.mcp_server_status_changed": { readonly serverName: string; readonly status: string; readonly error?: string };
  readonly "mcp.tools.list_changed": { readonly serverName: string };
  readonly "mcp.prompts.list_changed": { readonly serverName: string };
  readonly "mcp.resources.list_changed": { readonly serverName: string };
  readonly "mcp_app.tool_call_complete": {
    readonly serverName: string;
    readonly toolName: string;
    readonly arguments: Fields;
    readonly success: boolean;
    readonly durationMs: number;
    readonly result?: unknown;
    readonly error?: { readonly message: string };
    readonly toolMeta?: Fields;
  };
};

type CommandEvents = {
  readonly "command.execute": Request & { readonly commandName: string; readonly command: string; readonly args: string };
  readonly "command.queued": Request & { readonly command: string };
  readonly "command.completed": Request;
  readonly "commands.changed": { readonly commands: readonly { readonly name: string; readonly description: string }[] };
};

type Fields = { readonly [field: string]: unknown };
type Notice = { readonly message: string; readonly url?: string };
type FileOperation = "create" | "update" | "delete";
type Request = { readonly requestId: string };
type Question = Request & { readonly toolCallId?: string };

export type SessionFacts = {
  readonly selectedModel?: string;
  readonly reasoningEffort?: string;
  readonly context: { readonly cwd: string };
  /** The session's options, without functions and secrets. */
  readonly options: Fields;
};

type ContextSize = {
  readonly tokenLimit: number;
  readonly currentTokens: number;
  readonly systemTokens: number;
  readonly conversationTokens: number;
  readonly toolDefinitionsTokens: number;
};

export type ModelMetric = {
  readonly requests: { readonly count: number; readonly cost: number };
  readonly usage: {
    readonly inputTokens: number;
    readonly outputTokens: number;
    readonly cacheReadTokens: number;
    readonly cacheWriteTokens: number;
  };
};

export type SkillFacts = {
  readonly name: string;
  readonly commandName?: string;
  readonly description: string;
  readonly source: string;
  readonly userInvocable: boolean;
  readonly enabled: boolean;
  readonly path?: string;
  readonly hiddenFromModel?: boolean;
};

export type ServerFacts = {
  readonly name: string;
  readonly status: string;
  readonly transport?: string;
  readonly source: string;
  readonly pluginName?: string;
  readonly error?: string;
};

export type ToolRequest = {
  readonly toolCallId: string;
  readonly name: string;
  readonly arguments: unknown;
  readonly type: "function";
  readonly toolTitle?: string;
  readonly mcpServerName?: string;
  readonly mcpToolName?: string;
  /** The model's own words, where they are not the JSON of `arguments`. */
  readonly argumentsText?: string;
  readonly argumentsError?: string;
  readonly replay?: unknown;
};

export type PermissionOutcome = {
  readonly kind:
    | "approved"
    | "approved-for-session"
    | "approved-for-location"
    | "cancelled"
    | "denied-by-rules"
    | "denied-interactively-by-user"
    | "denied-no-approval-rule-and-could-not-request-from-user";
  readonly reason?: string;
  readonly feedback?: string;
  readonly rules?: readonly { readonly kind: string; readonly argument: string | null }[];
  readonly approval?: Fields;
  readonly locationKey?: string;
};

type AgentFacts = {
  readonly agentName: string;
  readonly agentDisplayName: string;
  readonly toolCallId: string;
  readonly model?: string;
};

type AgentCost = { readonly durationMs: number; readonly totalToolCalls: number; readonly totalTokens?: number };
