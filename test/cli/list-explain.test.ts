import { expect, test } from "vitest";
import { runCli, skillDocument, toolModule, workplace } from "./run-cli.ts";

const files = {
  "skills/a-first/SKILL.md": skillDocument("a-first"),
  "skills/a-first/tools/greet.ts": toolModule("greet", "Hello"),
  "skills/a-first/tools/wave.ts": toolModule("wave", "Waves at"),
  "skills/b-second/SKILL.md": skillDocument("b-second"),
  "skills/b-second/skill.json": JSON.stringify({ name: "b-second", version: "1.2.0" }),
  "skills/b-second/tools/greet.ts": toolModule("greet", "Good day").replace("Returns", "Prints"),
  "skills/b-second/prompts/style.md": "Be kind.\n",
  "skills/c-broken/SKILL.md": skillDocument("c-broken"),
  "skills/c-broken/tools/bad.ts": "export default (\n",
};

test("list prints skills with state, version, tools, prompts, and their problems with positions", async () => {
  using place = workplace(files);
  const { code, stdout, stderr } = await runCli(["list"], { cwd: place.path });
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expect(stdout).toContain("a-first  active  skills/a-first\n");
  expect(stdout).toContain("  tools    greet, wave\n");
  expect(stdout).toContain("b-second 1.2.0  active  skills/b-second\n");
  expect(stdout).toContain("  prompts  prompts/style.md (eager)\n");
  expect(stdout).toMatch(/^ {2}skills\/c-broken\/tools\/bad\.ts:\d+:\d+ error MODULE_SYNTAX /m);
  expect(stdout).toMatch(/warning TOOL_NAME_CLASH/);
  expect(stdout).toMatch(/^3 skills, 2 tools\.\n$/m);
});

test("list --json prints the same as data", async () => {
  using place = workplace(files);
  const { code, stdout } = await runCli(["list", "--json"], { cwd: place.path });
  expect(code).toBe(0);
  expect(stdout.trim().split("\n")).toHaveLength(1);
  const { ok, command, data, diagnostics } = JSON.parse(stdout);
  expect({ ok, command }).toEqual({ ok: true, command: "list" });
  expect(data.skills.map((skill: { name: string }) => skill.name)).toEqual(["a-first", "b-second", "c-broken"]);
  expect(data.tools).toMatchObject([
    { name: "greet", namespacedName: "b-second/greet", source: { kind: "skill", name: "b-second" }, deferred: false },
    { name: "wave", namespacedName: "a-first/wave" },
  ]);
  expect(diagnostics.map((diagnostic: { code: string }) => diagnostic.code)).toContain("MODULE_SYNTAX");
});

test("list explains how to begin in an empty folder", async () => {
  using place = workplace();
  const { code, stdout, stderr } = await runCli(["list"], { cwd: place.path });
  expect({ code, stdout }).toEqual({ code: 0, stdout: "0 skills, 0 tools.\n" });
  expect(stderr).toContain("skillhost new skill <name>");
  expect((await runCli(["list", "--quiet"], { cwd: place.path })).stderr).toBe("");
});

test("list escapes control characters of skills, so that they cannot repaint a terminal", async () => {
  using place = workplace({ "skills/evil/SKILL.md": `---\nname: evil\ndescription: "\\e[2J\\u202Egone\\r\\nnew"\n---\nbody\n` });
  const { stdout } = await runCli(["list"], { cwd: place.path, isTTY: true, env: { NO_COLOR: "1" } });
  expect(stdout).toContain("[2Jgone new");
  expect(stdout).toContain("TEXT_HIDDEN The value of `description` has 2 hidden characters (U+001B, U+202E)");
  // biome-ignore lint/suspicious/noControlCharactersInRegex: that there is none is the point
  expect(stdout).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u202e]/);
});

test("list prints colours only to a terminal, unless configured otherwise", async () => {
  using place = workplace({ "skills/a/SKILL.md": skillDocument("a") });
  const coloured = async (argv: string[], isTTY: boolean, env = {}): Promise<boolean> =>
    (await runCli(["list", ...argv], { cwd: place.path, isTTY, env })).stdout.includes("\u001b[");
  expect(await coloured([], true)).toBe(true);
  expect(await coloured([], false)).toBe(false);
  expect(await coloured(["--no-color"], true)).toBe(false);
  expect(await coloured([], true, { NO_COLOR: "1" })).toBe(false);
  expect(await coloured([], false, { FORCE_COLOR: "1" })).toBe(true);
  expect(await coloured(["--json"], true, { FORCE_COLOR: "1" })).toBe(false);
});

test("explain prints the owner of a name, the losers, the rule and the engine", async () => {
  using place = workplace(files);
  const { code, stdout } = await runCli(["explain", "greet"], { cwd: place.path });
  expect(code).toBe(0);
  expect(stdout).toContain("tool greet\n  wins  skill b-second (skills/b-second/tools/greet.ts)\n");
  expect(stdout).toContain(
    "  lost  skill a-first (skills/a-first/tools/greet.ts)\n    because the later skill's tool replaces the earlier skill's\n",
  );
  expect(stdout).toMatch(/run by (graph|jiti): /);
});

test("explain names the filter of a session that hides a tool", async () => {
  using place = workplace(files);
  const excluded = await runCli(["explain", "greet", "--excluded", "skill:b-second"], { cwd: place.path });
  expect(excluded.stdout).toContain(
    '  hidden  skill b-second (skills/b-second/tools/greet.ts)\n    because "skill:b-second" in excludedTools matches it\n',
  );
  const available = await runCli(["explain", "greet", "--available", "wave", "--json"], { cwd: place.path });
  expect(JSON.parse(available.stdout).data.hiddenBy).toEqual({ filter: "availableTools" });
  const illegal = await runCli(["explain", "greet", "--available", "*"], { cwd: place.path });
  expect(illegal.code).toBe(2);
});

test("explain shows a skill", async () => {
  using place = workplace({
    ...files,
    "more/a-first/SKILL.md": skillDocument("a-first", "Another. Use it when the first one is not enough."),
  });
  const { stdout } = await runCli(["explain", "a-first", "--skills", "skills", "--skills", "more"], { cwd: place.path });
  expect(stdout).toContain("  shadowed  skills/a-first\n");
  expect(stdout).toContain("  active  more/a-first\n");
  expect(stdout).toContain("the name belongs to more/a-first");
});

test("explain suggests the nearest names for an unknown name", async () => {
  using place = workplace(files);
  const { code, stdout, stderr } = await runCli(["explain", "gret"], { cwd: place.path });
  expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
  expect(stderr).toContain('No tool or skill is named "gret". Did you mean "greet"?');
});
