import { type Signal, signal } from "@preact/signals";
import type { FeedMessage } from "../../src/servers/inspector/feed-messages.ts";
import type { FeedStore } from "./feed-store.ts";

export type ConnectionState =
  | { readonly kind: "connecting" }
  | { readonly kind: "connected"; readonly by: "stream" | "polling"; readonly isAgain: boolean }
  | { readonly kind: "disconnected"; readonly reason: string }
  /** The host does not accept the token: connecting again would not change that. */
  | { readonly kind: "refused"; readonly reason: string };

/** The host sends something every few seconds. A stream that stays silent longer is gone, or held back by a proxy. */
const longestSilence = 12_000;
const pollInterval = 1_000;
const longestPause = 8_000;

/**
 * Keeps a store in step with the feed: connects again after a loss, from where it was, and asks at intervals where an event stream
 * does not come through. Waits are counted by a clock that does not jump.
 */
export class FeedConnection {
  readonly state: Signal<ConnectionState> = signal({ kind: "connecting" });
  readonly #store: FeedStore;
  #stream: EventSource | undefined;
  #received: FeedMessage[] = [];
  #heardAt = 0;
  #wasConnected = false;
  #losses = 0;
  #silences = 0;

  constructor(store: FeedStore) {
    this.#store = store;
  }

  open(): void {
    setInterval(() => this.#detectSilence(), 1_000);
    // Messages are applied together: 10,000 in a second are some hundred changes of the page.
    setInterval(() => this.#flush(), 16);
    this.#connect();
  }

  #connect(): void {
    this.#stream?.close();
    this.#heardAt = performance.now();
    const stream = new EventSource(`feed${this.#query()}`);
    this.#stream = stream;
    stream.onmessage = ({ data }: MessageEvent<string>) => {
      if (stream === this.#stream) this.#hear(data);
    };
    stream.onerror = () => {
      if (stream === this.#stream) void this.#lose();
    };
  }

  #query(more: Readonly<Record<string, string>> = {}): string {
    const position = this.#store.position;
    const query = new URLSearchParams({
      ...(position === undefined ? {} : { feed: position.feed, since: String(position.since) }),
      ...more,
    });
    return query.size === 0 ? "" : `?${query}`;
  }

  #hear(data: string): void {
    this.#heardAt = performance.now();
    this.#silences = 0;
    const message = parseMessage(data);
    if (message !== undefined) this.#received.push(message);
    this.#enter("stream");
  }

  #enter(by: "stream" | "polling"): void {
    const { kind } = this.state.value;
    if (kind === "connected" && this.state.value.by === by) return;
    this.#losses = 0;
    this.state.value = { kind: "connected", by, isAgain: this.#wasConnected };
    this.#wasConnected = true;
  }

  #flush(): void {
    if (this.#received.length === 0) return;
    const messages = this.#received;
    this.#received = [];
    this.#store.apply(messages);
  }

  async #lose(): Promise<void> {
    this.#stream?.close();
    this.#stream = undefined;
    this.#flush();
    this.state.value = { kind: "disconnected", reason: "The host does not answer. It has ended, or it is being started again." };
    const pause = Math.min(longestPause, 250 * 2 ** this.#losses++);
    await new Promise((resolve) => setTimeout(resolve, pause));
    // An event stream does not say why it failed.
    const status = await answerTo("session");
    if (status === 401 || status === 403) this.state.value = { kind: "refused", reason: refusal };
    else this.#connect();
  }

  #detectSilence(): void {
    if (this.#stream === undefined || performance.now() - this.#heardAt < longestSilence) return;
    this.#silences++;
    // Twice silent while the host does answer: what is between holds the stream back.
    if (this.#silences >= 2) void this.#poll();
    else this.#connect();
  }

  async #poll(): Promise<void> {
    this.#stream?.close();
    this.#stream = undefined;
    for (;;) {
      try {
        const response = await fetch(`feed${this.#query({ poll: "1" })}`, { cache: "no-store", signal: AbortSignal.timeout(10_000) });
        if (!response.ok) return await this.#lose();
        const { messages } = (await response.json()) as { readonly messages: readonly FeedMessage[] };
        this.#store.apply(messages);
        this.#enter("polling");
      } catch {
        // Whatever the reason, the loss is shown, and connecting again finds out more.
        return await this.#lose();
      }
      await new Promise((resolve) => setTimeout(resolve, pollInterval));
    }
  }
}

/** The status of an answer. Undefined: there is none, or it takes too long, as from a host that was halted. */
async function answerTo(path: string): Promise<number | undefined> {
  const controller = new AbortController();
  const timer = setTimeout(() => controller.abort(), longestSilence);
  const answered = fetch(path, { cache: "no-store", signal: controller.signal });
  const status = await answered.then(
    (response) => response.status,
    () => undefined,
  );
  clearTimeout(timer);
  return status;
}

export const refusal = "The host does not accept this page. Open the address that it printed when it started.";

function parseMessage(data: string): FeedMessage | undefined {
  try {
    const message = JSON.parse(data) as FeedMessage;
    return typeof message?.type === "string" && typeof message.seq === "number" ? message : undefined;
  } catch {
    // A message that was cut is followed by the end of the stream, after which the feed is read from the message before it.
    return undefined;
  }
}
