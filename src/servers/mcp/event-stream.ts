import type { ResponseSink } from "../http/http-exchange.ts";

/** A client that leaves more unread is disconnected. It can resume the stream. */
const maxUnreadBytes = 16 * 1024 * 1024;

/** The time in which a call can be answered in one write with its headers. It delays only the headers of longer calls. */
const headersDelayMs = 50;

/** The streams of calls whose headers have not been sent, from the oldest to the newest. One timer sends them. */
const unsent = new Set<EventStream>();

function sendLater(stream: EventStream): void {
  if (unsent.size === 0) setTimeout(sendAll, headersDelayMs);
  unsent.add(stream);
}

function sendAll(): void {
  for (const stream of unsent) stream.flush();
  unsent.clear();
}

/** A stream of events as the response to a request. The answer of a short call takes one write. */
export class EventStream {
  readonly #outgoing: ResponseSink;
  readonly #headers: Readonly<Record<string, string>>;
  /** The text that is sent with the headers. */
  #held: string;

  /** `opening` is the text of the first event, which may wait for the answer. Undefined: the headers are sent immediately. */
  constructor(outgoing: ResponseSink, headers: Readonly<Record<string, string>>, opening?: string) {
    this.#outgoing = outgoing;
    this.#headers = headers;
    this.#held = opening ?? "";
    if (opening === undefined) this.flush();
    else sendLater(this);
  }

  /** Adds text to the stream. Text for a client that has disconnected is dropped. */
  write(text: string): void {
    const outgoing = this.#outgoing;
    if (outgoing.destroyed) return;
    if (!outgoing.headersSent) {
      this.#held += text;
      this.flush();
    } else if (outgoing.writableLength > maxUnreadBytes) outgoing.destroy();
    else outgoing.write(text);
  }

  /** Ends the stream after a last text. */
  end(text = ""): void {
    const outgoing = this.#outgoing;
    unsent.delete(this);
    if (outgoing.destroyed) return;
    if (outgoing.headersSent) return void outgoing.end(text);
    const whole = this.#held + text;
    outgoing.writeHead(200, { ...this.#headers, "Content-Length": Buffer.byteLength(whole) }).end(whole);
  }

  /** Sends the headers and the text so far. */
  flush(): void {
    const outgoing = this.#outgoing;
    unsent.delete(this);
    if (outgoing.headersSent || outgoing.destroyed) return;
    outgoing.writeHead(200, this.#headers);
    if (this.#held === "") outgoing.flushHeaders();
    else outgoing.write(this.#held);
    this.#held = "";
  }
}

/** The text of an event with a JSON message. */
export function eventText(id: string, data: string): string {
  return `event: message\nid: ${id}\ndata: ${data}\n\n`;
}
