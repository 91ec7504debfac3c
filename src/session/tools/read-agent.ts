import type { Tool, ToolContext, ToolInvocation, ToolResult } from "../../tools/tool.ts";
import { failureResult, successResult } from "../../tools/tool-result.ts";
import type { SubAgent } from "../agents/sub-agent.ts";
import { isRunning, untilSettled } from "../agents/sub-agents.ts";
import { sessionCallOf } from "../calls/call-context.ts";
import { agentText } from "../instructions/model-text.ts";
import { createSessionTool } from "../session-tool.ts";

interface ReadArguments {
  readonly agent_id: string;
  readonly wait?: boolean;
  readonly timeout?: number;
  readonly since_turn?: number;
}

const defaultTimeout = 30;
const maxTimeout = 600;

/** Tells how far an agent is, and what it answered. */
export const readAgent: Tool = createSessionTool({
  name: "read_agent",
  description: "Returns the answer of a background agent, or says that it is still running.",
  parameters: {
    type: "object",
    properties: {
      agent_id: { type: "string", description: "The agent_id that the task tool returned." },
      wait: { type: "boolean", description: "True: waits for the agent if it is still running. Default: false." },
      timeout: {
        type: "number",
        minimum: 0,
        maximum: maxTimeout,
        description: `Maximum number of seconds to wait. Default: ${defaultTimeout}.`,
      },
      since_turn: {
        type: "integer",
        minimum: 0,
        description: "Skip the answers to this many first messages and return the others; 0: return all. Default: only the last answer.",
      },
    },
    required: ["agent_id"],
  },
  handler: async (args: ReadArguments, { signal }: ToolInvocation, context: ToolContext): Promise<ToolResult> => {
    const agent = sessionCallOf(context).session.subAgents.find(args.agent_id);
    if (agent === undefined) return failureResult(agentText.unknown(args.agent_id));
    const seconds = args.wait === true ? (args.timeout ?? defaultTimeout) : undefined;
    if (seconds !== undefined) await untilSettled(agent, seconds * 1000, signal);
    return successResult(isRunning(agent) ? agentText.running(agent.facts, seconds) : agentText.report(agent.facts, answerOf(agent, args)));
  },
});

function answerOf(agent: SubAgent, { since_turn: since }: ReadArguments): string {
  const { id, status, profile, replies } = agent;
  const type = profile.name;
  const answers = since === undefined ? replies.slice(-1) : replies.slice(since);
  const said = answers.filter((answer) => answer !== "").join("\n\n");
  if (status === "failed") return [said, agentText.failed(id, type)].filter(Boolean).join("\n\n");
  if (status === "cancelled") return [said, agentText.cancelled(id, type)].filter(Boolean).join("\n\n");
  return said || agentText.silent(id, type);
}
