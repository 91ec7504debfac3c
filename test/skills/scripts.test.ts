import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openKit, put, skillMd, tempFolder, toolSource } from "./kit.ts";

const leaves = (file: string): string => `import { writeFileSync } from "node:fs";\nwriteFileSync(${JSON.stringify(file)}, "ran");\n`;

test.each([
  ["a script", (at: string) => `${leaves(at)}process.exit(3);\n`],
  ["a script with a function that it exports", (at: string) => `${leaves(at)}export function main() { return 1; }\nmain();\n`],
  [
    "a CommonJS script",
    (at: string) => `require("node:fs").writeFileSync(${JSON.stringify(at)}, "ran");\nmodule.exports = { helper: () => 1 };\n`,
  ],
])("in a skill without a manifest, %s in tools/ is a file and is not run", async (_, source) => {
  const root = tempFolder({ "s/SKILL.md": skillMd("s"), "s/tools/works.ts": toolSource("works", '"works"') });
  const ran = join(root, "ran.txt");
  put(
    join(root, "s/tools/run.cjs"),
    source(ran)
      .replace(/^import \{ writeFileSync \} from "node:fs";\n/, 'const { writeFileSync } = require("node:fs");\n')
      .replace("export ", ""),
  );
  put(join(root, "s/tools/run.mjs"), source(ran));
  const kit = await openKit([root], { watch: false });
  expect(kit.skill("s").tools).toEqual(["works"]);
  expect(kit.host.diagnostics.map(({ severity, code }) => `${severity} ${code}`)).toEqual([
    "info TOOL_FILE_SCRIPT",
    "info TOOL_FILE_SCRIPT",
  ]);
  expect(existsSync(ran)).toBe(false);
  expect(kit.session.listResources().map(({ uri }) => uri)).toEqual(expect.arrayContaining([expect.stringContaining("tools/run.mjs")]));
});

test("in a skill with a manifest, every module in tools/ is loaded, and one without a tool is reported", async () => {
  const root = tempFolder({ "s/skill.json": '{ "name": "s", "description": "x" }', "s/tools/run.mjs": "const a = 1;\n" });
  const kit = await openKit([root], { watch: false });
  expect(kit.found("MODULE_NO_TOOLS")).toHaveLength(1);
});

test("a tool whose file is saved without its export stays unchanged, with an error", async () => {
  const root = tempFolder({ "s/SKILL.md": skillMd("s"), "s/tools/t.ts": toolSource("t", '"first"') });
  const kit = await openKit([root]);
  await kit.saved(
    () => put(join(root, "s/tools/t.ts"), "const half = 1;\n"),
    () => kit.found("MODULE_NO_TOOLS").length > 0,
  );
  expect([kit.skill("s").stale, await kit.says("t")]).toEqual([true, "first"]);
});
