import { createHash } from "node:crypto";
import { isRecord, type Json, textOf } from "../../../base/json.ts";
import type { Span, SpanAttributes } from "./span.ts";

export const usageAttributes = [
  ["inputTokens", "gen_ai.usage.input_tokens"],
  ["outputTokens", "gen_ai.usage.output_tokens"],
  ["cacheReadTokens", "gen_ai.usage.cache_read.input_tokens"],
  ["cacheWriteTokens", "gen_ai.usage.cache_write.input_tokens"],
  ["reasoningTokens", "gen_ai.usage.reasoning.output_tokens"],
  ["duration", "github.copilot.server_duration"],
] as const;

export const serverStates: Readonly<Record<string, string>> = {
  pending: "discovered",
  connected: "initialized",
  failed: "error",
};

export function hookAttributes({ hookType, hookInvocationId }: Json): SpanAttributes {
  return {
    ...textAttribute("github.copilot.hook.type", hookType),
    ...textAttribute("github.copilot.hook.invocation_id", hookInvocationId),
  };
}

/** The answer of a model in the form of the conventions. */
export function partsOf({ content, reasoningText, toolRequests }: Json): readonly object[] {
  const calls = Array.isArray(toolRequests) ? toolRequests.filter(isRecord) : [];
  return [
    ...(textOf(reasoningText) === "" ? [] : [{ type: "reasoning", content: reasoningText }]),
    ...(textOf(content) === "" ? [] : [{ type: "text", content }]),
    ...calls.map(({ toolCallId, name, arguments: args, mcpServerName, mcpToolName }) => ({
      type: "tool_call",
      id: toolCallId,
      name,
      arguments: args,
      ...(mcpServerName !== undefined && { mcp_server_name: mcpServerName, mcp_tool_name: mcpToolName }),
    })),
  ];
}

/** The arguments that say what a call is about. */
export function parametersOf({ arguments: given, mcpServerName, mcpToolName }: Json): SpanAttributes {
  const args = isRecord(given) ? given : {};
  return {
    ...textAttribute("github.copilot.tool.parameters.mcp_server_name", mcpServerName),
    ...textAttribute("github.copilot.tool.parameters.mcp_tool_name", mcpToolName),
    ...(mcpServerName === undefined && {
      ...textAttribute("github.copilot.tool.parameters.command", args["command"]),
      ...textAttribute("github.copilot.tool.parameters.file_path", args["path"]),
    }),
  };
}

export function errorOf({ failure, attributes }: Span): SpanAttributes {
  return failure === undefined ? {} : { "error.type": attributes["error.type"] ?? "_OTHER" };
}

export function textAttribute(name: string, value: unknown): SpanAttributes {
  return typeof value === "string" && value !== "" ? { [name]: value } : {};
}

export function numberAttribute(name: string, value: unknown): SpanAttributes {
  return typeof value === "number" ? { [name]: value } : {};
}

export function numberOf(value: unknown): number {
  return typeof value === "number" ? value : 0;
}

export function asText(value: unknown): string {
  return typeof value === "string" ? value : (JSON.stringify(value) ?? "");
}

export function hash(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
