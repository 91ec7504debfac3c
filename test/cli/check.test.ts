import { existsSync } from "node:fs";
import { expect, test } from "vitest";
import { runCli, skillDocument, toolModule, workplace } from "./run-cli.ts";

test("check passes valid skills and prints their number", async () => {
  using place = workplace({ "skills/a/SKILL.md": skillDocument("a"), "skills/a/tools/hello.ts": toolModule("hello", "Hello") });
  expect(await runCli(["check"], { cwd: place.path })).toEqual({
    code: 0,
    stdout:
      '1 skill and 1 tool checked: no problems found without running code.\n1 module not run. Use "skillhost check --run" to see whether it loads.\n',
    stderr: "",
  });
  using text = workplace({ "skills/a/SKILL.md": skillDocument("a") });
  expect((await runCli(["check"], { cwd: text.path })).stdout).toBe("1 skill and 0 tools checked: no problems found.\n");
});

test("check --run loads the modules of a trusted folder, and reports errors that only appear at run time", async () => {
  using place = workplace({
    "skills/a/SKILL.md": skillDocument("a"),
    "skills/a/tools/hello.ts": `import "node:fs";\nfunction fail(): never { throw new Error("only when it runs"); }\nfail();\n${toolModule("hello", "Hello")}`,
    "skills/a/tools/many.ts":
      'import { defineTool } from "skillhost";\nconst names = ["one", "two"];\nexport default names.map((name) => defineTool(name, { description: "One of several tools, made by a loop.", handler: () => name }));',
  });
  const unrun = await runCli(["check"], { cwd: place.path });
  expect([unrun.code, unrun.stdout]).toEqual([0, expect.stringContaining("no problems found without running code")]);
  expect(unrun.stdout).toContain("These modules compute their definitions: skills/a/tools/many.ts.");
  const refused = await runCli(["check", "--run"], { cwd: place.path, isTrusted: false });
  expect([refused.code, refused.stdout]).toEqual([1, ""]);
  expect(refused.stderr).toContain("skillhost trust add");
  const run = await runCli(["--trust", "check", "--run"], { cwd: place.path, isTrusted: false });
  expect([run.code, run.stdout]).toEqual([1, expect.stringContaining("only when it runs")]);
  expect(run.stdout).not.toContain("--run");
});

test("check reports the faults of stored calls with their lines, and calls of tools that do not exist", async () => {
  const files = { "skills/a/SKILL.md": skillDocument("a"), "skills/a/tools/hello.ts": toolModule("hello", "Hello") };
  const calls = {
    fine: { tool: "hello" },
    misspelt: { tool: "hallo" },
    ofServer: { tool: "notes/add" },
    faulty: { tool: "hello", expect: { contain: "x" } },
  };
  using place = workplace({ ...files, "skills/a/calls.json": JSON.stringify({ calls }, null, 1) });
  const { code, stdout } = await runCli(["check"], { cwd: place.path });
  expect(code).toBe(1);
  expect(stdout.split("\n").filter((line) => line.includes("calls.json"))).toEqual([
    expect.stringContaining('skills/a/calls.json:15:5 error CALL_EXPECTATION "contain" is not an expectation.'),
    'skills/a/calls.json:6:3 warning CALL_TOOL_UNKNOWN Stored call "misspelt": skill "a" has no tool "hallo".',
  ]);
  place.write("skills/a/calls.json", JSON.stringify({ calls: { fine: { tool: "hello" } } }));
  expect((await runCli(["check", "--strict"], { cwd: place.path })).code).toBe(0);
});

test("check explains how Python files become tools, and that it did not run them", async () => {
  using place = workplace({
    "skills/a/skill.json": '{ "name": "a", "description": "Counts words. Use it for texts." }',
    "skills/a/tools/count.py": "def broken(:",
  });
  const { stdout } = await runCli(["check"], { cwd: place.path });
  expect(stdout).toContain("warning TOOL_PYTHON_PLUGIN");
  expect(stdout).toContain('"plugins": ["skillhost/plugins/python-tools"]');
  expect(stdout).not.toContain("no problems found");
});

test("check reports, as list does, a skill with more files than clients receive", async () => {
  using place = workplace({ "skills/a/SKILL.md": skillDocument("a"), "skills/b/SKILL.md": skillDocument("b") });
  for (let index = 0; index < 512; index++) place.write(`skills/b/data/${index}.txt`, "");
  for (const command of ["check", "list"]) {
    const { stdout } = await runCli([command], { cwd: place.path });
    expect(stdout.match(/\S+ warning SKILL_TOO_LARGE/g)).toEqual(["skills/b warning SKILL_TOO_LARGE"]);
  }
});

test("check covers skills in deeper folders and names those folders, as list does", async () => {
  using place = workplace({
    "cookbook/tools/web/fetch/SKILL.md": skillDocument("fetch"),
    "cookbook/tools/web/parse/SKILL.md": skillDocument("other-name"),
    "cookbook/texts/style/SKILL.md": skillDocument("style"),
    "cookbook/texts/style/examples/inner/SKILL.md": skillDocument("inner"),
    "cookbook/node_modules/x/y/SKILL.md": skillDocument("y"),
    "cookbook/1/2/3/4/5/6/7/SKILL.md": skillDocument("7"),
  });
  const { code, stdout } = await runCli(["check", "cookbook"], { cwd: place.path });
  expect(code).toBe(0);
  expect(stdout).toContain("3 skills found deeper in cookbook than skillhost searches: in cookbook/texts, cookbook/tools/web.");
  expect(stdout).toContain("cookbook/tools/web/parse/SKILL.md:2:1 warning SKILL_NAME_MISMATCH");
  expect(stdout).toContain("3 skills and 0 tools checked");
  const listed = await runCli(["list", "--skills", "cookbook"], { cwd: place.path });
  expect(listed.stdout).toContain("0 skills, 0 tools.");
  expect(listed.stderr).toContain("3 skills found deeper in cookbook than skillhost searches: in cookbook/texts, cookbook/tools/web.");
  expect((await runCli(["list", "--skills", "cookbook/tools/*", "--skills", "cookbook/texts"], { cwd: place.path })).stdout).toContain(
    "3 skills, 0 tools.",
  );
});

test("check runs no code", async () => {
  using place = workplace({ "skills/a/SKILL.md": skillDocument("a") });
  const write = `import { writeFileSync } from "node:fs";\nwriteFileSync(${JSON.stringify(place.at("ran"))}, "");\n`;
  place.write("skills/a/tools/hello.ts", write + toolModule("hello", "Hello"));
  place.write("skills/a/tools/lint.json", JSON.stringify({ name: "lint", description: "Finds faults in source files and names them." }));
  place.write("skills/a/tools/lint.ts", `${write}export default () => "no faults in any file";\n`);
  place.write(
    "skills/a/tools/cjs.cjs",
    write.replace("import { writeFileSync } from", "const { writeFileSync } = require(").replace('"node:fs";', '"node:fs");'),
  );
  const { stdout } = await runCli(["check"], { cwd: place.path });
  expect(stdout).toContain("1 skill and 2 tools checked");
  expect(existsSync(place.at("ran"))).toBe(false);
});

test("check reports errors of manifests, documents, prompts, tool JSON, schemas and modules with their positions, and exits with 1", async () => {
  using place = workplace({
    "skills/a/skill.json": '{\n  "name": "a",\n  "version": "one",\n  "prompts": ["prompts/none.md"]\n}\n',
    "skills/a/tools/broken.ts": "export default {\n  name: \n};\n",
    "skills/a/tools/imports.ts": 'import "./missing.ts";\nexport default [];\n',
    "skills/a/tools/lint.json":
      '{\n  "name": "lint",\n  "description": "Finds faults in source files and names them.",\n  "parameters": { "type": "object", "properties": { "a": { "type": "strin" } } }\n}',
    "skills/a/tools/typo.json": '{ "name": "typo", }',
  });
  const { code, stdout } = await runCli(["check"], { cwd: place.path });
  expect(code).toBe(1);
  for (const expected of [
    "skills/a/skill.json:3:3 warning MANIFEST_VERSION",
    "skills/a/skill.json error PROMPT_MISSING",
    "skills/a/tools/broken.ts:3:1 error MODULE_SYNTAX",
    'skills/a/tools/imports.ts:1:8 error MODULE_NOT_FOUND Cannot find "./missing.ts", imported by skills/a/tools/imports.ts.',
    "skills/a/tools/lint.json error SCHEMA_INVALID",
    "skills/a/tools/typo.json:1:17 error JSON_SYNTAX",
  ]) {
    expect(stdout).toContain(expected);
  }
});

test("check reports name conflicts without running code", async () => {
  using place = workplace({
    "skills/a/SKILL.md": skillDocument("a"),
    "skills/a/tools/hello.ts": toolModule("hello", "Hello"),
    "skills/a/tools/hello-again.ts": toolModule("hello", "Hello again").replace("fixed", "repeated"),
    "skills/b/SKILL.md": skillDocument("b"),
    "skills/b/tools/hello.ts": toolModule("hello", "Good day").replace("fixed", "other"),
    "more/a/SKILL.md": skillDocument("a", "Another skill. Use it when the first is not there."),
  });
  const { code, stdout } = await runCli(["check", "skills", "more"], { cwd: place.path });
  expect(code).toBe(1);
  expect(stdout).toContain("error TOOL_NAME_TWICE");
  expect(stdout).toContain("warning SKILL_NAME_CLASH");
  const { stdout: two } = await runCli(["check"], { cwd: place.path });
  expect(two).toContain("warning TOOL_NAME_CLASH");
});

test("check --strict applies the specification to SKILL.md and fails on warnings", async () => {
  using place = workplace({ "skills/a/SKILL.md": "---\nname: a\ndescription: Does a thing that is wanted. Use it.\nmode: x\n---\nbody\n" });
  expect((await runCli(["check"], { cwd: place.path })).code).toBe(0);
  const strict = await runCli(["check", "--strict"], { cwd: place.path });
  expect(strict.code).toBe(1);
  expect(strict.stdout).toContain("skills/a/SKILL.md:4:1 error SKILL_FIELDS_UNEXPECTED");
  using vague = workplace({
    "skills/a/SKILL.md": skillDocument("a"),
    "skills/a/tools/hello.ts": toolModule("hello", "x").replace(/description: "Returns[^"]*"/, 'description: "A tool"'),
  });
  expect((await runCli(["check"], { cwd: vague.path })).code).toBe(0);
  expect((await runCli(["check", "--strict"], { cwd: vague.path })).code).toBe(1);
});

test("check --json prints its report as data", async () => {
  using place = workplace({ "skills/a/SKILL.md": skillDocument("a"), "skills/a/tools/hello.ts": "export default (" });
  const { code, stdout } = await runCli(["check", "--json"], { cwd: place.path });
  expect(code).toBe(1);
  expect(JSON.parse(stdout)).toMatchObject({
    ok: false,
    command: "check",
    data: {
      skills: [{ name: "a", folder: place.at("skills/a"), tools: [] }],
      counts: { skills: 1, tools: 0, errors: 1, warnings: 0, infos: 0 },
    },
    diagnostics: [{ code: "MODULE_SYNTAX", source: "a", file: place.at("skills/a/tools/hello.ts") }],
  });
});

test("check fails if there was nothing to check", async () => {
  using place = workplace({ "empty/.keep": "" });
  const none = await runCli(["check", "empty"], { cwd: place.path });
  expect(none.code).toBe(1);
  expect(none.stdout).toContain("SKILLS_NONE");
  const missing = await runCli(["check", "nowhere"], { cwd: place.path });
  expect(missing.code).toBe(1);
  expect(missing.stdout).toContain("nowhere error SKILLS_DIRECTORY_MISSING");
});
