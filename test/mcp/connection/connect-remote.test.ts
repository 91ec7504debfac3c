import type { RequestListener } from "node:http";
import { text } from "node:stream/consumers";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { HostError } from "../../../src/base/errors.ts";
import type { ServerAuth } from "../../../src/mcp/oauth/credentials.ts";
import { patience } from "../../slowness.ts";
import { callContext, connect, failure, recordingLog, remote, textOf, until } from "../connect-kit.ts";
import { listen, modernHandler, sessionHandler, sseHandler, stop } from "../http-doubles.ts";

const person = (sessionId: string) => callContext({ sessionId, answer: () => ({ action: "accept", content: { name: sessionId } }) });

/** A server written by hand: what it answers a request, as JSON. */
function answering(answer: (method: string, params: Record<string, unknown>) => unknown): RequestListener {
  return async (request, response) => {
    if (request.method !== "POST") return void response.writeHead(405).end();
    const body = JSON.parse(await text(request)) as { id?: number; method: string; params: Record<string, unknown> };
    if (body.id === undefined) return void response.writeHead(202).end();
    const result = answer(body.method, body.params);
    response
      .writeHead(200, { "content-type": "application/json" })
      .end(JSON.stringify({ jsonrpc: "2.0", id: body.id, ...(result as object) }));
  };
}

const initialized = { result: { protocolVersion: "2025-11-25", capabilities: { tools: {} }, serverInfo: { name: "h", version: "1" } } };
const unknownMethod = { error: { code: -32601, message: "Method not found" } };

describe("a remote server", () => {
  test("of both eras is spoken to in the newer, with its configured headers", async () => {
    const { url, heard } = await listen(modernHandler());
    const connection = await connect(remote(url, { headers: { "X-Key": "k1" } }));
    expect(connection).toMatchObject({ era: "modern", serverInfo: { name: "modern" } });
    expect((await connection.listTools()).map((tool) => tool["name"])).toEqual(["echo", "confirm", "progress"]);
    expect(await textOf(connection.callTool("echo", { text: "hi" }))).toBe("hi");
    expect(heard.every((headers) => headers["x-key"] === "k1")).toBe(true);
    const progress: number[] = [];
    await connection.callTool("progress", {}, { onProgress: (update) => progress.push(update.progress) });
    expect(progress).toEqual([1, 2, 3]);
  });

  test("with sessions of the old era is spoken to in that", async () => {
    const { url } = await listen(sessionHandler().handle);
    for (const prior of [undefined, { era: "legacy" } as const]) {
      const connection = await connect(remote(url), { prior });
      expect(connection.era).toBe("legacy");
      expect(await textOf(connection.callTool("echo", { text: "hi" }))).toBe("hi");
    }
  });

  test("that only knows server-sent events is found by falling back, or when configured so", async () => {
    const { url } = await listen(sseHandler(), "/sse");
    for (const type of ["http", "sse"] as const) {
      const connection = await connect(remote(url, { type, headers: { "X-Key": "k1" } }));
      expect(connection).toMatchObject({ era: "legacy", serverInfo: { name: "old" } });
      expect(await textOf(connection.callTool("echo", { text: type }))).toBe(type);
    }
  });

  test("that requires sign-in fails with MCP_UNAUTHORIZED", async () => {
    const { url } = await listen((_request, response) => response.writeHead(401, { "www-authenticate": "Bearer" }).end());
    for (const type of ["http", "sse"] as const) expect((await failure(connect(remote(url, { type })))).code).toBe("MCP_UNAUTHORIZED");
    expect((await failure(connect(remote(url), { prior: { era: "legacy" } }))).code).toBe("MCP_UNAUTHORIZED");
  });

  test("that does not exist, has no valid address, or sends invalid answers fails with a code of its own", async () => {
    const { url, server } = await listen((_request, response) => response.writeHead(200, { "content-type": "text/html" }).end("<html>"));
    expect((await failure(connect(remote(url)))).code).toBe("MCP_ANSWER");
    expect((await failure(connect(remote("ftp://example.test/")))).code).toBe("MCP_NOT_STARTED");
    await stop(server);
    const gone = await failure(connect(remote(url)));
    expect(gone.code).toBe("MCP_CLOSED");
    expect(gone.message).toContain("ECONNREFUSED");
  });

  test("that redirects to another host is not followed, and its headers stay at home", async () => {
    const thief = await listen((_request, response) => response.writeHead(200).end("{}"));
    const { url } = await listen((_request, response) =>
      response.writeHead(307, { location: thief.url.replace("127.0.0.1", "localhost") }).end(),
    );
    for (const type of ["http", "sse"] as const) {
      expect((await failure(connect(remote(url, { type, headers: { "X-Key": "k1" } })))).code).toMatch(/MCP_ANSWER|MCP_CLOSED/);
    }
    expect(thief.heard).toEqual([]);
  });

  test("that falls over the question for its protocol is spoken to in the old way", async () => {
    const handle = answering((method) => (method === "initialize" ? initialized : { result: { tools: [{ name: "a", inputSchema: {} }] } }));
    const { url } = await listen((request, response) => {
      if (request.headers["mcp-method"] === "server/discover") return void response.writeHead(500).end("boom");
      void handle(request, response);
    });
    const connection = await connect(remote(url));
    expect(await connection.listTools()).toEqual([{ name: "a", inputSchema: {} }]);
  });

  test("that is silent is given up", async () => {
    const { url } = await listen(() => {});
    expect((await failure(connect(remote(url), { timeout: 300 }))).code).toBe("MCP_TIMEOUT");
    const controller = new AbortController();
    const connecting = failure(connect(remote(url), { signal: controller.signal, onMessage: () => controller.abort() }));
    expect((await connecting).code).toBe("MCP_CANCELLED");
  });
});

describe("a remote server in use", () => {
  test("that has forgotten the session ends the connection, and the call certainly did not run", async () => {
    const sessions = sessionHandler();
    const { url } = await listen(sessions.handle);
    const connection = await connect(remote(url));
    sessions.forget();
    expect((await failure(connection.callTool("echo", { text: "hi" }))).code).toBe("MCP_NOT_RUN");
    expect(await connection.ended).toMatchObject({ reason: "lost" });
  });

  test.each(["http", "sse"] as const)("that goes away in the midst of a call settles it at once (%s)", async (type) => {
    const { url, server } = await listen(type === "http" ? sessionHandler().handle : sseHandler(), type === "http" ? "/mcp" : "/sse");
    const sent: string[] = [];
    const connection = await connect(remote(url, { type }), { onMessage: (_direction, message) => sent.push(JSON.stringify(message)) });
    const waiting = failure(connection.callTool("wait", {}));
    await until(() => sent.some((line) => line.includes("tools/call")), "the call is sent");
    await stop(server);
    expect((await waiting).code).toMatch(/MCP_CLOSED|MCP_NOT_RUN/);
    if (type === "sse") await connection.ended;
    expect((await failure(connection.callTool("echo", { text: "x" }))).code).toBe("MCP_NOT_RUN");
    expect(await connection.ended).toMatchObject({ reason: "lost" });
  });

  test("that goes away while the user is asked leaves no timer behind when its connection is disposed of", async () => {
    const { url, server } = await listen(modernHandler());
    const connection = await connect(remote(url));
    let isAsked = false;
    const context = callContext({
      answer: () => {
        isAsked = true;
        return new Promise(() => {});
      },
    });
    void connection.callTool("confirm", {}, { context }).catch(() => {});
    await until(() => isAsked, "the user is asked");
    // Only intervals of this test: what else the process waits for does not count.
    const intervals = new Set<unknown>();
    const { setInterval: start, clearInterval: end } = globalThis;
    vi.spyOn(globalThis, "setInterval").mockImplementation(((...args: Parameters<typeof start>) => {
      const timer = start(...args);
      intervals.add(timer);
      return timer;
    }) as typeof start);
    vi.spyOn(globalThis, "clearInterval").mockImplementation((timer) => {
      intervals.delete(timer);
      end(timer);
    });
    onTestFinished(() => void vi.restoreAllMocks());
    await stop(server);
    // The first request may still go out over a connection that is kept open.
    for (const codes of [["MCP_CLOSED", "MCP_NOT_RUN"], ["MCP_NOT_RUN"]])
      expect(codes).toContain((await failure(connection.callTool("echo", { text: "x" }))).code);
    expect(intervals.size).toBeGreaterThan(0);
    await connection[Symbol.asyncDispose]();
    expect(intervals.size).toBe(0);
  });

  test("that sends more than is read fails that call, however it sends it", async () => {
    const big = { result: { content: [{ type: "text", text: "x".repeat(300_000) }] } };
    const handle = answering((method) => (method === "initialize" ? initialized : method === "tools/call" ? big : unknownMethod));
    const { url } = await listen(handle);
    const connection = await connect(remote(url), { maxMessageBytes: 100_000 });
    const error = await failure(connection.callTool("any", {}));
    expect(error).toMatchObject({ code: "MCP_ANSWER" });
    expect(error.message).toContain("100000 bytes");
    const sessions = await listen(sessionHandler().handle);
    const streaming = await connect(remote(sessions.url), { maxMessageBytes: 100_000 });
    expect((await failure(streaming.callTool("echo", { text: "x".repeat(200_000) }))).code).toMatch(/MCP_CLOSED|MCP_ANSWER/);
    for (let count = 0; count < 5; count++) await streaming.callTool("echo", { text: "x".repeat(60_000) });
  });

  test("asks the session that made the call, with several sessions on one connection, in both eras", async () => {
    const expected = (name: string) => ({ action: "accept", content: { name, color: "green" } });
    for (const handle of [sessionHandler().handle, modernHandler()]) {
      const connection = await connect(remote((await listen(handle)).url));
      const ask = async (name: string): Promise<unknown> =>
        JSON.parse(await textOf(connection.callTool("confirm", {}, { context: person(name) })));
      expect(await Promise.all(["anna", "bert", "cleo"].map(ask))).toEqual([expected("anna"), expected("bert"), expected("cleo")]);
    }
  });

  test("has arguments mirrored in headers; tools that annotate them wrongly are ignored and reported", async () => {
    const seen: unknown[] = [];
    const good = { name: "good", inputSchema: { type: "object", properties: { region: { type: "string", "x-mcp-header": "Region" } } } };
    const bad = { name: "bad", inputSchema: { type: "object", properties: { n: { type: "number", "x-mcp-header": "N" } } } };
    const results: Record<string, unknown> = {
      "server/discover": { supportedVersions: ["2026-07-28"], capabilities: { tools: {} }, ttlMs: 0, cacheScope: "private" },
      "tools/list": { tools: [good, bad] },
      "tools/call": { content: [] },
    };
    const handle = answering((method) => ({ result: { resultType: "complete", ...(results[method] as object) } }));
    const { url } = await listen((request, response) => {
      seen.push(request.headers["mcp-param-region"]);
      void handle(request, response);
    });
    const found: string[] = [];
    const connection = await connect(remote(url), { onDiagnostic: ({ code, message }) => found.push(`${code} ${message}`) });
    expect(await connection.listTools()).toEqual([good]);
    expect(found).toEqual([expect.stringMatching(/^MCP_TOOL_HEADER_INVALID Tool bad /)]);
    await connection.callTool("good", { region: "Zürich" }, { definition: good });
    expect(seen.at(-1)).toBe(`=?base64?${Buffer.from("Zürich").toString("base64")}?=`);
  });

  test("takes a hundred calls on one connection without a warning of the runtime", async () => {
    const { url } = await listen(modernHandler());
    const { log, lines } = recordingLog();
    const connection = await connect(remote(url), { log });
    const { signal } = new AbortController();
    for (let count = 0; count < 100; count += 20) {
      await Promise.all(Array.from({ length: 20 }, () => connection.callTool("echo", { text: "x" }, { signal })));
    }
    expect(lines).toEqual([]);
  });

  test("is given what signs its requests; while a person signs in, no time runs out", async () => {
    const handle = answering((method) =>
      method === "initialize" ? initialized : method === "tools/call" ? { result: { content: [] } } : unknownMethod,
    );
    const { url, heard } = await listen((request, response) => void handle(request, response));
    const waiters = new Set<(isWaiting: boolean) => void>();
    const wait = async (milliseconds: number): Promise<void> => {
      for (const notify of waiters) notify(true);
      await new Promise((resolve) => setTimeout(resolve, milliseconds));
      for (const notify of waiters) notify(false);
    };
    let pause = patience(400);
    const auth: ServerAuth = {
      provider: { token: async () => "t1" },
      wrapFetch: (base) => async (target, init) => {
        await wait(pause);
        return await base(target, init);
      },
      onWaiting: (listener) => {
        waiters.add(listener);
        return { [Symbol.dispose]: () => void waiters.delete(listener) };
      },
    };
    const connection = await connect(remote(url), { auth, timeout: patience(300), prior: { era: "legacy" } });
    await connection.callTool("any", {}, { timeout: patience(300) });
    expect(heard.map((headers) => headers.authorization)).toContain("Bearer t1");
    pause = 0;
    await connection[Symbol.asyncDispose]();
    expect(waiters.size).toBe(0);
  });

  test("passes on the reason why no user is signed in", async () => {
    const { url } = await listen((_request, response) => response.writeHead(401).end());
    const reason = new HostError("MCP_UNAUTHORIZED", "Run: skillhost login peer");
    const provider = { token: async () => undefined, onUnauthorized: () => Promise.reject(reason) };
    const auth: ServerAuth = { provider, wrapFetch: (base) => base, onWaiting: () => ({ [Symbol.dispose]() {} }) };
    for (const type of ["http", "sse"] as const) expect(await failure(connect(remote(url, { type }), { auth }))).toBe(reason);
  });
});
