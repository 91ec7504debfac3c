import { type IncomingHttpHeaders, IncomingMessage, request, ServerResponse } from "node:http";
import { connect, Socket } from "node:net";
import { serveMcp } from "skillhost";
import { createTestHost } from "skillhost/testing";
import { describe, expect, test } from "vitest";
import { isLoopback } from "../../../src/io/net/connection-gate.ts";
import { createHttpGuard } from "../../../src/servers/http/http-guard.ts";
import { answerOf, authorization, deferred, eras, initialize, modernRequest, post, serveSkill, textOf, toolModule } from "./serving-kit.ts";

/** Sends headers that fetch would not let through. */
function send(url: string, headers: Readonly<Record<string, string>>, method = "POST"): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    const all = { "Content-Type": "application/json", Accept: "application/json, text/event-stream", ...authorization(url), ...headers };
    const sent = request(url, { method, headers: all }, (response) => {
      let body = "";
      response.setEncoding("utf8").on("data", (text) => {
        body += text;
        // An event stream ends when the session does.
        if (response.headers["content-type"]?.includes("event-stream")) response.destroy();
      });
      response.on("close", () => resolve({ status: response.statusCode ?? 0, body }));
    });
    sent.on("error", reject).end(JSON.stringify(initialize));
  });
}

/** Sends a request as a browser does, with nothing that is not given. */
function raw(url: string, method: string, headers: Readonly<Record<string, string>>, body?: object) {
  return new Promise<{ readonly status: number; readonly headers: IncomingHttpHeaders }>((resolve, reject) => {
    const all =
      body === undefined ? headers : { "Content-Type": "application/json", Accept: "application/json, text/event-stream", ...headers };
    const sent = request(url, { method, headers: all }, (response) => {
      resolve({ status: response.statusCode ?? 0, headers: response.headers });
      response.destroy();
    });
    sent.on("error", reject).end(body && JSON.stringify(body));
  });
}

test.each([
  ["nested too deeply", `{"a":${"[".repeat(100_000)}1${"]".repeat(100_000)}}`, 400, "levels deep"],
  ["of too many values", `{"a":[${Array(600_000).fill("{}").join()}]}`, 413, "values"],
])("a body %s is refused before anything follows it, in both eras", async (_, params, status, why) => {
  await using served = await serveSkill({});
  for (const era of [{}, { "MCP-Protocol-Version": "2026-07-28" }] as Readonly<Record<string, string>>[]) {
    const response = await fetch(served.face.url, {
      method: "POST",
      headers: {
        "Content-Type": "application/json",
        Accept: "application/json, text/event-stream",
        ...authorization(served.face.url),
        ...era,
      },
      body: `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${params}}`,
    });
    expect([response.status, await response.text()]).toEqual([status, expect.stringContaining(why)]);
  }
});

test("pages of other sites are turned away by Host and Origin, whichever era they speak", async () => {
  await using served = await serveSkill({});
  const { url } = served.face;
  const { host } = new URL(url);
  for (const headers of [
    { Host: "evil.example.com" },
    { Host: `evil.example.com:${new URL(url).port}` },
    { Host: "localhost@evil.example.com" },
    { Origin: "http://evil.example.com" },
    { Origin: "null" },
    { Origin: "http://localhost.evil.example.com" },
    { Origin: "file://localhost" },
  ]) {
    const { status, body } = await send(url, { Host: host, ...headers } as Record<string, string>);
    expect([headers, status]).toEqual([headers, 403]);
    expect(body).not.toContain("evil");
  }
  for (const headers of [{ Host: host }, { Host: "localhost" }, { Host: "[::1]:80", Origin: "http://localhost:6274" }])
    expect((await send(url, headers as Record<string, string>)).status).toBe(200);
});

test("names that are allowed beside those of the loopback get in", async () => {
  await using served = await serveSkill({}, { http: { allowedHosts: ["tools.example.com"], allowedOrigins: ["app.example.com"] } });
  const { url } = served.face;
  expect((await send(url, { Host: "TOOLS.example.com:8080", Origin: "https://app.example.com" })).status).toBe(200);
  expect((await send(url, { Host: "other.example.com" })).status).toBe(403);
});

describe("pages of hosts that are allowed", () => {
  const origin = "https://app.example.com";
  const http = { token: "a-secret-of-ours", allowedOrigins: ["app.example.com"] };
  const preflight = (url: string, headers: Record<string, string> = {}) =>
    raw(url, "OPTIONS", { Origin: origin, "Access-Control-Request-Method": "POST", ...headers });

  test("hear before a request that they may send it, without the token that browsers do not send then", async () => {
    await using served = await serveSkill({}, { http });
    const asked = "authorization,content-type,mcp-protocol-version, Mcp-Session-Id, mcp-param-city, x-forwarded-for";
    const { status, headers } = await preflight(served.face.url, { "Access-Control-Request-Headers": asked });
    expect(status).toBe(204);
    expect(headers).toMatchObject({
      "access-control-allow-origin": origin,
      "access-control-allow-methods": "GET, POST, DELETE",
      "access-control-allow-headers": "authorization, content-type, mcp-protocol-version, mcp-session-id, mcp-param-city",
      vary: "Origin",
    });
    expect(headers).not.toHaveProperty("access-control-allow-private-network");
    expect(headers).not.toHaveProperty("access-control-allow-credentials");
    const ofNetwork = await preflight(served.face.url, { "Access-Control-Request-Private-Network": "true" });
    expect(ofNetwork.headers).toMatchObject({ "access-control-allow-private-network": "true" });
  });

  test("may read the answers, with the session's number and the reason of a refusal", async () => {
    await using served = await serveSkill({}, { http });
    const { url } = served.face;
    const legacy = await raw(url, "POST", { Origin: origin, Authorization: "Bearer a-secret-of-ours" }, initialize);
    expect([legacy.status, legacy.headers["access-control-allow-origin"]]).toEqual([200, origin]);
    expect(legacy.headers["mcp-session-id"]).toBeDefined();
    const exposed = String(legacy.headers["access-control-expose-headers"]).toLowerCase().split(", ");
    expect(exposed).toEqual(expect.arrayContaining(["mcp-session-id", "mcp-protocol-version", "www-authenticate"]));
    const modern = modernRequest("tools/list", {});
    const answer = await raw(url, "POST", { ...modern.headers, Origin: origin, Authorization: "Bearer a-secret-of-ours" }, modern.body);
    expect([answer.status, answer.headers["access-control-allow-origin"]]).toEqual([200, origin]);
    const refused = await raw(url, "POST", { Origin: origin, Authorization: "Bearer wrong" }, initialize);
    expect([refused.status, refused.headers["access-control-allow-origin"]]).toEqual([401, origin]);
    const lost = await raw(`${url}/nothing`, "POST", { Origin: origin, Authorization: "Bearer a-secret-of-ours" }, initialize);
    expect([lost.status, lost.headers["access-control-allow-origin"]]).toEqual([404, origin]);
  });

  test("are the only ones: others hear nothing of it, and a program's OPTIONS needs the token", async () => {
    await using served = await serveSkill({}, { http });
    const { url } = served.face;
    for (const other of ["https://evil.example.com", "https://app.example.com.evil.example.com", "null"]) {
      const { status, headers } = await preflight(url, { Origin: other });
      expect([other, status]).toEqual([other, 403]);
      expect(Object.keys(headers).filter((name) => name.startsWith("access-control-"))).toEqual([]);
    }
    expect((await raw(url, "OPTIONS", {})).status).toBe(401);
    expect((await raw(url, "OPTIONS", { Origin: origin })).status).toBe(401);
    const noOrigin = await raw(url, "POST", { Authorization: "Bearer a-secret-of-ours" }, initialize);
    expect(Object.keys(noOrigin.headers).filter((name) => name.startsWith("access-control-"))).toEqual([]);
  });
});

test("without the token nothing is answered but how to get in", async () => {
  await using served = await serveSkill({}, { http: { token: "a-secret-of-ours" } });
  const { url } = served.face;
  const none = await fetch(url, { method: "POST" });
  expect([none.status, none.headers.get("www-authenticate")]).toEqual([401, 'Bearer realm="skillhost"']);
  for (const Authorization of ["Bearer a-secret-of-our", "Bearer a-secret-of-ours-", "Basic a-secret-of-ours", "Bearer", "bearer  "]) {
    const { status, headers } = await post(url, initialize, { Authorization });
    expect([Authorization, status]).toEqual([Authorization, 401]);
    expect(headers.get("www-authenticate")).toContain("Bearer");
  }
  expect((await post(url, initialize, { Authorization: "Bearer a-secret-of-ours" })).status).toBe(200);
});

test.each(["0.0.0.0", "127.0.0.1", "::1", "localhost"])("at %s a token is made up where none is given", async (host) => {
  await using open = await createTestHost();
  const face = await serveMcp(open.host, { transport: "http", host, port: 0 });
  try {
    expect(face.token).toMatch(/^[\w-]{43}$/);
    const url = face.url.replace("0.0.0.0", "127.0.0.1");
    const modern = modernRequest("tools/list", {});
    const right = { Authorization: `Bearer ${face.token}` };
    expect((await post(url, initialize)).status).toBe(401);
    expect((await post(url, initialize, right)).status).toBe(200);
    expect((await post(url, modern.body, modern.headers)).status).toBe(401);
    expect((await post(url, modern.body, { ...modern.headers, ...right })).status).toBe(200);
  } finally {
    await face[Symbol.asyncDispose]();
  }
});

test("only a loopback address can be served without a token", async () => {
  await using open = await createTestHost();
  for (const host of ["0.0.0.0", "::", ""])
    await expect(serveMcp(open.host, { transport: "http", host, port: 0, token: false })).rejects.toMatchObject({ code: "HTTP_TOKEN" });
  await using face = await serveMcp(open.host, { transport: "http", port: 0, token: false });
  expect(face.token).toBeUndefined();
  expect((await post(face.url, initialize)).status).toBe(200);
});

describe("connections that say nothing", () => {
  const hello = {
    "tools/hello.ts": toolModule('defineTool("hello", { description: "Greets.", skipPermission: true, handler: () => "Hello" })'),
  };
  const openings = {
    nothing: "",
    "half a header": "POST /mcp HTTP/1.1\r\nHost: localhost\r\n",
    "a wrong token and half a body": "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer wrong\r\nContent-Length: 9\r\n\r\n{",
  };

  test.each(Object.entries(openings))("600 that send %s keep no client out, in either era", async (_name, opening) => {
    await using served = await serveSkill(hello);
    const sockets = await crowd(served.face.url, 600, opening);
    try {
      for (const era of eras) {
        const client = await served.connect(era);
        expect(textOf(await client.callTool({ name: "hello", arguments: {} }))).toBe("Hello");
      }
      // Nor do they when they come in the middle of a client's work.
      const client = await served.connect("legacy");
      sockets.push(...(await crowd(served.face.url, 600, opening)));
      expect(textOf(await client.callTool({ name: "hello", arguments: {} }))).toBe("Hello");
    } finally {
      for (const socket of sockets) socket.destroy();
    }
  });

  test("are closed one after the other once there are too many, and all of them in a few seconds", async () => {
    await using served = await serveSkill(hello);
    const sockets = await crowd(served.face.url, 600, "");
    const open = (): number => sockets.filter(({ closed }) => !closed).length;
    await expect.poll(open).toBeLessThanOrEqual(512);
    await expect.poll(open).toBe(0);
  });

  test("with guesses at the token do not use up the requests of a client at the same address", async () => {
    await using served = await serveSkill(hello, { http: { maxRequests: 10 } });
    const { url } = served.face;
    const statuses = new Set<number>();
    // So few that they come within one window, however slow they are.
    for (let count = 0; count < 250 && !statuses.has(429); count++)
      statuses.add((await post(url, initialize, { Authorization: `Bearer guess-${count}` })).status);
    expect([...statuses]).toEqual([401, 429]);
    expect((await post(url, initialize)).status).toBe(200);
  });
});

/** Connects and sends the beginning of a request. Each is connected, or was turned away, when this settles. */
async function crowd(url: string, count: number, opening: string): Promise<Socket[]> {
  const { port } = new URL(url);
  const sockets = Array.from({ length: count }, () => connect(Number(port), "127.0.0.1"));
  await Promise.all(
    sockets.map(
      (socket) =>
        new Promise<void>((resolve) => {
          socket.on("error", () => {}).once("close", () => resolve());
          socket.resume().once("connect", () => socket.write(opening, () => resolve()));
        }),
    ),
  );
  return sockets;
}

test("bodies that are too long, no JSON, no object or of another type are refused", async () => {
  await using served = await serveSkill({}, { http: { maxBodyBytes: 10_000 } });
  const { url } = served.face;
  expect((await post(url, { ...initialize, padding: "x".repeat(10_000) })).status).toBe(413);
  for (const body of [
    "",
    "{",
    "[[[[",
    "\0",
    '{"jsonrpc":"2.0"',
    "[]",
    "7",
    '"text"',
    "null",
    "[1,2]",
    '{"__proto__":{"method":"initialize"}}',
  ]) {
    const { status } = await post(url, body);
    expect([body, status >= 400 && status < 500]).toEqual([body, true]);
  }
  expect((await post(url, initialize, { "Content-Type": "text/plain" })).status).toBe(415);
  expect((await post(url, initialize)).status).toBe(200);
});

test("other paths and methods are not served", async () => {
  await using served = await serveSkill({});
  const { url } = served.face;
  const headers = authorization(url);
  expect((await fetch(new URL("/", url), { headers })).status).toBe(404);
  expect((await fetch(new URL("/mcp/../etc/passwd", url), { headers })).status).toBe(404);
  expect((await fetch(url, { method: "PUT", body: "{}", headers })).status).toBeGreaterThanOrEqual(400);
  expect((await fetch(url, { headers: { ...headers, Accept: "text/event-stream" } })).status).toBe(400);
});

test("a session is found only by its id, and does not exist after DELETE", async () => {
  await using served = await serveSkill({});
  const { url } = served.face;
  const opened = await post(url, initialize);
  const id = opened.headers.get("mcp-session-id") ?? "";
  expect(id).toMatch(/^[\x21-\x7e]{30,}$/);
  const list = { jsonrpc: "2.0", id: 2, method: "tools/list" };
  expect((await post(url, list)).status).toBe(400);
  expect((await post(url, list, { "Mcp-Session-Id": "made-up" })).status).toBe(404);
  expect((await post(url, list, { "Mcp-Session-Id": id })).status).toBe(200);
  expect((await fetch(url, { method: "DELETE", headers: { ...authorization(url), "Mcp-Session-Id": id } })).status).toBe(200);
  expect((await post(url, list, { "Mcp-Session-Id": id })).status).toBe(404);
});

test("beyond the limit of sessions, the least recently used one is ended", async () => {
  await using served = await serveSkill({}, { http: { maxSessions: 2 } });
  const { url } = served.face;
  const ids: string[] = [];
  for (let count = 0; count < 3; count++) {
    const opened = await post(url, initialize);
    await opened.text();
    ids.push(opened.headers.get("mcp-session-id") ?? "");
  }
  const statuses = await Promise.all(
    ids.map(async (id) => (await post(url, { jsonrpc: "2.0", id: 2, method: "ping" }, { "Mcp-Session-Id": id })).status),
  );
  expect(statuses).toEqual([404, 200, 200]);
});

test("a flood from one address is turned away until the window is over", () => {
  let now = 0;
  const guard = createHttpGuard({
    host: "127.0.0.1",
    token: undefined,
    allowedHosts: [],
    allowedOrigins: [],
    maxRequests: 3,
    maxRefusals: 2,
    now: () => now,
  });
  const statusOf = (request: object): number | undefined => {
    const response = new ServerResponse(new IncomingMessage(new Socket()));
    return guard(request as never, response) ? response.statusCode : undefined;
  };
  const from = (remoteAddress: string) => ({ headers: { host: "localhost" }, socket: { remoteAddress } });
  const statuses = (address: string): (number | undefined)[] => Array.from({ length: 4 }, () => statusOf(from(address)));
  expect(statuses("10.0.0.1")).toEqual([undefined, undefined, undefined, 429]);
  expect(statuses("10.0.0.2")).toEqual([undefined, undefined, undefined, 429]);
  // What needs no token has a number of its own.
  const headers = { host: "localhost", origin: "http://localhost", "access-control-request-method": "POST" };
  const preflight = { method: "OPTIONS", headers, socket: { remoteAddress: "10.0.0.3" } };
  expect(Array.from({ length: 3 }, () => statusOf(preflight))).toEqual([204, 204, 429]);
  expect(statuses("10.0.0.3")).toEqual([undefined, undefined, undefined, 429]);
  now = 10_000;
  expect(statusOf(from("10.0.0.1"))).toBeUndefined();
});

test("only addresses of this machine are loopback", () => {
  for (const host of ["localhost", "127.0.0.1", "127.9.9.9", "::1", "[::1]"]) expect([host, isLoopback(host)]).toEqual([host, true]);
  for (const host of ["0.0.0.0", "::", "10.0.0.1", "127.0.0.1.example.com", "localhost.example.com", ""])
    expect([host, isLoopback(host)]).toEqual([host, false]);
});

test("a port that is taken is an error that says so", async () => {
  await using served = await serveSkill({});
  const port = Number(new URL(served.face.url).port);
  await expect(serveMcp(served.test.host, { transport: "http", port })).rejects.toMatchObject({ code: "HTTP_LISTEN" });
});

test("half a request, and a client that goes in the middle of a call, leave the server as it was", async () => {
  const body = `defineTool("wait", { description: "Waits.", skipPermission: true, handler: (_args, { signal }) => new Promise((end) => { globalThis.waitBegan?.(); signal.addEventListener("abort", () => { globalThis.waitEnded?.(); end("") }); }) })`;
  await using served = await serveSkill({ "tools/wait.ts": toolModule(body) });
  const { url } = served.face;
  const socket = connect(Number(new URL(url).port), "127.0.0.1");
  await new Promise<void>((resolve) =>
    socket.write("POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{", () => resolve()),
  );
  socket.destroy();
  const [began, ended] = [deferred(), deferred()];
  Object.assign(globalThis, { waitBegan: began.resolve, waitEnded: ended.resolve });
  const stop = new AbortController();
  const { body: call, headers } = modernRequest("tools/call", { name: "wait", arguments: {} });
  const gone = post(url, call, headers, stop.signal);
  gone.catch(() => {});
  await began.promise;
  stop.abort();
  await ended.promise;
  expect((await post(url, initialize)).status).toBe(200);
});

test("a parameter that is repeated as a header must agree with it", async () => {
  const body = `defineTool("near", { description: "Looks nearby.", skipPermission: true, parameters: { type: "object", properties: { region: { type: "string", "x-mcp-header": "Region" } } }, handler: ({ region }) => region })`;
  await using served = await serveSkill({ "tools/near.ts": toolModule(body) });
  const { url } = served.face;
  const call = modernRequest("tools/call", { name: "near", arguments: { region: "Köln" } });
  const withHeader = (value?: string): Promise<Response> =>
    post(url, call.body, { ...call.headers, ...(value !== undefined && { "Mcp-Param-Region": value }) });
  const encoded = Buffer.from("Köln").toString("base64");
  const { result } = await answerOf(withHeader(`=?base64?${encoded}?=`));
  expect(result.content).toEqual([{ type: "text", text: "Köln" }]);
  for (const value of [undefined, "Bonn", encoded, `=?base64?${encoded.slice(0, -1)}?=`]) {
    const refused = await withHeader(value);
    expect([refused.status, (await answerOf(refused)).error.code]).toEqual([400, -32020]);
  }
});
