import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { serve as serveHono } from "@hono/node-server";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import express from "express";
import fastify from "fastify";
import { Hono } from "hono";
import { createMcpHandler, type McpHandler, type McpHandlerOptions } from "skillhost";
import { createTestHost, type TempSkill, type TestHost, tempSkill } from "skillhost/testing";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { approveAll } from "../../../src/tools/tool.ts";
import { listen } from "../../mcp/http-doubles.ts";
import { deferred, type Era, eras, initialize, modernRequest, skillDocument, textOf, toolModule } from "./serving-kit.ts";

const tools = (greeting: string): string =>
  toolModule(`[
  defineTool("greet", {
    description: "Greets.",
    parameters: { type: "object", properties: { name: { type: "string" } }, required: ["name"] },
    handler: ({ name }, { context }) => "${greeting} " + name + (context?.user ? " from " + context.user : ""),
  }),
  defineTool("wait", {
    description: "Waits until it is cancelled.",
    handler: (_args, { signal }, { progress }) => {
      progress({ progress: 1 });
      return new Promise((resolve) => signal.addEventListener("abort", () => { globalThis.mountedCallEnded?.(); resolve("cancelled"); }));
    },
  }),
]`);

interface Mounted {
  readonly skill: TempSkill;
  readonly test: TestHost;
  readonly handler: McpHandler;
}

async function mount(options: McpHandlerOptions = {}): Promise<Mounted> {
  const skill = tempSkill({ "SKILL.md": skillDocument("helper"), "tools/all.ts": tools("Hello") }, { name: "helper" });
  const test = await createTestHost({ skillDirectories: [skill.root] });
  await test.host.idle();
  const handler = createMcpHandler(test.host, { session: { onPermissionRequest: approveAll }, asksPermission: false, ...options });
  onTestFinished(async () => {
    await handler[Symbol.asyncDispose]();
    await test.close();
    skill[Symbol.dispose]();
  });
  return { skill, test, handler };
}

async function urlOf(server: Server): Promise<string> {
  if (!server.listening) await new Promise((resolve) => server.once("listening", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(() => resolve()));
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`;
}

const frameworks: Readonly<Record<string, (handler: McpHandler) => Promise<string>>> = {
  "node:http": async (handler) => (await listen((request, response) => void handler.node(request, response))).url,
  Express: (handler) => urlOf(express().all("/mcp", handler.node).listen(0, "127.0.0.1")),
  "Express with bodies that it has parsed": (handler) =>
    urlOf(express().use(express.json()).all("/mcp", handler.node).listen(0, "127.0.0.1")),
  Fastify: async (handler) => {
    const app = fastify();
    app.all("/mcp", (request, reply) => {
      reply.hijack();
      return handler.node(request.raw, reply.raw, request.body);
    });
    await app.listen({ port: 0, host: "127.0.0.1" });
    return urlOf(app.server);
  },
  Hono: (handler) => {
    const app = new Hono().all("/mcp", (context) => handler(context.req.raw));
    return urlOf(serveHono({ fetch: app.fetch, port: 0, hostname: "127.0.0.1" }) as Server);
  },
  // A route module of Next.js exports one function for each method, which gets a context as its second argument.
  "a route module": (handler) => {
    const route: Record<string, (request: Request, context: unknown) => Promise<Response>> = {
      GET: handler,
      POST: handler,
      DELETE: handler,
    };
    const fetch = (request: Request): Promise<Response> | Response =>
      route[request.method]?.(request, { params: Promise.resolve({}) }) ?? new Response(null, { status: 405 });
    return urlOf(serveHono({ fetch, port: 0, hostname: "127.0.0.1" }) as Server);
  },
};

async function connect(url: string, era: Era, setUp: (client: Client) => void = () => {}): Promise<Client> {
  const mode = era === "modern" ? { pin: "2026-07-28" } : "legacy";
  const client = new Client({ name: "test", version: "1.0.0" }, { versionNegotiation: { mode } });
  setUp(client);
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  onTestFinished(() => client.close());
  return client;
}

describe.each(Object.keys(frameworks))("mounted in %s", (name) => {
  test.each(eras)("a client of the %s era lists, calls and sees saved changes", async (era) => {
    const { skill, handler } = await mount();
    const url = await frameworks[name]!(handler);
    const changed = deferred();
    const client = await connect(url, era, (each) =>
      each.setNotificationHandler("notifications/tools/list_changed", () => changed.resolve()),
    );
    if (era === "modern") await client.listen({ toolsListChanged: true });
    expect((await client.listTools()).tools.map(({ name: tool }) => tool)).toEqual(["greet", "wait"]);
    expect(textOf(await client.callTool({ name: "greet", arguments: { name: "Ada" } }))).toBe("Hello Ada");
    skill.write("tools/all.ts", tools("Welcome").replace('"wait"', '"pause"'));
    await changed.promise;
    expect((await client.listTools()).tools.map(({ name: tool }) => tool)).toEqual(["greet", "pause"]);
    expect(textOf(await client.callTool({ name: "greet", arguments: { name: "Ada" } }))).toBe("Welcome Ada");
  });

  test.each(eras)("a call of the %s era is cancelled by its client", async (era) => {
    const { handler } = await mount();
    const client = await connect(await frameworks[name]!(handler), era);
    const ended = deferred();
    Object.assign(globalThis, { mountedCallEnded: ended.resolve });
    onTestFinished(() => void Reflect.deleteProperty(globalThis, "mountedCallEnded"));
    const stop = new AbortController();
    const call = client.callTool({ name: "wait", arguments: {} }, { signal: stop.signal, onprogress: () => stop.abort() });
    await expect(call).rejects.toThrow();
    await ended.promise;
  });

  test("invalid requests get the reason", async () => {
    const { handler } = await mount({ maxBodyBytes: 2_000 });
    const url = await frameworks[name]!(handler);
    const send = async (body: string, headers: Record<string, string> = {}): Promise<readonly [number, string]> => {
      const common = { "Content-Type": "application/json", Accept: "application/json, text/event-stream" };
      const response = await fetch(url, { method: "POST", headers: { ...common, ...headers }, body });
      return [response.status, await response.text()];
    };
    const long = JSON.stringify({ ...initialize, params: { ...initialize.params, padding: "x".repeat(3_000) } });
    expect(await send(long)).toEqual([413, expect.stringContaining("larger than 2000 bytes")]);
    expect(await send('{"jsonrpc":"2.0","id":1,"method":"tools/list"}')).toEqual([400, expect.stringContaining("Send initialize first")]);
    expect(await send(JSON.stringify(initialize), { Origin: "https://example.com" })).toEqual([403, expect.stringContaining("Origin")]);
    // The handler is as it was.
    expect((await (await connect(url, "legacy")).listTools()).tools).toHaveLength(2);
  });
});

test("a web page of an allowed origin may read responses and refusals", async () => {
  const { handler } = await mount({ allowedOrigins: ["app.example.com"], token: "secret" });
  const origin = "https://app.example.com";
  const preflight = { origin, "access-control-request-method": "POST", "access-control-request-headers": "authorization,content-type" };
  const answered = await handler(new Request("https://api.example.com/mcp", { method: "OPTIONS", headers: preflight }));
  expect([answered.status, answered.headers.get("access-control-allow-headers")]).toEqual([204, "authorization, content-type"]);
  const refused = await handler(new Request("https://api.example.com/mcp", { method: "POST", headers: { origin }, body: "{}" }));
  expect([refused.status, refused.headers.get("access-control-allow-origin")]).toEqual([401, origin]);
  for (const { body, headers } of [{ body: initialize, headers: {} }, modernRequest("tools/list", {})]) {
    const common = { origin, authorization: "Bearer secret", "content-type": "application/json" };
    const accept = "application/json, text/event-stream";
    const init = { method: "POST", headers: { ...common, accept, ...headers }, body: JSON.stringify(body) };
    const response = await handler(new Request("https://api.example.com/mcp", init));
    expect([response.status, response.headers.get("access-control-allow-origin")]).toEqual([200, origin]);
    await response.text();
  }
});

test("with allowed hosts, requests for other hosts are refused", async () => {
  const { handler } = await mount({ allowedHosts: ["api.example.com"] });
  const statusAt = async (host: string): Promise<number> => (await handler(new Request(`https://${host}/mcp`, { method: "GET" }))).status;
  expect(await statusAt("attacker.example.com")).toBe(403);
  expect(await statusAt("api.example.com")).not.toBe(403);
});

test("users of one host have handlers and contexts of their own", async () => {
  const { test: made, handler } = await mount();
  const session = { onPermissionRequest: approveAll, context: { user: "Grace" } };
  const forGrace = createMcpHandler(made.host, { session, asksPermission: false });
  onTestFinished(() => forGrace[Symbol.asyncDispose]());
  const { url } = await listen((request, response) => {
    void (request.url === "/grace" ? forGrace : handler).node(request, response);
  });
  for (const era of eras) {
    const [one, other] = [await connect(url, era), await connect(url.replace("/mcp", "/grace"), era)];
    const greet = { name: "greet", arguments: { name: "Ada" } };
    expect([textOf(await one.callTool(greet)), textOf(await other.callTool(greet))]).toEqual(["Hello Ada", "Hello Ada from Grace"]);
  }
});

test("a client that disconnects from a web server ends its call", async () => {
  const { handler } = await mount();
  const url = await frameworks["Hono"]!(handler);
  for (const era of eras) {
    const ended = deferred();
    Object.assign(globalThis, { mountedCallEnded: ended.resolve });
    onTestFinished(() => void Reflect.deleteProperty(globalThis, "mountedCallEnded"));
    const started = deferred();
    const client = await connect(url, era);
    const call = client.callTool({ name: "wait", arguments: {} }, { onprogress: () => started.resolve() });
    call.catch(() => {});
    await started.promise;
    if (era === "legacy") await (client.transport as StreamableHTTPClientTransport).terminateSession();
    else await client.close();
    await ended.promise;
  }
});

test("a body that another handler has read is reported", async () => {
  const error = vi.fn<(message: string, data?: object) => void>();
  const logger = { error, warning: error, info: () => {}, debug: () => {}, enabled: () => true };
  const { handler } = await mount({ logger });
  const request = new Request("http://localhost/mcp", { method: "POST", body: JSON.stringify(initialize) });
  await request.text();
  expect((await handler(request)).status).toBe(500);
  const drain: RequestListener = (incoming, outgoing) => void incoming.resume().on("end", () => void handler.node(incoming, outgoing));
  const server = createServer(drain).listen(0, "127.0.0.1");
  const headers = { "Content-Type": "application/json" };
  expect((await fetch(await urlOf(server), { method: "POST", headers, body: JSON.stringify(initialize) })).status).toBe(500);
  const messages = error.mock.calls.map(([, data]) => (data as { readonly error: Error }).error.message);
  expect(messages).toEqual([expect.stringContaining("already been read"), expect.stringContaining("already been read")]);
});

test("ready reports why the session cannot be opened, and a request logs it", async () => {
  const error = vi.fn<(message: string, data?: object) => void>();
  const logger = { error, warning: error, info: () => {}, debug: () => {}, enabled: () => true };
  const { handler } = await mount({ logger, session: { model: 7 as never } });
  await expect(handler.ready()).rejects.toThrow(/model/);
  expect((await handler(new Request("http://localhost/mcp", { method: "GET" }))).status).toBe(500);
  expect(error).toHaveBeenCalledWith("The session for MCP clients cannot be opened.", expect.anything());
});

test("a handler that has been disposed of ends its streams and refuses requests", async () => {
  const { handler } = await mount();
  const begun = await handler(
    new Request("http://localhost/mcp", {
      method: "POST",
      headers: { "content-type": "application/json", accept: "application/json, text/event-stream" },
      body: JSON.stringify(initialize),
    }),
  );
  await begun.text();
  const session = { "mcp-session-id": begun.headers.get("mcp-session-id")!, accept: "text/event-stream" };
  const stream = await handler(new Request("http://localhost/mcp", { headers: session }));
  await handler[Symbol.asyncDispose]();
  expect(await stream.text()).toBe("");
  expect((await handler(new Request("http://localhost/mcp", { headers: session }))).status).toBe(503);
  await expect(handler.ready()).rejects.toMatchObject({ code: "HOST_CLOSED" });
  const { url } = await listen((request, response) => void handler.node(request, response));
  expect((await fetch(url, { headers: session })).status).toBe(503);
});
