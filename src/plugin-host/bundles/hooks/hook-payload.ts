import type { HookCommand } from "../../../formats/plugins/hook-config.ts";
import { foreignTool, toForeignArguments } from "./foreign-tools.ts";

type Inputs = Readonly<Record<string, unknown>>;

/** What a hook's program reads on its standard input: our input, as its protocol has it. */
export function hookPayload(command: HookCommand, input: Inputs): Inputs {
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

type Facts = (command: HookCommand, input: Inputs) => Inputs;

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

function resultFacts({ dialect }: HookCommand, result: unknown): Inputs {
  const { textResultForLlm: text = "", resultType = "success" } = (result ?? {}) as { textResultForLlm?: string; resultType?: string };
  if (dialect === "copilot") return { tool_result: { result_type: resultType, text_result_for_llm: text } };
  if (dialect === "gemini") return { tool_response: { llmContent: text, returnDisplay: text } };
  // The same text under the names that scripts look for it by: each of Claude Code's tools has its own.
  return { tool_response: { content: text, stdout: text, stderr: "", success: resultType === "success" } };
}
