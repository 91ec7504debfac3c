import type { ServerResponse } from "node:http";
import { type MessageLog, messageText } from "./message-log.ts";

/** A reader that has not read so much waits. In bytes. */
const maxUnsent = 4 * 1024 * 1024;
const batch = 500;

/** Where a reader was when it lost its connection. */
export interface ReadPosition {
  readonly feed: string;
  readonly seq: number;
}

/** One reader of a feed: an event stream that follows the log of messages at its own speed. */
export class FeedReader {
  readonly #response: ServerResponse;
  readonly #log: MessageLog;
  readonly #snapshot: () => string;
  #seq = 0;
  #isBlocked = false;

  constructor(response: ServerResponse, log: MessageLog, snapshot: () => string) {
    this.#response = response;
    this.#log = log;
    this.#snapshot = snapshot;
    response.on("drain", () => {
      this.#isBlocked = false;
      this.send();
    });
  }

  /** Sends what the reader missed, or a snapshot if that is not known. */
  start(position: ReadPosition | undefined): void {
    const isKnown = position?.feed === this.#log.feedId && this.#log.after(position.seq, 0) !== undefined;
    if (isKnown) this.#seq = position.seq;
    else this.#sendSnapshot();
    this.send();
  }

  /** Sends the messages that the reader can take. */
  send(): void {
    while (!this.#isBlocked && this.#seq < this.#log.last && !this.#response.destroyed) {
      const messages = this.#log.after(this.#seq, batch);
      if (messages === undefined) {
        this.#write(
          this.#log.last,
          messageText("dropped", this.#log.last, Date.now(), JSON.stringify({ count: this.#log.last - this.#seq })),
        );
        this.#sendSnapshot();
        continue;
      }
      this.#seq = messages.at(-1)!.seq;
      this.#writeAll(messages.map(({ seq, text }) => eventOf(seq, text)).join(""));
    }
  }

  /** Shows that the connection works, also through proxies that close silent ones. */
  keepAlive(): void {
    // With the number of what was sent: messages of this turn of the event loop are still to come.
    if (!this.#isBlocked) this.#write(this.#seq, messageText("alive", this.#seq, Date.now(), "{}"), false);
  }

  end(): void {
    this.#response.end();
  }

  #sendSnapshot(): void {
    const { last } = this.#log;
    this.#seq = last;
    this.#write(last, messageText("snapshot", last, Date.now(), this.#snapshot()));
  }

  #write(seq: number, text: string, hasId = true): void {
    this.#writeAll(hasId ? eventOf(seq, text) : `data: ${text}\n\n`);
  }

  #writeAll(text: string): void {
    if (this.#response.destroyed) return;
    this.#response.write(text);
    if (this.#response.writableLength > maxUnsent) this.#isBlocked = true;
  }
}

function eventOf(seq: number, text: string): string {
  return `id: ${seq}\ndata: ${text}\n\n`;
}
