import { request as httpRequest, type IncomingHttpHeaders } from "node:http";
import { expect, test } from "vitest";
import { serveInspector } from "../../../src/servers/inspector/serve-inspector.ts";
import { skillMd } from "../../skills/kit.ts";
import { openInspected, sendRequest } from "./inspector-kit.ts";

const files = {
  "skills/a/SKILL.md": skillMd("a"),
  "skills/a/tools/x.ts": `import { defineTool } from "skillhost";
export default defineTool("x", { description: "x", skipPermission: true, handler: () => { globalThis.inspectorCalls = (globalThis.inspectorCalls ?? 0) + 1; return "x"; } });
`,
};

interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

/** With headers that `fetch` would not send. */
function send(port: number, path: string, headers: Readonly<Record<string, string>>, method = "GET", body?: string): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const sent = httpRequest({ host: "127.0.0.1", port, path, method, headers }, (response) => {
      let text = "";
      // An event stream does not end: its head is enough.
      if (response.headers["content-type"] === "text/event-stream") {
        resolve({ status: response.statusCode!, headers: response.headers, text });
        response.destroy();
        return;
      }
      response.on("data", (chunk: Buffer) => {
        text += chunk.toString("utf8");
      });
      response.on("end", () => resolve({ status: response.statusCode!, headers: response.headers, text }));
    });
    sent.on("error", reject);
    sent.end(body);
  });
}

test("without the token nothing can be read or called, and the page itself contains nothing", async () => {
  const { inspector } = await openInspected(files);
  const { port, token } = inspector;
  expect(token).toMatch(/^[\w-]{43}$/);
  expect(inspector.url).toBe(`http://127.0.0.1:${port}/#token=${token}`);
  for (const path of ["/feed", "/blob/x", "/request", "/other"]) {
    for (const headers of [
      {},
      { Authorization: "Bearer wrong" },
      { Authorization: `Bearer ${token}x` },
      { Cookie: `skillhost-inspector-${port}=wrong` },
    ]) {
      expect([path, (await send(port, path, headers)).status]).toEqual([path, 401]);
    }
  }
  expect((await send(port, `/feed?token=${token}`, {})).status).toBe(401);
  const page = await send(port, "/", {});
  expect(page.status).toBe(200);
  expect(page.text).not.toContain(token);
  const policy = page.headers["content-security-policy"]!;
  expect(policy).toMatch(/^default-src 'none'; script-src 'self'; style-src 'self' 'nonce-[\w+/=]{24}'; /);
  expect(policy).not.toMatch(/unsafe|\*/);
  expect((await send(port, "/", {})).headers["content-security-policy"]).not.toBe(policy);
});

test("the token is exchanged for a cookie of this port that scripts cannot read", async () => {
  const { inspector } = await openInspected(files);
  const { port, token } = inspector;
  const json = { "Content-Type": "application/json" };
  expect((await send(port, "/session", json, "POST", JSON.stringify({ token: "wrong" }))).status).toBe(401);
  expect((await send(port, "/session", json, "POST", JSON.stringify({ token: 5 }))).status).toBe(401);
  expect((await send(port, "/session", json, "POST", "null")).status).toBe(401);
  const admitted = await send(port, "/session", json, "POST", JSON.stringify({ token }));
  const [cookie] = admitted.headers["set-cookie"]!;
  expect(cookie).toMatch(new RegExp(`^skillhost-inspector-${port}=[\\w-]{43}; Path=/; HttpOnly; SameSite=Strict$`));
  expect(cookie).not.toContain(token);
  const given = cookie!.split(";")[0]!;
  expect((await send(port, "/feed", { Cookie: `other=1; ${given}` })).status).toBe(200);
  expect((await send(port, "/feed", { Cookie: given.replace(String(port), "1") })).status).toBe(401);
  const second = await openInspected(files);
  expect((await send(second.inspector.port, "/feed", { Cookie: given.replace(String(port), String(second.inspector.port)) })).status).toBe(
    401,
  );
});

test("a page of another origin is refused, also one on another port of this machine, and gets no permission to read", async () => {
  const { inspector } = await openInspected(files);
  const { port, token } = inspector;
  const authorized = { Authorization: `Bearer ${token}` };
  const origins = [
    "https://evil.example",
    `http://127.0.0.1:${port + 1}`,
    "http://localhost:3000",
    "null",
    `https://127.0.0.1:${port}`,
    `http://127.0.0.1:${port}.evil.example`,
  ];
  for (const Origin of origins) {
    for (const [path, method] of [
      ["/feed", "GET"],
      ["/request", "POST"],
      ["/session", "POST"],
      ["/request", "OPTIONS"],
    ] as const) {
      const answer = await send(port, path, { ...authorized, Origin, "Access-Control-Request-Method": "POST" }, method);
      expect([Origin, path, answer.status, answer.headers["access-control-allow-origin"]]).toEqual([Origin, path, 403, undefined]);
    }
  }
  expect((await send(port, "/feed", { ...authorized, Origin: `http://127.0.0.1:${port}` })).status).toBe(200);
  // What browsers send for scripts, pictures and no-cors requests of another page, which have no Origin.
  for (const site of ["cross-site", "same-site"])
    expect((await send(port, "/feed", { ...authorized, "Sec-Fetch-Site": site, "Sec-Fetch-Mode": "no-cors" })).status).toBe(403);
  expect((await send(port, "/", { "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate" })).status).toBe(200);
});

test("a host name that was rebound to this machine is refused", async () => {
  const { inspector } = await openInspected(files);
  const { port, token } = inspector;
  for (const Host of ["evil.example", `evil.example:${port}`, "127.0.0.1.evil.example"]) {
    expect([Host, (await send(port, "/feed", { Host, Authorization: `Bearer ${token}` })).status]).toEqual([Host, 403]);
    expect([Host, (await send(port, "/", { Host })).status]).toEqual([Host, 403]);
  }
  expect((await send(port, "/feed", { Host: `localhost:${port}`, Authorization: `Bearer ${token}` })).status).toBe(200);
});

test("invalid requests say what is wrong, and nothing else is lost", async () => {
  const { inspector, request } = await openInspected(files);
  const cases: readonly (readonly [unknown, number, string, RegExp])[] = [
    ["{", 400, "INSPECTOR_BODY", /not JSON/],
    ["[]", 400, "INSPECTOR_PARAMS", /"method" and "params"/],
    [{ method: "nothing" }, 404, "INSPECTOR_METHOD", /The methods are: call, /],
    [{ method: "__proto__" }, 404, "INSPECTOR_METHOD", /not a method/],
    [{ method: "call", params: 5 }, 400, "INSPECTOR_PARAMS", /must be an object/],
    [{ method: "call", params: {} }, 400, "INSPECTOR_PARAMS", /"tool" is missing/],
    [{ method: "call", params: { tool: "x", arguments: [] } }, 400, "INSPECTOR_PARAMS", /arguments must be an object/],
    [{ method: "call", params: { tool: "x", other: 1 } }, 400, "INSPECTOR_PARAMS", /other is not one of/],
    [{ method: "call", params: { tool: "x", sessionId: "gone" } }, 400, "SESSION_NOT_FOUND", /not open/],
    [{ method: "prompt", params: { folder: "/etc", path: "passwd" } }, 400, "PROMPT_UNKNOWN", /no prompt/],
    [{ method: "session.create", params: { script: [{ text: 1 }] } }, 400, "INSPECTOR_PARAMS", /script\[0\]\.text must be a text/],
    [{ method: "approve", params: {} }, 400, "INSPECTOR_PARAMS", /either a server or a skill/],
    [`{"method":"explain","params":{"name":${"[".repeat(2000)}${"]".repeat(2000)}}}`, 400, "INSPECTOR_BODY", /nested too deep/],
    [" ".repeat(9 * 1024 * 1024), 413, "INSPECTOR_BODY_SIZE", /larger than/],
  ];
  for (const [body, status, code, message] of cases) {
    const answer = await sendRequest(inspector, body);
    const { error } = (await answer.json()) as { readonly error: { readonly code: string; readonly message: string } };
    expect([body === cases.at(-1)![0] ? "large" : body, answer.status, error.code]).toEqual([
      body === cases.at(-1)![0] ? "large" : body,
      status,
      code,
    ]);
    expect(error.message).toMatch(message);
  }
  const asForm = await sendRequest(inspector, "{}", { "Content-Type": "text/plain" });
  expect([asForm.status, ((await asForm.json()) as { readonly error: { readonly code: string } }).error.code]).toEqual([
    400,
    "INSPECTOR_BODY",
  ]);
  expect(await request("explain", { name: "x" })).toMatchObject({ name: "x" });
});

test("a read-only inspector shows everything and refuses what calls or changes something", async () => {
  const { inspector, read, request, host } = await openInspected(files, {}, { readOnly: true });
  expect((await read().next("snapshot")).isReadOnly).toBe(true);
  const session = await host.createSession();
  const refused = {
    call: { tool: "x", arguments: {} },
    cancel: { callId: "x" },
    answer: { askId: "x", sessionId: "x", answer: {} },
    reload: {},
    "session.create": {},
    "session.send": { sessionId: session.id, prompt: "x" },
    "session.abort": { sessionId: session.id },
    "session.close": { sessionId: session.id },
    "server.restart": { name: "x" },
    approve: { skill: "a" },
  };
  for (const [method, params] of Object.entries(refused)) {
    const answer = await sendRequest(inspector, { method, params });
    expect([method, answer.status]).toEqual([method, 403]);
  }
  expect(await request("explain", { name: "x" })).toMatchObject({ name: "x" });
  expect((globalThis as { inspectorCalls?: number }).inspectorCalls).toBeUndefined();
});

test("options are checked, and a port that is in use is an error", async () => {
  const { host, inspector } = await openInspected(files);
  await expect(serveInspector(host, { port: 70_000 })).rejects.toMatchObject({ code: "INSPECTOR_OPTIONS" });
  await expect(serveInspector(host, { other: 1 } as object)).rejects.toMatchObject({ code: "INSPECTOR_OPTIONS" });
  await expect(serveInspector(host, { port: inspector.port })).rejects.toMatchObject({ code: "HTTP_LISTEN" });
});
