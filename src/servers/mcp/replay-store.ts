/** An event of a stream, as it was sent. */
export interface ReplayedEvent {
  readonly id: string;
  readonly data: string;
}

interface StoredEvent {
  readonly streamId: string;
  readonly data: string;
}

/** The limits of the events that each session stores for clients that reconnect. */
const maxEvents = 256;
const maxCharacters = 512 * 1024;

/**
 * The newest events of one session, for clients that resume a stream with `Last-Event-ID`. The oldest events are dropped.
 */
export class ReplayStore {
  /** Oldest first. */
  readonly #events = new Map<string, StoredEvent>();
  readonly #idOf: (count: number, streamId: string) => string;
  #characters = 0;
  #count = 0;

  /** `idOf` makes the ids of events, which must differ. Default: their number. */
  constructor(idOf: (count: number, streamId: string) => string = String) {
    this.#idOf = idOf;
  }

  /** Stores an event and returns its id. Events without data only mark a position. */
  add(streamId: string, data: string): string {
    const id = this.#idOf(++this.#count, streamId);
    this.#events.set(id, { streamId, data });
    this.#characters += data.length;
    if (this.#events.size > maxEvents || this.#characters > maxCharacters) this.#dropOldest(id);
    return id;
  }

  /** The stream of a stored event. */
  streamOf(eventId: string): string | undefined {
    return this.#events.get(eventId)?.streamId;
  }

  /** The events with data that followed a stored event on its stream. */
  after(eventId: string): readonly ReplayedEvent[] {
    const last = this.#events.get(eventId);
    const following: ReplayedEvent[] = [];
    let isAfter = false;
    for (const [id, { streamId, data }] of this.#events) {
      if (isAfter && streamId === last?.streamId && data !== "") following.push({ id, data });
      isAfter ||= id === eventId;
    }
    return following;
  }

  /** All stored events of a stream that have data. */
  all(stream: string): readonly ReplayedEvent[] {
    return Array.from(this.#events, ([id, { streamId, data }]) => ({ id, data, streamId })).filter(
      ({ streamId, data }) => streamId === stream && data !== "",
    );
  }

  #dropOldest(newest: string): void {
    for (const [id, { data }] of this.#events) {
      // The newest event is kept regardless of its size, since its client could not get it otherwise.
      if (id === newest || (this.#events.size <= maxEvents && this.#characters <= maxCharacters)) return;
      this.#events.delete(id);
      this.#characters -= data.length;
    }
  }
}
