import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import type { Browser, Page } from "playwright-core";
import { onTestFinished } from "vitest";
import type { Inspector } from "../../../src/host/inspection.ts";
import type { FeedEvent, FeedMessage, FeedSnapshot, FeedTool } from "../../../src/servers/inspector/feed-messages.ts";
import { serveFeed } from "../../../src/servers/inspector/inspector-server.ts";
import { MessageLog } from "../../../src/servers/inspector/message-log.ts";
import { builtPage, openPage } from "./browser-kit.ts";

/** What the page shows of a feed that a test writes: the server and the page are the real ones. */
export interface ShownFeed {
  readonly inspector: Inspector;
  readonly page: Page;
  readonly complaints: readonly string[];
  readonly log: MessageLog;
  /** What the next reader gets first. */
  snapshot: FeedSnapshot;
  send<T extends FeedMessage["type"]>(type: T, body: object): void;
}

interface FeedParts {
  readonly snapshot?: Partial<FeedSnapshot>;
  readonly answer?: (request: unknown) => Promise<unknown>;
  /** Where the page is opened. Default: at the server itself. */
  readonly through?: (inspector: Inspector) => Promise<string>;
  readonly prepare?: (page: Page) => Promise<void>;
}

export async function openFeed(browser: Browser, { snapshot, answer, through, prepare }: FeedParts = {}): Promise<ShownFeed> {
  let log: MessageLog | undefined;
  const feed: { snapshot: FeedSnapshot | undefined } = { snapshot: undefined };
  const inspector = await serveFeed(
    (onAppended) => {
      log = new MessageLog(onAppended);
      feed.snapshot = { ...emptySnapshot(log.feedId), ...snapshot };
      return {
        log,
        snapshot: () => JSON.stringify(feed.snapshot),
        answer: answer ?? (() => Promise.resolve({})),
        blob: () => undefined,
      };
    },
    { port: 0, pageFolder: builtPage() },
  );
  onTestFinished(() => inspector[Symbol.asyncDispose]());
  const { page, complaints } = await openPage(browser);
  await prepare?.(page);
  const address = new URL(inspector.url);
  await page.goto(through === undefined ? address.href : `${await through(inspector)}${address.hash}`);
  return {
    inspector,
    page,
    complaints,
    log: log!,
    get snapshot() {
      return feed.snapshot!;
    },
    set snapshot(next) {
      feed.snapshot = next;
    },
    send: (type, body) => void log!.append(type, () => body),
  };
}

function emptySnapshot(feed: string): FeedSnapshot {
  return {
    version: 1,
    feed,
    host: { version: "0.0.0", node: process.version, pid: 1, workingDirectory: "/project", platform: "linux" },
    isReadOnly: false,
    isExport: false,
    skills: [],
    tools: [],
    diagnostics: [],
    sessions: [],
    asks: [],
    servers: [],
    traffic: [],
    pins: [],
    reloads: [],
    calls: [],
    events: [],
  };
}

export function feedTool(name: string, description = `Does ${name}.`): FeedTool {
  return {
    id: `plugin/many/${name}`,
    definition: { name, description },
    kind: "plugin",
    source: "many",
    state: "wins",
    rule: "It is the only one.",
    signature: "0".repeat(64),
    isReadOnly: true,
  };
}

export function feedEvent(number: number): { readonly sessionId: string; readonly event: FeedEvent } {
  const id = String(number).padStart(8, "0");
  const timestamp = new Date(1_700_000_000_000 + number).toISOString();
  return {
    sessionId: "11111111-session",
    event: { id, type: "assistant.message", timestamp, parentId: null, data: { content: `message ${id}` } },
  };
}

type Mode = "passes" | "holds streams back" | "does not answer" | "is down";

/** A proxy between the page and the inspector, as some companies have one. The inspector sees its own address in the requests. */
export class BetweenProxy {
  readonly #server = createServer((incoming, outgoing) => this.#forward(incoming, outgoing));
  readonly #sockets = new Set<Socket>();
  readonly #port: number;
  readonly queries: string[] = [];
  /** How many requests have come. */
  asked = 0;
  mode: Mode = "passes";

  private constructor(port: number) {
    this.#port = port;
    this.#server.on("connection", (socket) => {
      this.#sockets.add(socket);
      socket.on("close", () => this.#sockets.delete(socket));
    });
  }

  /** Returns the proxy and its address. */
  static async open({ port }: Inspector): Promise<{ readonly proxy: BetweenProxy; readonly url: string }> {
    const proxy = new BetweenProxy(port);
    await new Promise<void>((resolve) => {
      proxy.#server.listen(0, "127.0.0.1", resolve);
    });
    onTestFinished(() => {
      proxy.cut();
      proxy.#server.close();
    });
    return { proxy, url: `http://127.0.0.1:${(proxy.#server.address() as AddressInfo).port}/` };
  }

  /** Ends every connection. */
  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  #forward(incoming: IncomingMessage, outgoing: ServerResponse): void {
    if (this.mode === "is down") return void incoming.socket.destroy();
    this.asked++;
    if (this.mode === "does not answer") return;
    const isFeed = incoming.url?.startsWith("/feed") === true;
    if (isFeed) this.queries.push(incoming.url!);
    const host = `127.0.0.1:${this.#port}`;
    const { origin, ...headers } = incoming.headers;
    const sent = request({
      host: "127.0.0.1",
      port: this.#port,
      method: incoming.method,
      path: incoming.url,
      headers: { ...headers, host, ...(origin === undefined ? {} : { origin: `http://${host}` }) },
    });
    sent.on("error", () => outgoing.destroy());
    outgoing.on("close", () => sent.destroy());
    sent.on("response", (response) => {
      // It waits for an end that a stream does not have.
      if (this.mode === "holds streams back" && response.headers["content-type"] === "text/event-stream") return void response.resume();
      outgoing.writeHead(response.statusCode!, response.headers);
      response.pipe(outgoing);
    });
    incoming.pipe(sent);
  }
}
