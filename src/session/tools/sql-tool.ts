import { errorMessage, HostError } from "../../base/errors.ts";
import type { Tool, ToolContext, ToolInvocation, ToolResult } from "../../tools/tool.ts";
import { failureResult, successResult } from "../../tools/tool-result.ts";
import { sessionCallOf } from "../calls/call-context.ts";
import { createSessionTool } from "../catalog/session-tool.ts";

interface SqlArguments {
  readonly description: string;
  readonly query: string;
}

/** Gives the model a database of the session, with tables for its todos. */
export const sqlTool: Tool = createSessionTool({
  name: "sql",
  description: `Runs SQL on a SQLite database of this session, which keeps what you store until the session is deleted. Use it to plan and track work of several steps, and for data that you want to query.

It has two tables from the start; do not create them:
- todos: id, title, description, status (pending, in_progress, done or blocked), created_at, updated_at
- todo_deps: todo_id, depends_on, for todos that have to wait for others

Give todos short ids in kebab-case and descriptions that can be understood alone. Set a todo to in_progress before you begin with it, and to done when it is complete; one that cannot continue is blocked, and its description says why. The user sees the list. Create other tables as you need them. One query may have several statements; those before one that fails stay done.`,
  parameters: {
    type: "object",
    properties: {
      description: { type: "string", description: "What the query does, in two to five words, for the user." },
      query: { type: "string", description: "One or more SQL statements for SQLite." },
    },
    required: ["description", "query"],
  },
  // Longer than the longest query takes on a busy machine.
  timeout: 120_000,
  handler: runSql,
});

async function runSql({ query }: SqlArguments, { signal }: ToolInvocation, context: ToolContext): Promise<ToolResult> {
  const { session, agent } = sessionCallOf(context);
  if (session.database === undefined) return failureResult("This session has no database.");
  try {
    const outcome = await session.database.run(query, { signal, agentId: agent.agentId });
    const { describeOutcome } = await import("../database/describe-outcome.ts");
    const { text, error } = describeOutcome(outcome);
    return error === undefined ? successResult(text) : failureResult(text, { error });
  } catch (error) {
    if (!(error instanceof HostError) || error.code !== "SESSION_DATABASE") throw error;
    session.log.error("A query of a session's database failed.", { error: errorMessage(error) });
    return failureResult("SQL Error: Error: the database of this session cannot be used now.", { error: error.message });
  }
}
