import { existsSync, readFileSync, symlinkSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { runCli, skillDocument, workplace } from "./run-cli.ts";

test("new creates a skill that loads, works and passes the strict check", async () => {
  using place = workplace();
  const made = await runCli(["new", "skill", "friendly-host"], { cwd: place.path });
  expect(made.code).toBe(0);
  expect(made.stdout).toBe(
    ["SKILL.md", "skill.json", "tools/friendly_host.ts", "test/friendly_host.test.mjs"]
      .map((file) => `skills/friendly-host/${file}\n`)
      .join(""),
  );
  // Imports find no global installation.
  const hint = "Run its test: npm install --save-dev skillhost, then node --test skills/friendly-host/test/friendly_host.test.mjs";
  expect(made.stderr).toContain(hint);
  expect(await runCli(["check", "--strict"], { cwd: place.path })).toEqual({
    code: 0,
    stdout: expect.stringMatching(/^1 skill and 1 tool checked: no problems found without running code\.\n/),
    stderr: "",
  });
  expect((await runCli(["call", "friendly_host", '{"name":"Ada"}', "--yes"], { cwd: place.path })).stdout).toBe("Hello, Ada!\n");
});

test("new prints only the test command if skillhost is installed for imports", async () => {
  using place = workplace({ "node_modules/skillhost/schemas/skill.schema.json": "{}" });
  const { stderr } = await runCli(["new", "skill", "a"], { cwd: place.path });
  expect(stderr).toContain("Run its test: node --test skills/a/test/a.test.mjs");
});

test("new creates a tool in the only skill, or in the named one", async () => {
  using place = workplace({ "skills/a/SKILL.md": skillDocument("a") });
  expect((await runCli(["new", "tool", "wave"], { cwd: place.path })).stdout).toBe("skills/a/tools/wave.ts\nskills/a/test/wave.test.mjs\n");
  place.write("skills/b/SKILL.md", skillDocument("b"));
  const unclear = await runCli(["new", "tool", "nod"], { cwd: place.path });
  expect(unclear).toMatchObject({ code: 2, stdout: "" });
  expect(unclear.stderr).toContain("--skill: a, b");
  expect((await runCli(["new", "tool", "nod", "--skill", "b"], { cwd: place.path })).stdout).toContain("skills/b/tools/nod.ts");
  expect((await runCli(["call", "nod", '{"name":"Ada"}', "--yes"], { cwd: place.path })).stdout).toBe("Hello, Ada!\n");
  const unknown = await runCli(["new", "tool", "nod", "--skill", "bb"], { cwd: place.path });
  expect(unknown.code).toBe(1);
  expect(unknown.stderr).toContain('Skill "bb" does not exist. Did you mean "b"?');
});

test("new reports that a manifest with a list of tools must name the new tool", async () => {
  using place = workplace({ "skills/a/skill.json": '{"name": "a", "tools": []}' });
  const { stderr } = await runCli(["new", "tool", "wave"], { cwd: place.path });
  expect(stderr).toContain('Add "tools/wave.ts" to "tools" in skills/a/skill.json.');
});

test("new overwrites no file, and writes no files if one exists", async () => {
  using place = workplace({ "skills/a/SKILL.md": skillDocument("a"), "skills/a/test/wave.test.mjs": "mine" });
  const tool = await runCli(["new", "tool", "wave"], { cwd: place.path });
  expect(tool.code).toBe(1);
  expect(tool.stderr).toContain(place.at("skills/a/test/wave.test.mjs"));
  expect(existsSync(place.at("skills/a/tools/wave.ts"))).toBe(false);
  expect(readFileSync(place.at("skills/a/test/wave.test.mjs"), "utf8")).toBe("mine");
  const skill = await runCli(["new", "skill", "a"], { cwd: place.path });
  expect(skill.code).toBe(1);
  expect(skill.stderr).toContain(place.at("skills/a"));
});

test.each([
  ["skill", "Upper-Case", "lowercase"],
  ["skill", "two--hyphens", "hyphens"],
  ["skill", "../escape", "letters"],
  ["skill", "größe", "lowercase letters"],
  ["tool", "has space", "has_space"],
  ["tool", "../../escape", "escape"],
])("new refuses the %s name %s", async (what, name, said) => {
  using place = workplace({ "skills/a/SKILL.md": skillDocument("a") });
  const { code, stderr } = await runCli(["new", what, name], { cwd: place.path });
  expect(code).toBe(2);
  expect(stderr).toContain(said);
});

test("new refers a manifest to its schema if this package is installed, and reports as data", async () => {
  using place = workplace({ "node_modules/.keep": "" });
  symlinkSync(fileURLToPath(new URL("../..", import.meta.url)), place.at("node_modules/skillhost"));
  const { stdout } = await runCli(["new", "skill", "x", "--json", "--skills", "lib/skills"], { cwd: place.path });
  expect(JSON.parse(stdout)).toMatchObject({ ok: true, command: "new skill", data: { folder: place.at("lib/skills/x") } });
  const manifest = JSON.parse(readFileSync(place.at("lib/skills/x/skill.json"), "utf8"));
  expect(manifest.$schema).toBe("../../../node_modules/skillhost/schemas/skill.schema.json");
});

test("new creates a plugin whose test passes, and which a configuration can name", async () => {
  using place = workplace({
    "skillhost.json": '{ "plugins": [{ "use": "./plugins/polite-host", "config": { "greeting": "Good day" } }] }',
  });
  const made = await runCli(["new", "plugin", "polite-host"], { cwd: place.path });
  expect(made).toMatchObject({ code: 0, stdout: "plugins/polite-host/plugin.ts\nplugins/polite-host/test/plugin.test.mjs\n" });
  expect(made.stderr).toContain("node --test plugins/polite-host/test/plugin.test.mjs");
  expect((await runCli(["call", "polite_host", '{"name":"Ada"}', "--yes"], { cwd: place.path })).stdout).toBe("Good day, Ada!\n");
  expect((await runCli(["new", "plugin", "polite-host"], { cwd: place.path })).stderr).toContain("already exists");
  const refused = await runCli(["new", "plugin", "../x"], { cwd: place.path });
  expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining("beginning with a letter or digit")]);
});
