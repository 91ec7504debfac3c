import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { toError } from "../../base/errors.ts";
import { onAbort } from "../../base/wait-for.ts";

export interface NodeBridgeOptions {
  /** Longer bodies are answered with 413, and the handler never hears of them. */
  readonly maxBodyBytes: number;
  /** Hears what the handler throws, and what ends its streams early. Who called is told neither. */
  readonly onError: (error: Error) => void;
}

/** What a request is turned away with. */
export interface RefusedRequest {
  readonly status: number;
  readonly message: string;
  /** The code of JSON-RPC. Default: -32000. */
  readonly code?: number;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Answers a request of Node's; it settles, and never rejects, when the answer is out or its reader has gone. */
export type NodeHandler = (incoming: IncomingMessage, outgoing: ServerResponse) => Promise<void>;

/**
 * Lets a handler of web requests answer those of Node's HTTP server. Streams go out as they come and no faster than they
 * are read; when the client goes away before the end, the request's signal fires and the stream is cancelled.
 */
export function createNodeBridge(handle: (request: Request) => Promise<Response>, options: NodeBridgeOptions): NodeHandler {
  // The signal of a Request fires only as long as the Request itself is reachable, and handlers may keep just the signal.
  const open = new Set<Request>();
  return async (incoming, outgoing) => {
    const gone = new AbortController();
    outgoing.once("close", () => {
      if (!outgoing.writableFinished) gone.abort();
    });
    try {
      const body = await readBody(incoming, options.maxBodyBytes);
      if (body === "gone" || gone.signal.aborted) return;
      if (body === "too long") return refuse(outgoing, { status: 413, message: `The body is larger than ${options.maxBodyBytes} bytes.` });
      const request = toRequest(incoming, body, gone.signal);
      if (request === undefined) return refuse(outgoing, { status: 400, message: "This is not a supported request." });
      open.add(request);
      outgoing.once("close", () => open.delete(request));
      await send(await handle(request), outgoing, gone.signal);
    } catch (error) {
      // Whoever went away is the usual reason for failing after that, and there is nobody to tell.
      if (gone.signal.aborted) return;
      options.onError(toError(error));
      // A stream that broke must not look like one that ended.
      if (outgoing.headersSent) outgoing.destroy();
      else refuse(outgoing, { status: 500, message: "Internal error.", code: -32603 });
    }
  };
}

/** Answers with an error. What is left of the request is not read: the connection ends with the answer. */
export function refuse(outgoing: ServerResponse, { status, message, code = -32000, headers }: RefusedRequest): void {
  const body = JSON.stringify({ jsonrpc: "2.0", id: null, error: { code, message } });
  outgoing.writeHead(status, { "Content-Type": "application/json", Connection: "close", ...headers }).end(body);
}

function readBody(incoming: IncomingMessage, maxBytes: number): Promise<Buffer | "gone" | "too long"> {
  return new Promise((resolve) => {
    if (Number(incoming.headers["content-length"]) > maxBytes) return resolve("too long");
    const chunks: Buffer[] = [];
    let length = 0;
    incoming.on("data", (chunk: Buffer) => {
      length += chunk.length;
      if (length <= maxBytes) chunks.push(chunk);
      else resolve("too long");
    });
    incoming.once("end", () => resolve(Buffer.concat(chunks)));
    // Also comes after the end, and then changes nothing.
    incoming.once("close", () => resolve("gone"));
  });
}

/** Undefined: the web has no such request, for its address or its method. */
function toRequest({ method = "GET", url = "/", headers }: IncomingMessage, body: Buffer, signal: AbortSignal): Request | undefined {
  if (!url.startsWith("/")) return undefined;
  const hasBody = body.length > 0 && method !== "GET" && method !== "HEAD";
  try {
    const fields = new Headers();
    for (const [name, value] of Object.entries(headers)) for (const item of [value ?? []].flat()) fields.append(name, item);
    return new Request(`http://${headers.host ?? "localhost"}${url}`, { method, headers: fields, body: hasBody ? body : null, signal });
  } catch {
    // A host with a user in it, TRACE: what Node lets through and the web does not.
    return undefined;
  }
}

async function send(response: Response, outgoing: ServerResponse, gone: AbortSignal): Promise<void> {
  const { body } = response;
  if (gone.aborted) return body?.cancel(gone.reason);
  // Of repeated headers only cookies stay apart, and this knows.
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
  // What fails to cancel has ended by itself.
  const cancel = (): void => void reader.cancel(gone.reason).catch(() => {});
  const stop = onAbort(gone, cancel);
  // An event stream is open from its headers on, and its first event may be long in coming; what is there goes with them.
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
