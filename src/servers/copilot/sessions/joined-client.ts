import { setImmediate as nextTurn } from "node:timers/promises";
import type { Attachment } from "../../../session/clients/session-client.ts";
import type { SessionEvent } from "../../../session/history/events.ts";
import type { Client } from "../clients/client.ts";
import type { ClientCapabilities } from "../clients/client-capabilities.ts";
import { isDroppable, isStreaming } from "./copilot-events.ts";

interface JoinedClientParts {
  readonly client: Client;
  readonly attachment: Attachment;
  /** The client that gets the attachment's requests. It is replaced when another client continues this one's work. */
  readonly asked: { client: Client };
  readonly capabilities: ClientCapabilities;
  /** Attachments for the kinds of requests that the client registered later, by handle. */
  readonly interests: Map<string, Attachment>;
  /** Types of events that the client handles, by handle. Undefined: the handle was released. */
  readonly handles: Map<string, string | undefined>;
}

/** A client in a session, and the events that it is sent. */
export class JoinedClient implements JoinedClientParts {
  readonly client: Client;
  readonly attachment: Attachment;
  readonly asked: { client: Client };
  readonly capabilities: ClientCapabilities;
  readonly interests: Map<string, Attachment>;
  readonly handles: Map<string, string | undefined>;
  readonly #sessionId: string;
  /** New events, which wait until the earlier ones were sent. Undefined: events are sent at once. */
  #waiting: SessionEvent[] | undefined = [];
  #caughtUp: Promise<void> = Promise.resolve();

  constructor(sessionId: string, { client, attachment, asked, capabilities, interests, handles }: JoinedClientParts) {
    this.#sessionId = JSON.stringify(sessionId);
    this.client = client;
    this.attachment = attachment;
    this.asked = asked;
    this.capabilities = capabilities;
    this.interests = interests;
    this.handles = handles;
  }

  /** Whether the client has been sent the earlier events. */
  get isReady(): boolean {
    return this.#waiting === undefined;
  }

  /** Holds a new event back until the earlier ones were sent. */
  keep(event: SessionEvent): void {
    this.#waiting?.push(event);
  }

  /** Sends the events that the client missed, then those held back. Later events are sent at once. */
  catchUp(missed: () => Promise<readonly SessionEvent[]>): void {
    this.#caughtUp = this.#catchUp(missed);
  }

  /** Settles when the client has been sent all earlier events, which must precede the answer that ends the session. */
  get caughtUp(): Promise<void> {
    return this.#caughtUp;
  }

  async #catchUp(missed: () => Promise<readonly SessionEvent[]>): Promise<void> {
    // The answer to the request that joined the client must be sent first.
    await nextTurn();
    const past = await missed().catch((): readonly SessionEvent[] => []);
    const waiting = this.#waiting ?? [];
    const later = new Set(waiting.map(({ id }) => id));
    this.#waiting = undefined;
    for (const event of past) if (!later.has(event.id)) this.send(event, JSON.stringify(event));
    for (const event of waiting) this.send(event, JSON.stringify(event));
  }

  /** `json`: the event, serialized once for all clients. */
  send(event: SessionEvent, json: string): void {
    const { wire } = this.client;
    if (isDroppable(event) && wire.isCrowded) return;
    if (event.agentId !== undefined && !this.capabilities.wantsSubAgentStreaming && isStreaming(event)) return;
    wire.notify("session.event", `{"sessionId":${this.#sessionId},"event":${json}}`);
  }
}
