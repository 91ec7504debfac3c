import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { runCli, workplace } from "../../cli/run-cli.ts";
import { installSkillhost } from "../../installed-skillhost.ts";

const repository = fileURLToPath(new URL("../../..", import.meta.url));
const examples = readdirSync(join(repository, "examples"), { withFileTypes: true })
  .filter((entry) => entry.isDirectory() && existsSync(join(repository, "examples", entry.name, "SKILL.md")))
  .map(({ name }) => name);
const bundled = readdirSync(join(repository, "skills"));

test.each(examples)("a copy of the example %s passes the strict check and its own test", async (template) => {
  using place = workplace({ "package.json": '{ "type": "module" }' });
  installSkillhost(place.path, ["zod", "tinyglobby"]);
  const made = await runCli(["new", "skill", "my-copy", "--from", template], { cwd: place.path, isTrusted: false });
  expect(made).toMatchObject({ code: 0 });
  const imported = [...readSources(place.at("skills/my-copy")).matchAll(/from "(zod|tinyglobby)"/g)].map(([, name]) => name);
  expect(/npm packages: npm install (.*)/.exec(made.stderr)?.[1]).toBe(
    imported.length === 0 ? undefined : [...new Set(imported)].join(" "),
  );
  const manifest = JSON.parse(readFileSync(place.at("skills/my-copy/skill.json"), "utf8"));
  expect(manifest).toMatchObject({ $schema: "../../node_modules/skillhost/schemas/skill.schema.json", name: "my-copy" });
  expect(await runCli(["check", "--strict"], { cwd: place.path, isTrusted: false })).toMatchObject({ code: 0, stderr: "" });
  const { NODE_OPTIONS: _options, NODE_TEST_CONTEXT: _context, ...env } = process.env;
  expect(execFileSync(process.execPath, ["--test"], { cwd: place.path, env, encoding: "utf8" })).toMatch(/^# pass [1-9]/m);
});

function readSources(folder: string): string {
  return readdirSync(join(folder, "tools"))
    .map((file) => readFileSync(join(folder, "tools", file), "utf8"))
    .join("\n");
}

test.each(bundled)("a copy of the bundled skill %s loads under its new name", async (template) => {
  using place = workplace();
  expect((await runCli(["new", "skill", "my-copy", "--from", template], { cwd: place.path })).code).toBe(0);
  const { data, diagnostics } = JSON.parse((await runCli(["list", "--json"], { cwd: place.path })).stdout);
  expect(diagnostics).toEqual([]);
  expect(data.skills).toMatchObject([{ name: "my-copy", state: "active" }]);
});

test("a template that does not exist is named with the nearest one, and nothing is written", async () => {
  using place = workplace();
  const { code, stderr } = await runCli(["new", "skill", "mine", "--from", "wether"], { cwd: place.path });
  expect(code).toBe(2);
  expect(stderr).toContain('There is no template "wether". Did you mean "weather"?');
  expect((await runCli(["new", "skill", "mine", "--from", "../skills/memory"], { cwd: place.path })).code).toBe(2);
  expect(existsSync(place.at("skills"))).toBe(false);
});

test("--from and --kind exclude each other", async () => {
  using place = workplace();
  const { code, stderr } = await runCli(["new", "skill", "mine", "--from", "weather", "--kind", "json"], { cwd: place.path });
  expect(code).toBe(2);
  expect(stderr).toContain("cannot be used with");
});

test("a folder of that name is kept, whatever the template", async () => {
  using place = workplace({ "skills/weather/SKILL.md": "mine" });
  const { code, stderr } = await runCli(["new", "skill", "weather", "--from", "weather"], { cwd: place.path });
  expect(code).toBe(1);
  expect(stderr).toContain("already exists");
  expect(readFileSync(place.at("skills/weather/SKILL.md"), "utf8")).toBe("mine");
});
