import type {
  JSONRPCMessage,
  SSEClientTransport,
  StreamableHTTPClientTransport,
  Transport,
  TransportSendOptions,
} from "@modelcontextprotocol/client";
import { settlesWithin } from "../../base/wait-for.ts";
import type { RemoteServerSpec } from "../../formats/mcp/mcp-server-spec.ts";
import { type ConnectOptions, defaultMessageBytes } from "./connect-options.ts";
import type { ConnectionEnd } from "./connection.ts";
import { guardFetch } from "./guarded-fetch.ts";
import type { Sdk } from "./sdk.ts";
import type { ServerLink } from "./server-link.ts";

// How long a server may take to forget a session that we end.
const farewell = 1000;

/** A remote server over Streamable HTTP, or over the older transport with server-sent events. */
export class HttpTransport implements ServerLink {
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
  #farewell: Promise<void> | undefined;

  constructor(inner: StreamableHTTPClientTransport | SSEClientTransport, serverName: string) {
    this.#inner = inner;
    // The SDK's class and its interface differ in what exact optional types make of "absent".
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
    this.#farewell ??= this.#sayFarewell();
    this.#finish({ reason: "closed", message: `The connection to the MCP server ${this.#serverName} was closed.` });
    return this.#farewell;
  }

  async #sayFarewell(): Promise<void> {
    const wasOpen = this.#end === undefined;
    // A server that does not take it forgets the session in its own time.
    if (wasOpen && "terminateSession" in this.#inner) await settlesWithin(this.#inner.terminateSession(), farewell);
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
