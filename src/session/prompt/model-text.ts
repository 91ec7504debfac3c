import { shorten } from "../../base/text.ts";
import type { ArgumentIssue, ResultType } from "../../tools/tool.ts";
import { resultText } from "../../tools/tool-result.ts";

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
  | "denied_by_failed_mcp_hook"
  | "permission_rejected"
  | "permission_denied"
  | "permission_unavailable"
  | "permission_failed"
  | "denied_by_rules"
  | "threw"
  | "client_error"
  | "timeout"
  | "owner_gone"
  | "session_closed"
  | "cancelled"
  | "interrupted"
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

/** What kind of result an outcome is. Only `rejected` ends the turn: the model follows the reason that a user gives for a rejection. */
export function resultTypeOf(code: SettledCode, { reason }: Pick<TextFacts, "reason"> = {}): ResultType {
  if (code === "permission_rejected" && reason) return "denied";
  return resultTypes[code] ?? "failure";
}

/** What a preToolUse hook adds, as a model reads it behind the call's result. */
export function callContext(context: string): string {
  return `Additional context from preToolUse hook:\n${context}`;
}

/** What a userPromptSubmitted hook adds, as a model reads it behind the prompt. */
export function promptContext(context: string): string {
  return `<system_reminder>\n${context}\n</system_reminder>`;
}

/** What a postToolUse hook adds, as a model reads it at the end of the result. */
export function successGuidance(tool: string, guidance: string): string {
  return `\n\nTool "${tool}" succeeded. Additional guidance from postToolUse hooks:\n${guidance}`;
}

/** The guidance of postToolUseFailure hooks, as the model reads it after the result. */
export function failureGuidance(tool: string, guidance: string): string {
  return `Tool "${tool}" failed. Additional guidance from postToolUseFailure hooks:\n${guidance}`;
}

/** What stands before the next prompt after tools have gone. */
export function toolsChangedNotice(gone: readonly string[]): string {
  const advice =
    "Important: Do not attempt to call tools that are no longer available unless you've been notified that they're available again.";
  return `<tools_changed_notice>\nTools no longer available: ${gone.join(", ")}\n\n${advice}\n</tools_changed_notice>`;
}

/** The text in place of content that a model cannot be shown. */
export function unseenNote(file: {
  readonly mimeType: string;
  readonly description?: string | undefined;
  readonly bytes?: number | undefined;
}): string {
  const facts = [file.mimeType, ...(file.bytes === undefined ? [] : [`${file.bytes} bytes`])].join(", ");
  return `[${file.description ? `${file.description}: ` : ""}${facts}, which cannot be shown to you.]`;
}

/** What follows the head of a result that was too long to show. */
export function largeOutputNote(totalBytes: number, file: string | undefined): string {
  const size = `[The output has ${totalBytes} bytes and is cut here.`;
  return file === undefined
    ? `${size} The rest could not be saved: call the tool again for a smaller part.]`
    : `${size} The full output is in ${file}: read it in parts.]`;
}

/** What a model is asked at the end of a conversation that becomes too long. It begins as recorded conversations have it. */
export function compactionInstruction(instructions: string | undefined): string {
  return `Please create a detailed summary of the conversation so far. The history is being compacted: your summary replaces it, for an agent that continues the work and sees nothing else of it but the messages of the user. Do not continue the work and do not call tools.

Use exactly these sections, in this order, and nothing around them:

<overview>
What the user wants, in the user's own words where they matter, and the approach that was chosen.
</overview>

<history>
What happened, in order and numbered: each request, what was decided and why, what was learned and what failed.
</history>

<work_done>
What was done and what is unfinished, with the exact names of files, commands and identifiers.
</work_done>

<technical_details>
Facts that the work depends on: decisions, constraints, causes of problems, open questions.
</technical_details>

<important_files>
The files that matter, each with why it does and what was changed in it.
</important_files>

<next_steps>
What is left to do and what comes next.
</next_steps>

<checkpoint_title>Two to six words that name the work</checkpoint_title>${addition(instructions)}`;
}

/** The same about a transcript, where the conversation itself cannot be sent. */
export function compactionRequest(transcript: string, instructions: string | undefined): string {
  return `${compactionInstruction(instructions)}\n\nThe conversation, shortened where it was too long:\n\n<conversation>\n${transcript}\n</conversation>`;
}

function addition(instructions: string | undefined): string {
  return instructions === undefined || instructions.trim() === "" ? "" : `\n\nThe user adds: ${instructions.trim()}`;
}

/** A question about a conversation, on the side. */
export function asideRequest(transcript: string, question: string): string {
  return `Answer a question about the conversation below, briefly. This is a side question: do not continue the conversation, and do not carry out any request in it.\n\n<conversation>\n${transcript}\n</conversation>\n\nThe question: ${question}`;
}

/** A summary in the place of what it is of, with what the user said there. */
export function compactedContext(summary: string, said: readonly string[]): string {
  const quoted = said.map((text) => `<user_message>\n${text.trim()}\n</user_message>`).join("\n");
  const instructions =
    said.length === 0
      ? ""
      : `You were originally given instructions from a user over one or more turns. Here were the user messages:\n\n${quoted}\n\n`;
  return `Some of the conversation history has been summarized to free up context.\n\n${instructions}Here is a summary of the prior context:\n\n<summary>\n${summary.trim()}\n</summary>`;
}

/** What the tool search answers. */
export const toolSearchText = {
  found(tools: readonly { readonly name: string; readonly description?: string }[], isPart: boolean): string {
    const lines = tools.map(({ name, description }) => (description ? `- ${name}: ${firstLine(description)}` : `- ${name}`));
    const more = isPart ? "\nMore tools may match: use a narrower pattern to see others." : "";
    return `Found ${tools.length === 1 ? "1 tool" : `${tools.length} tools`}, which you can call from now on:\n${lines.join("\n")}${more}`;
  },
  nothing(pattern: string, isPart: boolean): string {
    if (isPart) return `The search for "${shorten(pattern, 200)}" took too long and was stopped. Use a simpler pattern, such as one word.`;
    return `No tool matches "${shorten(pattern, 200)}". Try fewer or different words, such as the name of the service or of the object that you want to work with.`;
  },
  refused(pattern: string, why: string): string {
    const allowed =
      'A pattern is a regular expression in RE2 syntax of at most 200 characters, without large repeat counts: letters, ".", "*", "+", "?", "|", "(...)", "[...]", "^", "$", "\\w", "\\d". Look-around and back-references are not allowed.';
    return `The pattern "${shorten(pattern, 200)}" cannot be used: it is ${why}. ${allowed}`;
  },
} as const;

/** What the skill tool answers, and what follows it. */
export const skillText = {
  loaded: (name: string): string => `Skill "${name}" loaded successfully. Follow the instructions in the skill context.`,
  unknown: (name: string, known: readonly string[]): string =>
    `Skill "${shorten(name, 200)}" does not exist. ${known.length === 0 ? "There are no skills." : `Available skills are ${known.join(", ")}.`}`,
  unreadable: (name: string): string => `Skill "${name}" could not be loaded. Continue without it.`,
  unreadableFile: (name: string, file: string): string =>
    `Skill "${name}" has no file ${JSON.stringify(shorten(file, 200))} that can be read as text. Continue without it.`,
} as const;

/**
 * The instructions of a skill, as a model reads them in a message of their own. The line break that ends a file and that
 * of the last line are both there, as recorded conversations of the Copilot runtime have it.
 */
export function skillContext({ name, folder, body }: { name: string; folder: string | undefined; body: string }): string {
  const base = folder === undefined ? "" : `Base directory for this skill: ${folder}\n\n`;
  return `<skill-context name="${name.replace(/[&"<>\n]/g, " ")}">\n${base}${body.trim()}\n\n</skill-context>`;
}

/** What the ask_user tool answers. */
export const askUserText = {
  selected: (answer: string): string => `User selected: ${answer}`,
  responded: (answer: string): string => `User responded: ${answer}`,
  declined: "The user declined to answer. Continue without an answer, and state what you assumed.",
  unanswered: "The user did not answer. Decide for yourself, and state what you assumed.",
} as const;

/** What a model is asked when a client wants the work shared among agents. */
export function fleetRequest(request: string | undefined): string {
  const task = request === undefined || request.trim() === "" ? "Continue with the work that was discussed." : request.trim();
  return `You are now in fleet mode. Dispatch sub-agents (via the task tool) in parallel to do the work.

- Split the work into parts that depend on each other as little as possible, and write them down if you have a tool for that.
- Start agents for all parts that can begin now in one message; start a part that depends on another when that is done.
- Give each agent all that it needs: it does not see this conversation. Have it report what it completed, what is left and what blocks it.
- When agents report, check their work against the request, also edge cases and tests, and dispatch what is missing.
- Do not start a single agent in the background: do such work yourself, or wait for that agent.

User request: ${task}`;
}

/** A sub-agent, as a model sees it. */
export interface AgentFacts {
  readonly id: string;
  readonly type: string;
  readonly status: "running" | "completed" | "failed" | "cancelled";
  readonly description: string;
  /** Seconds since it was started, and those that it worked. */
  readonly elapsed: number;
  readonly duration: number;
  /** Messages that it got after the first. */
  readonly turns: number;
  readonly model: string | undefined;
}

/** What the tools for sub-agents answer. */
export const agentText = {
  started: (id: string): string =>
    `Agent started in background with agent_id: ${id}. You'll be notified when it completes. Tell the user you're waiting and end your response, or continue unrelated work until notified.`,
  unknownType: (type: string): string => `There is no longer an agent of type "${shorten(type, 200)}". Choose another type.`,
  unknown: (id: string): string => `No agent found with agent_id: ${shorten(id, 200)}. The agent may have been cleared or never existed.`,
  tooDeep: "The agent was not started: agents are nested too deeply. Do the work yourself.",
  tooMany: (limit: number): string =>
    `The agent was not started: ${limit} agents are already running, which is the limit. Wait for one of them to complete.`,
  failed: (id: string, type: string): string => `Agent "${id}" (${type}) failed. Detailed information is not available.`,
  cancelled: (id: string, type: string): string => `Agent "${id}" (${type}) was stopped before it completed.`,
  silent: (id: string, type: string): string => `Agent "${id}" (${type}) completed without output.`,
  delivered: (id: string): string => `Message delivered to agent ${id}. Use read_agent to check the agent's response.`,
  noReceiver: "The message was not delivered: pass agent_id or agent_ids.",
  none: "There are no agents.",
  notification({ id, type, status }: AgentFacts): string {
    const outcomes = { running: "is running", completed: "has completed successfully", failed: "has failed", cancelled: "was stopped" };
    const advice = status === "completed" ? ` Use read_agent with agent_id "${id}" to retrieve the full results.` : "";
    return `<system_notification>\nAgent "${id}" (${type}) ${outcomes[status]}.${advice}\n</system_notification>`;
  },
  report(agent: AgentFacts, text: string): string {
    return `Agent ${agent.status}. ${agentFacts(agent)}, duration: ${agent.duration}s\n\n${text}`;
  },
  running(agent: AgentFacts, waited: number | undefined): string {
    const after = waited === undefined ? "" : ` after waiting ${waited}s`;
    const timedOut = waited === undefined ? "" : ", (timed out waiting for completion)";
    return `Agent is still running${after}. ${agentFacts(agent)}${timedOut} You will be automatically notified when this agent completes, so there is no need to poll.`;
  },
  listed: (agents: readonly AgentFacts[]): string => agents.map((agent) => `- ${agentFacts(agent)}`).join("\n"),
} as const;

function agentFacts({ id, type, status, description, elapsed, turns, model }: AgentFacts): string {
  const modelFact = model === undefined ? "" : `, model: ${model}`;
  return `agent_id: ${id}, agent_type: ${type}, status: ${status}, description: ${firstLine(description)}, elapsed: ${elapsed}s, total_turns: ${turns}${modelFact}`;
}

/** Enough of a description to see what it is about. */
function firstLine(text: string): string {
  const line = text.trim().split(/\r?\n/, 1)[0] ?? "";
  return line.length > 200 ? `${line.slice(0, 200)}…` : line;
}

const interrupted = "The execution of this tool, or a previous tool was interrupted.";
const unavailable = "Permission denied and could not request permission from user";

const sentences: { readonly [Code in SettledCode]: (facts: TextFacts) => string } = {
  unknown_tool: ({ tool, available }) => `Tool '${shorten(tool, 200)}' does not exist.${callable(available)}`,
  vanished_tool: ({ tool, available }) => `Tool '${shorten(tool, 200)}' is no longer available.${callable(available)}`,
  invalid_arguments: ({ tool, issues = [] }) => `Invalid arguments for tool '${tool}': ${issues.map(sentenceOf).join("; ")}`,
  unchecked_arguments: ({ tool }) => `The arguments for tool '${tool}' could not be checked, so it was not called.`,
  denied_by_hook: ({ reason }) => `Denied by preToolUse hook: ${reason || "No reason provided"}`,
  denied_by_failed_hook: () => "Denied by preToolUse hook: the hook failed",
  denied_by_failed_mcp_hook: () => "Denied by preMcpToolCall hook: the hook failed",
  permission_rejected: ({ reason }) =>
    reason ? `The user rejected this tool call. User feedback: ${reason}` : "The user rejected this tool call.",
  permission_denied: ({ reason }) => `Permission denied: ${reason || "No reason provided"}`,
  permission_unavailable: () => unavailable,
  permission_failed: ({ tool }) => `Permission denied: the permission check of tool '${tool}' failed.`,
  // Not which rule: it may name folders and hosts that the model has no business to know.
  denied_by_rules: ({ tool }) => `Permission denied: a rule of this session forbids this call of tool '${tool}'.`,
  threw: () => resultText.threw,
  client_error: ({ tool, argumentsJson = "{}" }) =>
    `Failed to execute \`${tool}\` tool with arguments: ${argumentsJson} due to error: Error: Tool execution failed`,
  timeout: ({ tool, timeoutMs = 0 }) => `Tool '${tool}' did not finish within ${timeoutMs / 1000} seconds and was stopped.`,
  owner_gone: ({ tool }) => `The client that provides tool '${tool}' disconnected before it answered.`,
  session_closed: ({ tool }) => `The session ended before tool '${tool}' answered.`,
  cancelled: () => interrupted,
  interrupted: () => interrupted,
  too_deep: ({ tool }) => `Tool '${tool}' was not called: tool calls are nested too deeply.`,
};

const resultTypes: { readonly [Code in SettledCode]?: ResultType } = {
  denied_by_hook: "denied",
  denied_by_failed_hook: "denied",
  denied_by_failed_mcp_hook: "denied",
  permission_rejected: "rejected",
  permission_denied: "denied",
  permission_unavailable: "denied",
  permission_failed: "denied",
  denied_by_rules: "denied",
  timeout: "timeout",
};

function callable(available: readonly string[] = []): string {
  return available.length === 0 ? "" : ` Available tools that can be called are ${available.join(", ")}.`;
}

function sentenceOf({ path, message }: ArgumentIssue): string {
  return path === "" ? message : `${path}: ${message}`;
}
