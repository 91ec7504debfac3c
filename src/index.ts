export type { Diagnostic, Position, Severity } from "./base/diagnostic.ts";
export { HostError } from "./base/errors.ts";
export { Lifetime } from "./base/lifetime.ts";
export type { Logger, LogLevel } from "./base/logger.ts";
export * from "./define.ts";
export type { SkillPermissions } from "./formats/skills/skill-permissions.ts";
export type { ExplainedSkill, ExplainedTool, Explanation, HostTool } from "./host/explain.ts";
export type { ExportFormat } from "./host/file-session-store.ts";
export type { HeldSkillTool, Host, HostCallOptions, HostEvents, SkillInfo } from "./host/host.ts";
export type { HostOptions } from "./host/host-options.ts";
export type { ForkSessionOptions, OpenSession, ResumeOptions, SessionInfo } from "./host/host-sessions.ts";
export type { Inspector, InspectorOptions } from "./host/inspection.ts";
export type { ServerTraffic } from "./host/session-server-sets.ts";
export type { AppendLog } from "./io/log/append-log.ts";
export type { LogContents, LogRecord } from "./io/log/read-log.ts";
export type { FetchFailure, FetchOutcome, FetchRequest } from "./io/net/bounded-fetch.ts";
export type {
  ManagedProcess,
  ProcessExit,
  ProcessSpec,
  ProgramOutcome,
  ProgramSpec,
  Spawned,
  SpawnFailure,
} from "./io/process/child-process.ts";
export type { CheckedFile, CheckedTree, GuardedRead } from "./io/read-bounded.ts";
export type { Scope } from "./io/scope.ts";
export { createHost, runProgram } from "./load-parts.ts";
export type {
  ChatMessage,
  ChatModel,
  CompleteOptions,
  ModelDelta,
  ModelReply,
  ModelRequest,
  ModelTool,
  ModelToolCall,
  RequestOrigin,
} from "./models/model.ts";
export { ModelError, type ModelErrorCode, type ModelErrorDetails } from "./models/model-error.ts";
export type { ProviderOptions } from "./models/provider.ts";
export { definePlugin, type Plugin, type PluginOptions } from "./plugin-host/define-plugin.ts";
export type {
  McpList,
  McpPeer,
  McpPeers,
  McpSeat,
  McpSessionRequests,
  PassedRequest,
  PassedResponse,
  SharedMcpSession,
} from "./plugin-host/mcp-peers.ts";
export type { PluginAgent, PluginApi, PluginCommand, PluginToolOptions } from "./plugin-host/plugin-api.ts";
export type { BundleInfo, PluginInfo } from "./plugin-host/plugin-entry.ts";
export type { FailedPluginChange, PluginChange, PluginsChange } from "./plugin-host/plugin-reloads.ts";
export type { PluginSession } from "./plugin-host/plugin-sessions.ts";
export type { PluginSkill } from "./plugin-host/plugin-skills.ts";
export type { PluginUse } from "./plugin-host/prepare-plugin.ts";
export { createMcpHandler, type McpHandler, type McpHandlerOptions } from "./servers/mcp/mcp-handler.ts";
export {
  type McpHttpOptions,
  type McpHttpServer,
  type McpStdioOptions,
  type McpStdioServer,
  serveMcp,
} from "./servers/mcp/serve-mcp.ts";
export type { AgentOptions, CustomAgentOptions, DefaultAgentOptions } from "./session/agents/agent-profiles.ts";
export type { CallOutcome, OutcomeCode, PreparedCall, ProgressListener, ToolCall } from "./session/calls/tool-call.ts";
export type { ListedTool } from "./session/catalog/assemble-catalog.ts";
export type { ModelToolOptions, ModelToolTable, ToolSearchOptions } from "./session/catalog/model-tool-options.ts";
export type { FilterPrecedence } from "./session/catalog/tool-filter.ts";
export type { AskHandler, AskHandlers, AskInvocation } from "./session/clients/client-requests.ts";
export type { Attachment, AttachmentOptions } from "./session/clients/session-client.ts";
export type { SqlTodo, SqlTodos } from "./session/database/sql-database.ts";
export type { SessionEvent, SessionEventData, SessionEventType } from "./session/history/event-types.ts";
export type { RecordedEvent, Unsubscribe } from "./session/history/events.ts";
export type {
  AgentStopInput,
  ContextOutput,
  ErrorOccurredInput,
  ErrorOccurredOutput,
  Hook,
  HookInput,
  HookKind,
  HookKinds,
  PostToolUseFailureInput,
  PostToolUseInput,
  PostToolUseOutput,
  PreMcpToolCallInput,
  PreMcpToolCallOutput,
  PreToolUseInput,
  PreToolUseOutput,
  SessionEndInput,
  SessionStartInput,
  StopOutput,
  SubagentInput,
  UserPromptSubmittedInput,
  UserPromptSubmittedOutput,
  UserPromptTransformedInput,
  UserPromptTransformedOutput,
} from "./session/hooks/hook-kinds.ts";
export type { HeldBack, ServerInfo, ServerOrigin, ServerStatus, ServerTool } from "./session/mcp/server-connections.ts";
export type { SessionMcp } from "./session/mcp/session-mcp.ts";
export type { ServerOptions } from "./session/mcp/session-server-options.ts";
export { type CommandLine, parseCommandLine } from "./session/permissions/command-line-rules.ts";
export type { PermissionRuleOptions } from "./session/permissions/permission-rules.ts";
export type { SectionChange, SectionTransform, SystemMessageOptions } from "./session/prompt/customize-prompt.ts";
export type { PromptsAndResources } from "./session/prompts-resources/prompts-and-resources.ts";
export type {
  CompletionOptions,
  CompletionRef,
  OfferOptions,
  OffersChange,
} from "./session/prompts-resources/session-prompts-resources.ts";
export type { CallOptions, Session } from "./session/session.ts";
export type { LargeOutputOptions, SessionChange, SessionHooks, SessionOptions } from "./session/session-config.ts";
export type { SessionOwner, SessionStore, StoredSession } from "./session/session-store.ts";
export type { SendOptions } from "./session/turns/message-queue.ts";
export type { MessageStream, StreamPart, StreamResponseOptions } from "./session/turns/message-stream.ts";
export type { ModelCapabilities, ModelFactory, PluginProvider, SessionProvider, TurnOptions } from "./session/turns/turn-options.ts";
export type { AssistantReply } from "./session/turns/turn-types.ts";
export type { UserAttachment } from "./session/turns/user-attachments.ts";
export type { Isolation, IsolationTier } from "./skills/isolation/isolation-policy.ts";
export type { ExecuteContext, SkillApi } from "./skills/load/tool-module.ts";
export type { LoadedTools, RunnerTarget, ToolRunner } from "./skills/load/tool-runner.ts";
export type { ConflictPolicy, ConflictRules } from "./skills/resolve-overrides.ts";
export type { FailedChange, NamesChange, SkillChange, SkillPrompt, SkillsChange } from "./skills/skill.ts";
export type { ContentLike } from "./tools/define/content-block.ts";
export type { Completer } from "./tools/define/define-prompt.ts";
export type {
  Completion,
  CompletionContext,
  ContentBlock,
  OfferContext,
  Prompt,
  PromptArgument,
  PromptDefinition,
  PromptMessage,
  PromptResult,
} from "./tools/prompt.ts";
export type {
  Resource,
  ResourceContents,
  ResourceDefinition,
  ResourceTemplate,
  ResourceTemplateDefinition,
} from "./tools/resource.ts";
export { type SignToolOptions, signTool } from "./tools/sign-tool.ts";
export type {
  Asks,
  BinaryResult,
  PermissionAsk,
  PermissionDecision,
  Progress,
  ResultType,
  ToolAnnotations,
  ToolDefinition,
} from "./tools/tool.ts";
export { approveAll } from "./tools/tool.ts";
export { toCallResult } from "./tools/tool-result.ts";
export type { ResourceSet, SkillEntry, SourceSnapshot, ToolSource } from "./tools/tool-source.ts";
export type { HeldPush } from "./trust/push-trust.ts";
export type { TrustState } from "./trust/skill-trust.ts";
export type { ProvenanceRule, TrustMode, TrustScope } from "./trust/trust-policy.ts";
export type { TrustOptions } from "./trust/trust-settings.ts";
