import type { ToolResult } from "../../tools/tool.ts";

/** What every hook receives. */
export interface HookInput {
  /** A sub-agent's hooks get the sub-agent as their session, as the Copilot SDK has it. */
  readonly sessionId: string;
  /** Milliseconds since 1970. */
  readonly timestamp: number;
  readonly cwd: string;
}

/** What a hook receives before a tool is called. */
export interface PreToolUseInput extends HookInput {
  readonly toolName: string;
  readonly toolArgs: unknown;
}

/** What a preToolUse hook may decide. A hook that fails, or decides something else, denies the call. */
export interface PreToolUseOutput {
  /** `allow`: the user is not asked. `deny`: the call does not run. `ask`: the user is asked, even about tools that skip it. */
  readonly permissionDecision?: "allow" | "deny" | "ask";
  readonly permissionDecisionReason?: string;
  /** Runs the call with these arguments instead. */
  readonly modifiedArgs?: unknown;
  /** Text for the model after the result. */
  readonly additionalContext?: string;
  readonly suppressOutput?: boolean;
}

/** What a hook receives before a tool of an MCP server is called. */
export interface PreMcpToolCallInput extends HookInput {
  readonly toolCallId?: string;
  readonly serverName: string;
  /** As the server calls it. */
  readonly toolName: string;
  readonly arguments: unknown;
  readonly _meta?: Readonly<Record<string, unknown>>;
}

/** A hook that fails, or answers something else, denies the call. */
export interface PreMcpToolCallOutput {
  /** An object is sent as the call's `_meta`, null removes it; absent, it is kept. */
  readonly metaToUse?: Readonly<Record<string, unknown>> | null;
}

/** What a hook receives after a tool succeeded. */
export interface PostToolUseInput extends PreToolUseInput {
  readonly toolResult: ToolResult;
}

/** What a hook changes of a result. */
export interface PostToolUseOutput {
  /** Takes the result's place: anything a handler may return. */
  readonly modifiedResult?: unknown;
  readonly additionalContext?: string;
  readonly suppressOutput?: boolean;
}

/** What a hook receives after a tool failed. */
export interface PostToolUseFailureInput extends PreToolUseInput {
  readonly error: string;
}

/** Text for the model, from hooks that only add something. */
export interface ContextOutput {
  readonly additionalContext?: string;
}

/** What a hook receives when the user has sent a message. */
export interface UserPromptSubmittedInput extends HookInput {
  readonly prompt: string;
}

/** What a hook changes of a message of the user. */
export interface UserPromptSubmittedOutput extends ContextOutput {
  /** Takes the prompt's place. */
  readonly modifiedPrompt?: string;
  readonly suppressOutput?: boolean;
}

/** What a hook receives after a message of the user was changed. */
export interface UserPromptTransformedInput extends HookInput {
  readonly prompt: string;
  /** The prompt as the model would get it. */
  readonly transformedPrompt: string;
}

/** What a hook changes of a message as the model would get it. */
export interface UserPromptTransformedOutput {
  readonly modifiedTransformedPrompt?: string;
}

/** What a hook receives when a session starts. */
export interface SessionStartInput extends HookInput {
  readonly source: "new" | "resume" | "startup";
  readonly initialPrompt?: string;
}

/** What a hook receives when a session ends. */
export interface SessionEndInput extends HookInput {
  /** `complete` whenever the session has come to rest. */
  readonly reason: "complete" | "error" | "abort" | "timeout" | "user_exit";
}

/** What a hook receives when an agent ends. */
export interface AgentStopInput extends HookInput {
  readonly transcriptPath: string;
  readonly stopReason: "end_turn";
  /** The agent continues because such a hook blocked before: a hook that always blocks makes it run for ever. */
  readonly stop_hook_active: boolean;
}

/** What a hook decides when an agent wants to end. */
export interface StopOutput {
  /** `block`: the agent continues, with the reason as the next message. */
  readonly decision?: "block" | "allow";
  /** Needed to block. */
  readonly reason?: string;
}

/** What a hook receives when an error occurs in a turn. */
export interface ErrorOccurredInput extends HookInput {
  readonly error: string;
  readonly errorContext: "model_call" | "tool_execution" | "system" | "user_input";
  readonly recoverable: boolean;
}

/** What a hook decides about an error in a turn. */
export interface ErrorOccurredOutput {
  readonly errorHandling?: "retry" | "skip" | "abort";
  /** How often to try again. */
  readonly retryCount?: number;
  readonly userNotification?: string;
  readonly suppressOutput?: boolean;
}

/** What a hook receives when an agent in the background starts or ends. */
export interface SubagentInput extends HookInput {
  readonly agentName: string;
  readonly agentDisplayName: string;
  readonly agentDescription: string;
  readonly transcriptPath: string;
}

/** Hooks that only observe. */
export type NoOutput = Readonly<Record<never, never>>;

/** The kinds of hooks: the input of each, and its output. */
export interface HookKinds {
  preToolUse: { input: PreToolUseInput; output: PreToolUseOutput };
  preMcpToolCall: { input: PreMcpToolCallInput; output: PreMcpToolCallOutput };
  postToolUse: { input: PostToolUseInput; output: PostToolUseOutput };
  postToolUseFailure: { input: PostToolUseFailureInput; output: ContextOutput };
  userPromptSubmitted: { input: UserPromptSubmittedInput; output: UserPromptSubmittedOutput };
  userPromptTransformed: { input: UserPromptTransformedInput; output: UserPromptTransformedOutput };
  sessionStart: { input: SessionStartInput; output: ContextOutput };
  sessionEnd: { input: SessionEndInput; output: NoOutput };
  errorOccurred: { input: ErrorOccurredInput; output: ErrorOccurredOutput };
  agentStop: { input: AgentStopInput; output: StopOutput };
  subagentStart: { input: SubagentInput; output: ContextOutput };
  subagentStop: { input: SubagentInput; output: StopOutput };
}

/** The name of a hook. */
export type HookKind = keyof HookKinds;

/** What is particular to a hook's input: the rest is added for everybody. */
export type HookFacts<K extends HookKind> = Omit<HookKinds[K]["input"], keyof HookInput>;

/** A hook; what it returns, or the promise of it, is its kind's output, or nothing. */
export type Hook<K extends HookKind> = (input: HookKinds[K]["input"], invocation: { readonly sessionId: string }) => unknown;

/** A session's hooks, each kind in the order they run. */
export type ResolvedHooks = { readonly [K in HookKind]: readonly Hook<K>[] };

/** A session's hooks, by the Copilot SDK's names; a list runs in its order. */
export interface SessionHooks {
  readonly onPreToolUse?: HookOption<"preToolUse">;
  readonly onPreMcpToolCall?: HookOption<"preMcpToolCall">;
  readonly onPostToolUse?: HookOption<"postToolUse">;
  readonly onPostToolUseFailure?: HookOption<"postToolUseFailure">;
  readonly onUserPromptSubmitted?: HookOption<"userPromptSubmitted">;
  readonly onUserPromptTransformed?: HookOption<"userPromptTransformed">;
  readonly onSessionStart?: HookOption<"sessionStart">;
  readonly onSessionEnd?: HookOption<"sessionEnd">;
  readonly onErrorOccurred?: HookOption<"errorOccurred">;
  readonly onAgentStop?: HookOption<"agentStop">;
  readonly onSubagentStart?: HookOption<"subagentStart">;
  readonly onSubagentStop?: HookOption<"subagentStop">;
}

type HookOption<K extends HookKind> = Hook<K> | readonly Hook<K>[] | undefined;

/** The option that holds each kind. */
export const hookOptions: { readonly [K in HookKind]: keyof SessionHooks } = {
  preToolUse: "onPreToolUse",
  preMcpToolCall: "onPreMcpToolCall",
  postToolUse: "onPostToolUse",
  postToolUseFailure: "onPostToolUseFailure",
  userPromptSubmitted: "onUserPromptSubmitted",
  userPromptTransformed: "onUserPromptTransformed",
  sessionStart: "onSessionStart",
  sessionEnd: "onSessionEnd",
  errorOccurred: "onErrorOccurred",
  agentStop: "onAgentStop",
  subagentStart: "onSubagentStart",
  subagentStop: "onSubagentStop",
};

/**
 * The kinds that decide whether something happens: one that fails, hangs or cannot be understood stops it. All others
 * observe: then it is as if they had said nothing. A hook that must not fail open, such as one that takes secrets out of
 * prompts, has to catch its own faults.
 */
export const gateKinds: ReadonlySet<HookKind> = new Set(["preToolUse", "preMcpToolCall"]);

/** All of several sets of hooks: those of one kind in the order of the sets. */
export function joinHooks(sets: readonly ResolvedHooks[]): ResolvedHooks {
  const kinds = Object.keys(hookOptions) as HookKind[];
  return Object.freeze(
    Object.fromEntries(kinds.map((kind) => [kind, sets.flatMap((hooks): readonly unknown[] => hooks[kind])])),
  ) as unknown as ResolvedHooks;
}
