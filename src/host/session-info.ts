import type { LogRecord } from "../io/log/append-log.ts";
import type { StoredSession } from "./session-store.ts";

/** A session as a host lists it. */
export interface SessionInfo {
  readonly sessionId: string;
  /** ISO 8601; absent for what is not kept. */
  readonly startTime?: string;
  readonly modifiedTime?: string;
  /** How its first prompt begins. */
  readonly summary?: string;
  readonly workingDirectory?: string;
  /** In this host. */
  readonly isOpen: boolean;
  /** By this process or another: then only the host that has it open can resume it. */
  readonly isInUse: boolean;
}

const summaryLength = 100;

export function describeSession({ sessionId, records, modifiedTime, isInUse }: StoredSession, isOpen: boolean): SessionInfo {
  const start = dataOf(records.find(({ type }) => type === "session.start"));
  const options = dataOf({ data: start["options"] });
  const prompt = dataOf(records.find((record) => record["type"] === "user.message" && dataOf(record)["source"] === undefined))["content"];
  return {
    sessionId,
    ...(typeof start["startTime"] === "string" && { startTime: start["startTime"] }),
    modifiedTime: modifiedTime.toISOString(),
    ...(typeof prompt === "string" && { summary: shorten(prompt) }),
    ...(typeof options["workingDirectory"] === "string" && { workingDirectory: options["workingDirectory"] }),
    isOpen,
    isInUse,
  };
}

function dataOf(record: LogRecord | undefined): LogRecord {
  const data = record?.["data"];
  return typeof data === "object" && data !== null && !Array.isArray(data) ? (data as LogRecord) : {};
}

function shorten(prompt: string): string {
  const text = prompt.trim().replaceAll(/\s+/g, " ");
  return text.length <= summaryLength ? text : `${text.slice(0, summaryLength - 1).trimEnd()}…`;
}
