import { setImmediate as nextTurn } from "node:timers/promises";
import type { Attachment } from "../../../session/clients/session-client.ts";
import type { SessionEvent } from "../../../session/history/events.ts";
import type { Client } from "../clients/client.ts";
import type { ClientCapabilities } from "../clients/client-capabilities.ts";
import { isDroppable, isStreaming } from "./copilot-events.ts";

interface JoinedClientParts {
  readonly client: Client;
  readonly attachment: Attachment;
  /** Whom the attachment asks: somebody else, once that one goes on with what the client left open. */
  readonly asked: { client: Client };
  readonly capabilities: ClientCapabilities;
  /** The kinds of events that it says it answers, beside what it offers, by the handle it got. */
  readonly interests: Map<string, Attachment>;
  /** All handles that it got, with the type of event that it is interested in. Undefined: it is not any more. */
  readonly handles: Map<string, string | undefined>;
}

/** A client within a session, and what it is told. */
export class JoinedClient implements JoinedClientParts {
  readonly client: Client;
  readonly attachment: Attachment;
  readonly asked: { client: Client };
  readonly capabilities: ClientCapabilities;
  readonly interests: Map<string, Attachment>;
  readonly handles: Map<string, string | undefined>;
  readonly #sessionId: string;
  /** Events that wait until those before them were sent; undefined: none have to. */
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

  /** Whether it has heard of what was before it came. */
  get isReady(): boolean {
    return this.#waiting === undefined;
  }

  /** Keeps an event until the client has heard of what was before it. */
  keep(event: SessionEvent): void {
    this.#waiting?.push(event);
  }

  /** Sends what the client missed, then what happened meanwhile, then lets it hear of things as they happen. */
  catchUp(missed: () => Promise<readonly SessionEvent[]>): void {
    this.#caughtUp = this.#catchUp(missed);
  }

  /** Settles when the client has been sent what came before now: nothing of it may follow the answer that ends the session. */
  get caughtUp(): Promise<void> {
    return this.#caughtUp;
  }

  async #catchUp(missed: () => Promise<readonly SessionEvent[]>): Promise<void> {
    // The answer to the request that brought the client here goes first.
    await nextTurn();
    const past = await missed().catch((): readonly SessionEvent[] => []);
    const waiting = this.#waiting ?? [];
    const later = new Set(waiting.map(({ id }) => id));
    this.#waiting = undefined;
    for (const event of past) if (!later.has(event.id)) this.send(event, JSON.stringify(event));
    for (const event of waiting) this.send(event, JSON.stringify(event));
  }

  /** `json`: the event, made once for all clients. */
  send(event: SessionEvent, json: string): void {
    const { wire } = this.client;
    if (isDroppable(event) && wire.isCrowded) return;
    if (event.agentId !== undefined && !this.capabilities.wantsSubAgentStreaming && isStreaming(event)) return;
    wire.notify("session.event", `{"sessionId":${this.#sessionId},"event":${json}}`);
  }
}
