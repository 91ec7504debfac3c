import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { type ReceivedEvent, searched } from "../feed/received-event.ts";
import { store } from "../page-state.ts";
import { counted, formatTime, JsonValue } from "../parts/values.tsx";
import { VirtualList } from "../parts/virtual-list.tsx";
import { describeEvent } from "./event-text.ts";

/** The events of all sessions in the order in which they came. */
export function EventsView(): JSX.Element {
  return (
    <div class="single tall">
      <h2>Events</h2>
      <EventList
        events={store.events.entries}
        revision={store.events.version.value}
        dropped={store.events.dropped + store.dropped.value}
        showsSession
      />
    </div>
  );
}

interface EventListProps {
  readonly events: readonly ReceivedEvent[];
  /** Another one when the same array has other entries: components are not drawn again for equal properties. */
  readonly revision?: number;
  readonly dropped?: number;
  readonly showsSession?: boolean;
}

export function EventList({ events, revision, dropped = 0, showsSession = false }: EventListProps): JSX.Element {
  const filter = useSignal("");
  const selected = useSignal<ReceivedEvent | undefined>(undefined);
  const wanted = searched(filter.value);
  const shown = wanted === "" ? events : events.filter((entry) => entry.contains(wanted));
  return (
    <>
      <label class="filter">
        <span>Filter {counted(events.length, "event")}</span>
        <input type="search" value={filter.value} onInput={({ currentTarget }) => (filter.value = currentTarget.value)} />
      </label>
      {dropped > 0 ? <p class="hint">{counted(dropped, "earlier event")} are not kept any more.</p> : null}
      <VirtualList
        label="Events"
        items={shown}
        revision={revision}
        rowHeight={26}
        followsEnd
        keyOf={(_, index) => String(index)}
        row={(entry) => {
          const { event } = entry;
          return (
            <button type="button" class="row event" aria-pressed={entry === selected.value} onClick={() => (selected.value = entry)}>
              <span class="time">{formatTime(event.timestamp)}</span>
              {showsSession ? <span class="session-mark">{entry.sessionId.slice(0, 8)}</span> : null}
              <span class="event-type">{entry.type}</span>
              <span class="cut">{describeEvent(event)}</span>
            </button>
          );
        }}
      />
      {selected.value === undefined ? null : (
        <section class="drawer" aria-label="The chosen event">
          <button type="button" class="small" onClick={() => (selected.value = undefined)}>
            Close
          </button>
          <JsonValue value={selected.value.event} label={selected.value.type} />
        </section>
      )}
    </>
  );
}
