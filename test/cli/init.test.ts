import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { installSkillhost } from "../installed-skillhost.ts";
import { noPython } from "../plugins/python-tools/python-kit.ts";
import { runCli, workplace } from "./run-cli.ts";

const repository = fileURLToPath(new URL("../..", import.meta.url));

const json = (file: string): Record<string, unknown> => JSON.parse(readFileSync(file, "utf8")) as Record<string, unknown>;

test("init makes an empty folder a project that passes the strict check, works and type checks", async () => {
  using place = workplace();
  const made = await runCli(["init", "my-skills"], { cwd: place.path, isTrusted: false });
  const project = place.at("my-skills");
  expect(made).toMatchObject({
    code: 0,
    stdout: [
      "package.json",
      "skillhost.json",
      ".gitignore",
      "tsconfig.json",
      "skills/hello/SKILL.md",
      "skills/hello/skill.json",
      "skills/hello/tools/hello.ts",
      "skills/hello/test/hello.test.mjs",
    ]
      .map((file) => `my-skills/${file}\n`)
      .join(""),
  });
  expect(made.stderr).toContain("cd my-skills && npm install");
  expect(json(join(project, "package.json"))).toMatchObject({
    name: "my-skills",
    private: true,
    type: "module",
    scripts: { dev: "skillhost dev", test: "node --test", typecheck: "tsc" },
    devDependencies: { skillhost: `^${json(join(repository, "package.json"))["version"]}`, typescript: expect.stringMatching(/^\^\d/) },
  });
  // As after "npm install".
  installSkillhost(project, ["@types/node"]);
  expect(existsSync(join(project, json(join(project, "skillhost.json"))["$schema"] as string))).toBe(true);
  expect(existsSync(join(project, "skills/hello", json(join(project, "skills/hello/skill.json"))["$schema"] as string))).toBe(true);
  const inside = { cwd: project, isTrusted: false };
  expect(await runCli(["check", "--strict"], inside)).toMatchObject({
    code: 0,
    stdout: expect.stringContaining("1 skill and 1 tool checked: no problems found"),
  });
  // The project is trusted, because nothing in it can be another author's.
  expect(await runCli(["call", "hello", "--name", "Ada", "--yes"], inside)).toMatchObject({ code: 0, stdout: "Hello, Ada!\n" });
  execFileSync(process.execPath, [join(repository, "node_modules/typescript/bin/tsc")], { cwd: project });
});

test.for(["typescript", "json", "python", "instructions"] as const)(
  "a project of kind %s passes the strict check and its own test",
  async (kind, { skip }) => {
    skip(kind === "python" && noPython !== undefined, noPython);
    using place = workplace();
    const made = await runCli(["init", "--kind", kind, "--skill", "first-steps", "--name", "@acme/skills"], {
      cwd: place.path,
      isTrusted: false,
    });
    expect(made.code).toBe(0);
    expect(json(place.at("package.json"))["name"]).toBe("@acme/skills");
    expect(existsSync(place.at("tsconfig.json"))).toBe(kind === "typescript");
    expect(await runCli(["check", "--strict"], { cwd: place.path, isTrusted: false })).toMatchObject({ code: 0, stderr: "" });
    installSkillhost(place.path);
    const { NODE_OPTIONS: _options, NODE_TEST_CONTEXT: _context, ...env } = process.env;
    const report = execFileSync(process.execPath, ["--test"], { cwd: place.path, env, encoding: "utf8" });
    expect(report).toMatch(/^# pass [1-9]/m);
  },
);

test("init asks on a terminal, and --yes takes the defaults", async () => {
  using place = workplace();
  const answers = ["release-notes", "4", "cursor, vscode"];
  const questions: string[] = [];
  const answer = (question: string): string => {
    questions.push(question);
    return answers.shift()!;
  };
  const asked = await runCli(["init"], { cwd: place.path, isTTY: true, answer });
  expect(asked.code).toBe(0);
  expect(questions).toEqual([
    "Name of the first skill [hello]: ",
    expect.stringMatching(
      /^What is it\?\n {2}1\. typescript: .*\n {2}2\. json: .*\n {2}3\. python: .*\n {2}4\. instructions: .*\n\[1\]: $/,
    ),
    "Connect MCP clients (claude-code, claude-desktop, vscode, cursor, codex, gemini, windsurf, zed) [none]: ",
  ]);
  expect(json(place.at(".cursor/mcp.json"))).toHaveProperty(
    "mcpServers.skillhost.args",
    expect.arrayContaining([place.at("skillhost.json")]),
  );
  expect(json(place.at(".vscode/mcp.json"))).toHaveProperty("servers.skillhost");
  expect(readdirSync(place.at("skills/release-notes"))).toEqual(["SKILL.md", "skill.json", "test"]);
  expect((await runCli(["init", "other", "--yes"], { cwd: place.path, isTTY: true, answer: () => expect.unreachable() })).code).toBe(0);
  expect(existsSync(place.at("other/skills/hello/tools/hello.ts"))).toBe(true);
});

test.each([
  [["Bad Name", "1"], "is not a valid skill name"],
  [["good-name", "1", "cursr"], 'Did you mean "cursor"?'],
  [["good-name", "5"], '"5" is not one of typescript, json, python, instructions'],
])("init writes nothing after the answers %j", async (answers, said) => {
  using place = workplace();
  const left = [...answers];
  const { code, stderr } = await runCli(["init"], { cwd: place.path, isTTY: true, answer: () => left.shift()! });
  expect(code).toBe(2);
  expect(stderr).toContain(said);
  expect(readdirSync(place.path)).toEqual([]);
});

test("init keeps what exists, and gives a package.json only what it lacks", async () => {
  const manifest = '{\r\n\t"name": "mine",\r\n\t"scripts": { "test": "jest" },\r\n\t"dependencies": { "skillhost": "0.0.1" }\r\n}';
  using place = workplace({ "package.json": manifest, ".gitignore": "dist\n", "tsconfig.json": "{}", "src/index.js": "" });
  const { code, stdout, stderr } = await runCli(["init", "--json"], { cwd: place.path });
  expect([code, stderr]).toEqual([0, expect.any(String)]);
  const { data } = JSON.parse(stdout);
  expect(data.changed).toEqual([place.at("package.json")]);
  expect(data.kept).toEqual([place.at(".gitignore"), place.at("tsconfig.json")]);
  const text = readFileSync(place.at("package.json"), "utf8");
  expect(text).toMatch(/^\{\r\n\t"name": "mine",\r\n/);
  expect(text.endsWith("}")).toBe(true);
  const written = JSON.parse(text);
  expect(written.scripts).toMatchObject({ test: "jest", dev: "skillhost dev" });
  expect(written.dependencies).toEqual({ skillhost: "0.0.1" });
  expect(written.devDependencies).toEqual({ "@types/node": expect.any(String), typescript: expect.any(String) });
  expect(readFileSync(place.at(".gitignore"), "utf8")).toBe("dist\n");
  // A second one adds a skill and changes nothing else.
  const again = JSON.parse((await runCli(["init", "--skill", "next", "--json"], { cwd: place.path })).stdout);
  expect(again.data.changed).toEqual([]);
  expect(readFileSync(place.at("package.json"), "utf8")).toBe(text);
});

test.each([
  ["a package.json that does not parse", { "project/package.json": "{ nope" }, "is not valid JSON"],
  ["a package.json that is a list", { "project/package.json": "[]" }, "is not a JSON object"],
  ["a skill of that name", { "project/skills/hello/SKILL.md": "mine" }, "already exists"],
])("init writes nothing beside %s", async (_what, files, said) => {
  using place = workplace(files as Record<string, string>);
  const before = readdirSync(place.path, { recursive: true });
  const { code, stderr } = await runCli(["init", "project"], { cwd: place.path });
  expect(code).toBe(1);
  expect(stderr).toContain(said);
  expect(readdirSync(place.path, { recursive: true })).toEqual(before);
});

test("init names a file where a folder should be", async () => {
  using place = workplace({ taken: "" });
  expect(await runCli(["init", "taken"], { cwd: place.path })).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("is not a folder"),
  });
});

test("a file that cannot be created leaves none of the others", async () => {
  // A file where a folder is needed fails for every user.
  using place = workplace({ "project/skills": "a file" });
  const { code, stderr } = await runCli(["init", "project"], { cwd: place.path });
  expect(code).toBe(1);
  expect(stderr).toContain("could not be written");
  expect(readdirSync(place.at("project"))).toEqual(["skills"]);
});

test("init does not trust the other code of a folder that has some", async () => {
  using place = workplace({ "skills/theirs/skill.json": '{"name": "theirs"}', "skills/theirs/tools/t.js": "export default 1;" });
  expect((await runCli(["init"], { cwd: place.path, isTrusted: false })).code).toBe(0);
  const { stdout } = await runCli(["list", "--json"], { cwd: place.path, isTrusted: false });
  const states = JSON.parse(stdout).data.skills.map(({ name, state }: { name: string; state: string }) => [name, state]);
  expect(states).toEqual([
    ["hello", "active"],
    ["theirs", "untrusted"],
  ]);
});

test("create-skillhost has the version of skillhost and installs it", () => {
  const [own, creator] = ["package.json", "create-skillhost/package.json"].map((file) => json(join(repository, file)));
  expect(creator).toMatchObject({ version: own!["version"], engines: own!["engines"], dependencies: { skillhost: `^${own!["version"]}` } });
});
