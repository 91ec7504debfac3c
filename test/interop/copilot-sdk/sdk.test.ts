import { execFile } from "node:child_process";
import { mkdirSync, readFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { CompiledSources } from "../../compiled-sources.ts";
import { chatStreamAnswer, jsonAnswer } from "../../doubles/scripted-model.ts";
import { Bench, calling, compileRuntime, loadSdk } from "./sdk-kit.ts";

// biome-ignore lint/suspicious/noExplicitAny: the SDK has a lock file of its own, so its types are not always there
type Sdk = any;

let sdk: Sdk;
let runtime: CompiledSources & { readonly bin: string };
let bench: Bench;

beforeAll(async () => {
  sdk = await loadSdk();
  runtime = compileRuntime();
}, 120_000);

afterEach(() => bench?.[Symbol.asyncDispose]());
afterAll(() => runtime[Symbol.dispose]());

const weather = (handler: (args: Sdk, invocation: Sdk) => unknown): Sdk =>
  sdk.defineTool("get_weather", {
    description: "Tells the weather of a city.",
    parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
    handler,
  });

/** The first event of a session that fits, from now on. */
function event(session: Sdk, type: string, fits: (data: Sdk) => boolean = () => true): Promise<Sdk> {
  return new Promise((resolve) => {
    session.on(type, (told: Sdk) => {
      if (fits(told.data)) resolve(told);
    });
  });
}

describe("starting", () => {
  test("over stdio: handshake, ping, status, sign-in, and an end without errors", async () => {
    bench = await Bench.start(sdk, runtime);
    const client = bench.client();
    await client.start();
    expect(await client.ping("hello")).toMatchObject({ message: "pong: hello", protocolVersion: 3 });
    expect(await client.getStatus()).toMatchObject({ protocolVersion: 3 });
    expect(await client.getAuthStatus()).toMatchObject({ isAuthenticated: true });
    expect(await client.stop()).toEqual([]);
  });

  test("an unknown flag ends the process with its name", async () => {
    bench = await Bench.start(sdk, runtime);
    const client = bench.client({}, ["--nonexistent-flag-for-testing"]);
    await expect(client.start()).rejects.toThrow(/nonexistent/);
  });

  test("over TCP: a second client joins with the token, and none without", async () => {
    bench = await Bench.start(sdk, runtime);
    const first = bench.tcpClient({ connectionToken: "the-token" });
    await first.start();
    const url = `localhost:${first.runtimePort}`;
    const join = (connectionToken?: string): Sdk =>
      bench.own(new sdk.CopilotClient({ connection: sdk.RuntimeConnection.forUri(url, { connectionToken }) }));
    await expect(join("wrong").start()).rejects.toThrow(/AUTHENTICATION_FAILED/);
    await expect(join().start()).rejects.toThrow(/AUTHENTICATION_FAILED/);
    const second = join("the-token");
    const session = await first.createSession({ onPermissionRequest: sdk.approveAll, model: "m", tools: [weather(() => "Sun.")] });
    const joined = await second.resumeSession(session.sessionId, {
      onPermissionRequest: sdk.approveAll,
      tools: [sdk.defineTool("get_time", { description: "Tells the time.", handler: () => "12:00" })],
    });
    bench.says(calling("get_weather", { city: "Oslo" }), calling("get_time", {}, "call-2"), "Both.");
    const heard = event(joined, "assistant.message", ({ content }) => content === "Both.");
    expect((await session.sendAndWait("Weather and time?")).data.content).toBe("Both.");
    await heard;
    const results = bench.asked.messages.filter(({ role }: Sdk) => role === "tool").map(({ content }: Sdk) => content);
    expect(results).toEqual(["Sun.", "12:00"]);
  });
});

describe("a conversation", () => {
  test("with a tool, a permission, hooks and the history of it", async () => {
    bench = await Bench.start(sdk, runtime);
    const client = bench.client();
    const seen: Sdk[] = [];
    const session = await client.createSession({
      model: "m",
      clientName: "my-app",
      tools: [
        weather((args, invocation) => {
          seen.push(["tool", args, invocation.toolName]);
          return { city: args.city, sky: "clear" };
        }),
      ],
      onPermissionRequest: (request: Sdk) => {
        seen.push(["permission", request.kind, request.toolName]);
        return { kind: "approve-once" };
      },
      hooks: {
        onPreToolUse: ({ toolName, toolArgs }: Sdk) => void seen.push(["pre", toolName, toolArgs]),
        onPostToolUse: ({ toolResult }: Sdk) => void seen.push(["post", toolResult.textResultForLlm]),
        onSessionStart: ({ source }: Sdk) => ({ additionalContext: `It began as ${source}.` }),
      },
    });
    bench.says(calling("get_weather", { city: "Oslo" }), "It is clear.");
    const reply = await session.sendAndWait({ prompt: "Weather?", requestHeaders: { "x-mine": "1" } });
    expect(reply.data.content).toBe("It is clear.");
    expect(seen).toEqual([
      ["pre", "get_weather", '{"city":"Oslo"}'],
      ["permission", "custom-tool", "get_weather"],
      ["tool", { city: "Oslo" }, "get_weather"],
      ["post", '{"city":"Oslo","sky":"clear"}'],
    ]);
    const roles = bench.asked.messages.map(({ role }: Sdk) => role);
    expect(roles).toEqual(["system", "user", "user", "assistant", "tool"]);
    expect(bench.asked.messages[1].content).toContain("It began as new.");
    expect(bench.asked.messages.at(-1).content).toBe('{"city":"Oslo","sky":"clear"}');
    const { headers } = bench.model.requests.at(-1)!;
    expect(headers).toMatchObject({ "x-mine": "1", authorization: "Bearer token-of-the-test" });
    expect(headers["user-agent"]).toContain("my-app");
    const types = (await session.getEvents()).map(({ type }: Sdk) => type);
    expect(types[0]).toBe("session.start");
    expect(types).toContain("tool.execution_complete");
    expect(types).not.toContain("session.idle");
  });

  test("what a handler throws stays with the client", async () => {
    bench = await Bench.start(sdk, runtime);
    const session = await bench.client().createSession({
      model: "m",
      onPermissionRequest: sdk.approveAll,
      tools: [
        weather(() => {
          throw new Error("Melbourne");
        }),
      ],
    });
    bench.says(calling("get_weather", { city: "Oslo" }), "Sorry.");
    await session.sendAndWait("Weather?");
    expect(bench.asked.messages.at(-1).content).toBe(
      'Failed to execute `get_weather` tool with arguments: {"city":"Oslo"} due to error: Error: Tool execution failed',
    );
  });

  test("a person who says no ends the turn", async () => {
    bench = await Bench.start(sdk, runtime);
    const session = await bench.client().createSession({
      model: "m",
      onPermissionRequest: () => ({ kind: "reject", feedback: "Not today." }),
      tools: [weather(() => "Sun.")],
    });
    bench.says(calling("get_weather", { city: "Oslo" }));
    const complete = event(session, "tool.execution_complete");
    await session.sendAndWait("Weather?");
    expect((await complete).data.error).toMatchObject({ code: "rejected" });
    expect(bench.model.requests).toHaveLength(1);
  });

  test("streams, is aborted, and goes on", async () => {
    bench = await Bench.start(sdk, runtime);
    const session = await bench.client().createSession({ model: "m", streaming: true, onPermissionRequest: sdk.approveAll });
    const pieces: string[] = [];
    session.on("assistant.message_delta", ({ data }: Sdk) => void pieces.push(data.deltaContent));
    bench.model.answer(chatStreamAnswer({ content: "One two three." }), { steps: ["silence"] }, chatStreamAnswer({ content: "Again." }));
    await session.sendAndWait("Count");
    expect(pieces.join("")).toBe("One two three.");
    const idle = event(session, "session.idle", ({ aborted }) => aborted === true);
    await session.send("Wait");
    await bench.model.request(1);
    await session.abort();
    await idle;
    expect((await session.sendAndWait("Go on")).data.content).toBe("Again.");
  });

  test("goes on in another process", async () => {
    bench = await Bench.start(sdk, runtime);
    const first = bench.client();
    const session = await first.createSession({ model: "m", onPermissionRequest: sdk.approveAll });
    bench.says("I will.");
    await session.sendAndWait("Remember 42.");
    await first.stop();
    const second = bench.client();
    await second.start();
    expect((await second.listSessions()).map(({ sessionId, summary }: Sdk) => [sessionId, summary])).toEqual([
      [session.sessionId, "Remember 42."],
    ]);
    const resumed = await second.resumeSession(session.sessionId, { onPermissionRequest: sdk.approveAll });
    bench.says("42.");
    expect((await resumed.sendAndWait("What was it?")).data.content).toBe("42.");
    expect(bench.asked.messages.map(({ role }: Sdk) => role)).toEqual(["system", "user", "assistant", "user"]);
    const deleted = new Promise((resolve) => second.onLifecycle("session.deleted", resolve));
    await second.deleteSession(session.sessionId);
    await deleted;
    expect(await second.listSessions()).toEqual([]);
    await expect(second.resumeSession(session.sessionId, {})).rejects.toThrow(session.sessionId);
  });

  test("asks people: questions, forms and commands", async () => {
    bench = await Bench.start(sdk, runtime);
    const given: string[] = [];
    const session = await bench.client().createSession({
      model: "m",
      onPermissionRequest: sdk.approveAll,
      onUserInputRequest: ({ choices }: Sdk) => ({ answer: choices[1], wasFreeform: false }),
      onElicitationRequest: ({ message }: Sdk) => ({ action: "accept", content: { confirmed: message === "Deploy?", value: "Ada" } }),
      commands: [{ name: "deploy", description: "Ships it.", handler: ({ args }: Sdk) => void given.push(args) }],
    });
    bench.says(calling("ask_user", { question: "Which?", choices: ["Red", "Blue"] }), "Blue it is.");
    await session.sendAndWait("Choose");
    expect(bench.asked.messages.at(-1).content).toBe("User selected: Blue");
    expect(session.capabilities.ui?.elicitation).toBe(true);
    expect(await session.ui.confirm("Deploy?")).toBe(true);
    expect(await session.ui.confirm("Delete?")).toBe(false);
    expect(await session.ui.input("Name?")).toBe("Ada");
    const { commands } = await session.rpc.commands.list();
    expect(commands.map(({ name }: Sdk) => name)).toContain("deploy");
    await session.rpc.commands.execute({ commandName: "deploy", args: "staging" });
    expect(given).toEqual(["staging"]);
  });
});

describe("the documentation", () => {
  test("what its sample shows works, with the path in the environment or in code", async () => {
    bench = await Bench.start(sdk, runtime);
    const page = readFileSync(fileURLToPath(new URL("../../../docs/copilot-sdk.md", import.meta.url)), "utf8");
    const sample = /```javascript\n([\s\S]*?)```/.exec(page)![1]!;
    bench.write("app.mjs", sample);
    mkdirSync(join(bench.folder, "node_modules/.bin"), { recursive: true });
    symlinkSync(fileURLToPath(new URL("node_modules/@github", import.meta.url)), join(bench.folder, "node_modules/@github"));
    symlinkSync(runtime.bin, join(bench.folder, "node_modules/.bin/skillhost"));
    bench.says(calling("get_weather", { city: "Oslo" }), "It is clear in Oslo.");
    const { env } = bench.options as { env: NodeJS.ProcessEnv };
    const run = promisify(execFile);
    const { stdout } = await run(process.execPath, ["--preserve-symlinks-main", "app.mjs"], {
      cwd: bench.folder,
      env: { ...env, COPILOT_HOME: join(bench.folder, ".home") },
    });
    expect(stdout.trim()).toBe("It is clear in Oslo.");
    expect(bench.asked.messages.at(-1).content).toBe('{"city":"Oslo","sky":"clear"}');
  });
});

describe("what a session is made of", () => {
  test("a skill that is saved reaches it without a call to reload", async () => {
    bench = await Bench.start(sdk, runtime);
    const session = await bench.client().createSession({ model: "m", onPermissionRequest: sdk.approveAll });
    bench.says("Hi.");
    await session.sendAndWait("Hi");
    const loaded = event(session, "session.skills_loaded", ({ skills }) => skills.some(({ name }: Sdk) => name === "books"));
    const updated = event(session, "session.tools_updated");
    bench.write("skills/books/SKILL.md", "---\nname: books\ndescription: Finds books.\n---\nUse find_book.\n");
    bench.write(
      "skills/books/tools/find_book.ts",
      [
        'export const SCHEMA = { name: "find_book", description: "Finds.", parameters: { type: "object", properties: { title: { type: "string" } } } };',
        "export const execute = ({ title }: { title: string }): string => `Shelf 3: ${title}`;",
      ].join("\n"),
    );
    await Promise.all([loaded, updated]);
    await expect
      .poll(async () => (await session.rpc.tools.getCurrentMetadata()).tools.map(({ name }: Sdk) => name), { timeout: 10_000 })
      .toContain("find_book");
    bench.says(calling("find_book", { title: "Emma" }), "Shelf 3.");
    await session.sendAndWait("Find Emma");
    expect(bench.asked.messages.at(-1).content).toBe("Shelf 3: Emma");
    expect((await session.rpc.skills.list()).skills).toMatchObject([{ name: "books", enabled: true }]);
  });

  test("skills of its own, switched off and on", async () => {
    bench = await Bench.start(sdk, runtime);
    bench.write("mine/verse/SKILL.md", "---\nname: verse\ndescription: Answers in verse.\n---\nRhyme.\n");
    const session = await bench.client().createSession({ model: "m", onPermissionRequest: sdk.approveAll, skillDirectories: ["mine"] });
    bench.says(calling("skill", { skill: "verse" }), "Roses.");
    await session.sendAndWait("Use verse");
    expect(bench.asked.messages.at(-1).content).toContain('<skill-context name="verse">');
    expect((await session.rpc.skills.getInvoked()).skills).toMatchObject([{ name: "verse" }]);
    await session.rpc.skills.disable({ name: "verse" });
    expect((await session.rpc.skills.list()).skills).toMatchObject([{ name: "verse", enabled: false }]);
  });

  test("an MCP server and the hook for its calls", async () => {
    bench = await Bench.start(sdk, runtime);
    const server = fileURLToPath(new URL("../../doubles/mcp-servers/raw-server.mjs", import.meta.url));
    const asked: Sdk[] = [];
    const session = await bench.client().createSession({
      model: "m",
      onPermissionRequest: (request: Sdk) => {
        asked.push(request);
        return { kind: "approve-once" };
      },
      mcpServers: { raw: { type: "local", command: process.execPath, args: [server, "plain"], tools: ["*"] } },
    });
    const { servers } = await session.rpc.mcp.list();
    expect(servers).toMatchObject([{ name: "raw", status: "connected" }]);
    const { tools } = await session.rpc.mcp.listTools({ serverName: "raw" });
    const [{ name }] = tools;
    bench.says(calling(`raw-${name}`, {}), "Done.");
    await session.sendAndWait("Call it");
    expect(asked[0]).toMatchObject({ kind: "mcp", serverName: "raw", toolName: `raw-${name}` });
  });

  test("agents, filters, a system message that is transformed, and another model", async () => {
    bench = await Bench.start(sdk, runtime);
    const session = await bench.client().createSession({
      model: "m",
      onPermissionRequest: sdk.approveAll,
      tools: [weather(() => "Sun.")],
      availableTools: new sdk.ToolSet().addCustom("*"),
      customAgents: [{ name: "reader", description: "Reads.", prompt: "You read aloud." }],
      agent: "reader",
      systemMessage: { mode: "customize", sections: { identity: { action: (text: string) => `${text.length > 0} cat` } } },
    });
    bench.says("Hi.", "Ho.");
    await session.sendAndWait("Hi");
    expect(bench.asked.messages[0].content).toContain("You read aloud.");
    expect(bench.asked.messages[0].content).toContain("true cat");
    expect(bench.asked.tools.map((tool: Sdk) => tool.function.name)).toEqual(["get_weather"]);
    expect((await session.rpc.agent.getCurrent()).agent).toMatchObject({ name: "reader" });
    await session.setModel("other-model");
    await session.sendAndWait("Hi");
    expect(bench.asked.model).toBe("other-model");
  });

  test("a provider of its own with tokens of its own", async () => {
    bench = await Bench.start(sdk, runtime);
    const session = await bench.client().createSession({
      model: "mine",
      onPermissionRequest: sdk.approveAll,
      provider: { type: "openai", baseUrl: bench.model.url, bearerTokenProvider: () => "fresh-token", headers: { "x-team": "a" } },
    });
    bench.says("Hi.");
    await session.sendAndWait("Hi");
    expect(bench.model.requests.at(-1)?.headers).toMatchObject({ authorization: "Bearer fresh-token", "x-team": "a" });
  });

  test("requests to models that the application carries itself, streamed, failing and aborted", async () => {
    bench = await Bench.start(sdk, runtime);
    const carried: Sdk[] = [];
    const { model } = bench;
    class Handler extends sdk.CopilotRequestHandler {
      protected async sendRequest(request: Request, context: Sdk): Promise<Response> {
        carried.push([new URL(request.url).pathname, context.sessionId === session?.sessionId]);
        if (carried.length === 2) throw new Error("no network today");
        return fetch(model.url + new URL(request.url).pathname, { method: "POST", body: await request.text(), signal: context.signal });
      }
    }
    let session: Sdk;
    const { COPILOT_API_URL: _url, ...env } = (bench.options as { env: NodeJS.ProcessEnv }).env;
    const client = bench.client({ env, requestHandler: new Handler() });
    session = await client.createSession({ model: "m", streaming: true, onPermissionRequest: sdk.approveAll });
    bench.model.answer(chatStreamAnswer({ content: "One two." }), chatStreamAnswer({ content: "After a failure." }), {
      steps: ["silence"],
    });
    expect((await session.sendAndWait("Count")).data.content).toBe("One two.");
    expect((await session.sendAndWait("Again")).data.content).toBe("After a failure.");
    expect(carried).toEqual(Array.from({ length: 3 }, () => ["/chat/completions", true]));
    await session.send("Wait");
    const { closed } = await bench.model.request(2);
    await session.abort();
    await closed;
  });

  test("models of the endpoint, and the usual one where none is named", async () => {
    bench = await Bench.start(sdk, runtime, ({ method }) =>
      method === "GET" ? jsonAnswer({ data: [{ id: "claude-sonnet-4.5", name: "Claude" }] }) : undefined,
    );
    const client = bench.client();
    await client.start();
    expect(await client.listModels()).toMatchObject([{ id: "claude-sonnet-4.5", name: "Claude", capabilities: { limits: {} } }]);
    const session = await client.createSession({ onPermissionRequest: sdk.approveAll });
    const sent = session.sendAndWait("Hi").catch((error: Error) => error);
    await sent;
    expect(bench.asked.model).toBe("claude-sonnet-4.5");
  });

  test("mode empty: only what is asked for", async () => {
    bench = await Bench.start(sdk, runtime);
    bench.write("skills/alpha/SKILL.md", "---\nname: alpha\ndescription: Alpha.\n---\nDo.\n");
    const session = await bench.client({ mode: "empty" }).createSession({
      model: "m",
      onPermissionRequest: sdk.approveAll,
      availableTools: new sdk.ToolSet().addCustom("*"),
      tools: [weather(() => "Sun.")],
    });
    bench.says("Hi.");
    await session.sendAndWait("Hi");
    expect(bench.asked.tools.map((tool: Sdk) => tool.function.name)).toEqual(["get_weather"]);
    expect(bench.asked.messages[0].content).not.toContain("alpha");
  });
});
