import { randomUUID } from "node:crypto";
import { HostError } from "../../base/errors.ts";
import { isRecord } from "../../base/json.ts";
import { packageVersion } from "../../base/package-root.ts";
import type { RecordedEvent } from "./events.ts";
import { logVersion } from "./session-log.ts";

/** Where a session comes from that was made from the history of another. */
export interface ForkOrigin {
  readonly sessionId: string;
  /** The last event of that session which the fork has. Absent: it had none. */
  readonly eventId?: string;
}

interface ForkOptions {
  readonly sessionId: string;
  readonly from: string;
  /** The recorded options of the source. */
  readonly options: Readonly<Record<string, unknown>>;
  readonly toEventId?: string | undefined;
}

/**
 * The history of a new session that continues another: its events up to `toEventId`, which is excluded, with a `session.start` of its
 * own. Events keep their ids. The options are those that the source has now: options that changed later, such as a filter of
 * tools, apply to an earlier part of the history, too.
 * @throws HostError `EVENT_UNKNOWN`.
 */
export function forkHistory(
  events: readonly RecordedEvent[],
  { sessionId, from, options, toEventId }: ForkOptions,
): readonly RecordedEvent[] {
  const taken = toEventId === undefined ? events : events.slice(0, findEnd(events, from, toEventId));
  const [first] = taken;
  const start = first?.type === "session.start" ? first : undefined;
  const last = taken.at(-1);
  const forkedFrom: ForkOrigin = { sessionId: from, ...(last !== undefined && { eventId: last.id }) };
  const { context } = start?.data ?? {};
  const startTime = new Date().toISOString();
  const own: RecordedEvent = {
    type: "session.start",
    data: {
      sessionId,
      version: logVersion,
      producer: "skillhost",
      copilotVersion: packageVersion,
      startTime,
      ...selected(start),
      ...(isRecord(context) && { context }),
      options,
      forkedFrom,
    },
    id: start?.id ?? randomUUID(),
    timestamp: startTime,
    parentId: null,
  };
  const rest = start === undefined ? taken : taken.slice(1);
  return [own, ...rest.map((event, index) => (index === 0 ? { ...event, parentId: own.id } : event))];
}

function selected(start: RecordedEvent | undefined): object {
  const { selectedModel, reasoningEffort } = start?.data ?? {};
  return { ...(selectedModel !== undefined && { selectedModel }), ...(reasoningEffort !== undefined && { reasoningEffort }) };
}

function findEnd(events: readonly RecordedEvent[], from: string, eventId: string): number {
  const index = events.findIndex(({ id }) => id === eventId);
  if (index > 0) return index;
  const why =
    index === 0
      ? "it is the first event, so nothing would be left"
      : "the session's history has no such event. It may be ephemeral, or a rewind has removed it";
  throw new HostError("EVENT_UNKNOWN", `Session "${from}" cannot be forked at event ${JSON.stringify(eventId.slice(0, 100))}: ${why}.`);
}
