import { once } from "node:events";
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { onAbort } from "../../base/wait.ts";

export interface LoopbackCallbackOptions {
  /** Undefined or 0: any free port. */
  readonly port?: number | undefined;
  /** The host name in the URL. The server always listens on the IPv4 loopback only. Default: `127.0.0.1`. */
  readonly hostname?: "127.0.0.1" | "localhost";
  /** For example `/callback`. */
  readonly path: string;
  /** The text of the page that the browser shows after an accepted request. */
  readonly thanks: string;
}

/** Waits for a browser to be redirected to this machine. Disposing of it closes the port. */
export interface LoopbackCallback extends AsyncDisposable {
  /** The redirect URL. */
  readonly url: string;
  /** The URL of the first accepted request. Other requests receive an error page and change nothing. Rejects with the signal's reason. */
  received(accepts: (address: URL) => boolean, signal: AbortSignal): Promise<URL>;
}

/**
 * Listens on the loopback interface for one request. Any web page and any program on this machine can send requests here, so
 * only a GET with this exact Host and path is considered, `accepts` decides whether it is the expected one, and the pages
 * contain nothing from the request. Rejects with the system's error, such as `EADDRINUSE`.
 */
export async function openLoopbackCallback(options: LoopbackCallbackOptions): Promise<LoopbackCallback> {
  let accepts: (address: URL) => boolean = () => false;
  let settle: (address: URL) => void = () => {};
  let url = "";
  const server = createServer({ requestTimeout: 10_000, headersTimeout: 10_000 }, (request, response) => {
    const address = addressOf(request, url);
    const status = statusOf(request, address, url, accepts);
    response.writeHead(status, {
      "content-type": "text/plain; charset=utf-8",
      "x-content-type-options": "nosniff",
      "cache-control": "no-store",
      // The URL contains a code, which must not be sent on as a referrer.
      "referrer-policy": "no-referrer",
      "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
      connection: "close",
    });
    response.end(`${errorTexts[status] ?? options.thanks}\n`);
    // Settled after the page was sent, because the caller then closes the port.
    if (status === 200) response.once("close", () => settle(address!));
  });
  await listen(server, options.port ?? 0);
  const { port } = server.address() as AddressInfo;
  url = `http://${options.hostname ?? "127.0.0.1"}:${port}${options.path}`;
  return {
    url,
    received(accepted, signal) {
      return new Promise<URL>((resolve, reject) => {
        const waiting = onAbort(signal, () => reject(signal.reason));
        accepts = accepted;
        settle = (address) => {
          waiting[Symbol.dispose]();
          accepts = () => false;
          resolve(address);
        };
      });
    },
    [Symbol.asyncDispose]: () => close(server),
  };
}

async function listen(server: Server, port: number): Promise<void> {
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
}

async function close(server: Server): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  server.closeAllConnections();
  await closed;
}

function addressOf(request: IncomingMessage, url: string): URL | undefined {
  const target = request.url ?? "";
  // "//elsewhere/" and "http://elsewhere/" are allowed in a request line.
  if (!URL.canParse(target, url)) return undefined;
  const address = new URL(target, url);
  return address.origin === new URL(url).origin ? address : undefined;
}

function statusOf(request: IncomingMessage, address: URL | undefined, url: string, accepts: (address: URL) => boolean): number {
  const { port, pathname } = new URL(url);
  // With DNS rebinding, a page of an attacker's host name can send requests here.
  if (request.headers.host !== `127.0.0.1:${port}` && request.headers.host !== `localhost:${port}`) return 403;
  if (address?.pathname !== pathname) return 404;
  if (request.method !== "GET") return 405;
  return accepts(address) ? 200 : 400;
}

const errorTexts: Readonly<Record<number, string>> = {
  400: "This is not the expected callback.",
  403: "This server accepts requests only for loopback host names.",
  404: "Not found.",
  405: "Only GET is allowed.",
};
