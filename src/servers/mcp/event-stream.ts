import type { ServerResponse } from "node:http";

/** A client that leaves more unread is disconnected. It can resume the stream. */
const maxUnreadBytes = 16 * 1024 * 1024;

/**
 * A stream of events as the response to a request. Everything of the first turn of the event loop is sent together with the
 * headers, so that the answer of a short call takes one write.
 */
export class EventStream {
  readonly #outgoing: ServerResponse;
  readonly #headers: Readonly<Record<string, string>>;
  #held = "";

  constructor(outgoing: ServerResponse, headers: Readonly<Record<string, string>>) {
    this.#outgoing = outgoing;
    this.#headers = headers;
    setImmediate(flush, this);
  }

  /** Adds text to the stream. Text for a client that has disconnected is dropped. */
  write(text: string): void {
    const outgoing = this.#outgoing;
    if (outgoing.destroyed) return;
    if (!outgoing.headersSent) this.#held += text;
    else if (outgoing.writableLength > maxUnreadBytes) outgoing.destroy();
    else outgoing.write(text);
  }

  /** Ends the stream after a last text. */
  end(text = ""): void {
    const outgoing = this.#outgoing;
    if (outgoing.destroyed) return;
    if (outgoing.headersSent) return void outgoing.end(text);
    const whole = this.#held + text;
    outgoing.writeHead(200, { ...this.#headers, "Content-Length": Buffer.byteLength(whole) }).end(whole);
  }

  /** Sends the headers and what was written. */
  flush(): void {
    const outgoing = this.#outgoing;
    if (outgoing.headersSent || outgoing.destroyed) return;
    outgoing.writeHead(200, this.#headers);
    if (this.#held === "") outgoing.flushHeaders();
    else outgoing.write(this.#held);
    this.#held = "";
  }
}

function flush(stream: EventStream): void {
  stream.flush();
}

/** The text of an event with a JSON message. */
export function eventText(id: string, data: string): string {
  return `event: message\nid: ${id}\ndata: ${data}\n\n`;
}
