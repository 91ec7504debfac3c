import { describe, expect, onTestFinished, test } from "vitest";
import { buildPackage } from "../built-package.ts";
import { chatStreamAnswer, type ScriptedAnswer, startScriptedModel } from "../doubles/scripted-model.ts";
import { skillDocument, toolModule, workplace } from "./run-cli.ts";
import { hasTerminals, startInTerminal } from "./terminal-child.ts";

const built = buildPackage();
const asBefore = { reads_lines: true, echoes: true };
const greets = { toolCalls: [{ id: "c1", name: "greet", arguments: { name: "Ada" } }] };

async function stage(argv: readonly string[], ...answers: readonly ScriptedAnswer[]) {
  const endpoint = await startScriptedModel();
  onTestFinished(() => endpoint.close());
  endpoint.answer(...answers);
  const place = workplace({
    "skills/a/SKILL.md": skillDocument("a"),
    "skills/a/tools/greet.ts": toolModule("greet", "Hello"),
    "skillhost.json": '{ "sessionsDirectory": "./sessions" }',
  });
  onTestFinished(() => place[Symbol.dispose]());
  const { CI: _ci, FORCE_COLOR: _color, ...rest } = process.env;
  const env = {
    ...rest,
    NO_COLOR: "1",
    TERM: "xterm",
    LANG: "C.UTF-8",
    SKILLHOST_TRUST: "1",
    OPENAI_BASE_URL: `${endpoint.url}/v1`,
    OPENAI_MODEL: "m-1",
  };
  return { endpoint, place, terminal: startInTerminal([built.bin, ...argv], place.path, env) };
}

describe.skipIf(!hasTerminals)("commands in a real terminal", () => {
  test("run asks before a call, and calls it when the user agrees", async () => {
    const { endpoint, terminal } = await stage(["run", "Greet Ada."], chatStreamAnswer(greets), chatStreamAnswer({ content: "Done." }));
    await terminal.shows('May the tool "greet"');
    await terminal.shows("[N] no: ");
    terminal.type("y\n");
    await terminal.shows("Done.");
    expect(await terminal.done).toEqual({ code: 0, ...asBefore });
    expect(endpoint.requests.at(-1)!.body.messages.at(-1)).toMatchObject({ role: "tool", content: "Hello Ada" });
  });

  test("Ctrl-C at the question of run ends it without the call", async () => {
    const { endpoint, terminal } = await stage(["run", "Greet Ada."], chatStreamAnswer(greets));
    await terminal.shows("[N] no: ");
    terminal.type("\u0003");
    expect(await terminal.done).toEqual({ code: 1, ...asBefore });
    expect(endpoint.requests).toHaveLength(1);
    expect(terminal.screen).toContain("Stopped by SIGINT.");
  });

  test("chat answers lines, asks before calls, and ends with Ctrl-D", async () => {
    const { endpoint, terminal } = await stage(["chat"], chatStreamAnswer(greets), chatStreamAnswer({ content: "Done." }));
    await terminal.shows("> ");
    terminal.type("Greet Ada.\n");
    await terminal.shows("[N] no: ");
    terminal.type("s\n");
    await terminal.shows("Done.");
    await terminal.shows("> ");
    terminal.type("\u0004");
    expect(await terminal.done).toEqual({ code: 0, ...asBefore });
    expect(endpoint.requests.at(-1)!.body.messages.at(-1)).toMatchObject({ role: "tool", content: "Hello Ada" });
  });

  test("Ctrl-C at a question of chat ends the turn without the call, and the next line is a message", async () => {
    const { endpoint, terminal } = await stage(["chat"], chatStreamAnswer(greets), chatStreamAnswer({ content: "Done." }));
    await terminal.shows("> ");
    terminal.type("Greet Ada.\n");
    await terminal.shows("[N] no: ");
    terminal.type("\u0003");
    await terminal.shows("> ");
    terminal.type("y\n");
    await terminal.shows("Done.");
    await terminal.shows("> ");
    terminal.type("/exit\n");
    expect(await terminal.done).toEqual({ code: 0, ...asBefore });
    expect(JSON.stringify(endpoint.requests.at(-1)!.body.messages)).not.toContain("Hello Ada");
    expect(endpoint.requests.at(-1)!.body.messages.at(-1)).toMatchObject({ role: "user" });
  });

  test("dev takes keys without Enter, calls a tool, and leaves the terminal as it was", async () => {
    const { place, terminal } = await stage(["dev"]);
    await terminal.shows("Loading skills…");
    await terminal.shows("0 errors, 1 skill, 1 tool - r reload");
    place.write("skills/a/tools/greet.ts", "export default (\n");
    await terminal.shows("1 error, 1 skill, 1 tool - ");
    place.write("skills/a/tools/greet.ts", toolModule("greet", "Good day"));
    await terminal.shows("0 errors, 1 skill, 1 tool - ");
    terminal.type("c");
    await terminal.shows("Tool to call");
    terminal.type('greet {"name": "Ada"}\n');
    await terminal.shows("[y/N] ");
    terminal.type("y\n");
    await terminal.shows("Good day Ada");
    await terminal.shows("0 errors, 1 skill, 1 tool - ");
    terminal.type("q");
    await terminal.shows("Stopped.");
    expect(await terminal.done).toEqual({ code: 0, ...asBefore });
  });

  test("Ctrl-C ends dev, and at its question only the question", async () => {
    const { terminal } = await stage(["dev"]);
    await terminal.shows("0 errors");
    terminal.type("c");
    await terminal.shows("Tool to call");
    terminal.type("\u0003");
    await terminal.shows("0 errors");
    terminal.type("\u0003");
    await terminal.shows("Stopped.");
    expect(await terminal.done).toEqual({ code: 0, ...asBefore });
  });

  test("dev that ends by an error leaves the terminal as it was", async () => {
    const { place, terminal } = await stage(["dev"]);
    await terminal.shows("0 errors");
    place.write("skills/a/tools/greet.ts", `${toolModule("greet", "x")}setTimeout(() => process.reallyExit(7), 10);\n`);
    expect(await terminal.done).toEqual({ code: 7, ...asBefore });
  });
});
