import type { Tool, ToolContext, ToolInvocation, ToolResult } from "../../tools/tool.ts";
import { failureResult, successResult } from "../../tools/tool-result.ts";
import type { AgentProfile } from "../agents/agents.ts";
import type { SubAgent } from "../agents/sub-agent.ts";
import { maxRunningAgents } from "../agents/sub-agents.ts";
import { sessionCallOf } from "../calls/call-context.ts";
import { agentText } from "../instructions/model-text.ts";
import { createSessionTool } from "../session-tool.ts";

interface TaskArguments {
  readonly description: string;
  readonly prompt: string;
  readonly agent_type: string;
  readonly name?: string;
  readonly model?: string;
  readonly mode?: "sync" | "background";
}

/** The tool that gives a task to one of these agents. */
export function createTaskTool(agents: readonly AgentProfile[]): Tool {
  const types = agents.map(({ name, description }) => (description === "" ? `- ${name}` : `- ${name}: ${description}`));
  return createSessionTool({
    name: "task",
    description: `Starts a sub-agent with its own conversation. It knows only the prompt, and you see only its last message. Use it for work that would fill this conversation, or call it several times in one message to run tasks in parallel. The agents are:\n${types.join("\n")}`,
    parameters: {
      type: "object",
      properties: {
        description: { type: "string", description: "The task in three to five words, shown to the user." },
        prompt: { type: "string", description: "The whole task: what to do, everything the agent must know, and what to report." },
        agent_type: { type: "string", enum: agents.map(({ name }) => name), description: "The type of agent." },
        name: { type: "string", description: 'A short name for this agent, such as "find-tests"; becomes its agent_id.' },
        model: { type: "string", description: "A model to use instead of the agent's default." },
        mode: {
          type: "string",
          enum: ["sync", "background"],
          description: "sync (default) waits for the result. background returns at once; you are notified when the agent is done.",
        },
      },
      required: ["description", "prompt", "agent_type"],
    },
    handler: startTask,
  });
}

async function startTask(args: TaskArguments, { toolCallId, signal }: ToolInvocation, context: ToolContext): Promise<ToolResult> {
  const { session, agent: scope } = sessionCallOf(context);
  const { agent_type: agentType, name, description, prompt, model } = args;
  const start = session.subAgents.start({ agentType, name, description, prompt, model }, { toolCallId, agent: scope });
  if (start.kind === "refused") return failureResult(refusals[start.why](agentType));
  const { agent } = start;
  if (args.mode === "background") {
    session.subAgents.notifyWhenSettled(agent);
    return successResult(agentText.started(agent.id));
  }
  agent.stopWith(signal);
  await agent.settled;
  return resultOf(agent);
}

const refusals = {
  "unknown type": (type: string) => agentText.unknownType(type),
  "too deep": () => agentText.tooDeep,
  "too many": () => agentText.tooMany(maxRunningAgents),
};

function resultOf(agent: SubAgent): ToolResult {
  const { id, profile, status, replies } = agent;
  if (status === "failed") return failureResult(agentText.failed(id, profile.name));
  if (status === "cancelled") return failureResult(agentText.cancelled(id, profile.name));
  return successResult(replies.at(-1) || agentText.silent(id, profile.name));
}
