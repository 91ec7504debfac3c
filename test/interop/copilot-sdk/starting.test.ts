import { execFile } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { patience } from "../../slowness.ts";
import { calling, event, Runtime, runtimePath, type Sdk, write } from "./sdk-kit.ts";

const run = promisify(execFile);
const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

let runtime: Runtime;
let sdk: Sdk;

beforeAll(async () => {
  runtime = await Runtime.start();
  sdk = runtime.sdk;
}, patience(120_000));

afterEach(() => runtime.clear());
afterAll(() => runtime[Symbol.asyncDispose]());

describe("the runtime that an SDK starts", () => {
  test("a runtime over stdio handles handshake, ping, status, sign-in and a turn, and ends without errors", async () => {
    const client = runtime.spawning();
    await client.start();
    expect(await client.ping("hello")).toMatchObject({ message: "pong: hello", protocolVersion: 3 });
    expect(await client.getStatus()).toMatchObject({ protocolVersion: 3 });
    expect(await client.getAuthStatus()).toMatchObject({ isAuthenticated: true });
    const session = await runtime.session({}, client);
    runtime.says("Hello.");
    expect((await session.sendAndWait("Hi")).data.content).toBe("Hello.");
    expect(await client.stop()).toEqual([]);
  });

  test("an unknown flag ends the process with an error that names it", async () => {
    await expect(runtime.spawning({}, ["--nonexistent-flag-for-testing"]).start()).rejects.toThrow(/nonexistent/);
  });

  test("clients join a runtime over TCP only with the token, and clients of one session share its events and tools", async () => {
    const first = runtime.listening("the-token");
    await first.start();
    await expect(runtime.joining(first, "wrong").start()).rejects.toThrow(/AUTHENTICATION_FAILED/);
    await expect(runtime.joining(first).start()).rejects.toThrow(/AUTHENTICATION_FAILED/);
    const tool = (name: string, text: string, more: object = {}): Sdk =>
      sdk.defineTool(name, { description: "Returns a text.", handler: () => text, ...more });
    const session = await runtime.session({ tools: [tool("get_weather", "Sun.", { skipPermission: true })] }, first);
    const joined = await runtime
      .joining(first, "the-token")
      .resumeSession(session.sessionId, { onPermissionRequest: sdk.approveAll, tools: [tool("get_time", "12:00")] });
    runtime.says(calling("get_weather"), calling("get_time", {}, "call-2"), "Both.");
    const heard = event(joined, "assistant.message", ({ content }) => content === "Both.");
    const decisions: Sdk[] = [];
    session.on("permission.completed", (event: Sdk) => void decisions.push(event));
    expect((await session.sendAndWait("Weather and time?")).data.content).toBe("Both.");
    await heard;
    const results = runtime.asked.messages.filter(({ role }: Sdk) => role === "tool").map(({ content }: Sdk) => content);
    expect(results).toEqual(["Sun.", "12:00"]);
    expect(decisions).toHaveLength(1);
  });

  test("a session resumes in another process", async () => {
    const first = runtime.spawning();
    const workingDirectory = runtime.place();
    const session = await runtime.session({ workingDirectory }, first);
    runtime.says("I will.");
    await session.sendAndWait("Remember 42.");
    await first.stop();
    const second = runtime.spawning();
    await second.start();
    const listed = (await second.listSessions()).find(({ sessionId }: Sdk) => sessionId === session.sessionId);
    expect(listed).toMatchObject({ summary: "Remember 42.", context: { workingDirectory } });
    const resumed = await second.resumeSession(session.sessionId, { onPermissionRequest: sdk.approveAll });
    runtime.says("42.");
    expect((await resumed.sendAndWait("What was it?")).data.content).toBe("42.");
    expect(runtime.asked.messages.map(({ role }: Sdk) => role)).toEqual(["system", "user", "assistant", "user"]);
    const types = (await resumed.getEvents()).map(({ type }: Sdk) => type);
    expect(types.filter((type: string) => type === "user.message")).toHaveLength(2);
    const deleted = new Promise((resolve) => second.onLifecycle("session.deleted", resolve));
    await second.deleteSession(session.sessionId);
    await deleted;
    expect((await second.listSessions()).map(({ sessionId }: Sdk) => sessionId)).not.toContain(session.sessionId);
    await expect(second.resumeSession(session.sessionId, {})).rejects.toThrow(session.sessionId);
  });
});

describe("applications without code for skillhost", () => {
  /** Runs a JavaScript program beside the SDK and returns its output. */
  async function runApplication(folder: string, file: string, env: NodeJS.ProcessEnv): Promise<string> {
    mkdirSync(join(folder, "node_modules/.bin"), { recursive: true });
    for (const name of ["@github", "zod"]) symlinkSync(here(`node_modules/${name}`), join(folder, "node_modules", name));
    symlinkSync(runtimePath(), join(folder, "node_modules/.bin/skillhost"));
    const { stdout } = await run(process.execPath, ["--preserve-symlinks-main", file], {
      cwd: folder,
      env: { ...runtime.env, COPILOT_HOME: join(folder, ".home"), GITHUB_TOKEN: "token-of-the-test", ...env },
    });
    return stdout.trim();
  }

  test("the sample of the documentation works with the runtime's path in code", async () => {
    const page = readFileSync(here("../../../docs/copilot-sdk.md"), "utf8");
    const folder = runtime.place();
    write(join(folder, "app.mjs"), /```javascript\n([\s\S]*?)```/.exec(page)![1]!);
    runtime.says(calling("get_weather", { city: "Oslo" }), "It is clear in Oslo.");
    expect(await runApplication(folder, "app.mjs", {})).toBe("It is clear in Oslo.");
    expect(runtime.lastToolResult).toBe('{"city":"Oslo","sky":"clear"}');
  });

  test("a help desk with seven tools works with the runtime's path in COPILOT_CLI_PATH", async () => {
    const folder = runtime.place();
    cpSync(here("help-desk.mjs"), join(folder, "help-desk.mjs"));
    runtime.says(
      { toolCalls: [{ id: "1", name: "query_users", arguments: { searchTerm: "ada" } }] },
      {
        toolCalls: [
          { id: "2", name: "get_user", arguments: { userId: 123 } },
          { id: "3", name: "get_user", arguments: { userId: 999 } },
          { id: "4", name: "get_weather", arguments: { city: "Oslo" } },
        ],
      },
      {
        toolCalls: [
          { id: "5", name: "send_notification", arguments: { userId: 123, message: "Welcome!" } },
          { id: "6", name: "draw_chart", arguments: { values: [1, 2, 3] } },
          { id: "7", name: "delete_user", arguments: { userId: 123 } },
          { id: "8", name: "get_time", arguments: {} },
        ],
      },
      "Ada is welcome.",
    );
    const lines = (await runApplication(folder, "help-desk.mjs", { COPILOT_CLI_PATH: runtimePath() })).split("\n");
    expect(lines.at(-1)).toBe("Ada is welcome.");
    expect(lines.filter((line) => line.startsWith("asked for"))).toEqual(
      ["query_users", "get_user", "get_user", "get_weather", "send_notification", "draw_chart", "delete_user"].map(
        (name) => `asked for ${name}`,
      ),
    );
    expect(lines).toContain("sent to 123: Welcome!");
    const finished = lines.filter((line) => line.startsWith("finished"));
    expect(finished.filter((line) => line.endsWith("false")).sort()).toEqual(["finished delete_user: false", "finished get_user: false"]);
    expect(finished).toHaveLength(8);
    const results = runtime.asked.messages.filter(({ role }: Sdk) => role === "tool").map(({ content }: Sdk) => content);
    expect(results).toEqual([
      'Found 1 users matching "ada": Ada Lovelace (ada@example.com)',
      "User: Ada Lovelace, Email: ada@example.com",
      "There is no user 999. Find the id with query_users.",
      '{"city":"Oslo","temperature":4,"condition":"light rain"}',
      "Notification sent successfully",
      expect.stringContaining("Chart generated successfully"),
      'Failed to execute `delete_user` tool with arguments: {"userId":123} due to error: Error: Tool execution failed',
      expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
    ]);
    expect(JSON.stringify(runtime.asked)).not.toMatch(/rows: 1|ECONNREFUSED|10\.0\.0\.7/);
    expect(runtime.asked.tools.find((tool: Sdk) => tool.function.name === "query_users").function.parameters).toMatchObject({
      type: "object",
      properties: { searchTerm: { type: "string", description: "Name or email to search for" }, limit: { default: 10 } },
    });
  });
});
