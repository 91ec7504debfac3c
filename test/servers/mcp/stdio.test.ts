import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { Client as OldClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport as OldTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { type TempSkill, tempSkill } from "skillhost/testing";
import { expect, test } from "vitest";
import { buildPackage } from "../../built-package.ts";
import { deferred, type Era, eras, initialize, skillDocument, textOf, toolModule } from "./serving-kit.ts";

const built = buildPackage();

const greet = (greeting: string): string =>
  `import { defineTool } from "skillhost";
console.log("this module was loaded");
export default defineTool("greet", {
  description: "Greets with ${greeting}.",
  handler: ({ name }) => {
    console.log("the tool was called");
    process.stdout.write("and writes itself");
    return \`${greeting} \${name}\`;
  },
});
`;

function makeSkill(): TempSkill {
  return tempSkill({ "SKILL.md": skillDocument("greeter"), "tools/greet.mjs": greet("Hello") }, { name: "greeter" });
}

function commandOf({ root }: TempSkill, more: readonly string[] = []): { command: string; args: string[]; cwd: string; stderr: "pipe" } {
  return { command: process.execPath, args: [built.bin, "--skills", root, "mcp", ...more], cwd: root, stderr: "pipe" };
}

async function connect(skill: TempSkill, era: Era, more?: readonly string[]): Promise<Client> {
  const mode = era === "modern" ? { pin: "2026-07-28" } : "legacy";
  const client = new Client({ name: "test", version: "1.0.0" }, { versionNegotiation: { mode } });
  await client.connect(new StdioClientTransport(commandOf(skill, more)));
  return client;
}

test.each(eras)("a client of the %s era is served, and notified of a saved tool", async (era) => {
  using skill = makeSkill();
  const client = await connect(skill, era, ["--yes"]);
  const changed = deferred<readonly (string | undefined)[]>();
  client.setNotificationHandler("notifications/tools/list_changed", async () =>
    changed.resolve((await client.listTools()).tools.map(({ description }) => description)),
  );
  if (era === "modern") await client.listen({ toolsListChanged: true });
  expect(client.getServerVersion()).toMatchObject({ name: "skillhost" });
  expect(client.getInstructions()).toContain("greeter");
  expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(["greet"]);
  expect(textOf(await client.callTool({ name: "greet", arguments: { name: "Ada" } }))).toBe("Hello Ada");
  skill.write("tools/greet.mjs", greet("Good morning"));
  expect(await changed.promise).toEqual(["Greets with Good morning."]);
  expect(textOf(await client.callTool({ name: "greet", arguments: { name: "Ada" } }))).toBe("Good morning Ada");
  await client.close();
});

test("serves a client of the SDK's first generation, and asks it for permission", async () => {
  using skill = makeSkill();
  const client = new OldClient({ name: "old", version: "1.0.0" }, { capabilities: { elicitation: {} } });
  const asked: string[] = [];
  client.setRequestHandler(ElicitRequestSchema, ({ params: { message } }) => {
    asked.push(message);
    return { action: "accept", content: { decision: "allow for this session" } };
  });
  await client.connect(new OldTransport(commandOf(skill)));
  expect((await client.listTools()).tools).toMatchObject([{ name: "greet", inputSchema: { type: "object" } }]);
  for (const name of ["Ada", "Grace"]) expect(textOf(await client.callTool({ name: "greet", arguments: { name } }))).toBe(`Hello ${name}`);
  expect(asked).toHaveLength(1);
  expect((await client.listPrompts()).prompts.map(({ name }) => name)).toContain("greeter");
  expect((await client.readResource({ uri: "skill://greeter/SKILL.md" })).contents).toMatchObject([{ mimeType: "text/markdown" }]);
  await client.close();
});

function start(skill: TempSkill, more: readonly string[] = []): ChildProcess {
  const { command, args, cwd } = commandOf(skill, more);
  return spawn(command, args, { cwd, stdio: ["pipe", "pipe", "pipe"] });
}

test("prints nothing but the protocol, answers what was asked before the end of its input, and ends with 0", async () => {
  using skill = makeSkill();
  const child = start(skill, ["--yes"]);
  const call = { jsonrpc: "2.0", id: 2, method: "tools/call", params: { name: "greet", arguments: { name: "Ada" } } };
  child.stdin?.end(`not json\n${JSON.stringify(initialize)}\n${JSON.stringify(call)}\n`);
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout!), text(child.stderr!), once(child, "close")]);
  const messages = stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  expect(messages.map(({ id }) => id)).toEqual([1, 2]);
  expect(messages[1].result.content).toEqual([{ type: "text", text: "Hello Ada" }]);
  for (const line of ["this module was loaded", "the tool was called", "and writes itself"]) expect(stderr).toContain(line);
  expect(code).toBe(0);
});

test("the process ends during a call when its input ends, when it is terminated, and when its output is closed", async () => {
  const hang = `defineTool("hang", { description: "Hangs.", handler: () => new Promise(() => {}) })`;
  using skill = tempSkill({ "SKILL.md": skillDocument("hanger"), "tools/hang.ts": toolModule(hang) }, { name: "hanger" });
  const endings: readonly ((child: ChildProcess) => unknown)[] = [
    (child) => child.stdin?.end(),
    (child) => child.kill("SIGTERM"),
    (child) => {
      child.stdout?.destroy();
      child.stdin?.write(`${JSON.stringify({ jsonrpc: "2.0", id: 3, method: "ping" })}\n`);
    },
  ];
  const codes = await Promise.all(
    endings.map(async (end) => {
      const child = start(skill, ["--yes"]);
      child.stdin?.on("error", () => {});
      const call = { jsonrpc: "2.0", id: 2, method: "tools/call", params: { name: "hang" } };
      child.stdin?.write(`${JSON.stringify(initialize)}\n${JSON.stringify(call)}\n`);
      await once(child.stdout!, "data");
      const closed = once(child, "exit");
      end(child);
      return (await closed)[0];
    }),
  );
  expect(codes).toEqual([0, 0, 0]);
});
