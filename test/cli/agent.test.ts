import { afterEach, beforeEach, expect, test } from "vitest";
import { doubleProgram } from "../doubles/language-server/double-program.ts";
import { type LoopbackBackend, startLoopbackBackend } from "../doubles/language-server/loopback-backend.ts";
import { runCli, skillDocument, toolModule, type Workplace, workplace } from "./run-cli.ts";

let backend: LoopbackBackend;
let place: Workplace;

beforeEach(async () => {
  backend = await startLoopbackBackend();
  place = workplace({ "skills/greeter/SKILL.md": skillDocument("greeter"), "skills/greeter/tools/greet.ts": toolModule("greet", "Hello") });
});
afterEach(async () => {
  place[Symbol.dispose]();
  await backend[Symbol.asyncDispose]();
});

function agent(...args: string[]): ReturnType<typeof runCli> {
  return runCli(["agent", "Greet Ada.", "-w", place.path, "--server", doubleProgram, ...args], {
    env: backend.environment(place.at("home")),
  });
}

const call = { id: "call-0", name: "greet", arguments: { name: "Ada" } };

test("agent prints the answer of the server's model and the calls of the skills' tools", async () => {
  backend.answer({ toolCalls: [call] }, { content: "She was greeted." });
  const { code, stdout, stderr } = await agent("--allow", "greet");
  expect({ code, stdout }).toEqual({ code: 0, stdout: "She was greeted.\n" });
  expect(stderr).toMatch(/^> greet \{"name":"Ada"\}\n\S+ greet done, \d+ ms\n$/);
  const { messages, tools } = backend.asked.at(-1);
  expect(messages.at(-1)).toMatchObject({ role: "tool", content: "Hello Ada" });
  const offered = tools.map((tool: { function: { name: string } }) => tool.function.name);
  expect(offered).toEqual(expect.arrayContaining(["greet", "read_file", "create_file", "run_in_terminal"]));
  expect(offered).not.toContain("view");
});

test("agent denies calls that are not allowed and prints how to allow them", async () => {
  backend.answer({ toolCalls: [call] }, { content: "That was not to be." });
  const { code, stdout, stderr } = await agent();
  expect({ code, stdout }).toEqual({ code: 0, stdout: "That was not to be.\n" });
  expect(stderr).toContain('"greet" was denied: it is not allowed. Allow it with --allow greet, or everything with --yes.');
});

test("agent fails with the message of a failed turn", async () => {
  backend.answer({ status: 402 });
  const { code, stdout, stderr } = await agent("--yes");
  expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
  expect(stderr).toContain("error: Quota Exceeded");
});

test("agent --json prints events and an envelope", async () => {
  backend.answer({ toolCalls: [call] }, { content: "Done." });
  const { code, stdout } = await agent("--yes", "--json");
  const lines = stdout
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
  expect(code).toBe(0);
  expect(lines.map(({ type }) => type)).toEqual(expect.arrayContaining(["tool.execution_complete", "assistant.message_delta"]));
  expect(lines.at(-1)).toMatchObject({
    ok: true,
    command: "agent",
    data: { content: "Done.", calls: [{ name: "greet", status: "completed" }] },
  });
});

test("agent reports that the user is not signed in", async () => {
  backend.refuse();
  const { code, stderr } = await agent("--yes");
  expect(code).toBe(1);
  expect(stderr).toContain("No user is signed in to GitHub Copilot (NotSignedIn).");
});

test("agent reports wrong usage", async () => {
  expect(await runCli(["agent", " "], { cwd: place.path })).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("The prompt is empty"),
  });
  expect(await runCli(["agent", "Hello", "-w", place.at("nowhere")])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("does not exist. Choose another one with -w"),
  });
  expect(await runCli(["agent", "Hello", "-w", place.path, "--allow", "("])).toMatchObject({ code: 2 });
  const missing = await runCli(["agent", "Hello", "-w", place.path, "--server", place.at("nothing")]);
  expect(missing).toMatchObject({ code: 1, stderr: expect.stringContaining("There is no language server at") });
});
