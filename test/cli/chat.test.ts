import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { chatStreamAnswer, createGate, jsonAnswer, type ScriptedAnswer, sse, startScriptedModel } from "../doubles/scripted-model.ts";
import { runCli, skillDocument, startCli, toolModule, workplace } from "./run-cli.ts";

async function stage(...answers: readonly ScriptedAnswer[]) {
  const endpoint = await startScriptedModel();
  onTestFinished(() => endpoint.close());
  endpoint.answer(...answers);
  const place = workplace({
    "skills/a/SKILL.md": skillDocument("a"),
    "skills/a/tools/greet.ts": toolModule("greet", "Hello"),
    "skillhost.json": '{ "sessionsDirectory": "./sessions" }',
  });
  onTestFinished(() => place[Symbol.dispose]());
  const env = { OPENAI_BASE_URL: `${endpoint.url}/v1`, OPENAI_MODEL: "m-1" };
  return { endpoint, place, setup: { cwd: place.path, env } };
}

const greets = { toolCalls: [{ id: "c1", name: "greet", arguments: { name: "Ada" } }] };
const again = { toolCalls: [{ id: "c2", name: "greet", arguments: { name: "Ada" } }] };
const says = (content: string): ScriptedAnswer => chatStreamAnswer({ content });
const sentTexts = (body: { messages: { role: string; content: unknown }[] }): readonly unknown[] =>
  body.messages
    .filter(({ role }) => role === "user")
    .map(({ content }) => String(content).replace(/<current_datetime>[\s\S]*?<\/current_datetime>\s*/, ""));

test("chat answers each line, keeps the conversation, and ends with the input", async () => {
  const { endpoint, setup } = await stage(says("One."), says("Two."));
  const cli = startCli(["chat"], setup);
  cli.type("First?");
  await cli.line((line) => line === "One.");
  cli.type("");
  cli.type("Second?");
  await cli.line((line) => line === "Two.");
  cli.endInput();
  expect(await cli.done).toMatchObject({ code: 0, stdout: "One.\nTwo.\n" });
  expect(cli.stderr).toMatch(/^\d+ tools, session [\w-]+\. \/help lists commands; Ctrl-D ends\.\n$/);
  expect(sentTexts(endpoint.requests[1]!.body)).toEqual(["First?", "Second?"]);
});

test("lines that are piped in are answered one after the other", async () => {
  const { setup } = await stage(says("One."), says("Two."));
  const cli = startCli(["chat"], setup);
  cli.type("First?\nSecond?\n/exit\nNever?");
  expect(await cli.done).toMatchObject({ code: 0, stdout: "One.\nTwo.\n" });
});

test("a call is asked for on a terminal: denied, for the session, and then not again", async () => {
  const { endpoint, setup } = await stage(
    chatStreamAnswer(greets),
    chatStreamAnswer(again),
    says("For good."),
    chatStreamAnswer(greets),
    says("Unasked."),
  );
  const cli = startCli(["chat"], { ...setup, isTTY: true });
  cli.type("Greet.");
  await cli.said('May the tool "greet"');
  await cli.said('[s] and [a] allow every call of tool "greet", while its definition stays the same.');
  await cli.said("[N] no: ");
  cli.type("");
  await cli.said("The user rejected this tool call.");
  cli.type("Greet.");
  await cli.said("[N] no: ");
  cli.type("s");
  await cli.line((line) => line === "For good.");
  cli.type("Greet.");
  await cli.line((line) => line === "Unasked.");
  cli.endInput();
  expect((await cli.done).code).toBe(0);
  const results = endpoint.requests.at(-1)!.body.messages.filter(({ role }: { role: string }) => role === "tool");
  expect(results.slice(1).map(({ content }: { content: string }) => content)).toEqual(["Hello Ada", "Hello Ada"]);
  expect(cli.stderr.split("[N] no: ")).toHaveLength(3);
});

test("a skill that is saved during a conversation counts in the next turn, and the change is shown", async () => {
  const { endpoint, place, setup } = await stage(says("Before."), chatStreamAnswer(greets), says("After."));
  const cli = startCli(["chat", "--allow", "greet"], setup);
  cli.type("First.");
  await cli.line((line) => line === "Before.");
  place.write("skills/a/tools/greet.ts", toolModule("greet", "Good day"));
  await cli.said("updated greet");
  cli.type("Greet.");
  await cli.line((line) => line === "After.");
  cli.endInput();
  await cli.done;
  expect(endpoint.requests.at(-1)!.body.messages.at(-1)).toMatchObject({ role: "tool", content: "Good day Ada" });
});

test("Ctrl-C ends the turn, and between turns the conversation", async () => {
  const gate = createGate();
  const first = sse({ choices: [{ index: 0, delta: { role: "assistant", content: "Begin\n" } }] });
  const { setup } = await stage(
    { headers: { "content-type": "text/event-stream" }, steps: [first, { until: gate.opened }] },
    says("Next."),
  );
  const cli = startCli(["chat"], { ...setup, isTTY: true });
  await cli.said("> ");
  cli.type("Long?");
  await cli.line((line) => line === "Begin");
  cli.interrupt();
  await cli.said("> ");
  cli.type("Short?");
  await cli.line((line) => line === "Next.");
  gate.open();
  await cli.said("> ");
  cli.interrupt();
  expect((await cli.done).code).toBe(0);
});

test("an error of the model is printed, and the conversation continues", async () => {
  const { setup } = await stage(jsonAnswer({ error: { message: "no such model" } }, { status: 400 }), says("Better."));
  const cli = startCli(["chat"], setup);
  cli.type("First?");
  await cli.said("no such model");
  cli.type("Second?");
  await cli.line((line) => line === "Better.");
  cli.endInput();
  expect((await cli.done).code).toBe(0);
});

test("commands of the conversation are not sent to the model, and unknown ones are named", async () => {
  const { endpoint, place, setup } = await stage(says("Yes."));
  const cli = startCli(["chat"], setup);
  cli.type("/help\n/tools\n/skills\n/toolz\n/export\nHello?");
  await cli.line((line) => line === "Yes.");
  cli.type("/export talk.md\n/exit");
  expect((await cli.done).code).toBe(0);
  expect(cli.stderr).toContain("/tools  the tools that the model can call");
  expect(cli.stderr).toContain("greet  a");
  expect(cli.stderr).toContain('There is no command "/toolz". Did you mean "tools"?');
  expect(cli.stderr).toContain("/export needs a file name");
  expect(endpoint.requests).toHaveLength(1);
  expect(readFileSync(place.at("talk.md"), "utf8")).toContain("Yes.");
});

test("a conversation is stored, listed, resumed by the beginning of its id, exported and deleted", async () => {
  const { endpoint, place, setup } = await stage(says("One."), says("Two."), says("Three."));
  const first = startCli(["chat"], setup);
  first.type("First?\n/exit");
  expect((await first.done).code).toBe(0);
  const listed = JSON.parse((await runCli(["sessions", "list", "--json"], setup)).stdout);
  expect(listed.data.sessions).toMatchObject([{ summary: "First?", workingDirectory: place.path, isInUse: false }]);
  const id: string = listed.data.sessions[0].sessionId;
  expect((await runCli(["sessions", "list"], setup)).stdout).toContain(`${id}  `);
  const resumed = startCli(["sessions", "resume", id.slice(0, 6)], setup);
  resumed.type("Second?\n/exit");
  expect((await resumed.done).stdout).toBe("Two.\n");
  expect(sentTexts(endpoint.requests[1]!.body)).toEqual(["First?", "Second?"]);
  const newest = startCli(["chat", "--resume"], setup);
  newest.type("Third?\n/exit");
  expect((await newest.done).stdout).toBe("Three.\n");
  expect((await runCli(["sessions", "export", id], setup)).stdout).toContain("Two.");
  expect((await runCli(["sessions", "export", id, "all.jsonl"], setup)).code).toBe(0);
  expect(readFileSync(place.at("all.jsonl"), "utf8").split("\n").length).toBeGreaterThan(5);
  expect(await runCli(["sessions", "export", id, "all.txt"], setup)).toMatchObject({ code: 2, stderr: expect.stringContaining(".md") });
  const asked = await runCli(["sessions", "delete", id], setup);
  expect(asked).toMatchObject({ code: 1, stderr: expect.stringContaining("--yes") });
  expect(existsSync(join(place.at("sessions"), id))).toBe(true);
  expect((await runCli(["sessions", "delete", id, "--yes"], setup)).stdout).toBe(`Deleted ${id}.\n`);
  expect(existsSync(join(place.at("sessions"), id))).toBe(false);
  expect(await runCli(["sessions", "delete", id, "--yes"], setup)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("No stored session"),
  });
});

test("--no-save stores nothing", async () => {
  const { setup } = await stage(says("One."));
  const cli = startCli(["chat", "--no-save"], setup);
  cli.type("First?\n/exit");
  expect((await cli.done).stderr).toContain(", not stored.");
  expect(JSON.parse((await runCli(["sessions", "list", "--json"], setup)).stdout).data.sessions).toEqual([]);
});

test("ids that fit several sessions are refused, and a damaged session does not hide the others", async () => {
  const { place, setup } = await stage(says("One."), says("Two."));
  for (const text of ["First?", "Second?"]) {
    const cli = startCli(["chat"], setup);
    cli.type(`${text}\n/exit`);
    await cli.done;
  }
  place.write("sessions/damaged/events.jsonl", "not json\n");
  const { data, diagnostics } = JSON.parse((await runCli(["sessions", "list", "--json"], setup)).stdout);
  expect(data.sessions.map(({ summary }: { summary?: string }) => summary)).toEqual(expect.arrayContaining(["First?", "Second?"]));
  // A first event may be longer than what a list reads.
  place.write(
    "sessions/long/events.jsonl",
    `${JSON.stringify({ id: "e1", type: "session.start", timestamp: "2026-11-23T00:00:00.000Z", data: { startTime: "2026-11-23T00:00:00.000Z", options: { note: "x".repeat(100_000) } } })}\n`,
  );
  const shown = await runCli(["sessions", "list"], { ...setup, env: { ...setup.env, NO_COLOR: "1" } });
  expect(shown.code).toBe(0);
  expect(shown.stdout).toContain("First?");
  expect(shown.stderr.split("\n")).toEqual([
    expect.stringMatching(
      /^warning SESSION_DAMAGED .*"damaged" is damaged: its log has no readable beginning\..* sessions delete damaged"\.$/,
    ),
    "",
  ]);
  expect(data.sessions).toHaveLength(3);
  expect(diagnostics).toMatchObject([{ code: "SESSION_DAMAGED", source: "damaged" }]);
  const many = await runCli(["sessions", "export", ""], setup);
  expect(many).toMatchObject({ code: 1, stderr: expect.stringContaining("Write more of it") });
});

test("/rewind lists the messages, and takes one back with what followed it", async () => {
  const { endpoint, setup } = await stage(says("One."), says("Two."), says("Three."));
  const cli = startCli(["chat"], setup);
  cli.type("/rewind");
  await cli.said("Nothing was said yet.");
  cli.type("First?");
  await cli.line((line) => line === "One.");
  cli.type("Second\u001b[31m?");
  await cli.line((line) => line === "Two.");
  cli.type("/rewind");
  await cli.said("1  First?\n2  Second");
  cli.type("/rewind 3");
  await cli.said("/rewind needs the number of a message");
  cli.type("/rewind 2");
  await cli.said("Message 2 and what followed it are taken back: Second");
  cli.type("Third?");
  await cli.line((line) => line === "Three.");
  cli.endInput();
  expect((await cli.done).code).toBe(0);
  expect(sentTexts(endpoint.requests[2]!.body)).toEqual(["First?", "Third?"]);
  expect(cli.stderr).not.toContain("\u001b[31m");
});

test("/rewind with files restores what tools changed, and leaves what the user changed since", async () => {
  const { endpoint, place, setup } = await stage();
  place.write("one.txt", "old\n");
  place.write("two.txt", "old\n");
  const edits = (name: string, id: string) => ({
    id,
    name: "edit",
    arguments: { path: join(place.path, name), old_str: "old", new_str: "new" },
  });
  endpoint.answer(chatStreamAnswer({ toolCalls: [edits("one.txt", "e1"), edits("two.txt", "e2")] }), says("Edited."));
  const cli = startCli(["chat", "--yes"], setup);
  cli.type("Edit them.");
  await cli.line((line) => line === "Edited.");
  expect(readFileSync(join(place.path, "one.txt"), "utf8")).toBe("new\n");
  place.write("two.txt", "mine\n");
  cli.type("/rewind 1 files");
  await cli.said("1 file restored.");
  await cli.said("stays as it is: user-modified");
  cli.endInput();
  await cli.done;
  expect(["one.txt", "two.txt"].map((name) => readFileSync(join(place.path, name), "utf8"))).toEqual(["old\n", "mine\n"]);
});

test("/fork and sessions fork store a copy that is continued by itself", async () => {
  const { endpoint, place, setup } = await stage(says("One."), says("Two."));
  const cli = startCli(["chat"], setup);
  cli.type("First?");
  await cli.line((line) => line === "One.");
  cli.type("/fork");
  await cli.said("Continue it with: skillhost chat --resume ");
  cli.endInput();
  await cli.done;
  const [, id = ""] = /Stored as (\S+)\./.exec(cli.stderr) ?? [];
  const resumed = startCli(["chat", "--resume", id], setup);
  resumed.type("Second?");
  await resumed.line((line) => line === "Two.");
  resumed.endInput();
  await resumed.done;
  expect(sentTexts(endpoint.requests[1]!.body)).toEqual(["First?", "Second?"]);

  const forked = await runCli(["sessions", "fork", id], setup);
  expect([forked.code, existsSync(join(place.path, "sessions", forked.stdout.trim(), "events.jsonl"))]).toEqual([0, true]);
  const json = await runCli(["sessions", "fork", id, "--json"], setup);
  expect(JSON.parse(json.stdout)).toMatchObject({ ok: true, data: { sessionId: expect.any(String), forkedFrom: id } });
  expect((await runCli(["sessions", "fork", "none"], setup)).stderr).toContain('No stored session has the id "none"');
});

test("/checkpoints lists the summaries of the conversation, and prints one", async () => {
  const { place, setup } = await stage(says("One."));
  const cli = startCli(["chat"], setup);
  cli.type("/checkpoints");
  await cli.said("The conversation was not summarized yet.");
  cli.type("First?");
  await cli.line((line) => line === "One.");
  const [, id = ""] = /session ([\w-]+)\./.exec(cli.stderr) ?? [];
  place.write(`sessions/${id}/checkpoints/index.md`, "| 1 | What was done | 001-what.md |\n");
  place.write(`sessions/${id}/checkpoints/001-what.md`, "We did it.\n");
  cli.type("/checkpoints");
  await cli.said("1  What was done");
  cli.type("/checkpoints 1");
  await cli.said("We did it.");
  cli.type("/checkpoints 7");
  await cli.said("/checkpoints needs the number of a summary");
  cli.endInput();
  await cli.done;
});
