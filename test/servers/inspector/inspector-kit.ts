import { onTestFinished } from "vitest";
import { silentLogger } from "../../../src/base/logger.ts";
import { createHost } from "../../../src/host/create-host.ts";
import type { Host } from "../../../src/host/host.ts";
import type { HostOptions } from "../../../src/host/host-options.ts";
import type { Inspector, InspectorOptions } from "../../../src/host/inspection.ts";
import type { FeedMessage, FeedRequests } from "../../../src/servers/inspector/feed-messages.ts";
import { serveInspector } from "../../../src/servers/inspector/serve-inspector.ts";
import { emptyFolder } from "../../io/temp-folder.ts";
import { type Files, tempFolder } from "../../skills/kit.ts";

export type Message<T extends FeedMessage["type"]> = Extract<FeedMessage, { readonly type: T }>;

/** A reader of a feed over HTTP, as a program would read it. */
export class TestReader {
  readonly seen: FeedMessage[] = [];
  readonly #controller = new AbortController();
  readonly #waiting = new Set<() => void>();
  isEnded = false;

  constructor(inspector: Inspector, query = "") {
    void this.#read(inspector, query)
      .catch(() => {
        // The server or the test ended the connection.
      })
      .finally(() => {
        this.isEnded = true;
        for (const wake of this.#waiting) wake();
      });
  }

  /** The first message of a type that fits, which may have come before. */
  async next<T extends FeedMessage["type"]>(type: T, fits: (message: Message<T>) => boolean = () => true): Promise<Message<T>> {
    for (;;) {
      const found = this.seen.find((message): message is Message<T> => message.type === type && fits(message as Message<T>));
      if (found !== undefined) return found;
      if (this.isEnded) throw new Error(`The feed ended without ${type}; it had ${this.seen.map((each) => each.type).join(", ")}.`);
      await new Promise<void>((resolve) => {
        this.#waiting.add(resolve);
      });
    }
  }

  close(): void {
    this.#controller.abort();
  }

  async #read({ port, token }: Inspector, query: string): Promise<void> {
    const headers = { Authorization: `Bearer ${token}` };
    const response = await fetch(`http://127.0.0.1:${port}/feed${query}`, { headers, signal: this.#controller.signal });
    let rest = "";
    const decoder = new TextDecoder();
    for await (const chunk of response.body!) {
      const events = (rest + decoder.decode(chunk as Uint8Array, { stream: true })).split("\n\n");
      rest = events.pop()!;
      for (const event of events) {
        const data = event.split("\n").find((line) => line.startsWith("data: "));
        if (data !== undefined) this.seen.push(JSON.parse(data.slice(6)) as FeedMessage);
      }
      for (const wake of this.#waiting) wake();
      this.#waiting.clear();
    }
  }
}

export interface InspectedHost {
  readonly host: Host;
  readonly folder: string;
  readonly inspector: Inspector;
  read(query?: string): TestReader;
  /** The result of a request. Throws `<code>: <message>` for an error. */
  request<M extends keyof FeedRequests>(method: M, params: FeedRequests[M]["params"]): Promise<FeedRequests[M]["result"]>;
}

export async function openInspected(files: Files, hostOptions: HostOptions = {}, options: InspectorOptions = {}): Promise<InspectedHost> {
  const folder = tempFolder(files);
  const host = await createHost({
    skillDirectories: [`${folder}/skills`],
    plugins: [],
    watch: false,
    logger: silentLogger,
    workingDirectory: folder,
    approvalsDirectory: emptyFolder(),
    ...hostOptions,
  });
  const inspector = await serveInspector(host, options);
  const readers: TestReader[] = [];
  onTestFinished(async () => {
    for (const reader of readers) reader.close();
    await inspector[Symbol.asyncDispose]();
    await host.close();
  });
  return {
    host,
    folder,
    inspector,
    read(query) {
      const reader = new TestReader(inspector, query);
      readers.push(reader);
      return reader;
    },
    async request(method, params) {
      const response = await sendRequest(inspector, { method, params });
      const answer = (await response.json()) as {
        readonly result?: unknown;
        readonly error?: { readonly code: string; readonly message: string };
      };
      if (answer.error !== undefined) throw new Error(`${answer.error.code}: ${answer.error.message}`);
      return answer.result as never;
    },
  };
}

export function sendRequest({ port, token }: Inspector, body: unknown, headers: Readonly<Record<string, string>> = {}): Promise<Response> {
  return fetch(`http://127.0.0.1:${port}/request`, {
    method: "POST",
    headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json", ...headers },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
}
