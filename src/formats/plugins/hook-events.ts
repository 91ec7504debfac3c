import type { BundleDialect } from "./plugin-dialects.ts";

/** When a hook runs, in our words. */
export type HookMoment =
  | "preToolUse"
  | "postToolUse"
  | "postToolUseFailure"
  | "userPromptSubmitted"
  | "userPromptTransformed"
  | "sessionStart"
  | "sessionEnd"
  | "errorOccurred"
  | "agentStop"
  | "subagentStart"
  | "subagentStop";

/** How a hook is told and answers: as Claude Code has it (Codex and VS Code too), as Gemini, or as the Copilot runtime. */
export type HookProtocol = "claude" | "gemini" | "copilot";

const claudeEvents: Readonly<Record<string, HookMoment>> = {
  PreToolUse: "preToolUse",
  PostToolUse: "postToolUse",
  PostToolUseFailure: "postToolUseFailure",
  UserPromptSubmit: "userPromptSubmitted",
  SessionStart: "sessionStart",
  SessionEnd: "sessionEnd",
  Stop: "agentStop",
  SubagentStart: "subagentStart",
  SubagentStop: "subagentStop",
};

const geminiEvents: Readonly<Record<string, HookMoment>> = {
  BeforeTool: "preToolUse",
  AfterTool: "postToolUse",
  BeforeAgent: "userPromptSubmitted",
  AfterAgent: "agentStop",
  SessionStart: "sessionStart",
  SessionEnd: "sessionEnd",
};

const copilotMoments: readonly HookMoment[] = [
  "preToolUse",
  "postToolUse",
  "postToolUseFailure",
  "userPromptSubmitted",
  "userPromptTransformed",
  "sessionStart",
  "sessionEnd",
  "errorOccurred",
  "agentStop",
  "subagentStart",
  "subagentStop",
];

/** Events of these clients that nothing here corresponds to. */
const withoutCounterpart: ReadonlySet<string> = new Set([
  "Notification",
  "PermissionRequest",
  "PermissionDenied",
  "PreCompact",
  "PostCompact",
  "PreCompress",
  "Setup",
  "InstructionsLoaded",
  "ConfigChange",
  "CwdChanged",
  "FileChanged",
  "WorktreeCreate",
  "WorktreeRemove",
  "TaskCreated",
  "TaskCompleted",
  "TeammateIdle",
  "StopFailure",
  "Elicitation",
  "ElicitationResult",
  "Interrupt",
  "BeforeModel",
  "AfterModel",
  "BeforeToolSelection",
  "notification",
  "permissionRequest",
  "preCompact",
]);

export type HookEvent =
  | { readonly kind: "known"; readonly moment: HookMoment; readonly protocol: HookProtocol }
  | { readonly kind: "unsupported" | "unknown" };

/** What an event of a dialect is here. */
export function hookEventOf(dialect: BundleDialect, name: string): HookEvent {
  const [table, protocol] = dialect === "gemini" ? ([geminiEvents, "gemini"] as const) : ([claudeEvents, "claude"] as const);
  if (Object.hasOwn(table, name)) return { kind: "known", moment: table[name]!, protocol };
  if (dialect === "copilot" && (copilotMoments as readonly string[]).includes(name))
    return { kind: "known", moment: name as HookMoment, protocol: "copilot" };
  if (dialect === "copilot" && name === "ErrorOccurred") return { kind: "known", moment: "errorOccurred", protocol: "claude" };
  return { kind: withoutCounterpart.has(name) ? "unsupported" : "unknown" };
}

/** How long a hook may take when it does not say, in milliseconds. */
export function defaultHookTimeout(dialect: BundleDialect): number {
  return dialect === "copilot" ? 30_000 : 60_000;
}
