import type { FeedEvent } from "../../src/servers/inspector/feed-messages.ts";

/**
 * An event of a session as text: 100,000 of them as objects, each with its members, would keep the garbage collector busy for longer than a
 * frame.
 */
export class ReceivedEvent {
  readonly sessionId: string;
  readonly type: string;
  readonly #text: string;

  constructor({ sessionId, event }: { readonly sessionId: string; readonly event: FeedEvent }) {
    this.sessionId = sessionId;
    this.type = event.type;
    this.#text = JSON.stringify(event);
  }

  /** Another object each time. */
  get event(): FeedEvent {
    return JSON.parse(this.#text) as FeedEvent;
  }

  /** @param wanted as `searched` made it */
  contains(wanted: string): boolean {
    return this.#text.toLowerCase().includes(wanted);
  }
}

/** What a user looks for, as it is written in the text of an event. */
export function searched(text: string): string {
  return JSON.stringify(text.toLowerCase()).slice(1, -1);
}
