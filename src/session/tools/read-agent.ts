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
  description: "Reads what an agent answered that works in the background, or tells that it is still at work.",
  parameters: {
    type: "object",
    properties: {
      agent_id: { type: "string", description: "As the task tool gave it." },
      wait: { type: "boolean", description: "True: waits for the agent if it is still at work. Default: false." },
      timeout: {
        type: "number",
        minimum: 0,
        maximum: maxTimeout,
        description: `How many seconds to wait at most. Default: ${defaultTimeout}.`,
      },
      since_turn: {
        type: "integer",
        minimum: 0,
        description: "All answers after those to the first so many messages; 0: all. Default: the last answer.",
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
