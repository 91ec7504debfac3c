import { isRecord, type Json } from "../../base/json.ts";
import { appAddressIn } from "../../mcp/views/app-address.ts";
import type { Tool, ToolResult } from "../../tools/tool.ts";
import type { Session } from "../session.ts";

// MCP Apps (SEP-1865): pages of MCP servers that a client shows, and the tools that these pages may call.

export function toolsOfServer(session: Session, server: string): readonly Tool[] {
  return [...session.catalog.executables.values()].filter(({ origin }) => origin.kind === "mcp" && origin.source === server);
}

/** The `_meta` of a tool's definition, as its server sent it. */
function metaOfTool({ definition }: Pick<Tool, "definition">): Json | undefined {
  const more = isRecord(definition.metadata) ? definition.metadata["mcp"] : undefined;
  const meta = isRecord(more) ? more["_meta"] : undefined;
  return isRecord(meta) ? meta : undefined;
}

/** What a tool says about its page. Undefined: it has none. */
export function appOfTool(tool: Pick<Tool, "definition">): Json | undefined {
  const ui = metaOfTool(tool)?.["ui"];
  return isRecord(ui) ? ui : undefined;
}

/** The address of the page that shows a tool's results. Undefined: there is none. */
export function appAddressOf(tool: Pick<Tool, "definition">): string | undefined {
  return appAddressIn(metaOfTool(tool));
}

/** Whether pages of its server may call a tool. */
export function isForApps(tool: Pick<Tool, "definition">): boolean {
  const visibility = appOfTool(tool)?.["visibility"];
  return !Array.isArray(visibility) || visibility.includes("app");
}

/** A tool as `tools/list` describes it. */
export function toListedTool(tool: Pick<Tool, "definition" | "origin">): Json {
  const { title, description, parameters, outputSchema, annotations } = tool.definition;
  const meta = metaOfTool(tool);
  return {
    name: tool.origin.nativeName,
    ...(title !== undefined && { title }),
    ...(description !== undefined && { description }),
    inputSchema: parameters ?? { type: "object" },
    ...(outputSchema !== undefined && { outputSchema }),
    ...(annotations !== undefined && { annotations }),
    ...(meta !== undefined && { _meta: meta }),
  };
}

/** A result as `CallToolResult` of MCP. */
export function toMcpResult({ resultType, textResultForLlm, contents, structuredContent, meta }: ToolResult): Json {
  return {
    content: contents ?? [{ type: "text", text: textResultForLlm }],
    ...(structuredContent !== undefined && { structuredContent }),
    ...(resultType !== "success" && { isError: true }),
    ...(meta !== undefined && { _meta: meta }),
  };
}
