import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, test } from "vitest";
import { calling, type Json, Served, type TestClient, weather } from "./wire-kit.ts";

let served: Served;

afterEach(() => served?.[Symbol.asyncDispose]());

const plugins = ["skillhost/plugins/workspace-tools"];

async function connect(files: Readonly<Record<string, string>> = {}): Promise<TestClient> {
  served = await Served.start({ host: { plugins }, files });
  return served.connect();
}

describe("which tools a session has", () => {
  test.each<[filters: object, wanted: readonly string[], unwanted: readonly string[]]>([
    [{}, ["bash", "view", "create", "edit", "grep", "glob", "web_fetch", "get_weather"], ["ask_user", "skill"]],
    [{ availableTools: ["custom:*"] }, ["get_weather"], ["bash", "task"]],
    [{ availableTools: ["builtin:view", "get_weather"] }, ["get_weather", "view"], ["bash"]],
    [{ excludedTools: ["builtin:bash", "custom:get_weather"] }, ["view"], ["bash", "get_weather"]],
    [{ availableTools: ["builtin:*"], excludedTools: ["builtin:bash"] }, ["view"], ["bash", "get_weather"]],
    [{ availableTools: [] }, [], ["bash", "view", "get_weather", "task"]],
    [{ defaultAgent: { excludedTools: ["view"] } }, ["bash"], ["view"]],
    [{ requestUserInput: true }, ["ask_user"], []],
  ])("%j", async (filters, wanted, unwanted) => {
    const client = await connect();
    const sessionId = await client.create({ model: "m", tools: [weather], ...filters });
    served.says("Hi.");
    await client.say(sessionId, "Hi");
    const names = (served.asked.tools ?? []).map((tool: Json) => tool.function.name);
    expect(names).toEqual(expect.arrayContaining([...wanted]));
    expect(names.filter((name: string) => unwanted.includes(name))).toEqual([]);
  });
});

describe("the built-in tools", () => {
  test("answer the model word for word, after a permission that says what would be done", async () => {
    const client = await connect({ "a.txt": "one\ntwo\n" });
    client.serve();
    const sessionId = await client.create({ model: "m" });
    const path = (file: string): string => join(served.folder, file);
    const calls: readonly [tool: string, args: object, text: string | RegExp, request: object][] = [
      ["view", { path: path("a.txt") }, /^1\. one\n2\. two\n3\. ?$/, { kind: "read", path: path("a.txt") }],
      ["create", { path: path("b.txt"), file_text: "two" }, `Created file ${path("b.txt")} with 3 characters`, { kind: "write" }],
      ["edit", { path: path("b.txt"), old_str: "two", new_str: "2" }, `File ${path("b.txt")} updated with changes.`, { kind: "write" }],
      [
        "bash",
        { command: "cat b.txt", description: "Reads" },
        "2\n<exited with exit code 0>",
        { kind: "shell", fullCommandText: "cat b.txt" },
      ],
      ["grep", { pattern: "two", output_mode: "content", "-n": true }, "./a.txt:2:two", { kind: "read" }],
      ["glob", { pattern: "*.txt" }, "./a.txt\n./b.txt", { kind: "read" }],
      ["view", { path: path("none") }, `Path ${path("none")} does not exist. Please provide a valid path.`, {}],
    ];
    for (const [index, [tool, args, text]] of calls.entries()) {
      served.says(calling(tool, args, `call-${index}`), "So.");
      await client.say(sessionId, tool);
      const result = served.asked.messages.findLast(({ role }: Json) => role === "tool").content;
      expect(result, tool).toEqual(typeof text === "string" ? text : expect.stringMatching(text));
    }
    const asked = client.events.filter(({ event }) => event.type === "permission.requested").map(({ event }) => event.data);
    for (const [index, [, , , request]] of calls.entries()) {
      const about = asked.find(({ permissionRequest }) => (permissionRequest as Json).toolCallId === `call-${index}`);
      if (Object.keys(request).length > 0) expect(about?.["permissionRequest"]).toMatchObject(request);
    }
    expect(asked.find(({ promptRequest }) => (promptRequest as Json).kind === "commands")).toBeDefined();
  });
});

test("a client's preMcpToolCall hook says which _meta goes to a server", async () => {
  const client = await connect();
  const server = fileURLToPath(new URL("../../interop/copilot-sdk/meta-server.mjs", import.meta.url));
  const mcpServers = { box: { type: "local", command: process.execPath, args: [server], tools: ["*"] } };
  const sessionId = await client.create({ model: "m", mcpServers, hooks: true });
  await client.request("session.permissions.setApproveAll", { sessionId, enabled: true });
  const inputs: Json[] = [];
  let metaToUse: object | null | undefined = { trace: 1 };
  client.answers("hooks.invoke", ({ hookType, input }) => {
    if (hookType !== "preMcpToolCall") return {};
    inputs.push(input);
    return metaToUse === undefined ? {} : { output: { metaToUse } };
  });
  const results: string[] = [];
  for (const meta of [{ trace: 1 }, null, undefined]) {
    metaToUse = meta;
    served.says(calling("box-echo", { text: "hey" }), "Done.");
    await client.say(sessionId, "Call it");
    results.push(served.asked.messages.findLast(({ role }: Json) => role === "tool").content);
  }
  expect(results).toEqual(['{"text":"hey"} with {"trace":1}', '{"text":"hey"} with {}', '{"text":"hey"} with {}']);
  expect(inputs[0]).toMatchObject({ serverName: "box", toolName: "echo", arguments: { text: "hey" }, toolCallId: "call-1" });
});
