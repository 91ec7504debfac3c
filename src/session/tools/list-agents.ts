import type { Tool, ToolContext, ToolResult } from "../../tools/tool.ts";
import { successResult } from "../../tools/tool-result.ts";
import { isRunning } from "../agents/sub-agents.ts";
import { sessionCallOf } from "../calls/call-context.ts";
import { agentText } from "../instructions/model-text.ts";
import { createSessionTool } from "../session-tool.ts";

interface ListArguments {
  readonly include_completed?: boolean;
  readonly scope?: "session" | "own";
}

/** Lists the agents that were started. */
export const listAgents: Tool = createSessionTool({
  name: "list_agents",
  description: "Lists the agents that were started with the task tool, with their status.",
  parameters: {
    type: "object",
    properties: {
      include_completed: { type: "boolean", description: "False: only agents that are still running. Default: true." },
      scope: { type: "string", enum: ["session", "own"], description: "own: only agents that you started. Default: session, all agents." },
    },
  },
  handler: (args: ListArguments, _invocation: unknown, context: ToolContext): ToolResult => {
    const { session, agent: scope } = sessionCallOf(context);
    const self = session.subAgents.ofScope(scope);
    const agents = session.subAgents
      .list()
      .filter((agent) => (args.include_completed !== false || isRunning(agent)) && (args.scope !== "own" || agent.parent === self));
    return successResult(agents.length === 0 ? agentText.none : agentText.listed(agents.map(({ facts }) => facts)));
  },
});
