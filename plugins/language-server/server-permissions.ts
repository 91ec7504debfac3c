import type { PermissionRequest, Session, Tool } from "skillhost";
import type { Confirmation, Fields } from "./wire.ts";

type ToolOrigin = Tool["origin"];

/**
 * Decides about a call of the server's own tools, or of tools of its MCP servers, by the permissions of the session: the
 * same rules and the same user as for the session's tools. Without a user to decide, the call is denied.
 */
export async function permitServerTool(session: Session, asked: Confirmation, signal: AbortSignal): Promise<boolean> {
  const request = requestOf(asked);
  const question = {
    tool: toTool(asked, request),
    toolCallId: asked.toolCallId,
    toolArgs: asked.input,
    agentId: undefined,
    request,
    exemption: undefined,
    askedByHook: undefined,
    signal: () => signal,
    caller: undefined,
  };
  const { allowed } = await session.permissions.decide(question, false);
  return allowed;
}

/** Represents the server's tool in permission requests. It is never called. */
function toTool({ name, title, input }: Confirmation, request: PermissionRequest): Tool {
  const { toolType, mcpServerName, mcpToolName } = input;
  const own = name.slice(name.lastIndexOf(".") + 1).replaceAll(/[^a-zA-Z0-9_-]/g, "_");
  const origin: ToolOrigin =
    toolType === "mcp_tool"
      ? { kind: "mcp", source: textOr(mcpServerName, ""), nativeName: textOr(mcpToolName, own) }
      : { kind: "builtin", source: "language-server", nativeName: own };
  return {
    definition: { name: own, description: title },
    origin,
    signature: `language-server:${name}`,
    revision: "1",
    hasHandler: true,
    validate: (value) => ({ ok: true, value }),
    permission: () => request,
    execute: () => undefined,
  };
}

/** What the call would do, in the terms of permission rules. */
function requestOf({ input, message, name }: Confirmation): PermissionRequest {
  const { toolType, filePath, command, url, mcpServerName, mcpToolName } = input;
  switch (toolType) {
    case "terminal":
      return { kind: "shell", fullCommandText: textOr(command, message), intention: message, commands: [] };
    case "file_write":
      return { kind: "write", fileName: pathOf(input, filePath), intention: message };
    case "file_read":
      return { kind: "read", path: pathOf(input, filePath), intention: message };
    case "web":
      return { kind: "url", url: textOr(url, firstOf(input["urls"])), intention: message };
    case "mcp_tool":
      return { kind: "mcp", serverName: textOr(mcpServerName, ""), toolName: textOr(mcpToolName, name), args: input, readOnly: false };
    default:
      return { kind: "custom-tool", toolDescription: message, args: input };
  }
}

function pathOf(input: Fields, filePath: unknown): string {
  return textOr(filePath, textOr(input["path"], ""));
}

function firstOf(value: unknown): string {
  return Array.isArray(value) ? textOr(value[0], "") : "";
}

function textOr(value: unknown, otherwise: string): string {
  return typeof value === "string" ? value : otherwise;
}
