import { resultText } from "../tools/result-text.ts";
import type { ArgumentIssue, ResultType } from "../tools/tool.ts";

/**
 * Why a call ended without a result of its own. Code branches on these; the sentences below are only for the model.
 * No sentence quotes what was thrown, a path or an address of the host.
 */
export type SettledCode =
  | "unknown_tool"
  | "vanished_tool"
  | "invalid_arguments"
  | "unchecked_arguments"
  | "denied_by_hook"
  | "denied_by_failed_hook"
  | "permission_rejected"
  | "permission_denied"
  | "permission_unavailable"
  | "permission_failed"
  | "threw"
  | "client_error"
  | "timeout"
  | "owner_gone"
  | "session_closed"
  | "cancelled"
  | "too_deep";

/** What a sentence may mention. */
export interface TextFacts {
  readonly tool: string;
  /** The names a model may call, in the order they are advertised. */
  readonly available?: readonly string[];
  /** The reason a hook or a person gave. */
  readonly reason?: string | undefined;
  readonly issues?: readonly ArgumentIssue[];
  readonly timeoutMs?: number;
  /** The arguments as JSON. */
  readonly argumentsJson?: string;
}

/** The sentence a model reads for an outcome. They are the Copilot runtime's, word for word, where it has one. */
export function modelText(code: SettledCode, facts: TextFacts): string {
  return sentences[code](facts);
}

/** What kind of result an outcome is. Only `rejected` ends the turn. */
export function resultTypeOf(code: SettledCode): ResultType {
  return resultTypes[code] ?? "failure";
}

/** The guidance of postToolUseFailure hooks, as the model reads it after the result. */
export function failureGuidance(tool: string, guidance: string): string {
  return `Tool "${tool}" failed. Additional guidance from postToolUseFailure hooks:\n${guidance}`;
}

/** What follows the head of a result that was too long to show. */
export function largeOutputNote(totalBytes: number, file: string | undefined): string {
  const size = `[The output has ${totalBytes} bytes and is cut here.`;
  return file === undefined
    ? `${size} The rest could not be kept: call the tool again for a smaller part.]`
    : `${size} All of it is in ${file}: read on from there, a part at a time.]`;
}

const unavailable = "Permission denied and could not request permission from user";

const sentences: { readonly [Code in SettledCode]: (facts: TextFacts) => string } = {
  unknown_tool: ({ tool, available }) => `Tool '${shortened(tool)}' does not exist.${callable(available)}`,
  vanished_tool: ({ tool, available }) => `Tool '${shortened(tool)}' is no longer available.${callable(available)}`,
  invalid_arguments: ({ tool, issues = [] }) => `Invalid arguments for tool '${tool}': ${issues.map(sentenceOf).join("; ")}`,
  unchecked_arguments: ({ tool }) => `The arguments for tool '${tool}' could not be checked, so it was not called.`,
  denied_by_hook: ({ reason }) => `Denied by preToolUse hook: ${reason || "No reason provided"}`,
  denied_by_failed_hook: () => "Denied by preToolUse hook: the hook failed",
  permission_rejected: ({ reason }) => (reason ? `The user rejected this tool call. ${reason}` : "The user rejected this tool call."),
  permission_denied: ({ reason }) => `Permission denied: ${reason || "No reason provided"}`,
  permission_unavailable: () => unavailable,
  permission_failed: ({ tool }) => `Permission denied: the permission check of tool '${tool}' failed.`,
  threw: () => resultText.threw,
  client_error: ({ tool, argumentsJson = "{}" }) =>
    `Failed to execute \`${tool}\` tool with arguments: ${argumentsJson} due to error: Error: Tool execution failed`,
  timeout: ({ tool, timeoutMs = 0 }) => `Tool '${tool}' did not finish within ${timeoutMs / 1000} seconds and was stopped.`,
  owner_gone: ({ tool }) => `The client that provides tool '${tool}' disconnected before it answered.`,
  session_closed: ({ tool }) => `The session ended before tool '${tool}' answered.`,
  cancelled: ({ tool }) => `The call of tool '${tool}' was cancelled.`,
  too_deep: ({ tool }) => `Tool '${tool}' was not called: tools that call tools went too deep.`,
};

const resultTypes: { readonly [Code in SettledCode]?: ResultType } = {
  denied_by_hook: "denied",
  denied_by_failed_hook: "denied",
  permission_rejected: "rejected",
  permission_denied: "denied",
  permission_unavailable: "denied",
  permission_failed: "denied",
  timeout: "timeout",
};

function callable(available: readonly string[] = []): string {
  return available.length === 0 ? "" : ` Available tools that can be called are ${available.join(", ")}.`;
}

// The name comes from a model: whatever its length, it does not fill the next request.
function shortened(name: string): string {
  return name.length > 200 ? `${name.slice(0, 200)}…` : name;
}

function sentenceOf({ path, message }: ArgumentIssue): string {
  return path === "" ? message : `${path}: ${message}`;
}
