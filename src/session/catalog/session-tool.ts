import { createTool } from "../../tools/create/create-tool.ts";
import type { ToolLike } from "../../tools/define/define-tool.ts";
import type { Tool } from "../../tools/tool.ts";

const source = "session";

/**
 * Makes one of the tools that a session brings itself: built-in ones that need something of their session, which they
 * reach through the call. Like every tool they are shared by all sessions.
 */
export function createSessionTool(tool: ToolLike): Tool {
  return createTool({ skipPermission: true, ...tool }, { kind: "builtin", source, nativeName: tool.name });
}

/**
 * Whether a tool is one that sessions bring themselves. An agent's list of tools does not hide these but for those that start agents, and no
 * clock runs while they do.
 */
export function isSessionTool({ origin }: Tool): boolean {
  return origin.kind === "builtin" && origin.source === source;
}

/** The tools that start other agents, and talk to them. */
export const agentToolNames: ReadonlySet<string> = new Set(["task", "read_agent", "write_agent", "list_agents"]);

/** What they are called. Each is there only where it can do something, so its name in a filter is never a mistake. */
export const sessionToolNames: ReadonlySet<string> = new Set([
  "skill",
  "ask_user",
  "exit_plan_mode",
  ...agentToolNames,
  "sql",
  "tool_search_tool_regex",
]);
