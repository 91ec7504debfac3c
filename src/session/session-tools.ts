import { canonicalJson } from "../base/canonical-json.ts";
import type { Tool } from "../tools/tool.ts";
import type { AgentProfile } from "./agents/agents.ts";
import { askUser } from "./tools/ask-user.ts";
import { askUserByForm } from "./tools/ask-user-form.ts";
import { exitPlanMode } from "./tools/exit-plan-mode.ts";
import { listAgents } from "./tools/list-agents.ts";
import { readAgent } from "./tools/read-agent.ts";
import { useSkill } from "./tools/skill.ts";
import { createTaskTool } from "./tools/task.ts";
import { writeAgent } from "./tools/write-agent.ts";

/** What a conversation can do that takes a tool of its session. */
export interface SessionOffers {
  /** There are skills that the model may load. */
  readonly skills: boolean;
  /** Somebody can answer questions, or fill in forms. */
  readonly userInput: "question" | "form" | undefined;
  /** A plan is worked on, and somebody can decide about it. */
  readonly planning: boolean;
  /** The agents that can be given tasks; none where there is no model for them. */
  readonly agents: readonly AgentProfile[];
}

/** The tools for what a conversation can do. Equal offers give the same tools. The search for deferred tools comes with the deferral. */
export function sessionToolsFor({ skills, userInput, planning, agents }: SessionOffers): readonly Tool[] {
  return [
    ...(skills ? [useSkill] : []),
    ...(userInput === undefined ? [] : [userInput === "form" ? askUserByForm : askUser]),
    ...(planning ? [exitPlanMode] : []),
    ...(agents.length > 0 ? [taskToolFor(agents), readAgent, writeAgent, listAgents] : []),
  ];
}

const taskTools = new Map<string, Tool>();

function taskToolFor(agents: readonly AgentProfile[]): Tool {
  const key = canonicalJson(agents.map(({ name, description }) => [name, description]));
  const tool = taskTools.get(key) ?? createTaskTool(agents);
  // A process has few different sets of agents; programs that make up new ones again and again lose the oldest.
  taskTools.delete(key);
  taskTools.set(key, tool);
  const oldest = taskTools.keys().next();
  if (taskTools.size > 32 && oldest.done !== true) taskTools.delete(oldest.value);
  return tool;
}
