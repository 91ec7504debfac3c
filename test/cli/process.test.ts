import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, symlinkSync } from "node:fs";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import { expect, test } from "vitest";
import { buildPackage } from "../built-package.ts";
import { runCli, skillDocument, toolModule, workplace } from "./run-cli.ts";

const built = buildPackage();

const files = { "skills/greeter/SKILL.md": skillDocument("greeter"), "skills/greeter/tools/hello.ts": toolModule("hello", "Hello") };

interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

function start(cwd: string, argv: readonly string[]): ChildProcess {
  return spawn(process.execPath, [built.bin, ...argv], {
    cwd,
    stdio: ["pipe", "pipe", "pipe"],
    env: { ...process.env, LANG: "C.UTF-8", SKILLHOST_TRUST: "1" },
  });
}

async function run(cwd: string, argv: readonly string[], stdin = ""): Promise<Ended> {
  const child = start(cwd, argv);
  child.stdin?.end(stdin);
  const [stdout, stderr] = await Promise.all([text(child.stdout!), text(child.stderr!), once(child, "close")]);
  return { code: child.exitCode, stdout, stderr };
}

/** Returns the messages of a child's feed of one type, one by one. */
function messagesOf(child: ChildProcess): (type: string) => Promise<unknown> {
  const next = linesOf(child);
  return async (type) => {
    for (;;) {
      const message = JSON.parse(await next());
      if (message.type === type) return message;
    }
  };
}

/** Returns the lines of a child's stdout one by one. */
function linesOf(child: ChildProcess): () => Promise<string> {
  const lines = createInterface({ input: child.stdout! })[Symbol.asyncIterator]();
  return async () => (await lines.next()).value;
}

test("dev follows edits in its own process, and exits with 0 on Ctrl-C", async () => {
  using place = workplace(files);
  const child = start(place.path, ["dev", "--json"]);
  const next = messagesOf(child);
  expect(await next("snapshot")).toMatchObject({ tools: [{ definition: { name: "hello" } }] });
  place.write("skills/greeter/tools/hello.ts", toolModule("hello", "Good morning"));
  expect(await next("reload")).toMatchObject({ updated: [{ tools: { updated: ["hello"] } }] });
  child.kill("SIGINT");
  expect(await once(child, "close")).toEqual([0, null]);
});

test("dev ends when the reader of its output has closed", async () => {
  using place = workplace(files);
  const child = start(place.path, ["dev", "--json"]);
  await linesOf(child)();
  child.stdout?.destroy();
  const closed = once(child, "close");
  place.write("skills/greeter/tools/hello.ts", toolModule("hello", "Good morning"));
  expect(await closed).toEqual([0, null]);
});

test("dev continues and reports when a skill's code fails outside a call", async () => {
  using place = workplace(files);
  const child = start(place.path, ["dev", "--json"]);
  const next = messagesOf(child);
  const said = createInterface({ input: child.stderr! })[Symbol.asyncIterator]();
  await next("snapshot");
  place.write(
    "skills/greeter/tools/stray.ts",
    `setImmediate(() => { throw new Error("thrown astray"); });\nvoid Promise.reject(new Error("rejected astray"));\n${toolModule("stray", "x")}`,
  );
  await next("reload");
  const lines = [(await said.next()).value, (await said.next()).value].join("\n");
  const file = place.at("skills/greeter/tools/stray.ts");
  expect(lines).toContain(`${file}:1:28 unhandled error outside of any call: thrown astray`);
  expect(lines).toContain(`${file}:2:21 unhandled error outside of any call: rejected astray`);
  place.write("skills/greeter/tools/hello.ts", toolModule("hello", "Good morning"));
  expect(await next("reload")).toMatchObject({ updated: [{ tools: { updated: ["hello"] } }] });
  child.kill("SIGTERM");
  expect(await once(child, "close")).toEqual([0, null]);
});

test("call ends although a skill left a timer behind, and prints all of a long answer first", async () => {
  using place = workplace(files);
  place.write("skills/greeter/tools/timer.ts", `setInterval(() => {}, 1000);\n${toolModule("timer", "x".repeat(200_000))}`);
  const { code, stdout, stderr } = await run(place.path, ["call", "timer", "{}", "--yes"]);
  expect({ code, stderr, length: stdout.length }).toEqual({ code: 0, stderr: "", length: 200_010 });
});

test("a module that calls process.exit during its load does not end the command", async () => {
  using place = workplace(files);
  place.write("skills/greeter/tools/exits.ts", `process.exit(0);\n${toolModule("exits", "never")}`);
  const { code, stdout } = await run(place.path, ["list", "--json"]);
  expect(code).toBe(0);
  const { data, diagnostics } = JSON.parse(stdout);
  expect(data.tools).toMatchObject([{ name: "hello" }]);
  expect(diagnostics).toMatchObject([{ code: "MODULE_EXITED" }]);
});

test("call reads arguments from a pipe and denies calls for which it cannot ask the user", async () => {
  using place = workplace(files);
  expect(await run(place.path, ["call", "hello", "--yes"], '{"name":"Ada"}')).toEqual({ code: 0, stdout: "Hello Ada\n", stderr: "" });
  const denied = await run(place.path, ["call", "hello"], "{}");
  expect(denied.code).toBe(1);
  expect(denied.stderr).toContain("--yes");
});

test("wrong usage exits with 2 and help with 0", async () => {
  using place = workplace();
  expect((await run(place.path, ["--nonsense"])).code).toBe(2);
  expect((await run(place.path, ["--help"])).code).toBe(0);
});

test("stdout contains only the answer, whatever skills print during load and calls", async () => {
  const loud = `console.log("LOADED");
process.stdout.write("WRITTEN\\n");
export default { name: "shout", description: "Prints.", handler: () => { console.log("CALLED"); process.stdout.write("AGAIN\\n"); return "done"; } };
`;
  using place = workplace({ "skills/loud/SKILL.md": skillDocument("loud"), "skills/loud/tools/shout.mjs": loud });
  const listed = await run(place.path, ["list", "--json"]);
  expect(JSON.parse(listed.stdout)).toMatchObject({ ok: true, command: "list" });
  const called = await run(place.path, ["call", "shout", "{}", "--yes", "--json"]);
  expect(JSON.parse(called.stdout)).toMatchObject({ ok: true, data: { result: { textResultForLlm: "done" } } });
  expect((await run(place.path, ["call", "shout", "{}", "--yes"])).stdout).toBe("done\n");
  expect(JSON.parse((await run(place.path, ["explain", "shout", "--json"])).stdout)).toMatchObject({ ok: true });
  for (const text of ["LOADED", "WRITTEN", "CALLED", "AGAIN"]) expect(called.stderr).toContain(text);
});

test.each(["18.20.4", "20.18.3", "21.7.3", "22.11.0"])("Node.js %s prints one line that names the required version", async (version) => {
  using place = workplace();
  const pretend = `data:text/javascript,Object.defineProperty(process, "versions", { value: { ...process.versions, node: "${version}" } })`;
  const child = spawn(process.execPath, ["--import", pretend, built.bin, "list", "--json"], { cwd: place.path });
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "close")]);
  expect({ code: child.exitCode, stdout }).toEqual({ code: 2, stdout: "" });
  const { engines } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"));
  expect(stderr).toBe(`error: skillhost requires Node.js ${engines.node}, but this is ${version}. Install a newer Node.js.\n`);
});

test("the test of a new skill passes if the package is installed", async () => {
  using place = workplace({ "node_modules/.keep": "" });
  symlinkSync(built.folder, place.at("node_modules/skillhost"), "junction");
  expect((await runCli(["new", "skill", "fresh"], { cwd: place.path })).code).toBe(0);
  const child = spawn(process.execPath, ["--test", "--test-reporter=tap", "skills/fresh/test/fresh.test.mjs"], {
    cwd: place.path,
    env: withoutTestContext(),
  });
  const [stdout] = await Promise.all([text(child.stdout), once(child, "close")]);
  expect(stdout).toMatch(/^# pass 2$/m);
  expect(child.exitCode).toBe(0);
});

/** The environment without the variable by which a nested test runner reports to its parent. */
function withoutTestContext(): NodeJS.ProcessEnv {
  const { NODE_TEST_CONTEXT: _context, ...env } = process.env;
  return env;
}
