import type { SessionEvent } from "../../../session/records/events.ts";
import { toPromptRequest, toWireRequest, toWireResult } from "./wire-permission.ts";

/** What is of no concern to clients: they know neither the type nor what it is about. */
const hiddenTypes: ReadonlySet<string> = new Set([
  "session.options_changed",
  "session.history_truncated",
  "roots.requested",
  "roots.completed",
]);

/** News of the moment: whoever is far behind reads them better late or never. */
const spareable: ReadonlySet<string> = new Set([
  "assistant.message_delta",
  "assistant.reasoning_delta",
  "assistant.streaming_delta",
  "assistant.tool_call_delta",
  "pending_messages.modified",
  "session.custom_notification",
  "session.usage_info",
  "tool.execution_partial_result",
  "tool.execution_progress",
]);

/** The events of one session as clients get them. One per session, and one more to read its past. */
export class EventTranslator {
  /** What events that are left out followed: those that follow them follow that. */
  readonly #skipped = new Map<string, string | null>();

  /** Undefined: it is left out. */
  translate(event: SessionEvent): SessionEvent | undefined {
    const parentId = this.#parentOf(event.parentId);
    if (hiddenTypes.has(event.type)) {
      if (event.ephemeral !== true) this.#skipped.set(event.id, parentId);
      return undefined;
    }
    const told = asNotification(event) ?? event;
    const data = toWireData(told);
    return parentId === event.parentId && data === event.data ? event : { ...told, data, parentId };
  }

  #parentOf(id: string | null): string | null {
    return id === null ? null : (this.#skipped.get(id) ?? (this.#skipped.has(id) ? null : id));
  }
}

export function translateAll(events: readonly SessionEvent[]): readonly SessionEvent[] {
  const translator = new EventTranslator();
  return events.flatMap((event) => translator.translate(event) ?? []);
}

export function isSpareable({ type }: SessionEvent): boolean {
  return spareable.has(type);
}

export function isStreaming({ type }: SessionEvent): boolean {
  return type.endsWith("_delta") || type === "assistant.message_start";
}

/** What the session says to the model of its own accord is a message to it; clients hear of it as what it is. */
function asNotification(event: SessionEvent): SessionEvent | undefined {
  const { type, data } = event;
  if (type !== "user.message" || data["source"] !== "agent") return undefined;
  const content = String(data["content"]);
  const [, agentId, agentType, outcome] = /^<system_notification>\nAgent "([^"]*)" \(([^)]*)\) (has completed)?/.exec(content) ?? [];
  if (agentId === undefined) return undefined;
  const status = outcome === undefined ? "failed" : "completed";
  return { ...event, type: "system.notification", data: { content, kind: { type: "agent_completed", agentId, agentType, status } } };
}

function toWireData({ type, data, timestamp }: SessionEvent): SessionEvent["data"] {
  switch (type) {
    case "session.start":
    case "session.resume": {
      // How the session was made is for whoever resumes it, and may name what only this machine knows.
      const { options: _options, ...rest } = data;
      return rest;
    }
    case "tool.execution_complete": {
      // The session keeps the text of failures, to rebuild the conversation from. Clients have it in the error.
      if (data["success"] === true) return data;
      const { result: _result, ...rest } = data;
      return rest;
    }
    case "permission.requested":
      return {
        ...data,
        permissionRequest: toWireRequest(data["permissionRequest"]),
        promptRequest: toPromptRequest(data["permissionRequest"]),
      };
    case "permission.completed":
      return { ...data, result: toWireResult(data["result"]) };
    case "session.shutdown":
      // What earlier versions wrote of the end of a session lacks what SDKs insist on.
      return "modelMetrics" in data ? data : { ...noUsage, sessionStartTime: Date.parse(timestamp), ...data };
    default:
      return data;
  }
}

const noUsage = { totalApiDurationMs: 0, codeChanges: { linesAdded: 0, linesRemoved: 0, filesModified: [] }, modelMetrics: {} };
