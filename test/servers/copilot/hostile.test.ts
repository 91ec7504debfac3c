import fc from "fast-check";
import { afterEach, expect, test } from "vitest";
import { FrameReader } from "../../../src/servers/copilot/connection/frames.ts";
import { rounds } from "../../rounds.ts";
import { answeredMethods, Served } from "./wire-kit.ts";

let served: Served;

afterEach(() => served?.[Symbol.asyncDispose]());

/** They end the session, or take the model from it, which others of this test need. */
const ending = /^(llmInference\.setProvider|session\.(destroy|detach|shutdown|delete|suspend)|sessions\.|session\.create|session\.resume)/;

const wrong: readonly unknown[] = [
  null,
  0,
  -1,
  1e308,
  "",
  "\0",
  "x".repeat(2_000),
  "../../../etc/passwd",
  [],
  [null],
  {},
  { toString: null },
  true,
];

/** One object with every field that any method reads, all of the same kind of nonsense. */
const fields = [
  "prompt",
  "attachments",
  "mode",
  "requestHeaders",
  "source",
  "requestId",
  "result",
  "error",
  "tools",
  "toolName",
  "arguments",
  "model",
  "modelId",
  "name",
  "names",
  "commandName",
  "args",
  "input",
  "command",
  "path",
  "paths",
  "content",
  "message",
  "level",
  "enabled",
  "rules",
  "add",
  "remove",
  "scope",
  "serverName",
  "config",
  "uri",
  "eventType",
  "handle",
  "mode",
  "disabledSkills",
  "skillDirectories",
  "projectPaths",
  "customAgents",
  "systemMessage",
  "provider",
  "providers",
  "models",
  "mcpServers",
  "hooks",
  "availableTools",
  "excludedTools",
  "largeOutput",
  "values",
  "plugins",
  "status",
  "headers",
  "data",
  "end",
  "binary",
  "workingDirectory",
  "locationKey",
  "id",
  "response",
  "requestedSchema",
  "context",
  "reasoningEffort",
];

test("every method answers invalid parameters, and the session keeps working", async () => {
  served = await Served.start();
  const client = await served.connect();
  const sessionId = await client.create({ model: "m" });
  const methods = [...(await answeredMethods()), "secrets.addFilterValues"].filter((method) => !ending.test(method));
  for (const value of wrong) {
    const params = { ...Object.fromEntries(fields.map((field) => [field, value])), sessionId };
    const answers = methods.map((method) =>
      client.request(method, params).then(
        () => "result",
        ({ code }: { code: unknown }) => code,
      ),
    );
    const outcomes = await Promise.all(answers);
    expect(outcomes.filter((outcome) => outcome !== "result" && typeof outcome !== "number")).toEqual([]);
  }
  await client.request("session.abort", { sessionId });
  await client.request("session.permissions.setApproveAll", { sessionId, enabled: false });
  expect(await client.request("ping", {})).toMatchObject({ protocolVersion: 3 });
  served.says("Still here.");
  await client.request("session.options.update", { sessionId, provider: { baseUrl: served.model.url }, model: "m" });
  await client.say(sessionId, "Hello?");
  expect(served.asked.messages.at(-1).content).toContain("Hello?");
});

test("options of a session that are nonsense are refused by name, and leave no session behind", async () => {
  served = await Served.start();
  const client = await served.connect();
  const options = [
    "model",
    "tools",
    "availableTools",
    "customAgents",
    "skillDirectories",
    "mcpServers",
    "provider",
    "systemMessage",
    "largeOutput",
    "hooks",
  ];
  for (const option of options) {
    const { message } = await client.refusal("session.create", { sessionId: "same", [option]: 7 });
    expect([option, message.includes(option) || message.includes("MODEL")]).toEqual([option, true]);
  }
  expect((await client.request("session.list")).sessions).toEqual([]);
  await client.create({ sessionId: "same" });
});

test("names from Object's prototype mean nothing", async () => {
  served = await Served.start();
  const client = await served.connect();
  const hostile = JSON.parse(
    '{"sessionId":"proto","__proto__":{"model":"evil","tools":[{"name":"evil"}]},"constructor":{"prototype":{"polluted":1}}}',
  );
  await client.request("session.create", hostile);
  expect(
    served.server.sessions
      .get("proto")!
      .session.listTools()
      .map(({ name }) => name),
  ).not.toContain("evil");
  expect(({} as { polluted?: number }).polluted).toBe(undefined);
  const refused = await client.refusal("session.skills.disable", { sessionId: "__proto__", name: "x" });
  expect(refused.message).toContain("Session not found");
});

test("bytes at random are read, refused or lost, and never more", () => {
  let messages = 0;
  const sink = { message: () => void messages++, unreadable: () => {}, lost: () => {} };
  const piece = fc.oneof(
    fc.uint8Array({ maxLength: 60 }),
    fc.nat({ max: 40 }).map((length) => Buffer.from(`Content-Length: ${length}\r\n\r\n`)),
    fc.string({ maxLength: 30 }).map((text) => Buffer.from(text)),
    fc.constant(Buffer.from("\r\n\r\n")),
    fc.json().map((text) => Buffer.from(`Content-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`)),
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 20 }), (pieces) => {
      const reader = new FrameReader(sink);
      for (const bytes of pieces) reader.push(Buffer.from(bytes));
    }),
    { numRuns: rounds(1_000, 5_000) },
  );
  expect(messages).toBeGreaterThan(100);
});
