import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { emptyFolder } from "../io/temp-folder.ts";
import { type RunningCli, runCli, startCli, workplace } from "./run-cli.ts";

const greeter = {
  "skills/greeter/SKILL.md": "---\nname: greeter\ndescription: Greets.\n---\nGreet.",
  "skills/greeter/tools/hello.ts":
    'import { defineTool } from "skillhost";\nexport default defineTool("hello", { description: "Greets.", skipPermission: true, handler: () => "hello" });\n',
};

async function addressIn(command: RunningCli): Promise<string> {
  await command.said("Inspector: ");
  return /Inspector: (\S+)/.exec(command.stderr)![1]!;
}

test("dev serves the inspector when it is asked to, and inspect follows it until the host ends", async () => {
  using place = workplace(greeter);
  const dev = startCli(["dev", "--inspect"], { cwd: place.path });
  await dev.line((line) => line.includes("loaded in"));
  const address = await addressIn(dev);
  const texts = startCli(["inspect", address], { cwd: place.path });
  expect(await texts.line(() => true)).toMatch(/^\d\d:\d\d:\d\d .*: 1 skill, 1 tool, 0 sessions, 0 MCP servers, 0 problems$/);
  const lines = startCli(["inspect", address, "--json"], { cwd: place.path });
  expect(JSON.parse(await lines.line(() => true))).toMatchObject({ type: "snapshot", skills: [{ name: "greeter" }] });
  place.write("skills/greeter/tools/hello.ts", greeter["skills/greeter/tools/hello.ts"].replace('"hello" }', '"hi" }'));
  expect(await texts.line((line) => line.includes("reload: "))).toMatch(/reload: greeter updated \(\d+ ms\)$/);
  dev.interrupt();
  expect((await dev.done).code).toBe(0);
  expect(await texts.done).toMatchObject({ code: 0, stderr: "The host has ended.\n" });
  expect((await lines.done).code).toBe(0);
  expect(await runCli(["inspect", address])).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("No inspector answers at http://127.0.0.1:"),
  });
});

test("inspect prints what the stored calls of a saved tool give, and why they fail", async () => {
  const tool = (text: string): string =>
    greeter["skills/greeter/tools/hello.ts"]
      .replace("skipPermission: true,", "skipPermission: true, annotations: { readOnlyHint: true },")
      .replace('"hello" }', `"${text}" }`);
  using place = workplace({
    ...greeter,
    "skills/greeter/tools/hello.ts": tool("hello"),
    "skills/greeter/calls.json": '{"calls":{"greeting":{"tool":"hello","expect":{"text":"hello"}}}}',
  });
  const dev = startCli(["dev", "--inspect"], { cwd: place.path });
  await dev.line((line) => line.includes("loaded in"));
  const texts = startCli(["inspect", await addressIn(dev)], { cwd: place.path });
  expect(await texts.line(() => true)).toMatch(/0 problems, 1 stored call$/);
  expect(await texts.line((line) => line.includes("stored call"))).toMatch(/stored call greeter\/greeting: passed \(\d+ ms\)$/);
  place.write("skills/greeter/tools/hello.ts", tool("hi"));
  expect(await texts.line((line) => line.includes("stored call"))).toMatch(/stored call greeter\/greeting: failed \(\d+ ms\)$/);
  expect(await texts.line(() => true)).toMatch(/ {2}The text differs at character 2: "hi", not "hello"\.$/);
  expect(await texts.line(() => true)).toMatch(/ {2}-hello$/);
  expect(await texts.line(() => true)).toMatch(/ {2}\+hi$/);
  dev.interrupt();
  expect((await dev.done).code).toBe(0);
});

test("dev opens no port without a terminal, nor with --no-inspect", async () => {
  using place = workplace(greeter);
  for (const setup of [
    { argv: ["dev"], isTTY: false },
    { argv: ["dev", "--no-inspect"], isTTY: true },
  ]) {
    const dev = startCli(setup.argv, { cwd: place.path, isTTY: setup.isTTY });
    await dev.line((line) => line.includes("loaded in"));
    await dev.said("Ctrl-C to stop.");
    dev.interrupt();
    expect((await dev.done).stderr).not.toContain("Inspector");
  }
});

test("inspect says what is wrong with an address or a file", async () => {
  const folder = emptyFolder();
  writeFileSync(join(folder, "empty.jsonl"), '{"type":"x"}\nnot json\n');
  const cases: readonly (readonly [string, RegExp])[] = [
    ["https://127.0.0.1:1/#token=abc", /not the address of an inspector/],
    ["http://example.org/#token=abc", /not the address of an inspector/],
    ["http://127.0.0.1:1/", /not the address of an inspector/],
    [join(folder, "missing.jsonl"), /cannot be read/],
    [folder, /cannot be read/],
    [join(folder, "empty.jsonl"), /contains no events of a session/],
  ];
  for (const [source, message] of cases) {
    const { code, stderr } = await runCli(["inspect", source], { cwd: folder });
    expect([source, code]).toEqual([source, 1]);
    expect(stderr).toMatch(message);
  }
});

test("inspect shows an export without a host, and reports lines that it could not read", async () => {
  const folder = emptyFolder();
  const event = (type: string, data: object, id: string): string =>
    `${JSON.stringify({ id, type, timestamp: "2026-01-01T00:00:00.000Z", parentId: null, data })}\n`;
  const file = join(folder, "session.jsonl");
  writeFileSync(
    file,
    `${event("session.start", { sessionId: "s1", options: { workingDirectory: "/work" } }, "1")}damaged\n${event("user.message", { content: "Hi", apiKey: "hunter2" }, "2")}`,
  );
  const shown = startCli(["inspect", file], { cwd: folder });
  const address = /Inspector: (\S+)/.exec(await shown.line(() => true))![1]!;
  const reading = startCli(["inspect", address, "--json"], { cwd: folder });
  const snapshot = JSON.parse(await reading.line(() => true)) as Record<string, unknown>;
  expect(snapshot).toMatchObject({
    isExport: true,
    isReadOnly: true,
    sessions: [{ id: "s1", title: "Hi", state: "closed", workingDirectory: "/work" }],
    events: [{ event: { type: "session.start" } }, { event: { data: { content: "Hi", apiKey: "[redacted]" } } }],
  });
  expect(snapshot["diagnostics"]).toHaveLength(1);
  const { port, hash } = new URL(address);
  const answer = await fetch(`http://127.0.0.1:${port}/request`, {
    method: "POST",
    headers: { Authorization: `Bearer ${hash.slice("#token=".length)}`, "Content-Type": "application/json" },
    body: JSON.stringify({ method: "call", params: { tool: "x" } }),
  });
  expect(answer.status).toBe(403);
  shown.interrupt();
  expect((await shown.done).code).toBe(0);
});
