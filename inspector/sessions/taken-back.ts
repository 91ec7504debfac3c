import { type ReceivedEvent, searched } from "../feed/received-event.ts";

/** A rewind of a session, as an event: it names the first event that was taken back. */
export const rewindType = "session.snapshot_rewind";

/** What each rewind took back first, so that a long list is searched once and not with each message of the feed. */
const found = new WeakMap<ReceivedEvent, ReceivedEvent | "not kept">();

/** The events of a session without those that were taken back. */
export function withoutTakenBack(entries: readonly ReceivedEvent[]): readonly ReceivedEvent[] {
  if (!entries.some(({ type }) => type === rewindType)) return entries;
  const left: ReceivedEvent[] = [];
  for (const entry of entries) {
    if (entry.type === rewindType) {
      const first = firstTakenBack(entry, left);
      // The page keeps the newest events: if the first is not among them any more, all that are left here came after it.
      left.length = Math.max(0, first === "not kept" ? 0 : left.lastIndexOf(first));
    }
    left.push(entry);
  }
  return left;
}

function firstTakenBack(rewind: ReceivedEvent, before: readonly ReceivedEvent[]): ReceivedEvent | "not kept" {
  const known = found.get(rewind);
  if (known !== undefined) return known;
  const id = String(rewind.event.data["upToEventId"]);
  const wanted = searched(id);
  const first = before.findLast((entry) => entry.contains(wanted) && entry.event.id === id) ?? "not kept";
  found.set(rewind, first);
  return first;
}
