import type { Tool, ToolContext, ToolInvocation, ToolResult } from "../../tools/tool.ts";
import { failureResult, successResult } from "../../tools/tool-result.ts";
import type { AgentProfile } from "../agents/agent-profiles.ts";
import type { SubAgent } from "../agents/sub-agent.ts";
import { isRunning, maxRunningAgents, type SubAgents, untilSettled } from "../agents/sub-agents.ts";
import { sessionCallOf } from "../calls/call-context.ts";
import { createSessionTool } from "../catalog/session-tool.ts";
import { agentText } from "../prompt/model-text.ts";

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
  const { id, profile, status, replies } = agent;
  if (status === "failed") return failureResult(agentText.failed(id, profile.name));
  if (status === "cancelled") return failureResult(agentText.cancelled(id, profile.name));
  return successResult(replies.at(-1) || agentText.silent(id, profile.name));
}

const refusals = {
  "unknown type": (type: string) => agentText.unknownType(type),
  "too deep": () => agentText.tooDeep,
  "too many": () => agentText.tooMany(maxRunningAgents),
};

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

interface ReadArguments {
  readonly agent_id: string;
  readonly wait?: boolean;
  readonly timeout?: number;
  readonly since_turn?: number;
}

const defaultTimeout = 30;
const maxTimeout = 600;

/** Returns the progress of an agent and what it answered. */
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
    const text = ids
      .map((id) => {
        const agent = subAgents.find(id);
        if (agent === undefined) return agentText.unknown(id);
        subAgents.send(agent, args.message);
        return agentText.delivered(agent.id);
      })
      .join("\n");
    return isAnyKnown ? successResult(text) : failureResult(text);
  },
});

function receiversOf({ agent_id: one, agent_ids: several = [], scope }: WriteArguments, subAgents: SubAgents): readonly string[] {
  const running = scope === "running" ? subAgents.list().filter(isRunning) : [];
  return [...new Set([...(one === undefined ? [] : [one]), ...several, ...running.map(({ id }) => id)])];
}
