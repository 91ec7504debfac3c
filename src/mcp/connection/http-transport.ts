import type {
  FetchLike,
  JSONRPCMessage,
  SSEClientTransport,
  StreamableHTTPClientTransport,
  Transport,
  TransportSendOptions,
} from "@modelcontextprotocol/client";
import { HostError } from "../../base/errors.ts";
import { onAbort, settlesWithin } from "../../base/wait.ts";
import type { RemoteServerSpec } from "../../formats/mcp/mcp-server-spec.ts";
import { type ConnectionEnd, type ConnectOptions, defaultMessageBytes } from "./connection.ts";
import type { Sdk, ServerLink } from "./server-link.ts";

// Milliseconds that a server may take to end a session.
const sessionEndTimeout = 1000;

/** A remote server over Streamable HTTP, or over the older transport with server-sent events. */
class HttpTransport implements ServerLink {
  onclose?: (() => void) | undefined;
  onerror?: ((error: Error) => void) | undefined;
  onmessage?: ServerLink["onmessage"];
  onunreadable?: ServerLink["onunreadable"];
  readonly ended: Promise<ConnectionEnd>;
  readonly pid: undefined;
  readonly #inner: StreamableHTTPClientTransport | SSEClientTransport;
  readonly #send: Transport["send"];
  readonly #serverName: string;
  #resolveEnded: (end: ConnectionEnd) => void = () => {};
  #end: ConnectionEnd | undefined;
  #closed: Promise<void> | undefined;

  constructor(inner: StreamableHTTPClientTransport | SSEClientTransport, serverName: string) {
    this.#inner = inner;
    // With exact optional types the SDK's class does not fit its own interface.
    this.#send = (message, options) => (inner as Transport).send(message, options);
    this.#serverName = serverName;
    this.ended = new Promise((resolve) => {
      this.#resolveEnded = resolve;
    });
  }

  get end(): ConnectionEnd | undefined {
    return this.#end;
  }

  get hasPerRequestStream(): boolean {
    return "hasPerRequestStream" in this.#inner;
  }

  get sessionId(): string | undefined {
    return "sessionId" in this.#inner ? this.#inner.sessionId : undefined;
  }

  setProtocolVersion(version: string): void {
    this.#inner.setProtocolVersion(version);
  }

  async start(): Promise<void> {
    this.#inner.onmessage = (message: JSONRPCMessage) => this.onmessage?.(message);
    this.#inner.onerror = (error) => this.onerror?.(error);
    await this.#inner.start();
  }

  send(message: JSONRPCMessage, options?: TransportSendOptions): Promise<void> {
    return this.#send(message, options);
  }

  lose(message: string): void {
    this.#finish({ reason: "lost", message });
    void this.#inner.close();
  }

  close(): Promise<void> {
    this.#closed ??= this.#endSession();
    this.#finish({ reason: "closed", message: `The connection to the MCP server ${this.#serverName} was closed.` });
    return this.#closed;
  }

  async #endSession(): Promise<void> {
    const wasOpen = this.#end === undefined;
    // If this fails, the server ends the session when it times out.
    if (wasOpen && "terminateSession" in this.#inner) await settlesWithin(this.#inner.terminateSession(), sessionEndTimeout);
    await this.#inner.close();
  }

  #finish(end: ConnectionEnd): void {
    if (this.#end !== undefined) return;
    this.#end = end;
    this.#resolveEnded(end);
    this.onclose?.();
  }
}

export function createHttpTransport(sdk: Sdk, spec: RemoteServerSpec, kind: "http" | "sse", options: ConnectOptions): HttpTransport {
  const url = new URL(spec.url);
  const maxMessageBytes = options.maxMessageBytes ?? defaultMessageBytes;
  const guarded = guardFetch({ serverName: spec.name, url, headers: spec.headers, maxMessageBytes });
  const { auth } = options;
  const settings = { fetch: auth?.wrapFetch(guarded) ?? guarded, ...(auth !== undefined && { authProvider: auth.provider }) };
  const inner = kind === "http" ? new sdk.StreamableHTTPClientTransport(url, settings) : new sdk.SSEClientTransport(url, settings);
  return new HttpTransport(inner, spec.name);
}

interface GuardOptions {
  readonly serverName: string;
  readonly url: URL;
  /** Sent to this server only. */
  readonly headers: Readonly<Record<string, string>>;
  /** Limit for one message. */
  readonly maxMessageBytes: number;
}

/**
 * A fetch for one server: its configured headers go to its own origin only, and messages are read only up to the limit.
 * The SDK follows redirects, within the origin.
 * @internal Exported for tests.
 */
export function guardFetch(options: GuardOptions, base: FetchLike = fetch): FetchLike {
  return async (target, init) => {
    const url = new URL(target);
    const headers = new Headers(init?.headers);
    if (isWithin(options.url, url)) {
      for (const [name, value] of Object.entries(options.headers)) if (!headers.has(name)) headers.set(name, value);
    }
    // The runtime keeps a listener on a request's signal until garbage collection; the SDK's signal lives as long as the
    // connection, so each request gets one of its own.
    const controller = new AbortController();
    const waiting = init?.signal ? onAbort(init.signal, () => controller.abort(init.signal?.reason)) : undefined;
    const done = (): void => waiting?.[Symbol.dispose]();
    try {
      return limited(await base(url, { ...init, headers, signal: controller.signal }), options, done);
    } catch (error) {
      done();
      throw error;
    }
  };
}

/** The origin itself, or the same host by https where it was http. */
function isWithin(from: URL, to: URL): boolean {
  if (from.origin === to.origin) return true;
  return from.protocol === "http:" && to.protocol === "https:" && from.hostname === to.hostname && from.port === "" && to.port === "";
}

function limited(response: Response, options: GuardOptions, done: () => void): Response {
  const { body, status, statusText, headers } = response;
  if (body === null) {
    done();
    return response;
  }
  const isStream = headers.get("content-type")?.startsWith("text/event-stream") === true;
  const count = isStream ? eventCounter() : (chunk: Uint8Array, before: number) => before + chunk.length;
  const copy = new Response(limitedBody(body.getReader(), options, count, done), { status, statusText, headers });
  Object.defineProperty(copy, "url", { value: response.url });
  return copy;
}

type Count = (chunk: Uint8Array, before: number) => number;

function limitedBody(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  options: GuardOptions,
  count: Count,
  done: () => void,
): ReadableStream {
  let bytes = 0;
  return new ReadableStream({
    async pull(controller) {
      const next = await reader.read().catch((error: unknown) => {
        done();
        throw error;
      });
      if (next.done) {
        done();
        return controller.close();
      }
      bytes = count(next.value, bytes);
      if (bytes <= options.maxMessageBytes) return controller.enqueue(next.value);
      const { serverName, maxMessageBytes } = options;
      const text = `The MCP server ${serverName} sent a message of more than ${maxMessageBytes} bytes, which was ignored.`;
      controller.error(new HostError("MCP_ANSWER", text));
      done();
      await reader.cancel();
    },
    cancel(reason) {
      done();
      return reader.cancel(reason);
    },
  });
}

/** A stream of events lasts as long as the connection, so the bytes of the current event count. */
function eventCounter(): Count {
  let endedLine = false;
  return (chunk, before) => {
    const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    // An empty line ends an event; its two line breaks may arrive in two chunks.
    const endsEvent = endedLine && isLineBreak(bytes[0]);
    endedLine = isLineBreak(bytes.at(-1));
    const end = Math.max(bytes.lastIndexOf("\n\n"), bytes.lastIndexOf("\n\r\n"), bytes.lastIndexOf("\r\r"));
    if (end !== -1) return bytes.length - end;
    return endsEvent ? bytes.length : before + bytes.length;
  };
}

function isLineBreak(byte: number | undefined): boolean {
  return byte === 0x0a || byte === 0x0d;
}
