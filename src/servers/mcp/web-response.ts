import type { OutgoingHttpHeaders } from "node:http";
import type { ResponseSink } from "../http/http-exchange.ts";

const encoder = new TextEncoder();

/** A response that is written like one of Node's and read as a web `Response`. */
export class WebResponse implements ResponseSink {
  /** Resolves when the headers are sent. Rejects when the response is destroyed before. */
  readonly response: Promise<Response>;
  readonly #fields = new Headers();
  readonly #listeners: (() => void)[] = [];
  #resolve!: (response: Response) => void;
  #reject!: (reason: Error) => void;
  #controller!: ReadableStreamDefaultController<Uint8Array>;
  readonly #body: ReadableStream<Uint8Array>;
  #status = 200;
  destroyed = false;
  headersSent = false;

  constructor() {
    this.response = new Promise((resolve, reject) => {
      [this.#resolve, this.#reject] = [resolve, reject];
    });
    // It is not awaited any more when the client has disconnected.
    this.response.catch(() => {});
    const start = (controller: ReadableStreamDefaultController<Uint8Array>): void => {
      this.#controller = controller;
    };
    const source = { start, cancel: () => this.destroy() };
    this.#body = new ReadableStream(source, new ByteLengthQueuingStrategy({ highWaterMark: 0 }));
  }

  get writableLength(): number {
    return -(this.#controller.desiredSize ?? 0);
  }

  setHeader(name: string, value: string): void {
    this.#fields.set(name, value);
  }

  /** Sends a response that was made elsewhere, with the headers that have been set here. */
  adopt({ body, status, statusText, headers }: Response): Response {
    for (const [name, value] of headers) this.#fields.append(name, value);
    this.headersSent = true;
    const passed = body === null ? null : passOn(body, () => this.#finish());
    if (passed === null) this.#finish();
    return new Response(passed, { status, statusText, headers: this.#fields });
  }

  writeHead(status: number, headers: OutgoingHttpHeaders = {}): this {
    this.#status = status;
    // Connections are the business of the server that the response goes to.
    for (const [name, value] of Object.entries(headers)) if (name !== "Connection") this.#fields.set(name, String(value));
    return this;
  }

  flushHeaders(): void {
    this.#send(this.#body);
  }

  write(text: string): void {
    if (this.destroyed) return;
    this.#send(this.#body);
    this.#controller.enqueue(encoder.encode(text));
  }

  end(text = ""): void {
    if (this.destroyed) return;
    if (!this.headersSent) this.#send(text === "" ? null : text);
    else if (text !== "") this.write(text);
    this.#controller.close();
    this.#finish();
  }

  destroy(): void {
    if (this.destroyed) return;
    const reason = new Error("The response was given up before its end.");
    this.#reject(reason);
    this.#controller.error(reason);
    this.#finish();
  }

  on(_event: "close", listener: () => void): void {
    this.#listeners.push(listener);
  }

  #send(body: ReadableStream<Uint8Array> | string | null): void {
    if (this.headersSent) return;
    this.headersSent = true;
    this.#resolve(new Response(body, { status: this.#status, headers: this.#fields }));
  }

  #finish(): void {
    if (this.destroyed) return;
    this.destroyed = true;
    for (const listener of this.#listeners) listener();
  }
}

/** The same stream. `finished` is called when it has been read, has failed or is cancelled. */
function passOn(body: ReadableStream<Uint8Array>, finished: () => void): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  const pull = async (controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> => {
    try {
      const { done, value } = await reader.read();
      if (!done) return controller.enqueue(value);
      controller.close();
      finished();
    } catch (error) {
      finished();
      throw error;
    }
  };
  const cancel = (reason: unknown): Promise<void> => {
    finished();
    return reader.cancel(reason);
  };
  return new ReadableStream({ pull, cancel }, { highWaterMark: 0 });
}
