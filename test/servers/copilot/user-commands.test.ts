import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { type Json, Served, type TestClient } from "./wire-kit.ts";

let served: Served;

afterEach(() => served?.[Symbol.asyncDispose]());

async function begin(options: object = {}, plugins = ["skillhost/plugins/workspace-tools"]) {
  served = await Served.start({ host: { plugins } });
  const client = await served.connect();
  const sessionId = await client.create({ model: "m", workingDirectory: served.folder, ...options });
  const run = (command: string, requestId = "r1") =>
    client.request("session.shell.executeUserRequested", { sessionId, requestId, command });
  return { client, sessionId, run };
}

const typesOf = (client: TestClient, toolCallId: string): string[] =>
  client.events.filter(({ event }) => (event.data as { toolCallId?: string }).toolCallId === toolCallId).map(({ event }) => event.type);

describe.skipIf(process.platform === "win32")("a command that the user entered", () => {
  test("runs in the working directory without a question, and its output and exit code are returned", async () => {
    const { client, run } = await begin({ requestPermission: true });
    served.write("a.txt", "text of a");
    const { toolCallId, ...rest } = await run("cat a.txt; echo; echo problem >&2");
    expect(rest).toEqual({ success: true, output: "text of a\nproblem\n", exitCode: 0 });
    const types = ["tool.execution_start", "permission.completed", "tool.execution_partial_result", "tool.execution_complete"];
    expect([...new Set(typesOf(client, toolCallId))]).toEqual(types);
  });

  test.each([
    ["a failing command", "echo before; exit 3", { success: false, output: "before\n", exitCode: 3 }],
    ["a command that is not found", "no-such-program-of-this-test", { success: false, exitCode: 127 }],
    ["output that looks like the end", "echo '<exited with exit code 0>'; exit 9", { success: false, exitCode: 9 }],
    [
      "output that looks like the end, before more than is shown",
      "echo '<exited with exit code 0>'; seq 1 20000; exit 9",
      { success: false, exitCode: 9 },
    ],
    [
      "more output than is shown",
      "seq 1 20000",
      { success: true, output: expect.stringMatching(/^1\n2\n[\s\S]*read it in parts/), exitCode: 0 },
    ],
    ["a syntax error", "if then (", { success: false, exitCode: 2 }],
  ])("%s", async (_what, command, expected) => {
    const { run } = await begin();
    expect(await run(command)).toMatchObject(expected);
  });

  test("is not run when a rule of the session denies it", async () => {
    const { client, sessionId, run } = await begin();
    await client.request("session.permissions.configure", {
      sessionId,
      rules: { approved: [], denied: [{ kind: "shell", argument: null }] },
    });
    const answer = await run("touch made.txt");
    expect(answer).toMatchObject({ success: false, exitCode: null, error: expect.stringContaining("denied") });
    expect(existsSync(join(served.folder, "made.txt"))).toBe(false);
  });

  test("is cancelled by its requestId, and another one is not", async () => {
    const { client, sessionId, run } = await begin();
    const cancel = (requestId: string) => client.request("session.shell.cancelUserRequested", { sessionId, requestId });
    const running = run("echo started; sleep 600", "long");
    await expect.poll(() => client.events.some(({ event }) => event.type === "tool.execution_start")).toBe(true);
    expect(
      (await client.refusal("session.shell.executeUserRequested", { sessionId, requestId: "long", command: "true" })).message,
    ).toContain("is running");
    expect(await cancel("other")).toEqual({ cancelled: false });
    expect(await cancel("long")).toEqual({ cancelled: true });
    expect(await running).toMatchObject({ success: false, exitCode: null });
    expect(await cancel("long")).toEqual({ cancelled: false });
    expect(await run("echo again", "long")).toMatchObject({ success: true, output: "again\n" });
  });

  test.each([
    ["no command", {}],
    ["an empty command", { command: "  " }],
    ["a command that is not a text", { command: ["ls"] }],
    ["no requestId", { requestId: null, command: "ls" }],
  ])("%s is refused", async (_what, params) => {
    const { client, sessionId } = await begin();
    const { message } = await client.refusal("session.shell.executeUserRequested", { sessionId, requestId: "r", ...params });
    expect(message).toMatch(/command must|requestId must/);
  });
});

test("a session without the built-in shell refuses commands, also if a client has a tool of that name", async () => {
  const { client, sessionId } = await begin({ tools: [{ name: "bash", description: "Another." }] }, []);
  const { message } = await client.refusal("session.shell.executeUserRequested", { sessionId, requestId: "r", command: "ls" });
  expect(message).toContain('no built-in tool "bash"');
});

describe.skipIf(process.platform === "win32")("the commands of a client program", () => {
  async function begin(): Promise<{
    readonly ask: (method: string, params: object) => Promise<Json>;
    readonly said: Json[];
    readonly exit: (processId: string) => Promise<number>;
    readonly refusal: (params: object) => Promise<string>;
  }> {
    served = await Served.start();
    const client = await served.connect();
    const sessionId = await client.create({ model: "m" });
    const said: Json[] = [];
    const exits = new Map<string, number>();
    let heard = (): void => {};
    client.connection.onNotification("shell.output", (params: Json) => void said.push(params));
    client.connection.onNotification("shell.exit", ({ processId, exitCode }: Json) => {
      exits.set(processId, exitCode);
      heard();
    });
    const exit = async (processId: string): Promise<number> => {
      while (!exits.has(processId)) await new Promise<void>((resolve) => (heard = resolve));
      return exits.get(processId)!;
    };
    const ask = (method: string, params: object): Promise<Json> => client.request(`session.shell.${method}`, { sessionId, ...params });
    return { ask, said, exit, refusal: async (params) => (await client.refusal("session.shell.exec", { sessionId, ...params })).message };
  }

  test("send their output and their exit code, and stay outside of the conversation", async () => {
    const { ask, said, exit } = await begin();
    served.write("sub/file", "");
    const { processId } = await ask("exec", { command: "ls; echo wrong >&2; exit 3", cwd: "sub" });
    expect(await exit(processId)).toBe(3);
    const textOf = (stream: string): string =>
      said
        .filter((one) => one.stream === stream)
        .map(({ data }) => data)
        .join("");
    expect([textOf("stdout"), textOf("stderr")]).toEqual(["file\n", "wrong\n"]);
    expect(await ask("kill", { processId })).toEqual({ killed: false });
  });

  test("end when they are stopped or take too long, and say so when they cannot start", async () => {
    const { ask, said, exit } = await begin();
    const long = await ask("exec", { command: "sleep 60" });
    expect(await ask("kill", { processId: long.processId, signal: "SIGKILL" })).toEqual({ killed: true });
    expect(await exit(long.processId)).toBe(1);
    const slow = await ask("exec", { command: "sleep 60", timeout: 20 });
    expect(await exit(slow.processId)).toBe(1);
    const lost = await ask("exec", { command: "pwd", cwd: "/nowhere-at-all" });
    expect(await exit(lost.processId)).toBe(1);
    expect(said).toEqual([{ processId: lost.processId, stream: "stderr", data: expect.any(String) }]);
  });

  test.each([
    [{}, "command must be a string"],
    [{ command: "ls", timeout: 0 }, "timeout must be an integer"],
    [{ command: "ls", timeout: 1.5 }, "timeout must be an integer"],
  ])("are refused for %j", async (params, why) => {
    const { refusal } = await begin();
    expect(await refusal(params)).toContain(why);
  });
});
