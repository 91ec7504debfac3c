import type { JSONRPCMessage } from "@modelcontextprotocol/client";
import { type Logger, redact, redactMembers } from "../../base/logger.ts";

/** `in`: from the server. */
export type FrameDirection = "in" | "out";

/** Receives each message as it is. */
export type FrameListener = (direction: FrameDirection, message: JSONRPCMessage) => void;

const longestLine = 4000;
const longestText = 500;

/** Logs every message of a connection. Undefined when they are not logged, so that it costs nothing. */
export function createFrameLog(serverName: string, log: Logger): FrameListener | undefined {
  if (!log.enabled("debug")) return undefined;
  return (direction, message) => {
    log.debug(direction === "in" ? "MCP message received" : "MCP message sent", { server: serverName, frame: frameLine(message) });
  };
}

/** One message as one line, with credentials redacted and long texts and lists shortened. @internal Exported for tests. */
export function frameLine(message: JSONRPCMessage): string {
  // Shortened first: redacting megabytes of base64 would take longer than the call.
  const line = JSON.stringify(redact(clip(message, 12), 12));
  return line.length <= longestLine ? line : `${line.slice(0, longestLine)}… (${line.length} characters)`;
}

function clip(value: unknown, depth: number): unknown {
  if (typeof value === "string") return redactMembers(clipText(value));
  if (typeof value !== "object" || value === null) return value;
  if (depth === 0) return "[too deep]";
  if (Array.isArray(value)) {
    const shown = value.slice(0, 50).map((item) => clip(item, depth - 1));
    return value.length > 50 ? [...shown, `… (${value.length} items)`] : shown;
  }
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, clip(item, depth - 1)]));
}

function clipText(text: string): string {
  return text.length <= longestText ? text : `${text.slice(0, longestText)}… (${text.length} characters)`;
}
