import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { inspectPython } from "../../plugins/python-tools/inspect-python.ts";
import { type CheckReport, checkSkills } from "../../src/advice/check-skills.ts";
import { createModuleLoader } from "../../src/io/module-loader/create-module-loader.ts";
import { providedModules } from "../../src/skills/load/tool-module.ts";
import { runCli, skillDocument } from "../cli/run-cli.ts";
import { noPython } from "../plugins/python-tools/python-kit.ts";
import { openKit, putAll, skillMd, tempFolder } from "../skills/kit.ts";

const head = "from skillhost import define_tool\n";
const tool = `${head}@define_tool(description="Adds.")\ndef t(a: int) -> int:\n    return a\n`;
const places: readonly string[] = ["PYTHON_SYNTAX", "PYTHON_THREW", "TOOL_INVALID"];

/** Text of a file, the code that loading it reports, if any, and the line. */
const rows: Readonly<Record<string, readonly [text: string, code?: string, line?: number]>> = {
  "a tool": [tool],
  "a tool with the names of other hosts": [
    `${head}def run(a: int) -> int:\n    return a\nt = define_tool("t", description="x", inputSchema={"type": "object", "properties": {}}, execute=run)\n`,
  ],
  "SCHEMA and execute": [
    'SCHEMA = {"name": "t", "description": "x", "inputSchema": {"type": "object"}}\ndef execute(tool_input, ctx):\n    return {}\n',
  ],
  "a text that does not parse": [`${tool}\ndef broken(:\n    pass\n`, "PYTHON_SYNTAX", 6],
  "a wrong indentation": [`${tool}  return 1\n`, "PYTHON_SYNTAX", 5],
  "a bracket that is never closed": [`${tool}x = (1,\n`, "PYTHON_SYNTAX", 5],
  "an option that define_tool does not know": [`${head}\n@define_tool(descripton="x")\ndef t():\n    return 1\n`, "PYTHON_THREW", 3],
  "two names for one option": [`${head}\n@define_tool(parameters={}, inputSchema={})\ndef t():\n    return 1\n`, "PYTHON_THREW", 3],
  "no definition of a tool": ["print('never runs')\n", "PYTHON_NO_TOOLS"],
  "execute without SCHEMA": ["def execute(tool_input, ctx):\n    return {}\n", "PYTHON_NO_TOOLS"],
  "SCHEMA without execute": ["SCHEMA = {}\n", "PYTHON_NO_TOOLS"],
};

/** Only running these shows what is wrong. */
const onlyRunning: Readonly<Record<string, string>> = {
  "a module that raises": `${tool}raise RuntimeError("no")\n`,
  "a module that is not installed": `import nowhere_to_be_found\n${tool}`,
  "a tool in a loop that defines none": `${head}for name in []:\n    define_tool(name)\n`,
};

function skillOf(text: string): string {
  const folder = join(tempFolder(), "bad");
  putAll(folder, { "SKILL.md": skillMd("bad"), "skill.json": '{ "name": "bad" }', "tools/t.py": text });
  return folder;
}

async function check(folder: string): Promise<CheckReport> {
  const loader = createModuleLoader(providedModules);
  try {
    return await checkSkills({
      roots: [folder],
      loader,
      hostVersion: "0.1.0",
      strict: false,
      inspectPython,
      signal: new AbortController().signal,
    });
  } finally {
    loader[Symbol.dispose]();
  }
}

const load = (folder: string) => openKit([folder], { watch: false, plugins: ["skillhost/plugins/python-tools"] });

describe.skipIf(noPython)("check finds what loading a Python file finds, without running it:", () => {
  test.each(Object.entries(rows))("%s", async (_title, [text, code, line]) => {
    const folder = skillOf(text);
    const { host } = await load(folder);
    const report = await check(folder);
    const found = report.diagnostics.filter(({ code: each }) => each.startsWith("PYTHON_") || places.includes(each));
    const codes = (list: CheckReport["diagnostics"]) => list.map((each) => `${each.severity} ${each.code}`);
    expect(codes(found)).toEqual(code === undefined ? [] : [`${code === "PYTHON_NO_TOOLS" ? "info" : "error"} ${code}`]);
    const loaded = [...host.diagnostics, ...host.skills.flatMap(({ diagnostics }) => diagnostics)];
    expect(codes(loaded)).toEqual(expect.arrayContaining([...codes(found)]));
    expect(loaded.some(({ severity }) => severity === "error")).toBe(found.some(({ severity }) => severity === "error"));
    if (line !== undefined) expect(found[0]?.range?.start.line).toBe(line);
    if (code === undefined) expect([report.skills[0]?.tools, host.skills[0]?.tools]).toEqual([["t"], ["t"]]);
    expect(report.skills[0]?.unrun).toEqual([join(folder, "tools/t.py")]);
  });

  test.each(Object.entries(onlyRunning))("and says that only running shows it: %s", async (_title, text) => {
    const folder = skillOf(text);
    const report = await check(folder);
    expect(report.diagnostics.filter(({ severity }) => severity === "error")).toEqual([]);
    expect(report.skills[0]?.unrun).toEqual([join(folder, "tools/t.py")]);
  });
});

test.skipIf(noPython)("the command parses Python where the configuration names its plugin, and runs nothing", async () => {
  const folder = tempFolder();
  const marker = join(folder, "ran");
  putAll(folder, {
    "skills/py/SKILL.md": skillDocument("py"),
    "skills/py/skill.json": '{ "name": "py" }',
    "skills/py/tools/t.py": `open(${JSON.stringify(marker)}, "w")\n${tool}`,
    "skillhost.json": '{ "plugins": ["skillhost/plugins/python-tools"] }',
  });
  const sound = await runCli(["check"], { cwd: folder });
  expect(sound).toMatchObject({
    code: 0,
    stdout: expect.stringContaining("1 skill and 1 tool checked: no problems found without running code."),
  });
  expect(sound.stdout).toContain("1 Python file parsed but not run");
  writeFileSync(join(folder, "skills/py/tools/t.py"), `${tool}def (\n`);
  const broken = await runCli(["check"], { cwd: folder });
  expect(broken).toMatchObject({ code: 1, stdout: expect.stringMatching(/skills\/py\/tools\/t\.py:5:\d+ error PYTHON_SYNTAX/) });
  expect((await import("node:fs")).existsSync(marker)).toBe(false);
});
