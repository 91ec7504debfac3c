import { randomUUID } from "node:crypto";

/** How many messages are kept for readers that reconnect, and their size in UTF-16 units. */
const maxMessages = 20_000;
const maxLength = 16 * 1024 * 1024;
/** How many are kept while there are no readers: their text is not made before one comes. */
const maxUnread = 2_000;

/** One message: its members beside `type`, `seq` and `at`, as the text of a JSON object that is made at its first use. */
export class LoggedMessage {
  readonly type: string;
  readonly seq: number;
  readonly at: number;
  #make: (() => object) | undefined;
  #body: string | undefined;
  #isCounted = false;

  constructor(type: string, seq: number, make: () => object) {
    this.type = type;
    this.seq = seq;
    this.at = Date.now();
    this.#make = make;
  }

  /** The members, as the text of a JSON object. */
  get body(): string {
    if (this.#body === undefined) {
      this.#body = JSON.stringify(this.#make?.() ?? {});
      // What it was made of may be large.
      this.#make = undefined;
    }
    return this.#body;
  }

  get text(): string {
    return messageText(this.type, this.seq, this.at, this.body);
  }

  /** The length of the text if it was not asked for before. */
  countOnce(): number {
    if (this.#isCounted || this.#body === undefined) return 0;
    this.#isCounted = true;
    return this.#body.length;
  }

  get countedLength(): number {
    return this.#isCounted ? (this.#body?.length ?? 0) : 0;
  }
}

export function messageText(type: string, seq: number, at: number, body: string): string {
  const head = `{"type":${JSON.stringify(type)},"seq":${seq},"at":${at}`;
  return body === "{}" ? `${head}}` : `${head},${body.slice(1)}`;
}

/** The messages of a feed in their order. Old ones are dropped. */
export class MessageLog {
  /** Identifies this run of the host. */
  readonly feedId: string = randomUUID();
  readonly #onAppended: () => void;
  #messages: LoggedMessage[] = [];
  #length = 0;
  #last = 0;
  #isDue = false;
  /** Whether there are readers. */
  isRead = false;

  constructor(onAppended: () => void) {
    this.#onAppended = onAppended;
  }

  /** The number of the newest message. */
  get last(): number {
    return this.#last;
  }

  /** Adds a message, whose members are made when it is first read. Readers are informed once for all messages of a turn of the event loop. */
  append(type: string, make: () => object): LoggedMessage {
    const message = new LoggedMessage(type, ++this.#last, make);
    this.#messages.push(message);
    if (this.isRead) this.#inform();
    else if (this.#messages.length > 2 * maxUnread) this.#messages = this.#messages.slice(-maxUnread);
    return message;
  }

  /** The messages after a number, at most as many. Undefined: some of them were dropped. */
  after(seq: number, limit: number): readonly LoggedMessage[] | undefined {
    if (seq > this.#last) return undefined;
    const first = this.#messages[0]?.seq ?? this.#last + 1;
    if (seq + 1 < first) return undefined;
    const from = seq + 1 - first;
    const found = this.#messages.slice(from, from + limit);
    for (const message of found) {
      void message.body;
      this.#length += message.countOnce();
    }
    this.#trim();
    return found;
  }

  #inform(): void {
    if (this.#isDue) return;
    this.#isDue = true;
    setImmediate(() => {
      this.#isDue = false;
      this.#onAppended();
      this.#trim();
    });
  }

  #trim(): void {
    let drop = Math.max(0, this.#messages.length - maxMessages);
    for (let index = 0; index < drop; index++) this.#length -= this.#messages[index]!.countedLength;
    while (this.#length > maxLength && drop < this.#messages.length) this.#length -= this.#messages[drop++]!.countedLength;
    if (drop > 0) this.#messages = this.#messages.slice(drop);
  }
}
