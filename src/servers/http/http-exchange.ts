import type { IncomingHttpHeaders, OutgoingHttpHeaders } from "node:http";

/** A request without its body: one of Node's, or a web request. */
export interface RequestHead {
  readonly method?: string | undefined;
  readonly headers: IncomingHttpHeaders;
}

/** Where a response is written: Node's `ServerResponse`, or a `WebResponse`. */
export interface ResponseSink {
  /** The client has disconnected, or the response was given up. */
  readonly destroyed: boolean;
  readonly headersSent: boolean;
  /** The number of bytes that the client has not read. */
  readonly writableLength: number;
  setHeader(name: string, value: string): unknown;
  writeHead(status: number, headers?: OutgoingHttpHeaders): this;
  flushHeaders(): void;
  write(text: string): unknown;
  end(text?: string): unknown;
  destroy(): unknown;
  /** `close`: the response has ended, or the client has disconnected. */
  on(event: "close", listener: () => void): unknown;
}

/** A request of a client whose body has been read. */
export interface HttpExchange {
  readonly incoming: RequestHead;
  readonly outgoing: ResponseSink;
  /** The parsed body. Undefined: it is not a POST. */
  readonly body: unknown;
}

/** The response to a refused request. */
export interface AnsweredError {
  readonly status: number;
  readonly message: string;
  /** The code of JSON-RPC. Default: -32000. */
  readonly code?: number;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Answers with an error. The rest of the request is not read, and the connection is closed after the response. */
export function refuse(outgoing: ResponseSink, refused: AnsweredError): void {
  answerError(outgoing, { ...refused, headers: { Connection: "close", ...refused.headers } });
}

/** Answers with an error. Further requests can use the connection. */
export function answerError(outgoing: ResponseSink, { status, message, code = -32000, headers }: AnsweredError): void {
  if (outgoing.destroyed) return;
  const body = JSON.stringify({ jsonrpc: "2.0", id: null, error: { code, message } });
  const length = Buffer.byteLength(body);
  outgoing.writeHead(status, { "Content-Type": "application/json", "Content-Length": length, ...headers }).end(body);
}
