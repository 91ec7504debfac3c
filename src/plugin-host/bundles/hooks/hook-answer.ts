import { HostError } from "../../../base/errors.ts";
import { isRecord } from "../../../base/json.ts";
import type { HookCommand } from "../../../formats/plugins/hook-config.ts";
import type { BundleDialect } from "../../../formats/plugins/plugin-dialects.ts";

type Fields = Readonly<Record<string, unknown>>;

/** The exit code and output of a hook's program. */
export interface HookReply {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

const maxContextLength = 10_000;

/**
 * Converts the answer of a hook's program into that of a session hook. Undefined: no answer. By the documented protocol of each
 * client, exit code 2 blocks with stderr as the reason; another code except 0 is an error, which denies a call in the Copilot
 * runtime and has no effect elsewhere; with code 0, JSON on stdout decides.
 * @throws HostError `HOOK_COMMAND` for invalid JSON, a signal, or an exit code that denies a call.
 */
export function hookAnswer(command: HookCommand, input: Fields, { code, stdout, stderr }: HookReply): object | undefined {
  const { moment, dialect } = command;
  if (code === null) throw hookError(command, "was ended by a signal");
  if (code === 2) return blocked(command, stderr.trim(), stdout.trim());
  if (code !== 0) {
    if (moment === "preToolUse" && dialect === "copilot") throw hookError(command, `ended with exit code ${code}`);
    return undefined;
  }
  const text = withoutProgress(stdout).trim();
  const answer = parsed(text);
  if (answer !== undefined) return answers[moment]?.(answer, command, input);
  if (text.startsWith("{")) throw hookError(command, "returned JSON that is not valid");
  const isContext = dialect !== "copilot" && dialect !== "gemini" && (moment === "sessionStart" || moment === "userPromptSubmitted");
  return isContext && text !== "" ? { additionalContext: cut(text) } : undefined;
}

function blocked({ moment, dialect }: HookCommand, stderr: string, stdout: string): object | undefined {
  const reason = cut(stderr) || "A plugin's hook blocked this without giving a reason.";
  if (moment === "preToolUse") return { permissionDecision: "deny", permissionDecisionReason: reason };
  if (dialect === "copilot") return moment === "postToolUseFailure" && stdout !== "" ? { additionalContext: cut(stdout) } : undefined;
  if (dialect === "gemini" && moment === "postToolUse") return { modifiedResult: reason };
  if (moment === "postToolUse" || moment === "postToolUseFailure") return { additionalContext: reason };
  if (moment === "userPromptSubmitted") return withheld(reason);
  return moment === "agentStop" || moment === "subagentStop" ? { decision: "block", reason } : undefined;
}

/** A session cannot reject a prompt, so a blocked one is replaced before it reaches the model. */
function withheld(reason: string): object {
  return { modifiedPrompt: `[A hook blocked the user's message. Reason: ${reason}]` };
}

type Answer = (answer: Fields, command: HookCommand, input: Fields) => object | undefined;

const answers: Readonly<Partial<Record<HookCommand["moment"], Answer>>> = {
  preToolUse(answer, command, input) {
    const own = specific(answer);
    const decision = own["permissionDecision"] ?? answer["permissionDecision"] ?? decided(answer);
    const reason = textOf(own["permissionDecisionReason"]) ?? textOf(answer["permissionDecisionReason"]) ?? reasonOf(answer);
    return defined({
      permissionDecision: answer["continue"] === false ? "deny" : decision === "defer" ? undefined : decision,
      permissionDecisionReason: reason,
      modifiedArgs: changedArguments(answer, command, input),
      additionalContext: contextOf(answer),
    });
  },
  postToolUse(answer, { dialect }) {
    const own = specific(answer);
    const replaced = own["updatedToolOutput"] ?? own["updatedMCPToolOutput"] ?? own["tool_output"] ?? answer["modifiedResult"];
    const reason = decided(answer) === "deny" ? reasonOf(answer) : undefined;
    return defined({
      modifiedResult: dialect === "gemini" && reason !== undefined ? reason : replaced,
      additionalContext: joined(dialect === "gemini" ? undefined : reason, contextOf(answer)),
    });
  },
  postToolUseFailure: (answer) =>
    defined({ additionalContext: joined(decided(answer) === "deny" ? reasonOf(answer) : undefined, contextOf(answer)) }),
  userPromptSubmitted(answer, { protocol }) {
    // The Copilot runtime ignores answers to this hook.
    if (protocol === "copilot") return undefined;
    if (decided(answer) === "deny" || answer["continue"] === false) return withheld(reasonOf(answer) ?? "it gave none.");
    return defined({ additionalContext: contextOf(answer) });
  },
  userPromptTransformed: (answer) => defined({ modifiedTransformedPrompt: textOf(answer["modifiedTransformedPrompt"]) || undefined }),
  sessionStart: (answer) => defined({ additionalContext: contextOf(answer) }),
  subagentStart: (answer) => defined({ additionalContext: contextOf(answer) }),
  agentStop: stopAnswer,
  subagentStop: stopAnswer,
};

function stopAnswer(answer: Fields): object | undefined {
  if (answer["continue"] === false || decided(answer) !== "deny") return undefined;
  return { decision: "block", reason: reasonOf(answer) ?? "A plugin's hook asks you to continue." };
}

function changedArguments(answer: Fields, { dialect, protocol }: HookCommand, { toolName, toolArgs }: Fields): unknown {
  if (answer["modifiedArgs"] !== undefined && dialect === "copilot") return answer["modifiedArgs"];
  const own = specific(answer);
  const tool = foreignTool(dialect, String(toolName));
  if (protocol === "gemini") {
    const changes = fromForeignArguments(tool, own["tool_input"]);
    return isRecord(changes) ? { ...(isRecord(toolArgs) ? toolArgs : {}), ...changes } : undefined;
  }
  return isRecord(own["updatedInput"]) ? fromForeignArguments(tool, own["updatedInput"]) : undefined;
}

/** The decision of an answer, in the older or newer words of the protocols. */
function decided({ decision }: Fields): "allow" | "deny" | undefined {
  if (decision === "block" || decision === "deny") return "deny";
  return decision === "approve" || decision === "allow" ? "allow" : undefined;
}

function reasonOf(answer: Fields): string | undefined {
  return textOf(answer["reason"]) ?? textOf(answer["stopReason"]);
}

function contextOf(answer: Fields): string | undefined {
  return textOf(specific(answer)["additionalContext"]) ?? textOf(answer["additionalContext"]);
}

function specific(answer: Fields): Fields {
  const own = answer["hookSpecificOutput"];
  return isRecord(own) ? own : {};
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" ? cut(value) : undefined;
}

function joined(...texts: readonly (string | undefined)[]): string | undefined {
  const all = texts.filter((text) => text !== undefined && text !== "");
  return all.length === 0 ? undefined : all.join("\n\n");
}

function cut(text: string): string {
  return text.length > maxContextLength ? `${text.slice(0, maxContextLength - 1)}…` : text;
}

function defined(fields: Fields): object {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

function parsed(text: string): Fields | undefined {
  if (!text.startsWith("{")) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) ? value : undefined;
  } catch {
    // The caller reports invalid JSON.
    return undefined;
  }
}

/** Removes progress lines, which are not part of the answer. */
function withoutProgress(stdout: string): string {
  if (!stdout.includes('"progress"')) return stdout;
  return stdout
    .split("\n")
    .filter((line) => parsed(line.trim())?.["type"] !== "progress")
    .join("\n");
}

/** The error of a hook's program. */
export function hookError({ event }: HookCommand, what: string): HostError {
  return new HostError("HOOK_COMMAND", `The program of a ${event} hook ${what}.`);
}

/** The standard input of a hook's program, in the form of its protocol. */
export function hookPayload(command: HookCommand, input: Fields): Fields {
  if (command.protocol === "copilot") return input;
  const { event, dialect, moment } = command;
  const common = {
    session_id: input["sessionId"],
    transcript_path: input["transcriptPath"] ?? "",
    cwd: input["cwd"],
    hook_event_name: event,
    timestamp: new Date(Number(input["timestamp"])).toISOString(),
    ...(dialect === "claude" && { permission_mode: "default" }),
  };
  return { ...common, ...(facts[moment]?.(command, input) ?? {}) };
}

type Facts = (command: HookCommand, input: Fields) => Fields;

const toolFacts: Facts = ({ dialect }, { toolName, toolArgs }) => {
  const tool = foreignTool(dialect, String(toolName));
  return { tool_name: tool.name, tool_input: toForeignArguments(tool, toolArgs) };
};
const stopFacts: Facts = (_command, input) => ({
  stop_hook_active: input["stop_hook_active"] === true,
  stop_reason: "end_turn",
  prompt: "",
  prompt_response: "",
});
const agentFacts: Facts = (_command, { agentName, agentDisplayName }) => ({
  agent_type: agentName,
  agent_name: agentName,
  agent_display_name: agentDisplayName,
});

const facts: Readonly<Partial<Record<HookCommand["moment"], Facts>>> = {
  preToolUse: toolFacts,
  postToolUse: (command, input) => ({ ...toolFacts(command, input), ...resultFacts(command, input["toolResult"]) }),
  postToolUseFailure: (command, input) => ({ ...toolFacts(command, input), error: input["error"] }),
  userPromptSubmitted: (_command, { prompt }) => ({ prompt }),
  sessionStart: (_command, { source, initialPrompt }) => ({
    source: source === "resume" ? "resume" : "startup",
    ...(initialPrompt !== undefined && { initial_prompt: initialPrompt }),
  }),
  sessionEnd: (_command, { reason }) => ({ reason }),
  errorOccurred: (_command, { error, errorContext, recoverable }) => ({
    error: { name: "Error", message: error },
    error_context: errorContext,
    recoverable,
  }),
  agentStop: stopFacts,
  subagentStart: agentFacts,
  subagentStop: (command, input) => ({ ...agentFacts(command, input), ...stopFacts(command, input) }),
};

function resultFacts({ dialect }: HookCommand, result: unknown): Fields {
  const { textResultForLlm: text = "", resultType = "success" } = (result ?? {}) as { textResultForLlm?: string; resultType?: string };
  if (dialect === "copilot") return { tool_result: { result_type: resultType, text_result_for_llm: text } };
  if (dialect === "gemini") return { tool_response: { llmContent: text, returnDisplay: text } };
  // Each tool of Claude Code has its own field for the text, so scripts may read any of these.
  return { tool_response: { content: text, stdout: text, stderr: "", success: resultType === "success" } };
}

/** The name of a tool and of its arguments in another client. */
interface ForeignTool {
  readonly name: string;
  /** Other names that matchers may use. */
  readonly aliases: readonly string[];
  /** The client's names of arguments, by skillhost's names. */
  readonly fields: Readonly<Record<string, string>>;
}

type Row = readonly [name: string, fields?: Readonly<Record<string, string>>, aliases?: readonly string[]];

// As the Copilot runtime documents them for hooks that were written for Claude Code.
const claude: Readonly<Record<string, Row>> = {
  bash: ["Bash"],
  powershell: ["Bash"],
  view: ["Read", { path: "file_path" }],
  create: ["Write", { path: "file_path", file_text: "content" }],
  edit: ["Edit", { path: "file_path", old_str: "old_string", new_str: "new_string" }, ["MultiEdit"]],
  grep: ["Grep"],
  glob: ["Glob"],
  web_fetch: ["WebFetch"],
  web_search: ["WebSearch"],
  ask_user: ["AskUserQuestion"],
  task: ["Task", {}, ["Agent"]],
  skill: ["Skill"],
};

const gemini: Readonly<Record<string, Row>> = {
  bash: ["run_shell_command"],
  powershell: ["run_shell_command"],
  view: ["read_file", { path: "file_path" }],
  create: ["write_file", { path: "file_path", file_text: "content" }],
  edit: ["replace", { path: "file_path", old_str: "old_string", new_str: "new_string" }],
  grep: ["grep_search", {}, ["search_file_content"]],
  glob: ["glob"],
  web_search: ["google_web_search"],
};

/** A dialect's name of a tool. A tool that the dialect does not have keeps its name. */
function foreignTool(dialect: BundleDialect, tool: string): ForeignTool {
  const table = dialect === "gemini" ? gemini : claude;
  const [name, fields = {}, aliases = []] = Object.hasOwn(table, tool) ? table[tool]! : [tool];
  return { name, aliases, fields };
}

/** All names of a tool that a matcher may use, including `mcp__server__tool` for what may be a tool of an MCP server. */
export function namesOfTool(dialect: BundleDialect, tool: string): readonly string[] {
  const { name, aliases } = foreignTool(dialect, tool);
  const splits = name === tool ? [...tool.matchAll(/-/g)].slice(0, 10) : [];
  return [...new Set([name, ...aliases, tool, ...splits.map(({ index }) => `mcp__${tool.slice(0, index)}__${tool.slice(index + 1)}`)])];
}

/** Renames arguments to those of the dialect's tool. */
function toForeignArguments({ fields }: ForeignTool, args: unknown): unknown {
  return renamed(args, fields);
}

/** Inverse of `toForeignArguments`. */
function fromForeignArguments({ fields }: ForeignTool, args: unknown): unknown {
  return renamed(args, Object.fromEntries(Object.entries(fields).map(([ours, theirs]) => [theirs, ours])));
}

function renamed(args: unknown, names: Readonly<Record<string, string>>): unknown {
  if (!isRecord(args)) return args;
  return Object.fromEntries(Object.entries(args).map(([key, value]) => [Object.hasOwn(names, key) ? names[key] : key, value]));
}
