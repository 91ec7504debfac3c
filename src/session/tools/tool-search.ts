import type { Tool, ToolContext, ToolResult } from "../../tools/tool.ts";
import { failureResult, successResult } from "../../tools/tool-result.ts";
import { sessionCallOf } from "../calls/call-context.ts";
import { maxPatternLength, searchTools } from "../catalog/tool-search-index.ts";
import { toolSearchText } from "../instructions/model-text.ts";
import { createSessionTool } from "../session-tool.ts";

/** Finds tools that the model has not been told of. What it finds is advertised in the conversation from then on. */
export const toolSearch: Tool = createSessionTool({
  name: "tool_search_tool_regex",
  description:
    "Finds more tools. Not all tools are listed at first: search names and descriptions by regular expression. You can call the tools it finds from your next message on.",
  parameters: {
    type: "object",
    properties: {
      pattern: {
        type: "string",
        description: `Regular expression in RE2 syntax, up to ${maxPatternLength} characters, case-insensitive: "weather", "^github-", "(list|get)_.*invoice".`,
      },
    },
    required: ["pattern"],
    additionalProperties: false,
  },
  handler: ({ pattern }: { pattern: string }, _invocation: unknown, context: ToolContext): ToolResult => {
    const outcome = searchTools(sessionCallOf(context).catalog, pattern);
    if (outcome.kind === "refused") return failureResult(toolSearchText.refused(pattern, outcome.why));
    if (outcome.tools.length === 0) return successResult(toolSearchText.nothing(pattern, outcome.isPart));
    const toolReferences = outcome.tools.map(({ name }) => name);
    return { ...successResult(toolSearchText.found(outcome.tools, outcome.isPart)), toolReferences };
  },
});
