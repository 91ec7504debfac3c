import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { workspaceTools } from "../../../plugins/workspace-tools/plugin.ts";
import { handshake } from "../../../src/servers/copilot/methods/handshake.ts";
import { jsonAnswer, type ModelScript, startScriptedModel } from "../../doubles/scripted-model.ts";
import { contractPackage, hasSchemas, loadContract } from "./wire-contract.ts";
import { answeredMethods, calling, type Json, refusedMethods, Served, type TestClient } from "./wire-kit.ts";

let served: Served;

afterEach(() => served?.[Symbol.asyncDispose]());

const schemas = `the schemas of ${contractPackage.name} ${contractPackage.version}`;

describe("the contract", () => {
  // npm run test:interop brings them: they are two files of a large tarball.
  test.skipIf(!hasSchemas)(`is that of ${schemas}, and names what breaks it`, () => {
    const contract = loadContract()!;
    const event = { id: "7c8e1b8e-6a3f-4f43-9c1b-0d4f3f0a6f55", timestamp: new Date().toISOString(), parentId: null };
    const idle = { ...event, type: "session.idle", ephemeral: true, data: {} };
    expect(contract.event(idle)).toBeUndefined();
    expect(contract.event({ ...idle, id: 7 })).toContain("/id must be string");
    expect(contract.event({ ...idle, data: { made: "up" } })).toContain('"additionalProperty":"made"');
    expect(contract.event({ ...idle, type: "session.nothing" })).toBe("there is no event session.nothing");
    const asked = { ...event, type: "permission.requested", data: { requestId: "1", permissionRequest: { kind: "read", path: "/a" } } };
    expect(contract.event(asked)).toContain("/data/permissionRequest must have required property 'intention'");
    expect(contract.result("session.model.setReasoningEffort", { success: true })).toContain("'reasoningEffort'");
    expect(contract.result("session.getMessages", { events: [idle, { ...idle, id: 7 }] })).toContain("/id must be string");
    expect(contract.request("hooks.invoke", {})).toContain("sessionId");
  });

  test.skipIf(!hasSchemas)(`has no method in ${schemas} that is neither answered nor refused`, async () => {
    const known = new Set([...Object.keys(handshake), ...(await answeredMethods()), ...refusedMethods]);
    const { methods } = loadContract()!;
    expect(methods.length).toBeGreaterThan(300);
    expect(methods.filter((method) => !known.has(method))).toEqual([]);
  });
});

const skill = (permission: string): Readonly<Record<string, string>> => ({
  "skills/s/SKILL.md": "---\nname: s\ndescription: Has a tool.\n---\nUse it.\n",
  "skills/s/tools/act.ts": `import { defineTool } from "skillhost";
export default defineTool("act", { description: "Acts.", handler: () => "done", permission: () => (${permission}) });
`,
});

/** The request and the prompt that clients get when a tool describes its call so. */
async function requestOf(client: TestClient): Promise<Json> {
  const sessionId = await client.create({ model: "test-model" });
  client.serve();
  served.says(calling("act", { n: 1 }), "Done.");
  await client.say(sessionId, "Go");
  // It was asked and answered, and it ran: strict clients never hear of a request that lacks a field.
  expect(served.asked.messages.at(-1).content).toBe("done");
  return (await client.event("permission.requested")).data;
}

describe("a permission request", () => {
  test("for a command has its segments and identifiers as objects and lists that clients can read", async () => {
    served = await Served.start({ host: { plugins: [workspaceTools] } });
    const client = await served.connect();
    client.serve();
    const sessionId = await client.create({ model: "test-model" });
    served.says(calling("bash", { command: "git status && echo hi", description: "Looks" }), "Done.");
    await client.say(sessionId, "Go");
    const { data } = await client.event("permission.requested");
    expect(data["permissionRequest"]).toMatchObject({
      kind: "shell",
      commandSegments: [
        { identifier: "git status", fullCommandText: "git status" },
        { identifier: "echo", fullCommandText: "echo hi" },
      ],
    });
    expect(data["promptRequest"]).toMatchObject({ kind: "commands", commandIdentifiers: ["git status", "echo"] });
  });

  test.each([
    ['{ kind: "shell", fullCommandText: "ls" }', { kind: "shell", commands: [], possiblePaths: [], hasWriteFileRedirection: false }],
    [
      '{ kind: "shell", fullCommandText: "ls", commandSegments: ["ls"], commands: "ls", canOfferSessionApproval: 1 }',
      { kind: "shell", commands: [], canOfferSessionApproval: false },
    ],
    ['{ kind: "write", fileName: "a" }', { kind: "write", diff: "", intention: "Acts.", canOfferSessionApproval: false }],
    ['{ kind: "read", path: "a" }', { kind: "read", path: "a", intention: "Acts." }],
    ['{ kind: "read" }', { kind: "custom-tool", toolName: "act", toolDescription: "Acts.", args: { n: 1 } }],
    ['{ kind: "url", url: "https://a.example", redirectedFrom: 7 }', { kind: "url", url: "https://a.example" }],
    ['{ kind: "memory", fact: "f", action: "forget", subject: null }', { kind: "memory", fact: "f" }],
    ['{ kind: "deploy", to: "production" }', { kind: "custom-tool", toolName: "act", args: { n: 1 } }],
    ['{ kind: "constructor" }', { kind: "custom-tool" }],
    ['{ kind: "mcp", serverName: "x" }', { kind: "mcp", serverName: "x", toolTitle: "act", readOnly: false }],
  ])("that a tool describes as %s reaches clients as one that they know", async (permission, expected) => {
    served = await Served.start({ files: skill(permission) });
    const { permissionRequest } = await requestOf(await served.connect());
    expect(permissionRequest).toMatchObject(expected);
    expect(permissionRequest).not.toHaveProperty("redirectedFrom");
    expect(permissionRequest).not.toHaveProperty("action");
    if (hasSchemas) return;
    // What the schemas would say where they are not there.
    expect(permissionRequest["commandSegments"] ?? []).toEqual([]);
  });

  test("a denial by rules has no permission.completed, as nothing was requested", async () => {
    served = await Served.start({ files: skill('{ kind: "read", path: "a" }'), host: {} });
    const client = await served.connect();
    const sessionId = await client.create({ model: "test-model" });
    await client.request("session.permissions.configure", {
      sessionId,
      rules: { approved: [], denied: [{ kind: "read", argument: null }] },
    });
    served.says(calling("act"), "Done.");
    await client.say(sessionId, "Go");
    expect((await client.event("tool.execution_complete")).data).toMatchObject({ success: false, error: { code: "denied" } });
    const { events } = await client.request("session.getMessages", { sessionId });
    const types = [...client.types(), ...events.map(({ type }: Json) => type)];
    expect(types.filter((type) => type.startsWith("permission."))).toEqual([]);
  });

  test("for a tool that is written in JSON is one of a custom tool, asked once, and denied by a client's rule about its address", async () => {
    const tool = { name: "act", description: "Acts.", handler: { http: { url: "http://127.0.0.1:9/x" } } };
    const files = {
      "skills/s/SKILL.md": "---\nname: s\ndescription: Has a tool.\n---\nUse it.\n",
      "skills/s/tools/act.json": JSON.stringify(tool),
    };
    served = await Served.start({ files, host: {} });
    const client = await served.connect();
    client.serve();
    const sessionId = await client.create({ model: "test-model" });
    const configure = (denied: readonly object[]): Promise<unknown> =>
      client.request("session.permissions.configure", { sessionId, rules: { approved: [], denied } });
    await configure([]);
    served.says(calling("act"), "Done.");
    await client.say(sessionId, "Go");
    const requested = client.events.filter(({ event }) => event.type === "permission.requested");
    expect(requested.map(({ event }) => event.data["permissionRequest"])).toMatchObject([
      { kind: "custom-tool", toolName: "act", toolDescription: "Acts.", method: "GET", url: "http://127.0.0.1:9/x" },
    ]);
    await configure([{ kind: "url", argument: "127.0.0.1" }]);
    served.says(calling("act"), "Done.");
    await client.say(sessionId, "Go");
    const completed = client.events.filter(({ event }) => event.type === "tool.execution_complete");
    expect(completed.at(-1)?.event.data).toMatchObject({ success: false, error: { code: "denied" } });
    expect(client.events.filter(({ event }) => event.type === "permission.requested").length).toBe(1);
  });

  test("a lasting approval is emitted with what it covers, and otherwise as approved", async () => {
    served = await Served.start({ files: skill('{ kind: "read", path: "a" }') });
    const client = await served.connect();
    const sessionId = await client.create({ model: "test-model" });
    const answers = [
      { kind: "approve-for-session" },
      { kind: "approve-for-session", approval: { kind: "commands" } },
      { kind: "approve-for-location", approval: { kind: "write" }, locationKey: "here" },
      { kind: "approve-once" },
      { kind: "approve-for-location", approval: { kind: "read" } },
    ];
    for (const [index, result] of answers.entries()) {
      served.says(calling("act", { index }, `call-${index}`), "Done.");
      await client.request("session.permissions.resetSessionApprovals", { sessionId });
      const done = client.say(sessionId, "Go");
      const asked = await client.eventually(() => client.events.filter(({ event }) => event.type === "permission.requested")[index]);
      const { requestId } = asked.event.data;
      await client.request("session.permissions.handlePendingPermissionRequest", { sessionId, requestId, result });
      await done;
    }
    const results = client.events.filter(({ event }) => event.type === "permission.completed").map(({ event }) => event.data["result"]);
    expect(results.map(({ kind }: Json) => kind)).toEqual(["approved", "approved", "approved-for-location", "approved", "approved"]);
  });
});

describe("the end of a session", () => {
  test("the end of a session is emitted with its usage, now and after a resume", async () => {
    served = await Served.start({
      files: {
        "skills/s/SKILL.md": "---\nname: s\ndescription: Has a tool.\n---\nUse it.\n",
        "skills/s/tools/act.ts": `import { defineTool } from "skillhost";
export default defineTool("act", { description: "Acts.", skipPermission: true, handler: (_args, _invocation, context) => { context.fileChanged("/tmp/a.txt", "a"); return "done"; } });
`,
      },
    });
    const client = await served.connect();
    const sessionId = await client.create({ model: "test-model" });
    served.says(calling("act"), "Done.");
    await client.say(sessionId, "Go");
    expect(served.asked.messages.at(-1).content).toBe("done");
    const metrics = await client.request("session.usage.getMetrics", { sessionId });
    expect(metrics.codeChanges).toEqual({ linesAdded: 0, linesRemoved: 0, filesModifiedCount: 1, filesModified: ["/tmp/a.txt"] });
    await client.request("session.destroy", { sessionId });
    await client.request("session.resume", { sessionId });
    const { events } = await client.request("session.getMessages", { sessionId });
    const { data } = events.find(({ type }: Json) => type === "session.shutdown");
    expect(data).toMatchObject({ shutdownType: "routine", codeChanges: { filesModified: ["/tmp/a.txt"] } });
    expect(Object.values<Json>(data.modelMetrics)[0].requests.count).toBe(2);
    expect(data.sessionStartTime).toBeGreaterThan(Date.now() - 600_000);
    expect(Number.isInteger(data.totalApiDurationMs)).toBe(true);
  });

  test("that an earlier version wrote down has what clients insist on, too", async () => {
    served = await Served.start();
    const client = await served.connect();
    const sessionId = await client.create({ model: "test-model" });
    served.says("Hello.");
    await client.say(sessionId, "Hi");
    await client.request("session.destroy", { sessionId });
    const file = join(served.folder, ".home/sessions", sessionId, "events.jsonl");
    expect(readdirSync(join(served.folder, ".home/sessions"))).toContain(sessionId);
    const lines = readFileSync(file, "utf8")
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
    const old = lines.map((event) => (event.type === "session.shutdown" ? { ...event, data: { shutdownType: "routine" } } : event));
    writeFileSync(file, `${old.map((event) => JSON.stringify(event)).join("\n")}\n`);
    await client.request("session.resume", { sessionId });
    const { events } = await client.request("session.getMessages", { sessionId });
    const { data, timestamp } = events.find(({ type }: Json) => type === "session.shutdown");
    expect(data).toEqual({
      shutdownType: "routine",
      sessionStartTime: Date.parse(timestamp),
      totalApiDurationMs: 0,
      codeChanges: { linesAdded: 0, linesRemoved: 0, filesModified: [] },
      modelMetrics: {},
    });
  });
});

describe("results and events", () => {
  test("have the fields that SDKs of other languages insist on", async () => {
    const script: ModelScript = ({ path }) => (path.startsWith("/models") ? jsonAnswer({ data: [{ id: "one" }] }) : undefined);
    served = await Served.start({ server: { gitHubToken: "a-token" }, script });
    const client = await served.connect();
    const sessionId = await client.create({ model: "test-model" });
    const ask = (method: string, params: object = {}): Promise<Json> => client.request(method, { sessionId, ...params });
    expect((await ask("session.model.list")).list).toMatchObject([{ id: "one" }]);
    expect(await ask("session.model.setReasoningEffort", { reasoningEffort: "high" })).toEqual({ reasoningEffort: "high" });
    expect(await ask("session.permissions.setMode", { mode: "manual" })).toEqual({ success: true, mode: "manual" });
    const { authInfo } = await ask("account.getCurrentAuth");
    expect(authInfo).toMatchObject({ type: "env", host: "https://github.com", login: "" });
    expect(JSON.stringify(authInfo)).not.toContain("a-token");
    expect(await ask("session.agent.getCurrent")).toEqual({});
    expect(await ask("session.interruptMainTurn")).toEqual({ interrupted: false });
    expect(await ask("session.mcp.reloadWithConfig", { config: { mcpServers: {} } })).toEqual({ filteredServers: [] });
    for (const tool of (await ask("session.tools.getBuiltinDescriptors")).tools) expect(tool).toHaveProperty("inputSchema");
    await ask("session.sendSystemNotification", { message: "Something happened." });
    expect((await client.event("system.notification")).data["kind"]).toEqual({ type: "unclassified" });
  });

  test("of a request to a model that failed and is repeated says whose request it was", async () => {
    let count = 0;
    await using model = await startScriptedModel(() => (count++ === 0 ? { status: 500 } : undefined));
    served = await Served.start({ server: { environment: { COPILOT_API_URL: model.url } } });
    const client = await served.connect();
    const sessionId = await client.create({ model: "m" });
    await client.request("session.send", { sessionId, prompt: "Go" });
    expect((await client.event("model.call_failure")).data).toMatchObject({ source: "top_level", statusCode: 500 });
  });

  test("about MCP servers say where they are configured in the words of the protocol", async () => {
    served = await Served.start();
    const client = await served.connect();
    const sessionId = await client.create({ mcpServers: { none: { command: join(served.folder, "no-such-program") } } });
    const { servers } = await client.request("session.mcp.list", { sessionId });
    const loaded = (await client.event("session.mcp_servers_loaded")).data["servers"];
    expect([servers[0].source, (loaded as Json)[0].source]).toEqual(["user", "user"]);
  });
});
