import { HostError } from "../../base/errors.ts";
import type { SessionEvent } from "./events.ts";

/** Takes back events: that of its `eventId` and all that were recorded after it, up to this one. */
export const truncationType = "session.history_truncated";

/** The events of a log that nobody has taken back since. A log only grows, so what was taken back is still in it. */
export function withoutTruncated(events: readonly SessionEvent[]): readonly SessionEvent[] {
  if (!events.some(({ type }) => type === truncationType)) return events;
  const kept: SessionEvent[] = [];
  for (const event of events) {
    if (event.type === truncationType) {
      const from = kept.findIndex(({ id }) => id === event.data["eventId"]);
      if (from > 0) kept.length = from;
    }
    kept.push(event);
  }
  return kept;
}

/** Where a history would be cut. @throws HostError `EVENT_UNKNOWN`. */
export function findCut(events: readonly SessionEvent[], eventId: string): number {
  const index = events.findIndex(({ id }) => id === eventId);
  if (index > 0) return index;
  const why = index === 0 ? "it is the session's beginning" : "there is no such event in the session's history";
  throw new HostError("EVENT_UNKNOWN", `Nothing can be taken back from event ${JSON.stringify(eventId.slice(0, 100))} on: ${why}.`);
}
