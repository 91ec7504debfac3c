import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

interface Message {
  readonly id?: number;
  readonly method: string;
  readonly params?: { readonly protocolVersion?: string };
}

/** A Streamable HTTP server with sessions, which it can forget as one that was restarted has. */
export class ForgetfulServer implements AsyncDisposable {
  readonly #http = createServer((request, response) => void this.#answer(request, response));
  readonly #sessions = new Set<string>();
  /** The calls that it ran. */
  calls = 0;
  sessionsMade = 0;

  async listen(): Promise<string> {
    this.#http.listen(0, "127.0.0.1");
    await once(this.#http, "listening");
    return `http://127.0.0.1:${(this.#http.address() as AddressInfo).port}/mcp`;
  }

  forgetSessions(): void {
    this.#sessions.clear();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#http.closeAllConnections();
    this.#http.close();
    await once(this.#http, "close");
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.method !== "POST") return void response.writeHead(405).end();
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const message = JSON.parse(Buffer.concat(chunks).toString()) as Message;
    const session = request.headers["mcp-session-id"];
    if (message.method === "initialize") return this.#send(response, message, this.#makeSession());
    // What the specification has for a session that the server does not know.
    if (typeof session !== "string" || !this.#sessions.has(session)) return void response.writeHead(session ? 404 : 400).end();
    if (message.id === undefined) return void response.writeHead(202).end();
    this.#send(response, message);
  }

  #makeSession(): Record<string, string> {
    const id = randomUUID();
    this.#sessions.add(id);
    this.sessionsMade++;
    return { "mcp-session-id": id };
  }

  #send(response: ServerResponse, { id, method, params }: Message, headers: Record<string, string> = {}): void {
    const results: Record<string, () => object> = {
      initialize: () => ({
        protocolVersion: params?.protocolVersion,
        capabilities: { tools: {} },
        serverInfo: { name: "forgetful", version: "1" },
      }),
      "tools/list": () => ({ tools: [{ name: "count", inputSchema: { type: "object" } }] }),
      "tools/call": () => ({ content: [{ type: "text", text: String(++this.calls) }] }),
    };
    const result = results[method]?.();
    const outcome = result === undefined ? { error: { code: -32601, message: "Method not found" } } : { result };
    response.writeHead(200, { "content-type": "application/json", ...headers }).end(JSON.stringify({ jsonrpc: "2.0", id, ...outcome }));
  }
}
