import type { FeedEvent } from "../../src/servers/inspector/feed-messages.ts";
import { blobIn } from "../parts/values.tsx";

const longest = 300;

/** An event in one line. */
export function describeEvent({ type, data }: FeedEvent): string {
  const { content, toolName, toolCallId, arguments: args, success, result, error, message, hookType, permissionRequest } = data;
  if (type === "tool.execution_start") return `${String(toolName)} ${short(args)}`;
  if (type === "tool.execution_complete") {
    const outcome =
      success === true ? contentOf(result) : `failed: ${String((error as { readonly message?: unknown } | undefined)?.message ?? "")}`;
    return cut(outcome);
  }
  if (permissionRequest !== undefined) return short(permissionRequest);
  if (hookType !== undefined) return `${String(hookType)} ${success === false ? "failed" : ""}`;
  if (content !== undefined) return cut(textOf(content));
  if (message !== undefined) return cut(textOf(message));
  if (toolCallId !== undefined && result !== undefined) return short(result);
  return short(data);
}

function contentOf(result: unknown): string {
  return textOf((result as { readonly content?: unknown } | undefined)?.content ?? "");
}

function textOf(value: unknown): string {
  const blob = blobIn(value);
  if (blob !== undefined) return `${blob.head ?? ""}…`;
  return typeof value === "string" ? value : JSON.stringify(value);
}

function short(value: unknown): string {
  return cut(JSON.stringify(value) ?? "");
}

function cut(text: string): string {
  const line = text.replaceAll(/\s+/g, " ");
  return line.length <= longest ? line : `${line.slice(0, longest)}…`;
}
