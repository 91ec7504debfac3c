export type { Diagnostic, Position, Severity } from "./base/diagnostic.ts";
export { HostError } from "./base/errors.ts";
export type { Logger, LogLevel } from "./base/logger.ts";
export { createHost } from "./host/create-host.ts";
export type { ExplainedSkill, ExplainedTool, Explanation } from "./host/explain.ts";
export type { Host, HostEvents, SkillInfo } from "./host/host.ts";
export type { HostOptions } from "./host/host-options.ts";
export type { SessionEvent } from "./session/events.ts";
export type { ListedTool } from "./session/list-tools.ts";
export { approveAll } from "./session/permissions.ts";
export type { Session } from "./session/session.ts";
export type { SessionChange, SessionHooks, SessionOptions } from "./session/session-config.ts";
export type { ConflictPolicy, ConflictRules } from "./skills/resolve-overrides.ts";
export type { FailedChange, SkillChange, SkillPrompt, SkillsChange } from "./skills/skill.ts";
export type { ExecuteContext, SkillApi } from "./skills/tool-module.ts";
export { type DefinedTool, defineTool, type ToolHandler, type ToolLike, type ToolOptions } from "./tools/define-tool.ts";
export type {
  Asks,
  BinaryResult,
  JsonSchema,
  PermissionAsk,
  PermissionDecision,
  PermissionRequest,
  Progress,
  ResultType,
  ToolAnnotations,
  ToolContext,
  ToolDefinition,
  ToolInvocation,
  ToolResult,
} from "./tools/tool.ts";
export type { SkillEntry, SourceSnapshot, ToolSource } from "./tools/tool-source.ts";
