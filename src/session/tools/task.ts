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
    description: `Gives a task to an agent that works on it on its own, with a conversation of its own: it knows only what the prompt says, and you read only its last message. Use it for work that would fill this conversation, or several times in one message for things to be done at once. The agents are:\n${types.join("\n")}`,
    parameters: {
      type: "object",
      properties: {
        description: { type: "string", description: "The task in three to five words, for people." },
        prompt: { type: "string", description: "The whole task: what to do, all that must be known for it, and what to report." },
        agent_type: { type: "string", enum: agents.map(({ name }) => name), description: "Which agent." },
        name: { type: "string", description: 'A short name for this agent, such as "find-tests": its agent_id.' },
        model: { type: "string", description: "Another model than the agent's own." },
        mode: {
          type: "string",
          enum: ["sync", "background"],
          description: "sync, the default, waits for the result. background goes on at once; you are told when the agent is done.",
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
