import type { EventStore, JSONRPCMessage } from "@modelcontextprotocol/server";

interface StoredEvent {
  readonly streamId: string;
  readonly message: JSONRPCMessage;
  readonly size: number;
}

/** What a client that lost its connection can ask for again. A hundred sessions may hold as much. */
const maxEvents = 256;
const maxCharacters = 512 * 1024;

/** The newest events of one session, for clients that resume a stream with `Last-Event-ID`. The oldest give way to new ones. */
export class ReplayStore implements EventStore {
  /** Oldest first. */
  readonly #events = new Map<string, StoredEvent>();
  #characters = 0;
  #count = 0;

  async storeEvent(streamId: string, message: JSONRPCMessage): Promise<string> {
    const id = String(++this.#count);
    const size = JSON.stringify(message).length;
    this.#events.set(id, { streamId, message, size });
    this.#characters += size;
    for (const [oldest, { size: freed }] of this.#events) {
      // The newest stays, however large it is: nothing else would let its client have it.
      if (oldest === id || (this.#events.size <= maxEvents && this.#characters <= maxCharacters)) break;
      this.#events.delete(oldest);
      this.#characters -= freed;
    }
    return id;
  }

  async getStreamIdForEventId(eventId: string): Promise<string | undefined> {
    return this.#events.get(eventId)?.streamId;
  }

  async replayEventsAfter(
    lastEventId: string,
    { send }: { send(eventId: string, message: JSONRPCMessage): Promise<void> },
  ): Promise<string> {
    const last = this.#events.get(lastEventId);
    if (last === undefined) throw new Error("The event is too old: it was dropped for newer ones.");
    const position = Number(lastEventId);
    for (const [id, { streamId, message }] of [...this.#events]) {
      if (Number(id) > position && streamId === last.streamId && "jsonrpc" in message) await send(id, message);
    }
    return last.streamId;
  }
}
