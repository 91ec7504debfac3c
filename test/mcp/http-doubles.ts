import { randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { toNodeHandler } from "@modelcontextprotocol/node";
import { McpServer as OldServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { SSEServerTransport } from "@modelcontextprotocol/sdk/server/sse.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { createMcpHandler, inputRequired, McpServer } from "@modelcontextprotocol/server";
import { onTestFinished } from "vitest";
import { z } from "zod";

export interface Listening {
  readonly url: string;
  readonly server: Server;
  /** The headers of every request so far. */
  readonly heard: IncomingMessage["headers"][];
}

/** An HTTP server on loopback that ends with the test. */
export async function listen(handle: RequestListener, path = "/mcp"): Promise<Listening> {
  const heard: IncomingMessage["headers"][] = [];
  const server = createServer((request, response) => {
    heard.push(request.headers);
    handle(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => stop(server));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}${path}`, server, heard };
}

export function stop(server: Server): Promise<void> {
  server.closeAllConnections();
  return new Promise((resolve) => server.close(() => resolve()));
}

const say = (value: unknown) => ({ content: [{ type: "text" as const, text: typeof value === "string" ? value : JSON.stringify(value) }] });
const who = {
  type: "object" as const,
  properties: { name: { type: "string" as const }, color: { type: "string" as const, default: "green" } },
};

/** A server of both eras, on the SDK's second generation. */
export function modernHandler(): RequestListener {
  const handler = createMcpHandler(() => {
    const server = new McpServer({ name: "modern", version: "2" }, { capabilities: { tools: { listChanged: true } } });
    server.registerTool("echo", { inputSchema: z.object({ text: z.string() }) }, ({ text }) => say(text));
    server.registerTool("confirm", { inputSchema: z.object({}) }, (_args, context) => {
      const answer = context.mcpReq.inputResponses?.["who"];
      if (answer !== undefined) return say(answer);
      return inputRequired({ inputRequests: { who: inputRequired.elicit({ message: "Who are you?", requestedSchema: who }) } });
    });
    server.registerTool("progress", { inputSchema: z.object({}) }, async (_args, context) => {
      const progressToken = context.mcpReq._meta?.progressToken as number;
      for (const progress of [1, 2, 3])
        await context.mcpReq.notify({ method: "notifications/progress", params: { progressToken, progress } });
      return say("done");
    });
    return server;
  });
  const handle = toNodeHandler(handler);
  // Its types and Node's differ in what exact optional types make of "absent".
  return (request, response) => void handle(request as never, response as never);
}

/** A server of the old era with sessions, on the SDK's first generation; `forget` ends its sessions silently. */
export function sessionHandler(): { readonly handle: RequestListener; forget(): void } {
  const sessions = new Map<string, StreamableHTTPServerTransport>();
  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const id = request.headers["mcp-session-id"];
    const known = typeof id === "string" ? sessions.get(id) : undefined;
    if (id !== undefined && known === undefined) return void response.writeHead(404).end("no such session");
    const transport =
      known ??
      new StreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        onsessioninitialized: (name) => void sessions.set(name, transport),
      });
    if (known === undefined) await oldServer().connect(transport as never);
    await transport.handleRequest(request, response);
  };
  return { handle: (request, response) => void handle(request, response), forget: () => sessions.clear() };
}

/** A server that only knows the transport of before 2025. */
export function sseHandler(): RequestListener {
  const sessions = new Map<string, SSEServerTransport>();
  return async (request, response) => {
    const url = new URL(request.url ?? "/", "http://localhost");
    if (url.pathname === "/messages")
      return void (await sessions.get(url.searchParams.get("sessionId") ?? "")?.handlePostMessage(request, response));
    if (request.method !== "GET") return void response.writeHead(405).end();
    const transport = new SSEServerTransport("/messages", response);
    sessions.set(transport.sessionId, transport);
    await oldServer().connect(transport);
  };
}

function oldServer(): OldServer {
  const server = new OldServer({ name: "old", version: "1" });
  server.registerTool("echo", { inputSchema: { text: z.string() } }, ({ text }) => say(text));
  server.registerTool("confirm", {}, async ({ requestId }) => {
    return say(await server.server.elicitInput({ message: "Who are you?", requestedSchema: who }, { relatedRequestId: requestId }));
  });
  server.registerTool("wait", {}, () => new Promise(() => {}));
  return server;
}
