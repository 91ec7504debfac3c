import { expect, test } from "vitest";
import type { ConnectOptions } from "../../../src/mcp/connection/connect-server.ts";
import type { McpConnection } from "../../../src/mcp/connection/connection.ts";
import { patience } from "../../slowness.ts";
import { callContext, connect, failure, localDouble, textOf } from "../connect-kit.ts";

const answerOf = async (connection: McpConnection, tool: string, context?: ReturnType<typeof callContext>): Promise<unknown> =>
  JSON.parse(await textOf(connection.callTool(tool, {}, { context })));

test("a form is shown to the user of the call, with defaults for what is left out, in both eras", async () => {
  for (const file of ["v1-server.mjs", "v2-server.mjs"]) {
    const connection = await connect(localDouble(file));
    const asked: unknown[] = [];
    const context = callContext({
      answer: (kind, data) => {
        asked.push([kind, (data as { message: string }).message]);
        return { action: "accept", content: { name: "Ada" } };
      },
    });
    expect(await answerOf(connection, "confirm", context)).toEqual({ action: "accept", content: { name: "Ada", color: "green" } });
    expect(asked).toEqual([["elicitation", "Who are you?"]]);
  }
});

test("without a user the server gets cancel; a refusal is passed on; outside of a call a request is declined", async () => {
  for (const file of ["v1-server.mjs", "v2-server.mjs"]) {
    const connection = await connect(localDouble(file));
    expect(await answerOf(connection, "confirm", callContext())).toEqual({ action: "cancel" });
    expect(await answerOf(connection, "confirm", callContext({ answer: () => ({ action: "decline" }) }))).toEqual({ action: "decline" });
    expect(await answerOf(connection, "confirm", callContext({ answer: () => ({ action: "maybe" }) }))).toEqual({ action: "cancel" });
    expect(await answerOf(connection, "confirm")).toEqual({ action: "decline" });
  }
});

test("what is asked outside of a call goes to the configured answers", async () => {
  const answers: ConnectOptions["answers"] = { elicitation: async () => ({ action: "accept", content: { name: "host" } }) };
  const connection = await connect(localDouble("v1-server.mjs"), { answers });
  expect(await answerOf(connection, "confirm")).toMatchObject({ content: { name: "host" } });
});

test("on one shared pipe a question is declined while calls of several sessions wait, and asked when they are of one", async () => {
  const connection = await connect(localDouble("raw-server.mjs"));
  const params = { message: "?", requestedSchema: { type: "object", properties: {} } };
  const person = (sessionId: string) => callContext({ sessionId, answer: () => ({ action: "accept" }) });
  const stop = new AbortController();
  const others = ["one", "two"].map((session) =>
    failure(connection.callTool("wait", {}, { context: person(session), signal: stop.signal })),
  );
  const ask = async () =>
    JSON.parse(await textOf(connection.callTool("ask", { method: "elicitation/create", params }, { context: person("one") }))) as object;
  expect(await ask()).toMatchObject({ result: { action: "decline" } });
  stop.abort();
  await Promise.all(others);
  expect(await ask()).toMatchObject({ result: { action: "accept", content: {} } });
});

test("a call's deadline stands still while a user is asked", async () => {
  for (const file of ["v1-server.mjs", "v2-server.mjs"]) {
    const connection = await connect(localDouble(file));
    const answer = () => new Promise((resolve) => setTimeout(() => resolve({ action: "decline" }), patience(500)));
    const text = await textOf(connection.callTool("confirm", {}, { context: callContext({ answer }), timeout: patience(300) }));
    expect(JSON.parse(text)).toEqual({ action: "decline" });
  }
});

test("a model is asked only where the policy allows it; a refusal is an error", async () => {
  const reply = { role: "assistant", content: { type: "text", text: "Fine day." }, model: "m" };
  const open = await connect(localDouble("v1-server.mjs"), { requests: { sampling: "ask" } });
  expect(await textOf(open.callTool("think", {}, { context: callContext({ answer: () => reply }) }))).toBe("Fine day.");
  expect(await textOf(open.callTool("think", {}, { context: callContext() }))).toContain("rejected");
  const closed = await connect(localDouble("v1-server.mjs"));
  expect(await textOf(closed.callTool("think", {}, { context: callContext({ answer: () => reply }) }))).toContain("Method not found");
});

test("with elicitation denied it is not offered", async () => {
  const frames: string[] = [];
  const connection = await connect(localDouble("raw-server.mjs"), {
    requests: { elicitation: "deny" },
    onMessage: (_direction, message) => frames.push(JSON.stringify(message)),
  });
  const reply = JSON.parse(
    await textOf(connection.callTool("ask", { method: "elicitation/create", params: {} }, { context: callContext() })),
  );
  expect(reply).toMatchObject({ error: { code: -32601 } });
  expect(frames.find((line) => line.includes('"initialize"'))).not.toContain("elicitation");
});

test.each([
  ["elicitation/create", {}],
  ["elicitation/create", { message: "m", requestedSchema: { type: "string" } }],
  ["elicitation/create", { message: "m", mode: "url", url: "javascript:alert(1)", elicitationId: "1" }],
  ["sampling/createMessage", { messages: "none", maxTokens: 1 }],
  ["sampling/createMessage", { messages: [], maxTokens: 1 }],
])("an invalid request of a server is refused before a user is asked: %s %j", async (method, params) => {
  const connection = await connect(localDouble("raw-server.mjs"), { requests: { sampling: "ask" } });
  const asked: unknown[] = [];
  const context = callContext({ answer: (kind) => asked.push(kind) });
  const reply = JSON.parse(await textOf(connection.callTool("ask", { method, params }, { context })));
  expect(reply).toMatchObject({ error: { code: -32602 } });
  expect(asked).toEqual([]);
});

test("an address is shown to the user as such", async () => {
  const connection = await connect(localDouble("raw-server.mjs"));
  const asked: unknown[] = [];
  const context = callContext({
    answer: (_kind, data) => {
      asked.push(data);
      return { action: "accept", content: { stray: 1 } };
    },
  });
  const params = { message: "Sign here.", mode: "url", url: "https://example.test/sign", elicitationId: "1" };
  const reply = JSON.parse(await textOf(connection.callTool("ask", { method: "elicitation/create", params }, { context })));
  expect(reply).toMatchObject({ result: { action: "accept" } });
  expect(reply.result.content).toBeUndefined();
  expect(asked).toEqual([{ message: "Sign here.", url: "https://example.test/sign" }]);
});

test("a form with keywords that the protocol does not define is shown to the user, in both eras", async () => {
  const schema = { type: "object", properties: { a: { type: "string", format: "phone" }, b: {}, c: { anyOf: [{ const: "x" }] } } };
  const request = { method: "elicitation/create", params: { message: "m", mode: "form", requestedSchema: schema } };
  for (const [file, args] of [
    ["raw-server.mjs", request],
    ["rounds-server.mjs", { key: request }],
  ] as const) {
    const connection = await connect(localDouble(file));
    const asked: unknown[] = [];
    const context = callContext({
      answer: (_kind, data) => {
        asked.push(data);
        return { action: "accept", content: { a: "1" } };
      },
    });
    expect(await textOf(connection.callTool("ask", args, { context }))).toContain('{"action":"accept","content":{"a":"1"}}');
    expect(asked).toEqual([{ message: "m", requestedSchema: schema }]);
  }
});

test("on a pipe of the newer era each question goes to the session that made the call", async () => {
  const connection = await connect(localDouble("rounds-server.mjs"));
  const form = { method: "elicitation/create", params: { message: "m", requestedSchema: { type: "object", properties: {} } } };
  const asked: string[] = [];
  const person = (sessionId: string) =>
    callContext({
      sessionId,
      answer: async () => {
        asked.push(sessionId);
        await new Promise(setImmediate);
        return { action: "accept", content: { who: sessionId } };
      },
    });
  const calls = ["a", "b", "c"].map((session) => textOf(connection.callTool("ask", { form }, { context: person(session) })));
  const texts = await Promise.all(calls);
  expect(texts.map((text) => JSON.parse(text).form.content.who)).toEqual(["a", "b", "c"]);
  expect(asked.toSorted()).toEqual(["a", "b", "c"]);
  expect(JSON.parse(await textOf(connection.callTool("ask", { form })))).toEqual({ form: { action: "decline" } });
});

test("input is provided for a bounded number of rounds and requests; a fault in them fails their own call", async () => {
  const connection = await connect(localDouble("rounds-server.mjs"));
  const roots = { method: "roots/list" };
  const ask = (requests: object) => failure(connection.callTool("ask", { ...requests }));
  expect(await failure(connection.callTool("forever", {}))).toMatchObject({
    code: "MCP_ANSWER",
    message: expect.stringContaining("16 rounds"),
  });
  const many = Object.fromEntries(Array.from({ length: 33 }, (_, n) => [`n${n}`, roots]));
  expect(await ask(many)).toMatchObject({ code: "MCP_ANSWER", message: expect.stringContaining("33 input requests") });
  expect(await ask({ a: roots, b: { method: "x/unknown" } })).toMatchObject({ code: "MCP_ANSWER" });
  expect(await ask({ a: { params: {} } })).toMatchObject({ code: "MCP_ANSWER" });
  expect(await ask({})).toMatchObject({ code: "MCP_ANSWER" });
  expect(await textOf(connection.callTool("later", {}))).toBe("{}");
  const answered = JSON.parse(await textOf(connection.callTool("ask", { one: roots, two: roots })));
  expect(Object.keys(answered)).toEqual(["one", "two"]);
});

test("a model's answer that is not one is not sent", async () => {
  for (const answer of [{ model: "m", content: { type: "text", text: "x" } }, { role: "assistant", content: [] }, "x"]) {
    const open = await connect(localDouble("v1-server.mjs"), { requests: { sampling: "ask" } });
    expect(await textOf(open.callTool("think", {}, { context: callContext({ answer: () => answer }) }))).toContain("rejected");
  }
});
