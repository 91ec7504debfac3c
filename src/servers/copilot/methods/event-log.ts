import { randomUUID } from "node:crypto";
import type { RecordedEvent } from "../../../session/history/events.ts";
import { findSession } from "../sessions/session-registry.ts";
import type { Call, MethodFamily } from "./method.ts";

const maxEvents = 1_000;
const defaultEvents = 200;

/** The events of a session in pages, interests in types of events, and usage metrics. */
export const eventLog: MethodFamily = {
  async "session.eventLog.read"(call) {
    const { params } = call;
    const events = await findSession(call.server, params).past();
    const backward = params.optionalText("direction") === "backward";
    const cursor = params.optionalText("cursor");
    const max = Math.min(maxEvents, Math.max(1, params.optionalNumber("max") ?? defaultEvents));
    const at = cursor === undefined ? (backward ? events.length : 0) : positionOf(cursor, events);
    if (at === undefined) return { events: [], cursor: "start", hasMore: events.length > 0, cursorStatus: "expired" };
    const from = backward ? Math.max(0, at - max) : at;
    const to = backward ? at : Math.min(events.length, at + max);
    return {
      events: events.slice(from, to).filter((event) => isWanted(event, call)),
      cursor: cursorAt(backward ? from : to, events),
      hasMore: backward ? from > 0 : to < events.length,
      cursorStatus: "ok",
    };
  },
  async "session.eventLog.tail"(call) {
    const events = await findSession(call.server, call.params).past();
    return { cursor: cursorAt(events.length, events) };
  },
  async "session.eventLog.registerInterest"({ server, client, params }) {
    const handle = randomUUID();
    const session = findSession(server, params);
    const eventType = params.text("eventType");
    session.addInterest(client, handle, eventType);
    // Tokens from a client are for this session only: connections of other sessions must not use them.
    if (eventType === "mcp.oauth_required") await session.session.update({ mcpTokenOwner: session.id });
    return { handle };
  },
  "session.eventLog.releaseInterest": ({ server, client, params }) => ({
    success: findSession(server, params).removeInterest(client, params.text("handle")),
  }),
  async "session.usage.getMetrics"({ server, params }) {
    const { session } = findSession(server, params);
    const { model } = session.config.view;
    return { ...session.usage.metrics, ...(model !== undefined && { currentModel: model }) };
  },
};

/** A cursor names the event before it, so that it stays valid when events are appended. */
function cursorAt(position: number, events: readonly RecordedEvent[]): string {
  return position === 0 ? "start" : `after:${events[position - 1]!.id}`;
}

/** The position of a cursor. Undefined: its event no longer exists. */
function positionOf(cursor: string, events: readonly RecordedEvent[]): number | undefined {
  if (cursor === "start") return 0;
  const index = events.findIndex(({ id }) => cursor === `after:${id}`);
  return index === -1 ? undefined : index + 1;
}

function isWanted({ type, agentId }: RecordedEvent, { params }: Call): boolean {
  const types = params.get("types");
  if (Array.isArray(types) && !types.includes(type)) return false;
  const agents = params.optionalTexts("agentIds");
  if (agents !== undefined) return agentId !== undefined && agents.includes(agentId);
  return params.optionalText("agentScope") !== "primary" || agentId === undefined || type.startsWith("subagent.");
}
