import type { Tool, ToolContext, ToolResult } from "../../tools/tool.ts";
import { failureResult, successResult } from "../../tools/tool-result.ts";
import { isRunning, type SubAgents } from "../agents/sub-agents.ts";
import { sessionCallOf } from "../calls/call-context.ts";
import { agentText } from "../instructions/model-text.ts";
import { createSessionTool } from "../session-tool.ts";

interface WriteArguments {
  readonly agent_id?: string;
  readonly agent_ids?: readonly string[];
  readonly scope?: "running";
  readonly message: string;
}

/** Says something to agents: at once if they are at work, else they go to work again. */
export const writeAgent: Tool = createSessionTool({
  name: "write_agent",
  description: "Sends a message to a running or completed background agent: it continues its own conversation with the message.",
  parameters: {
    type: "object",
    properties: {
      agent_id: { type: "string", description: "The agent_id that the task tool returned." },
      agent_ids: { type: "array", items: { type: "string" }, description: "Several agents." },
      scope: { type: "string", enum: ["running"], description: "running: every running agent." },
      message: { type: "string" },
    },
    required: ["message"],
  },
  handler: (args: WriteArguments, _invocation: unknown, context: ToolContext): ToolResult => {
    const { session, agent: scope } = sessionCallOf(context);
    const { subAgents } = session;
    const self = subAgents.ofScope(scope);
    const ids = receiversOf(args, subAgents).filter((id) => self === undefined || subAgents.find(id) !== self);
    if (ids.length === 0) return failureResult(agentText.noReceiver);
    const isAnyKnown = ids.some((id) => subAgents.find(id) !== undefined);
    const text = ids.map((id) => send(id, args.message, subAgents)).join("\n");
    return isAnyKnown ? successResult(text) : failureResult(text);
  },
});

function receiversOf({ agent_id: one, agent_ids: several = [], scope }: WriteArguments, subAgents: SubAgents): readonly string[] {
  const running = scope === "running" ? subAgents.list().filter(isRunning) : [];
  return [...new Set([...(one === undefined ? [] : [one]), ...several, ...running.map(({ id }) => id)])];
}

function send(id: string, message: string, subAgents: SubAgents): string {
  const agent = subAgents.find(id);
  if (agent === undefined) return agentText.unknown(id);
  subAgents.tell(agent, message);
  return agentText.delivered(agent.id);
}
