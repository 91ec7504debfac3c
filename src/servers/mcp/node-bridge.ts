import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { toError } from "../../base/errors.ts";
import { onAbort } from "../../base/wait.ts";
import { refuse } from "../http/http-exchange.ts";

export interface NodeBridgeOptions {
  /** Longer bodies are refused with 413. */
  readonly maxBodyBytes: number;
  /** Called with a request whose body has been read. Undefined: it has been answered, and the handler does not get it. */
  readonly receive?: (incoming: IncomingMessage, outgoing: ServerResponse, body: Buffer) => Promise<Received | undefined>;
  /** Called with errors of the handler and of its streams. The client does not get their details. */
  readonly onError: (error: Error) => void;
}

/** A request for the handler. */
interface Received {
  /** The parsed body. */
  readonly body: unknown;
}

/**
 * Answers a Node request. Settles when the response has been sent or the client has disconnected. Never rejects. `parsedBody` is
 * the body if another handler has read it.
 */
export type NodeHandler = (incoming: IncomingMessage, outgoing: ServerResponse, parsedBody?: unknown) => Promise<void>;

/**
 * Lets a handler of web requests answer those of Node's HTTP server. Streams are sent with back-pressure. When the client
 * disconnects early, the request's signal fires and the stream is cancelled.
 */
export function createNodeBridge(
  handle: (request: Request, body: unknown) => Promise<Response>,
  { maxBodyBytes, receive, onError }: NodeBridgeOptions,
): NodeHandler {
  // The signal of a Request fires only while the Request is reachable, and handlers may keep only the signal.
  const open = new Set<Request>();
  const forward = async (incoming: IncomingMessage, outgoing: ServerResponse, bytes: Buffer, body: unknown): Promise<void> => {
    const gone = new AbortController();
    outgoing.once("close", () => {
      if (!outgoing.writableFinished) gone.abort();
    });
    const request = toRequest(incoming, bytes, gone.signal);
    if (request === undefined) return refuse(outgoing, { status: 400, message: "This is not a supported request." });
    open.add(request);
    outgoing.once("close", () => open.delete(request));
    try {
      await send(await handle(request, body), outgoing, gone.signal);
    } catch (error) {
      // A failure after a disconnection is expected and cannot be reported to the client.
      if (!gone.signal.aborted) throw error;
    }
  };
  return async (incoming, outgoing, parsedBody) => {
    try {
      const bytes = parsedBody === undefined ? await readBody(incoming, maxBodyBytes) : bytesOf(parsedBody, maxBodyBytes);
      if (bytes === "gone" || outgoing.destroyed) return;
      if (bytes === "too long") return refuse(outgoing, { status: 413, message: `The body is larger than ${maxBodyBytes} bytes.` });
      const received = receive === undefined ? { body: undefined } : await receive(incoming, outgoing, bytes);
      if (received !== undefined && !outgoing.destroyed) await forward(incoming, outgoing, bytes, received.body);
    } catch (error) {
      onError(toError(error));
      // A broken stream must not look like a complete one.
      if (outgoing.headersSent) outgoing.destroy();
      else refuse(outgoing, { status: 500, message: "Internal error.", code: -32603 });
    }
  };
}

function bytesOf(parsedBody: unknown, maxBytes: number): Buffer | "too long" {
  const bytes = Buffer.isBuffer(parsedBody) ? parsedBody : Buffer.from(JSON.stringify(parsedBody));
  return bytes.length > maxBytes ? "too long" : bytes;
}

function readBody(incoming: IncomingMessage, maxBytes: number): Promise<Buffer | "gone" | "too long"> {
  return new Promise((resolve) => {
    if (Number(incoming.headers["content-length"]) > maxBytes) return resolve("too long");
    if (incoming.readableEnded && incoming.method === "POST") throw new Error(bodyIsRead);
    const chunks: Buffer[] = [];
    let length = 0;
    incoming.on("data", (chunk: Buffer) => {
      length += chunk.length;
      if (length <= maxBytes) chunks.push(chunk);
      else resolve("too long");
    });
    incoming.on("end", () => resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)));
    // Also emitted after the end, when it has no effect.
    incoming.on("close", () => resolve("gone"));
  });
}

const bodyIsRead = "The body of the request has already been read. Pass the parsed body as well.";

/** Converts a Node request. Undefined: its URL or method is not valid for a web request. */
function toRequest({ method = "GET", url = "/", headers }: IncomingMessage, body: Buffer, signal: AbortSignal): Request | undefined {
  if (!url.startsWith("/")) return undefined;
  const hasBody = body.length > 0 && method !== "GET" && method !== "HEAD";
  try {
    const fields = new Headers();
    for (const [name, value] of Object.entries(headers)) for (const item of [value ?? []].flat()) fields.append(name, item);
    return new Request(`http://${headers.host ?? "localhost"}${url}`, { method, headers: fields, body: hasBody ? body : null, signal });
  } catch {
    // Node accepts requests that are not valid web requests, such as TRACE or a host with a user name.
    return undefined;
  }
}

async function send(response: Response, outgoing: ServerResponse, gone: AbortSignal): Promise<void> {
  const { body } = response;
  if (gone.aborted) return body?.cancel(gone.reason);
  // Unlike `writeHead`, `setHeaders` keeps repeated cookies separate.
  outgoing.setHeaders(response.headers);
  if (response.statusText !== "") outgoing.statusMessage = response.statusText;
  outgoing.writeHead(response.status);
  if (body === null) return void outgoing.end();
  if (outgoing.req.method !== "HEAD") return sendStream(body, outgoing, gone);
  outgoing.end();
  await body.cancel();
}

async function sendStream(body: ReadableStream<Uint8Array>, outgoing: ServerResponse, gone: AbortSignal): Promise<void> {
  const reader = body.getReader();
  // A stream that cannot be cancelled has already ended.
  const cancel = (): void => void reader.cancel(gone.reason).catch(() => {});
  const stop = onAbort(gone, cancel);
  // Sends the headers of an event stream before its first event, which may take long, but together with an event that is ready.
  const flush = setImmediate(() => outgoing.flushHeaders());
  try {
    for (let read = await reader.read(); !read.done; read = await reader.read())
      if (!outgoing.write(read.value)) await once(outgoing, "drain", { signal: gone });
    outgoing.end();
  } finally {
    clearImmediate(flush);
    stop[Symbol.dispose]();
    cancel();
  }
}
