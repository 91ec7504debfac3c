import type { Logger, LogLevel } from "../../base/logger.ts";
import { isPlainRecord } from "../../base/read-fields.ts";

const longestText = 2000;

const levels: ReadonlyMap<unknown, LogLevel> = new Map<unknown, LogLevel>([
  ["debug", "debug"],
  ["info", "info"],
  ["notice", "info"],
  ["warning", "warning"],
  ["error", "error"],
  ["critical", "error"],
  ["alert", "error"],
  ["emergency", "error"],
]);

/** Writes a `notifications/message` of a server to our log, at its level; the log redacts. */
export function logServerMessage(serverName: string, params: unknown, log: Logger): void {
  if (!isPlainRecord(params)) return;
  const level = levels.get(params["level"]) ?? "info";
  if (!log.enabled(level)) return;
  const { logger, data } = params;
  const text = typeof data === "string" ? data : JSON.stringify(data ?? null);
  const who = typeof logger === "string" ? `${serverName}/${logger.slice(0, 100)}` : serverName;
  log[level](`MCP server ${who}: ${text.length > longestText ? `${text.slice(0, longestText)}…` : text}`);
}

/** The lowest level that is worth sending to us. */
export function wantedLevel(log: Logger): LogLevel {
  return (["debug", "info", "warning"] as const).find((level) => log.enabled(level)) ?? "error";
}
