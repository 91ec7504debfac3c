import { cpSync, existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { runCli, skillDocument, workplace } from "./run-cli.ts";

const fixtures = fileURLToPath(new URL("../fixtures/bundles/", import.meta.url));

/** A working directory with copies of bundles, and a configuration that names them. */
function placeWith(names: readonly string[], config: object = { plugins: names.map((name) => `./bundles/${name}`) }) {
  const place = workplace({ "skillhost.json": JSON.stringify(config) });
  for (const name of names) cpSync(`${fixtures}${name}`, place.at(`bundles/${name}`), { recursive: true });
  return place;
}

const env = (place: { at(path: string): string }) => ({ SKILLHOST_HOME: place.at("home") });

describe("plugins that the configuration names", () => {
  test("list prints plugins with their components and the problems of each", async () => {
    using place = placeWith(["claude", "codex"]);
    const { code, stdout } = await runCli(["list"], { cwd: place.path, env: env(place) });
    expect(code).toBe(0);
    const lines = stdout.split("\n").map((line) => line.trim());
    expect(lines).toContain("house-rules 0.3.1  active  claude  bundles/claude");
    expect(lines).toContain("adds 2 skills, 1 agent, 2 commands, 2 kinds of hooks, 2 MCP servers");
    expect(lines).toContain("codex 0.1.0  active  codex  bundles/codex");
    expect(lines.filter((line) => line.includes("HOOK_TYPE_UNSUPPORTED"))).toEqual([
      expect.stringMatching(/^bundles\/claude\/hooks\/hooks\.json:\d+:\d+ error HOOK_TYPE_UNSUPPORTED/),
    ]);
    expect(lines).toContain("ledger  stdio  not started  plugin house-rules");
  });

  test("list --json prints plugins as data", async () => {
    using place = placeWith(["claude"]);
    const { stdout } = await runCli(["list", "--json"], { cwd: place.path, env: env(place) });
    const plugins = JSON.parse(stdout).data.plugins;
    expect(plugins).toMatchObject([{ name: "house-rules", state: "active", bundle: { dialect: "claude", skills: ["tidy", "sweep"] } }]);
  });

  test("explain explains a plugin by its name", async () => {
    using place = placeWith(["claude"]);
    const { code, stdout } = await runCli(["explain", "house-rules"], { cwd: place.path, env: env(place) });
    expect([code, stdout]).toEqual([0, expect.stringContaining("house-rules 0.3.1  active  claude  bundles/claude")]);
    const skill = await runCli(["explain", "tidy"], { cwd: place.path, env: env(place) });
    expect(skill.stdout).toContain("bundles/claude/skills/tidy");
  });

  test("a plugin may have a configuration", async () => {
    using place = placeWith(["claude"], { plugins: [{ use: "./bundles/claude", config: { hooks: false } }] });
    const { stdout } = await runCli(["list"], { cwd: place.path, env: env(place) });
    expect(stdout).toContain("adds 2 skills, 1 agent, 2 commands, 2 MCP servers");
  });

  test("doctor checks plugins", async () => {
    using place = placeWith(["claude"]);
    const { stdout } = await runCli(["doctor", "--timeout", "1"], { cwd: place.path, env: env(place) });
    expect(stdout).toContain("HOOK_TYPE_UNSUPPORTED");
  });

  test.each([["./x", 7], [{ use: 7 }], [{ use: "./x", also: 1 }], [""]])(
    "%j in the configuration is an error with its position",
    async (...plugins) => {
      using place = workplace({ "skillhost.json": JSON.stringify({ plugins }, undefined, 1) });
      const { code, stderr } = await runCli(["list"], { cwd: place.path });
      expect(code).toBe(2);
      expect(stderr).toMatch(/skillhost\.json:\d+:\d+ error CONFIG_TYPE "plugins"/);
    },
  );
});

describe("check of bundles", () => {
  test("check reports a bundle's components and its skills, and creates no files", async () => {
    using place = placeWith(["claude"], {});
    const { code, stdout } = await runCli(["check", "bundles/claude"], { cwd: place.path, env: env(place) });
    expect(code).toBe(1);
    expect(stdout).toContain("bundles/claude/hooks/hooks.json:9:");
    expect(stdout).toContain("1 plugin, 2 skills and 0 tools checked:");
    expect(existsSync(place.at("home"))).toBe(false);
  });

  test("check passes a valid bundle, including those of the configuration", async () => {
    using place = placeWith(["openclaw"]);
    expect(await runCli(["check"], { cwd: place.path, env: env(place) })).toMatchObject({
      code: 0,
      stdout: expect.stringContaining("1 plugin, 1 skill"),
    });
  });

  test("check covers a folder as a bundle, as a marketplace and as a skill", async () => {
    const bad = (name: string) => `---\nname: ${name}\ndescription: Does it. Use it for that.\nallowed-tools: { a: 1 }\n---\nDo it.\n`;
    using place = workplace({
      "all/.claude-plugin/plugin.json": '{"name":"all"}',
      "all/.claude-plugin/marketplace.json": JSON.stringify({
        name: "m",
        plugins: [
          { name: "one", source: "./plugins/one" },
          { name: "two", source: "./plugins/two", strict: false, skills: ["./extra"] },
        ],
      }),
      "all/SKILL.md": bad("all"),
      "all/skills/usual/SKILL.md": bad("usual"),
      "all/beside/SKILL.md": bad("beside"),
      "all/plugins/one/skills/first/SKILL.md": bad("first"),
      "all/plugins/two/extra/second/SKILL.md": bad("second"),
    });
    const { stdout } = await runCli(["check", "all", "--json"], { cwd: place.path, env: env(place) });
    const { data, diagnostics } = JSON.parse(stdout);
    expect(data.plugins.map(({ name, skills }: { name: string; skills: string[] }) => [name, skills])).toEqual([
      ["one", ["first"]],
      ["two", ["second"]],
      ["all", ["usual"]],
    ]);
    expect(data.marketplaces).toHaveLength(1);
    const faulty = diagnostics.filter(({ code }: { code: string }) => code === "SKILL_FIELD_TYPE");
    expect(new Set(faulty.map(({ source }: { source: string }) => source))).toEqual(new Set(["all", "usual", "first", "second"]));
  });

  test("check accepts a marketplace of Cursor", async () => {
    using place = workplace({
      "m/.cursor-plugin/marketplace.json": JSON.stringify({ name: "m", plugins: [{ name: "p", source: "./p" }] }),
      "m/p/.cursor-plugin/plugin.json": '{"name":"p"}',
      "m/p/skills/a/SKILL.md": skillDocument("a"),
    });
    const { stdout } = await runCli(["check", "m", "--json"], { cwd: place.path, env: env(place) });
    expect(JSON.parse(stdout).data).toMatchObject({ plugins: [{ name: "p", dialect: "cursor", skills: ["a"] }], counts: { skills: 1 } });
  });

  test("check lists a marketplace, checks the plugins in it, and reports unusable entries", async () => {
    using place = placeWith(["marketplace"], {});
    const { code, stdout } = await runCli(["check", "bundles/marketplace", "--json"], { cwd: place.path, env: env(place) });
    const { data, diagnostics } = JSON.parse(stdout);
    expect(code).toBe(1);
    expect(
      data.marketplaces[0].plugins.map((plugin: { name: string; source: { kind: string } }) => `${plugin.name} ${plugin.source.kind}`),
    ).toEqual(["near local", "hub github", "registry npm"]);
    expect(data.plugins).toMatchObject([{ name: "near", skills: ["close-by"] }]);
    expect(diagnostics.filter((found: { code: string }) => found.code === "MARKETPLACE_ENTRY")).toHaveLength(2);
  });

  test("check reports a path that is not a folder, and a missing one", async () => {
    using place = workplace({ "skills/a/SKILL.md": skillDocument("a") });
    const file = await runCli(["check", "skills/a/SKILL.md"], { cwd: place.path });
    expect([file.code, file.stdout]).toEqual([1, expect.stringContaining("skills/a/SKILL.md error SKILLS_NOT_DIRECTORY")]);
    const gone = await runCli(["check", "nowhere"], { cwd: place.path });
    expect([gone.code, gone.stdout]).toEqual([1, expect.stringContaining("nowhere error SKILLS_DIRECTORY_MISSING")]);
  });

  test("check --strict reports folders in which other hosts find no SKILL.md", async () => {
    using place = workplace({
      "skills/a/skill.json": '{"name":"a","description":"Does a thing that is wanted."}',
      "skills/b/Skill.md": skillDocument("b"),
      "skills/c/skill.md": skillDocument("c"),
    });
    const { code, stdout } = await runCli(["check", "--strict"], { cwd: place.path });
    expect(code).toBe(1);
    expect(stdout).toContain("skills/a info SKILL_DOCUMENT_MISSING");
    expect(stdout).toContain("skills/b/Skill.md error SKILL_DOCUMENT_MISSING");
    expect(stdout.match(/SKILL_DOCUMENT_MISSING/g)).toHaveLength(2);
  });
});
