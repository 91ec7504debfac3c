import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { errorMessage, HostError } from "../../base/errors.ts";
import { isNestedTooDeep } from "../../base/json.ts";
import type { Inspector } from "../../host/inspection.ts";
import { createConnectionToken } from "../../io/net/connection-gate.ts";
import type { ServedApp } from "./feed-apps.ts";
import { FeedReader, type ReadPosition } from "./feed-reader.ts";
import { type MessageLog, messageText } from "./message-log.ts";
import { ReaderGate } from "./reader-gate.ts";
import { PageServer, type ServedBlob, serveApp, serveBlob } from "./serve-content.ts";

const maxBody = 8 * 1024 * 1024;
const maxReaders = 32;
const maxPolled = 5_000;
const aliveMs = 5_000;

/** What an inspector serves: a host, or the export of a session. */
export interface FeedSource {
  readonly log: MessageLog;
  snapshot(): string;
  answer(request: unknown): Promise<unknown>;
  blob(id: string): ServedBlob | undefined;
  /** A page of an MCP server. Absent: there are no servers. */
  app?(id: string, allowsDomains: boolean): ServedApp | undefined;
}

interface FeedServerOptions {
  /** 0: any that is free. */
  readonly port: number;
  /** Default: that of this package. */
  readonly pageFolder?: string | undefined;
}

/** @throws HostError `HTTP_LISTEN` when the port is in use. */
export async function serveFeed(open: (onAppended: () => void) => FeedSource, { port, pageFolder }: FeedServerOptions): Promise<Inspector> {
  const token = createConnectionToken();
  const readers = new Set<FeedReader>();
  const source = open(() => {
    for (const reader of readers) reader.send();
  });
  let actual = port;
  const gate = new ReaderGate(token, () => actual);
  const pages = new PageServer(pageFolder);
  const server = createServer({ headersTimeout: 10_000, requestTimeout: 30_000, maxHeaderSize: 16_384 }, (request, response) => {
    for (const [name, value] of Object.entries(alwaysHeaders)) response.setHeader(name, value);
    const refusal = gate.refusal(request, response);
    if (refusal === "answered") return;
    if (refusal !== undefined) return refuse(response, 403, "INSPECTOR_ORIGIN", refusal);
    route({ request, response, gate, source, pages, readers }).catch((error: unknown) => {
      if (response.headersSent) response.destroy();
      else refuse(response, statusOf(error), error instanceof HostError ? error.code : "INSPECTOR_FAILED", errorMessage(error));
    });
  });
  const alive = setInterval(() => {
    for (const reader of readers) reader.keepAlive();
  }, aliveMs);
  alive.unref();
  try {
    actual = await listen(server, port);
  } catch (error) {
    clearInterval(alive);
    throw error;
  }
  return {
    url: `http://127.0.0.1:${actual}/#token=${token}`,
    port: actual,
    token,
    async [Symbol.asyncDispose]() {
      clearInterval(alive);
      const closed = new Promise((resolve) => server.close(resolve));
      for (const reader of readers) reader.end();
      server.closeAllConnections();
      await closed;
    },
  };
}

interface RouteParts {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly gate: ReaderGate;
  readonly source: FeedSource;
  readonly pages: PageServer;
  readonly readers: Set<FeedReader>;
}

async function route(parts: RouteParts): Promise<void> {
  const { request, response, gate, source, pages } = parts;
  const url = new URL(request.url ?? "/", "http://127.0.0.1");
  const isGet = request.method === "GET";
  if (request.method === "POST" && url.pathname === "/session") return admit(parts);
  if (isGet && pages.serve(url.pathname, response)) return;
  if (!gate.isAdmitted(request)) {
    response.setHeader("WWW-Authenticate", 'Bearer realm="skillhost inspector"');
    return refuse(response, 401, "INSPECTOR_TOKEN", "Open the address that skillhost printed: it contains the token.");
  }
  if (isGet && url.pathname === "/session") return send(response, {});
  if (isGet && url.pathname === "/feed") return url.searchParams.get("poll") === null ? read(parts, url) : poll(parts, url);
  if (isGet && url.pathname.startsWith("/blob/")) {
    const blob = source.blob(url.pathname.slice("/blob/".length));
    if (blob !== undefined) return serveBlob(blob, response);
    return refuse(response, 404, "BLOB_GONE", "This content is not kept any more. Make the call again.");
  }
  if (isGet && url.pathname.startsWith("/app/")) {
    const app = source.app?.(url.pathname.slice("/app/".length), url.searchParams.get("domains") === "1");
    if (app !== undefined) return serveApp(app, response);
    return refuse(response, 404, "APP_UNKNOWN", "This page is not open any more. Open it again.");
  }
  if (request.method === "POST" && url.pathname === "/request")
    return send(response, { result: await source.answer(await readBody(request)) });
  refuse(
    response,
    404,
    "INSPECTOR_PATH",
    "There is nothing at this path. The paths are /, /session, /feed, /request, /blob/<id> and /app/<id>.",
  );
}

/** Exchanges the token for a cookie, so that no other page can read it and the address need not keep it. */
async function admit({ request, response, gate }: RouteParts): Promise<void> {
  const body = await readBody(request);
  const cookie = gate.admit((body as { readonly token?: unknown } | null)?.token);
  if (cookie === undefined)
    return refuse(response, 401, "INSPECTOR_TOKEN", "This is not the token of this inspector. It changes with each start.");
  response.setHeader("Set-Cookie", cookie);
  send(response, {});
}

function read({ request, response, source, readers }: RouteParts, url: URL): void {
  if (readers.size >= maxReaders) {
    refuse(response, 429, "INSPECTOR_BUSY", `${maxReaders} readers are connected. Close a page of the inspector first.`);
    return;
  }
  response.writeHead(200, {
    "Content-Type": "text/event-stream",
    "Cache-Control": "no-store",
    // Proxies that buffer hold back an event stream.
    "X-Accel-Buffering": "no",
  });
  const reader = new FeedReader(response, source.log, () => source.snapshot());
  readers.add(reader);
  source.log.isRead = true;
  response.on("close", () => {
    readers.delete(reader);
    source.log.isRead = readers.size > 0;
  });
  reader.start(positionOf(url, request.headers["last-event-id"]));
}

/** One answer instead of a stream, for readers behind a proxy that holds streams back. They ask again with the position of the last message. */
function poll({ response, source }: RouteParts, url: URL): void {
  const position = positionOf(url, undefined);
  const { log } = source;
  const missed = position?.feed === log.feedId ? log.after(position.seq, maxPolled) : undefined;
  const texts = missed?.map(({ text: message }) => message) ?? [messageText("snapshot", log.last, Date.now(), source.snapshot())];
  const body = `{"messages":[${texts.join(",")}]}`;
  response.writeHead(200, { "Content-Type": "application/json", "Content-Length": Buffer.byteLength(body) }).end(body);
}

/** By the parameters, or by what an `EventSource` sends when it reconnects by itself. */
function positionOf(url: URL, lastEventId: string | string[] | undefined): ReadPosition | undefined {
  const feed = url.searchParams.get("feed");
  const given = typeof lastEventId === "string" ? lastEventId : url.searchParams.get("since");
  if (feed === null || given === null || !/^\d{1,15}$/.test(given)) return undefined;
  return { feed, seq: Number(given) };
}

const alwaysHeaders = {
  "Cache-Control": "no-store",
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Resource-Policy": "same-origin",
  "Referrer-Policy": "no-referrer",
  "X-Content-Type-Options": "nosniff",
  "X-Frame-Options": "DENY",
};

/** @throws HostError `INSPECTOR_BODY` */
async function readBody(request: IncomingMessage): Promise<unknown> {
  if (!/^application\/json\b/i.test(request.headers["content-type"] ?? ""))
    throw new HostError("INSPECTOR_BODY", "Send JSON, with the content type application/json.");
  const parts: Buffer[] = [];
  let size = 0;
  for await (const part of request as AsyncIterable<Buffer>) {
    size += part.length;
    if (size > maxBody) throw new HostError("INSPECTOR_BODY_SIZE", `The body is larger than ${maxBody} bytes.`);
    parts.push(part);
  }
  const body = parseJson(Buffer.concat(parts).toString("utf8"));
  if (isNestedTooDeep(body)) throw new HostError("INSPECTOR_BODY", "The body is nested too deep.");
  return body;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new HostError("INSPECTOR_BODY", `The body is not JSON: ${errorMessage(cause)}.`, { cause });
  }
}

function send(response: ServerResponse, value: object): void {
  const text = JSON.stringify(value);
  response.writeHead(200, { "Content-Type": "application/json", "Content-Length": Buffer.byteLength(text) }).end(text);
}

function refuse(response: ServerResponse, status: number, code: string, message: string): void {
  const text = JSON.stringify({ error: { code, message } });
  // What is left of the body is not read.
  response
    .writeHead(status, { "Content-Type": "application/json", "Content-Length": Buffer.byteLength(text), Connection: "close" })
    .end(text);
}

const statuses: Readonly<Record<string, number>> = {
  INSPECTOR_BODY_SIZE: 413,
  INSPECTOR_READ_ONLY: 403,
  INSPECTOR_BUSY: 429,
  INSPECTOR_METHOD: 404,
};

function statusOf(error: unknown): number {
  return error instanceof HostError ? (statuses[error.code] ?? 400) : 500;
}

function listen(server: ReturnType<typeof createServer>, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const fail = (cause: Error): void => {
      reject(
        new HostError("HTTP_LISTEN", `Cannot serve the inspector at port ${port} (${cause.message}). Choose another port.`, { cause }),
      );
    };
    server.once("error", fail).listen(port, "127.0.0.1", () => {
      server.off("error", fail);
      resolve((server.address() as AddressInfo).port);
    });
  });
}
