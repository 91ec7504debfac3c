import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import {
  chatAnswer,
  chatStreamAnswer,
  createGate,
  jsonAnswer,
  type ScriptedAnswer,
  sse,
  startScriptedModel,
} from "../doubles/scripted-model.ts";
import { runCli, skillDocument, startCli, toolModule, type Workplace, workplace } from "./run-cli.ts";

const files = {
  "skills/a/SKILL.md": skillDocument("a"),
  "skills/a/tools/greet.ts": toolModule("greet", "Hello"),
  "skills/a/tools/fails.ts": `import { defineTool } from "skillhost";
export default defineTool("fails", { description: "Fails every time that it is called.", handler: () => { throw new Error("secret reason"); } });`,
  "skills/a/tools/slow.ts": `import { defineTool } from "skillhost";
export default defineTool("slow", { description: "Waits until it is cancelled, and says so.", handler: (_args, { signal }) =>
  new Promise((resolve) => signal.addEventListener("abort", () => resolve("stopped"))) });`,
};

async function stage(...answers: readonly ScriptedAnswer[]) {
  const endpoint = await startScriptedModel();
  onTestFinished(() => endpoint.close());
  endpoint.answer(...answers);
  const place: Workplace = workplace(files);
  onTestFinished(() => place[Symbol.dispose]());
  const env = { OPENAI_BASE_URL: `${endpoint.url}/v1`, OPENAI_API_KEY: "sk-planted-0123456789abcdef" };
  return { endpoint, place, setup: { cwd: place.path, env }, argv: ["run", "Greet Ada.", "--model", "m-1"] };
}

const greets = { toolCalls: [{ id: "c1", name: "greet", arguments: { name: "Ada" } }] };
const turn = [chatStreamAnswer({ content: "One moment.", ...greets }), chatStreamAnswer({ content: "Hello Ada it is." })];

test("run streams the answer to stdout, and prints the calls with their time to stderr", async () => {
  const { endpoint, setup, argv } = await stage(...turn);
  const { code, stdout, stderr } = await runCli([...argv, "--allow", "greet", "--system", "Be kind."], setup);
  expect([code, stdout]).toEqual([0, "One moment.\nHello Ada it is.\n"]);
  expect(stderr.replace(/\d+ ms/g, "N ms")).toBe('> greet {"name":"Ada"}\n+ greet done, N ms\n');
  expect(endpoint.requests.map(({ body }) => [body.model, body.stream])).toEqual([
    ["m-1", true],
    ["m-1", true],
  ]);
  expect(endpoint.requests[0]?.headers.authorization).toBe("Bearer sk-planted-0123456789abcdef");
  expect(endpoint.requests[0]?.body.messages[0].content).toMatch(/<name>a<\/name>[\s\S]*Be kind\.$/);
  expect(endpoint.requests[1]?.body.messages.at(-1)).toEqual({ role: "tool", tool_call_id: "c1", content: "Hello Ada" });
});

test("run prints the first words before the model's last ones arrive", async () => {
  const gate = createGate();
  const first = sse({ choices: [{ index: 0, delta: { role: "assistant", content: "First.\n" } }] });
  const last = sse({ choices: [{ index: 0, delta: { content: "Last." }, finish_reason: "stop" }] });
  const steps = [first, { until: gate.opened }, last, sse("[DONE]")];
  const { setup, argv } = await stage({ headers: { "content-type": "text/event-stream" }, steps });
  const cli = startCli(argv, setup);
  expect(await cli.line((line) => line === "First.")).toBe("First.");
  expect(cli.stdout).not.toContain("Last.");
  gate.open();
  expect((await cli.done).stdout).toBe("First.\nLast.\n");
});

test("run without --stream requests the complete answer", async () => {
  const { endpoint, setup, argv } = await stage(chatAnswer({ content: "Whole." }));
  expect(await runCli([...argv, "--no-stream"], setup)).toEqual({ code: 0, stdout: "Whole.\n", stderr: "" });
  expect(endpoint.requests[0]?.body.stream).toBeUndefined();
});

test("run denies calls that are not allowed and prints how to allow them", async () => {
  const { endpoint, setup, argv } = await stage(...turn);
  const { code, stderr } = await runCli(argv, setup);
  expect(code).toBe(0);
  expect(stderr).toContain("x greet failed".replace("x", "✗"));
  expect(stderr).toContain('"greet" was denied: it is not allowed. Allow it with --allow greet, or everything with --yes.');
  expect(endpoint.requests[1]?.body.messages.at(-1).content).toBe("Permission denied and could not request permission from user");
});

test("run --yes allows all calls except those that --deny names", async () => {
  const both = { toolCalls: [...greets.toolCalls, { id: "c2", name: "fails", arguments: {} }] };
  const { endpoint, setup, argv } = await stage(chatStreamAnswer(both), chatStreamAnswer({ content: "Done." }));
  const { code, stderr } = await runCli([...argv, "--yes", "--deny", "fails"], setup);
  expect(code).toBe(0);
  expect(endpoint.requests[1]?.body.messages.at(-2).content).toBe("Hello Ada");
  expect(endpoint.requests[1]?.body.messages.at(-1).content).toMatch(/denied/i);
  expect(stderr).not.toContain("--allow");
});

test("run --available and --excluded select the tools that the model sees", async () => {
  const { endpoint, setup, argv } = await stage(chatStreamAnswer({ content: "ok" }), chatStreamAnswer({ content: "ok" }));
  await runCli([...argv, "--available", "greet", "--available", "slow", "--excluded", "slow"], setup);
  expect(endpoint.requests[0]?.body.tools.map((tool: { function: { name: string } }) => tool.function.name)).toEqual(["greet"]);
});

test("run --json prints every event as a line, and the outcome as the last", async () => {
  const { setup, argv } = await stage(...turn);
  const { code, stdout, stderr } = await runCli([...argv, "--json", "--yes"], setup);
  const lines = stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  expect([code, stderr]).toEqual([0, ""]);
  expect(lines.at(-1)).toMatchObject({ ok: true, command: "run", data: { content: "Hello Ada it is." } });
  const types = lines.slice(0, -1).map(({ type }) => type);
  expect(types).toContain("assistant.message_delta");
  expect(types.filter((type) => !type.includes("delta"))).toEqual(
    expect.arrayContaining(["user.message", "tool.execution_complete", "session.idle"]),
  );
});

test("run --export writes the session as a readable page, or every event", async () => {
  const { endpoint, place, setup, argv } = await stage(...turn, ...turn);
  await runCli([...argv, "--yes", "--export", "talk.md"], setup);
  expect(readFileSync(place.at("talk.md"), "utf8")).toMatch(/Greet Ada\.[\s\S]*One moment\.[\s\S]*greet[\s\S]*Hello Ada it is\./);
  await runCli([...argv, "--yes", "--export", "talk.jsonl"], setup);
  const events = readFileSync(place.at("talk.jsonl"), "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  expect(events.map(({ type }) => type)).toEqual(expect.arrayContaining(["session.start", "user.message", "assistant.message"]));
  expect(JSON.stringify(events)).not.toContain("sk-planted");
  expect(endpoint.requests).toHaveLength(4);
});

test("run reads the prompt from stdin on request", async () => {
  const { endpoint, setup } = await stage(chatStreamAnswer({ content: "ok" }));
  await runCli(["run", "-", "--model", "m-1"], { ...setup, stdin: "From a pipe.\n" });
  expect(endpoint.requests[0]?.body.messages.at(-1).content).toMatch(/^<current_datetime>.*<\/current_datetime>\n\nFrom a pipe\.\n$/);
});

test.each<[string, readonly string[]]>([
  ["while a tool runs", ["--yes"]],
  ["while the model is silent", []],
])("Ctrl-C %s ends run without an error trace, with exit code 1", async (when, more) => {
  const slow = chatStreamAnswer({ toolCalls: [{ id: "c1", name: "slow", arguments: {} }] });
  const silent: ScriptedAnswer = { headers: { "content-type": "text/event-stream" }, steps: ["silence"] };
  const { endpoint, place, setup, argv } = await stage(when.includes("tool") ? slow : silent);
  const cli = startCli([...argv, ...more, "--json", "--export", "talk.jsonl"], setup);
  if (when.includes("tool")) await cli.line((line) => line.includes('"tool.execution_start"'));
  else await endpoint.request(0);
  cli.interrupt();
  const { code, stdout } = await cli.done;
  expect(code).toBe(1);
  expect(JSON.parse(stdout.trim().split("\n").at(-1)!)).toMatchObject({ ok: false, error: { code: "STOPPED" } });
  expect(readFileSync(place.at("talk.jsonl"), "utf8")).toContain('"abort"');
});

test("an error of the endpoint is exit code 1, with advice and without the key", async () => {
  const { setup, argv } = await stage(jsonAnswer({ error: { message: "bad key sk-planted-0123456789abcdef" } }, { status: 401 }));
  const { code, stdout, stderr } = await runCli(argv, setup);
  expect([code, stdout]).toEqual([1, ""]);
  expect(stderr).toMatch(/^error: The model endpoint 127\.0\.0\.1:\d+ answered 401.*Check the API key/);
  expect(stderr).not.toContain("sk-planted");
});

test.each<[string, readonly string[], Readonly<Record<string, string>>, RegExp]>([
  ["a missing base URL", ["--model", "m"], {}, /--base-url/],
  ["a missing model", ["--base-url", "http://127.0.0.1:9"], {}, /--model/],
  ["an invalid base URL", ["--model", "m", "--base-url", "nonsense"], {}, /baseUrl must be a URL/],
  ["an invalid rule", ["--model", "m", "--base-url", "http://127.0.0.1:9", "--allow", "shell("], {}, /shell\(/],
  ["an invalid pattern", ["--model", "m", "--base-url", "http://127.0.0.1:9", "--available", "*"], {}, /\*/],
  ["an unknown kind of export", ["--model", "m", "--base-url", "http://127.0.0.1:9", "--export", "talk.pdf"], {}, /\.md/],
])("wrong usage is exit code 2: %s", async (_title, more, env, said) => {
  using place = workplace(files);
  const { code, stderr } = await runCli(["run", "Hello.", ...more], { cwd: place.path, env });
  expect(stderr).toMatch(said);
  expect(code).toBe(2);
});

test("an empty prompt is wrong usage", async () => {
  const { setup } = await stage();
  expect((await runCli(["run", " ", "--model", "m"], setup)).code).toBe(2);
});

test("a model's text cannot send control sequences to a terminal", async () => {
  const { setup, argv } = await stage(chatStreamAnswer({ content: "\u001b[2Jcleared" }));
  expect((await runCli(argv, { ...setup, isTTY: true })).stdout).toBe("\\x1b[2Jcleared\n");
});

/** A place whose sessions are stored in it, and the ids of those that there are. */
async function storing(...answers: readonly ScriptedAnswer[]) {
  const { place, ...rest } = await stage(...answers);
  place.write("skillhost.json", '{ "sessionsDirectory": "./sessions" }');
  const ids = (): readonly string[] => readdirSync(join(place.path, "sessions")).filter((name) => !name.startsWith("."));
  const run = (prompt: string, ...more: readonly string[]) => runCli(["run", prompt, "--model", "m-1", ...more], rest.setup);
  return { ...rest, place, ids, run };
}

const says = (content: string): ScriptedAnswer => chatStreamAnswer({ content });
const saidBy = ({ body }: { readonly body: { readonly messages: readonly { readonly role: string; readonly content: unknown }[] } }) =>
  body.messages
    .filter(({ role }) => role === "user")
    .map(({ content }) => String(content).replace(/<current_datetime>[\s\S]*?<\/current_datetime>\s*/, ""));

test("run --resume continues a session, also in the place of a message, and --fork a copy of it", async () => {
  const { endpoint, ids, run } = await storing(says("One."), says("Two."), says("Three."), says("Four."));
  await run("First?");
  const [id = ""] = ids();
  expect(await run("Second?", "--resume", id.slice(0, 8))).toEqual({ code: 0, stdout: "Two.\n", stderr: "" });
  expect(saidBy(endpoint.requests[1]!)).toEqual(["First?", "Second?"]);

  const copied = await run("Other?", "--resume", id, "--fork", "--rewind", "2");
  const copy = ids().find((each) => each !== id)!;
  expect(copied).toEqual({ code: 0, stdout: "Three.\n", stderr: `A copy is continued, session ${copy}.\n` });
  expect(saidBy(endpoint.requests[2]!)).toEqual(["First?", "Other?"]);

  await run("Third?", "--resume", id);
  expect(saidBy(endpoint.requests[3]!)).toEqual(["First?", "Second?", "Third?"]);
});

test("run says why it cannot continue a session, and leaves no copy and nothing taken back", async () => {
  const { endpoint, ids, run } = await storing(says("One."), says("Two."));
  await run("First?");
  const [id = ""] = ids();
  for (const alone of [["--fork"], ["--rewind", "1"]]) {
    const { code, stderr } = await run("Next?", ...alone);
    expect([code, stderr]).toEqual([2, expect.stringContaining("Name it with --resume <id>.")]);
  }
  for (const number of ["0", "-1", "one", "1.5"]) expect((await run("Next?", "--resume", id, `--rewind=${number}`)).code).toBe(2);
  for (const more of [[], ["--fork"]]) {
    const { code, stderr } = await run("Next?", "--resume", id, "--rewind", "2", ...more);
    expect([code, stderr]).toEqual([1, expect.stringContaining("you have sent 1 message in this session")]);
  }
  expect(await run("Next?", "--resume", "none")).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('No stored session has the id "none"'),
  });
  expect(ids()).toEqual([id]);
  await run("Second?", "--resume", id);
  expect(saidBy(endpoint.requests[1]!)).toEqual(["First?", "Second?"]);
});

test("a chat that continues a session of run restores the files that it changed", async () => {
  const { endpoint, place, setup, ids, run } = await storing();
  place.write("one.txt", "old\n");
  const file = join(place.path, "one.txt");
  const edit = { id: "e1", name: "edit", arguments: { path: file, old_str: "old", new_str: "new" } };
  endpoint.answer(chatStreamAnswer({ toolCalls: [edit] }), says("Edited."));
  expect(await run("Edit it.", "--yes")).toMatchObject({ code: 0, stdout: "Edited.\n" });
  expect(readFileSync(file, "utf8")).toBe("new\n");
  const cli = startCli(["chat", "--model", "m-1", "--resume", ids()[0]!], setup);
  cli.type("/rewind 1 files");
  await cli.said("1 file restored.");
  cli.endInput();
  await cli.done;
  expect(readFileSync(file, "utf8")).toBe("old\n");
});
