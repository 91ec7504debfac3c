import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { errorMessage, HostError } from "../../base/errors.ts";
import { createHttpGuard } from "../http/http-guard.ts";

export interface HealthSource {
  /** Why it takes no work now. Undefined: it is ready. */
  unready(): string | undefined;
  /** In the text format of Prometheus. */
  metrics(): string;
}

interface HealthAddress {
  readonly host: string;
  /** 0: any that is free. */
  readonly port: number;
}

/** Where programs that watch a host ask. Disposing ends it. */
export interface HealthServer extends AsyncDisposable {
  readonly url: string;
}

/**
 * Answers `GET /livez` (the process works), `/readyz` (it takes work; otherwise status 503 with the reason) and `/metrics`.
 * @throws HostError `HTTP_LISTEN` when the address is in use.
 */
export async function serveHealth(source: HealthSource, { host, port }: HealthAddress): Promise<HealthServer> {
  const isRefused = createHttpGuard({ host, token: undefined, allowedHosts: [], allowedOrigins: [], maxRequests: 10_000 });
  const server = createServer({ headersTimeout: 10_000, requestTimeout: 10_000, maxHeaderSize: 16_384 }, (request, response) => {
    if (!isRefused(request, response)) answer(request, response, source);
  });
  server.maxConnections = 100;
  await new Promise<void>((resolve, reject) => {
    server.once("error", (cause) => {
      const message = `Cannot answer questions about health at ${host}, port ${port} (${cause.message}). Choose another port.`;
      reject(new HostError("HTTP_LISTEN", message, { cause }));
    });
    server.listen(port, host, resolve);
  });
  const address = server.address() as AddressInfo;
  return {
    url: `http://${host.includes(":") ? `[${host}]` : host}:${address.port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

interface Answer {
  readonly status: number;
  readonly text: string;
  readonly type?: string;
}

function answer({ method = "", url = "/" }: IncomingMessage, response: ServerResponse, source: HealthSource): void {
  const { status, text, type = "text/plain; charset=utf-8" } = answerTo(method, url, source);
  response.writeHead(status, { "Content-Type": type, "Content-Length": Buffer.byteLength(text), "Cache-Control": "no-store" });
  response.end(method === "HEAD" ? undefined : text);
}

function answerTo(method: string, url: string, source: HealthSource): Answer {
  if (method !== "GET" && method !== "HEAD") return { status: 405, text: "Use GET.\n" };
  try {
    switch (url.split("?")[0]) {
      case "/livez":
        return { status: 200, text: "ok\n" };
      case "/readyz": {
        const reason = source.unready();
        return reason === undefined ? { status: 200, text: "ok\n" } : { status: 503, text: `${reason}\n` };
      }
      case "/metrics":
        return { status: 200, text: source.metrics(), type: "text/plain; version=0.0.4; charset=utf-8" };
      default:
        return { status: 404, text: "The paths are /livez, /readyz and /metrics.\n" };
    }
  } catch (error) {
    return { status: 500, text: `${errorMessage(error)}\n` };
  }
}
