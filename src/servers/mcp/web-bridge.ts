import { toError } from "../../base/errors.ts";
import { onAbort } from "../../base/wait.ts";
import { answerError, type RequestHead, refuse } from "../http/http-exchange.ts";
import type { HttpGuard } from "../http/http-guard.ts";
import type { HttpRoutes } from "./http-routes.ts";
import { WebResponse } from "./web-response.ts";

interface WebBridgeOptions {
  readonly guard: HttpGuard;
  /** Longer bodies are refused with 413. */
  readonly maxBodyBytes: number;
  /** Called with errors of the routes. The client does not get their details. */
  readonly onError: (error: Error) => void;
}

/** Answers web requests. Never rejects: the response for a client that has disconnected is empty. */
export function createWebBridge(routes: HttpRoutes, options: WebBridgeOptions): (request: Request) => Promise<Response> {
  const { guard, maxBodyBytes, onError } = options;
  // The signal of a Request fires only while the Request is reachable.
  const open = new Set<Request>();
  const answer = async (request: Request, outgoing: WebResponse): Promise<Response> => {
    const incoming = headOf(request);
    if (guard(incoming, outgoing)) return outgoing.response;
    if (request.bodyUsed) throw new Error("The body of the request has already been read. Pass a request whose body is unread.");
    const bytes = await readBytes(request.body, maxBodyBytes);
    if (bytes === undefined) {
      refuse(outgoing, { status: 413, message: `The body is larger than ${maxBodyBytes} bytes.` });
      return outgoing.response;
    }
    const received = await routes.receive(incoming, outgoing, bytes);
    if (received === undefined) return outgoing.response;
    const { url, method, headers, signal } = request;
    const copy = new Request(url, { method, headers, signal, body: bytes.length > 0 ? bytes : null });
    open.add(copy);
    outgoing.on("close", () => open.delete(copy));
    return outgoing.adopt(await routes.fetch(copy, received.body));
  };
  return async (request) => {
    const outgoing = new WebResponse();
    open.add(request);
    const gone = onAbort(request.signal, () => outgoing.destroy());
    outgoing.on("close", () => {
      open.delete(request);
      gone[Symbol.dispose]();
    });
    try {
      return await answer(request, outgoing);
    } catch (error) {
      outgoing.destroy();
      if (request.signal.aborted) return new Response(null, { status: clientClosedRequest });
      onError(toError(error));
      const failed = new WebResponse();
      answerError(failed, { status: 500, message: "Internal error.", code: -32603 });
      return failed.response;
    }
  };
}

/** The status that proxies log for a request whose client has disconnected. No client gets it. */
const clientClosedRequest = 499;

function headOf({ method, url, headers }: Request): RequestHead {
  return { method, headers: { host: new URL(url).host, ...Object.fromEntries(headers) } };
}

/** Undefined: there are more bytes than the limit. */
async function readBytes(body: ReadableStream<Uint8Array> | null, maxBytes: number): Promise<Buffer<ArrayBuffer> | undefined> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of body ?? []) {
    length += chunk.length;
    if (length > maxBytes) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
