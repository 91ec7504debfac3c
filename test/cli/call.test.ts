import { existsSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { runCli, skillDocument, startCli, toolModule, type Workplace, workplace } from "./run-cli.ts";

const files = {
  "skills/a/SKILL.md": skillDocument("a"),
  "skills/a/tools/greet.ts": toolModule("greet", "Hello"),
  "skills/a/tools/slow.ts": `import { defineTool } from "skillhost";
export default defineTool("slow", { description: "Waits until it is cancelled, and says so.", handler: (_args, { signal }) =>
  new Promise((resolve) => { globalThis.slowHasStarted?.(); signal.addEventListener("abort", () => resolve("stopped")); }) });`,
  "skills/a/tools/fails.ts": `import { defineTool } from "skillhost";
export default defineTool("fails", { description: "Fails every time that it is called.", handler: () => { throw new Error("secret reason"); } });`,
  "skills/a/tools/asks.ts": `import { defineTool } from "skillhost";
export default defineTool("asks", { description: "Asks the person in front of the screen.", handler: async (_args, _invocation, context) =>
  (await context.ask("userInput", { question: "Which one?", choices: ["red", "blue"] })).answer });`,
  "skills/a/tools/echo.ts": `import { defineTool } from "skillhost";
export default defineTool("echo", { description: "Gives its arguments back as they came.",
  parameters: { type: "object", properties: {}, additionalProperties: true }, handler: (args) => args });`,
  "skills/a/tools/declared.json": JSON.stringify({ name: "declared", description: "Answered by an attached client." }),
};

test("call runs a tool and prints the text that a model would read", async () => {
  using place = workplace(files);
  expect(await runCli(["call", "greet", '{"name":"Ada"}', "--yes"], { cwd: place.path })).toEqual({
    code: 0,
    stdout: "Hello Ada\n",
    stderr: "",
  });
  expect((await runCli(["call", "a/greet", "--yes"], { cwd: place.path })).stdout).toBe("Hello stranger\n");
});

test("call reads arguments from --arg, as JSON if they parse and as text otherwise", async () => {
  using place = workplace(files);
  const argv = [
    "call",
    "echo",
    '{"kept":1,"n":0}',
    "--arg",
    "n=5",
    "--arg",
    "list=[1]",
    "--arg",
    "text=a=b",
    "--arg",
    'quoted="7"',
    "--yes",
  ];
  const { stdout } = await runCli(argv, { cwd: place.path });
  expect(JSON.parse(stdout)).toEqual({ kept: 1, n: 5, list: [1], text: "a=b", quoted: "7" });
});

test("call reads arguments from stdin on request, or if input is piped without other arguments", async () => {
  using place = workplace(files);
  const setup = { cwd: place.path, stdin: '{"name":"Bea"}\n' };
  expect((await runCli(["call", "greet", "-", "--yes"], setup)).stdout).toBe("Hello Bea\n");
  expect((await runCli(["call", "greet", "--yes"], setup)).stdout).toBe("Hello Bea\n");
  expect((await runCli(["call", "greet", "--arg", "name=Cy", "--yes"], setup)).stdout).toBe("Hello Cy\n");
  expect((await runCli(["call", "greet", "--yes"], { ...setup, stdin: "" })).stdout).toBe("Hello stranger\n");
});

test.each([
  ["JSON that does not parse", ["{name: 1}"], "(1:2)"],
  ["JSON that is not an object", ["[1]"], "must be a JSON object"],
  ["an --arg without a value", ["--arg", "name"], "the form name=value"],
])("call refuses %s as wrong usage", async (_what, argv, said) => {
  using place = workplace(files);
  const { code, stdout, stderr } = await runCli(["call", "greet", ...argv, "--yes"], { cwd: place.path });
  expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
  expect(stderr).toContain(said);
});

test("call denies a tool if it cannot ask the user, and prints how to allow it", async () => {
  using place = workplace(files);
  const { code, stderr } = await runCli(["call", "greet", "{}"], { cwd: place.path });
  expect(code).toBe(1);
  expect(stderr).toContain("Allow it with --yes.");
});

test("call asks on a terminal and shows the tool, its source and its arguments", async () => {
  using place = workplace(files);
  const questions: string[] = [];
  const answering = (answer: string) => (question: string) => {
    questions.push(question);
    return answer;
  };
  const setup = { cwd: place.path, isTTY: true, env: { NO_COLOR: "1" } };
  const allowed = await runCli(["call", "greet", '{"name":"Ada\\u001b[1m"}'], { ...setup, answer: answering("y") });
  expect(allowed.code).toBe(0);
  expect(questions[0]).toMatchInlineSnapshot(`
    "May the tool "greet" of skill "a" be called?
    Arguments:
    | {
    |   "name": "Ada\\u001b[1m"
    | }
    Allow it? [y/N] "
  `);
  const refused = await runCli(["call", "greet", "{}"], { ...setup, answer: answering("") });
  expect(refused.code).toBe(1);
  expect(refused.stdout).not.toContain("Hello");
});

test('call does not accept a "y" for arguments that are too long to show, and shows them on request', async () => {
  using place = workplace(files);
  const args = JSON.stringify({ name: `Ada${"a".repeat(20_000)}`, note: "and deletes" });
  const run = async (...answers: string[]) => {
    const questions: string[] = [];
    const answer = (question: string): string => {
      questions.push(question);
      return answers[questions.length - 1] ?? "";
    };
    const { code } = await runCli(["call", "greet", args], { cwd: place.path, isTTY: true, env: { NO_COLOR: "1" }, answer });
    return { code, questions };
  };
  const plain = await run("y");
  expect(plain).toMatchObject({ code: 1, questions: [expect.stringContaining('Type "show" to see everything, or "allow unseen"')] });
  expect(plain.questions[0]).toMatch(/… \d+ of 20\d{3} characters are not shown\. SHA-256 of the whole: [0-9a-f]{64} …/);
  expect(plain.questions[0]).toContain('"note": "and deletes"');
  expect(await run("allow unseen")).toMatchObject({ code: 0 });
  const shown = await run("show", "y");
  expect(shown.code).toBe(0);
  expect(shown.questions[1]).toContain("a".repeat(20_000));
  expect(await run("show", "")).toMatchObject({ code: 1 });
});

test("a tool can ask the user on the terminal", async () => {
  using place = workplace(files);
  const answer = (question: string): string => (question.includes("Which one?") ? "2" : "y");
  expect((await runCli(["call", "asks", "{}"], { cwd: place.path, isTTY: true, answer })).stdout).toBe("blue\n");
});

test("call --json prints the whole result", async () => {
  using place = workplace(files);
  const { code, stdout } = await runCli(["call", "fails", "{}", "--yes", "--json"], { cwd: place.path });
  expect(code).toBe(1);
  expect(JSON.parse(stdout)).toMatchObject({
    ok: false,
    command: "call",
    data: { tool: "fails", result: { resultType: "failure", error: "secret reason" } },
  });
});

test("call prints the error of a tool to stderr, and the text that a model would read to stdout", async () => {
  using place = workplace(files);
  const { code, stdout, stderr } = await runCli(["call", "fails", "{}", "--yes"], { cwd: place.path });
  expect(code).toBe(1);
  expect(stdout).not.toContain("secret reason");
  expect(stderr).toContain("secret reason");
});

test("call names the invalid argument", async () => {
  using place = workplace(files);
  const { code, stdout } = await runCli(["call", "greet", '{"name":5}', "--yes"], { cwd: place.path });
  expect(code).toBe(1);
  expect(stdout).toContain("name");
});

test("call suggests the nearest names for an unknown tool, and explains a tool that is not available", async () => {
  using place = workplace({ ...files, "skillhost.json": "{}" });
  const unknown = await runCli(["call", "gret", "{}", "--yes"], { cwd: place.path });
  expect(unknown.code).toBe(1);
  expect(unknown.stderr).toContain('Tool "gret" does not exist. Did you mean "greet"?');
  place.write("skillhost.json", '{"disabledSkills": ["a"]}');
  const disabled = await runCli(["call", "greet", "{}", "--yes"], { cwd: place.path });
  expect(disabled.stderr).toContain('run "skillhost explain greet"');
});

test("call does not wait for a client to answer a tool without a handler", async () => {
  using place = workplace(files);
  const { code, stderr } = await runCli(["call", "declared", "{}", "--yes"], { cwd: place.path });
  expect(code).toBe(1);
  expect(stderr).toContain("without a handler");
});

test("call cancels the tool on Ctrl-C and at its time limit", async () => {
  using place = workplace(files);
  const running = startCli(["call", "slow", "{}", "--yes"], { cwd: place.path });
  // Tools run in this process, so the test can observe when one is running.
  Object.assign(globalThis, { slowHasStarted: () => running.interrupt() });
  const stopped = await running.done;
  Object.assign(globalThis, { slowHasStarted: undefined });
  expect(stopped.code).toBe(1);
  const limited = await runCli(["call", "slow", "{}", "--yes", "--timeout", "50", "--json"], { cwd: place.path });
  expect(limited.code).toBe(1);
  expect(JSON.parse(limited.stdout).data.result.resultType).toMatch(/timeout|failure/);
});

test("the time limit overrides a longer deadline of the tool, and does not include the user's time to answer", async () => {
  using place = workplace({
    ...files,
    "skills/a/tools/long.ts": `import { defineTool } from "skillhost";
export default defineTool("long", { description: "Waits for ever if it may.", timeout: 600_000, handler: () => new Promise(() => {}) });`,
  });
  const { code, stderr } = await runCli(["call", "long", "{}", "--yes", "--timeout", "50"], { cwd: place.path });
  expect(code).toBe(1);
  expect(stderr).toContain("The call was cancelled after 50 ms.");
  const answer = (): Promise<string> => new Promise((resolve) => setTimeout(() => resolve("y"), 150));
  const patient = await runCli(["call", "greet", "{}", "--timeout", "120"], { cwd: place.path, isTTY: true, answer });
  expect(patient).toMatchObject({ code: 0, stdout: "Hello stranger\n" });
});

const forecast = `import { defineTool } from "skillhost";
export default defineTool("forecast", { description: "Returns its arguments.", parameters: { type: "object", properties: {
  city: { type: "string", description: "The city's name." }, max_days: { type: "integer" }, dryRun: { type: "boolean", default: false },
  tags: { type: "array", items: { enum: ["rain", "wind"] } }, limits: { $ref: "#/$defs/limits" }, any: {}, id: { type: ["number", "string", "null"] },
  json: { type: "string" } }, required: ["city", "max_days"], $defs: { limits: { type: "object", description: "Least and most." } } },
  handler: (args) => args });`;

test.each<[string, readonly string[], object]>([
  ["texts stay texts, and numbers are numbers", ["--city", "5", "--max-days", "5"], { city: "5", max_days: 5 }],
  ["values after an equals sign, including empty ones", ["--city=", "--max_days=-1"], { city: "", max_days: -1 }],
  ["switches that are turned on and off", ["--city", "a", "--max-days", "1", "--dry-run"], { city: "a", max_days: 1, dryRun: true }],
  ["no- and false", ["--dryRun", "false", "--city", "a", "--max-days", "1"], { city: "a", max_days: 1, dryRun: false }],
  ["a negated switch", ["--no-dry-run", "--city", "a", "--max-days", "1"], { city: "a", max_days: 1, dryRun: false }],
  [
    "repeated values and lists",
    ["--tags", "rain", "--tags", '["wind"]', "--city", "a", "--max-days", "1"],
    { tags: ["rain", "wind"], city: "a", max_days: 1 },
  ],
  [
    "objects and values of any type as JSON",
    ["--limits", '{"a":1}', "--any", "x", "--city", "a", "--max-days", "1"],
    { limits: { a: 1 }, any: "x", city: "a", max_days: 1 },
  ],
  ["the first matching type", ["--id", "7", "--any", "[1]", "--city", "a", "--max-days", "1"], { id: 7, any: [1], city: "a", max_days: 1 }],
  [
    "an argument with the name of an option of skillhost, with --arg",
    ["--arg", 'json="x"', "--city", "a", "--max-days", "1"],
    { json: "x", city: "a", max_days: 1 },
  ],
  ["options of skillhost between them", ["--city", "a", "--quiet", "--max-days", "1"], { city: "a", max_days: 1 }],
  ["JSON, changed by options", ['{"city":"a","max_days":1}', "--max-days", "2"], { city: "a", max_days: 2 }],
])("call has an option for each argument: %s", async (_what, argv, args) => {
  using place = workplace({ "skills/a/SKILL.md": skillDocument("a"), "skills/a/tools/forecast.ts": forecast });
  const { code, stdout, stderr } = await runCli(["call", "forecast", "--yes", ...argv], { cwd: place.path, stdin: "ignored" });
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expect(JSON.parse(stdout)).toEqual({ dryRun: false, ...args });
});

test.each<[string, readonly string[], string]>([
  ["an unknown option", ["--citty", "a"], 'Tool "forecast" has no argument --citty. Did you mean "--city"?'],
  ["a value of the wrong type", ["--max-days", "many"], '--max-days requires a number, but got "many".'],
  ["a missing value", ["--city"], "--city requires a value: --city <text>."],
  ["an option in place of a value", ["--city", "--dry-run"], "--city requires a value: --city <text>."],
  ["one value twice", ["--city", "a", "--city", "b"], "--city is given twice"],
  ["a word between options", ["--dry-run", "word"], 'Unexpected argument "word".'],
  ["a short option", ["-c", "a"], "has no argument -c."],
  ["a negation of an option that is not a switch", ["--no-city"], "has no argument --no-city."],
])("call refuses %s as wrong usage", async (_what, argv, message) => {
  using place = workplace({ "skills/a/SKILL.md": skillDocument("a"), "skills/a/tools/forecast.ts": forecast });
  const { code, stdout, stderr } = await runCli(["call", "forecast", "--yes", ...argv], { cwd: place.path });
  expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
  expect(stderr).toContain(message);
});

test("call --help shows a tool's arguments as options, and does not call it", async () => {
  using place = workplace({ "skills/a/SKILL.md": skillDocument("a"), "skills/a/tools/forecast.ts": forecast });
  expect(
    (await runCli(["call", "forecast", "--help"], { cwd: place.path })).stdout,
  ).toBe(`Usage: skillhost call forecast --city <text> --max-days <number> [options]

Returns its arguments.

Arguments:
  --city <text>        The city's name. (required)
  --max-days <number>  (required)
  --dry-run            (default: false)
  --tags <rain|wind>   (repeatable)
  --limits <json>      Least and most.
  --any <json>
  --id <value>
  --arg json=<text>
`);
  expect((await runCli(["call", "--help"], { cwd: place.path })).stdout).toContain("Usage: skillhost call [options] <tool> [args...]");
});

test("call asks for required arguments on a terminal, and again after a value of the wrong type", async () => {
  using place = workplace({ "skills/a/SKILL.md": skillDocument("a"), "skills/a/tools/forecast.ts": forecast });
  const questions: string[] = [];
  const answers = ["Oslo", "many", "3"];
  const answer = (question: string): string => {
    questions.push(question);
    return answers.shift() ?? "";
  };
  const { stdout, stderr } = await runCli(["call", "forecast", "--yes"], { cwd: place.path, isTTY: true, answer });
  expect(JSON.parse(stdout)).toEqual({ city: "Oslo", max_days: 3, dryRun: false });
  expect(questions).toEqual(["city <text> – The city's name.\n> ", "max_days <number>\n> ", "max_days <number>\n> "]);
  expect(stderr).toContain('--max-days requires a number, but got "many".');
});

const calls = (place: Workplace): object => JSON.parse(readFileSync(place.at("skills/a/calls.json"), "utf8")).calls;

test("call --pin stores the call that was made in the skill of its tool, and keeps what is expected of an earlier one", async () => {
  using place = workplace(files);
  const run = (...argv: string[]) => runCli(["call", ...argv], { cwd: place.path });
  expect(await run("greet", "--name", "Ada", "--pin", "for Ada", "--yes")).toEqual({
    code: 0,
    stdout: "Hello Ada\n",
    stderr:
      'Stored as "for Ada" in skills/a/calls.json. The tool does not claim to read only, so "skillhost test" makes the call only with "automatic": true.\n',
  });
  expect(calls(place)).toEqual({ "for Ada": { tool: "greet", arguments: { name: "Ada" } } });
  place.write("skills/a/calls.json", '{"calls":{"for Ada":{"tool":"gone","expect":{"text":"Hello Bea"},"automatic":true}}}');
  const { stdout } = await run("a/greet", '{"name":"Bea"}', "--pin", "for Ada", "--yes", "--json");
  expect(JSON.parse(stdout)).toMatchObject({ ok: true, data: { pinned: { name: "for Ada", file: place.at("skills/a/calls.json") } } });
  expect(calls(place)).toEqual({
    "for Ada": { tool: "greet", arguments: { name: "Bea" }, expect: { text: "Hello Bea" }, automatic: true },
  });
});

test("call --pin stores nothing that was not made, and calls nothing that cannot be stored", async () => {
  using place = workplace({ ...files, "marks.mjs": pluginWithTool });
  const run = (...argv: string[]) => runCli(["call", ...argv], { cwd: place.path });
  expect((await run("greet", "--pin", "x")).stderr).toContain("The call was not made, so it was not stored.");
  expect(await run("greet", "--pin", "a\u202eb", "--yes")).toMatchObject({
    code: 2,
    stdout: "",
    stderr: expect.stringContaining("control character"),
  });
  expect(existsSync(place.at("skills/a/calls.json"))).toBe(false);
  place.write("skillhost.json", JSON.stringify({ plugins: ["./marks.mjs"] }));
  expect(await run("mark", "--pin", "x", "--yes")).toMatchObject({
    code: 2,
    stdout: "",
    stderr: expect.stringContaining('Calls are stored with a skill, and tool "mark" is of plugin "marks". Nothing was called.'),
  });
  place.write("skills/a/calls.json", "{");
  expect(await run("greet", "--pin", "x", "--yes")).toMatchObject({ code: 1, stderr: expect.stringContaining("was not changed") });
  expect(readFileSync(place.at("skills/a/calls.json"), "utf8")).toBe("{");
});

const pluginWithTool = `import { defineTool, definePlugin } from "skillhost";
export default definePlugin({ name: "marks", version: "1.0.0", activate(api) { api.addTools(defineTool("mark", { description: "Marks.", handler: () => "marked" })); } });`;
