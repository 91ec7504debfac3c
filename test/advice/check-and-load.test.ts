import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { type CheckReport, checkSkills } from "../../src/advice/check-skills.ts";
import { createModuleLoader } from "../../src/io/module-loader/create-module-loader.ts";
import { providedModules } from "../../src/skills/load/tool-module.ts";
import { type Defect, defects } from "../skills/defects.ts";
import { type Files, openKit, putAll, skillMd, tempFolder, toolSource } from "../skills/kit.ts";

const from = (source: string, more: Files = {}): Pick<Defect, "files"> => ({
  files: { "SKILL.md": skillMd("bad"), "skill.json": '{ "name": "bad" }', "tools/t.ts": source, ...more },
});
const head = 'import { defineTool } from "skillhost";\n';
const zod = `import { z } from "zod";\n${head}`;

/** Further defects of modules, which their texts show. */
const written: Readonly<Record<string, Pick<Defect, "files">>> = {
  "a tool that is not exported": from(`${head}const tool = defineTool("t", { description: "x", handler: () => 1 });\ntool;`),
  "a tool that is not exported, beside a function that is": from(
    `${head}const tool = defineTool("t", { description: "x", handler: () => tool });\nexport function other() { return 1; }`,
  ),
  "a name that a local file does not export": from(`import { missing } from "./_help.ts";\n${toolSource("t", "missing")}`, {
    "tools/_help.ts": "export const there = 1;",
  }),
  "a default that a local file does not export": from(`import missing from "./_help.js";\n${toolSource("t", "missing")}`, {
    "tools/_help.ts": "export const there = 1;",
  }),
  "a name that a helper's helper does not export": from(`import { a } from "./_a.ts";\n${toolSource("t", "a")}`, {
    "tools/_a.ts": 'import { missing } from "./_b.ts";\nexport const a = missing;',
    "tools/_b.ts": "export const b = 1;",
  }),
  "a name that skillhost does not export": from('import { defineTools } from "skillhost";\nexport default defineTools([]);'),
  "a function that returns a text as the default export": from('export default function greet() { return "hello"; }'),
  "an arrow function that returns a number": from("export default () => 42;"),
  "a function that returns nothing": from("export default async ({ name }: { name: string }) => { console.log(name); };"),
  "a text as the default export": from('export default "hello";'),
  "an empty list": from("export default [];"),
  "a function that returns null": from("export default () => null;"),
  "a list of numbers": from("export default [1, 2];"),
  "an object without a name and a handler": from('export default { title: "x" };'),
  constants: from("export const a = 1;\nexport class B {}\nexport function c() { return 1; }"),
  "a script without exports": from('console.log("hello");'),
  "a map of schemas as parameters": from(
    `${zod}export default defineTool("t", { description: "x", parameters: { city: z.string() }, handler: () => 1 } as never);`,
  ),
  "a map of schemas as inputSchema": from(
    `${zod}export default { name: "t", description: "x", inputSchema: { city: z.string().min(1) }, execute: () => 1 };`,
  ),
  "execute without SCHEMA": from("export const execute = () => 1;"),
  "a module that throws at its top": from('throw new Error("never");\nexport default [];'),
  "a handler module that is not there": {
    files: { "SKILL.md": skillMd("bad"), "tools/t.json": '{ "name": "t", "description": "x", "handler": { "module": "./none.ts" } }' },
  },
  "a variable that is not declared": {
    files: {
      "SKILL.md": skillMd("bad"),
      "tools/t.json": '{ "name": "t", "description": "x", "handler": { "http": { "url": "https://a.example/?k=${env:KEY}" } } }',
    },
  },
};

/** Modules in which there is nothing to find. */
const sound: Readonly<Record<string, Pick<Defect, "files">>> = {
  "a tool in a constant": from(`${head}const tool = defineTool("t", { description: "x", handler: () => 1 });\nexport default tool;`),
  "tools in a list that grows": from(
    `${head}const tools: unknown[] = [];\ntools.push(defineTool("t", { description: "x", handler: () => 1 }));\nexport default tools;`,
  ),
  "a tool that a function returns": from(
    `${head}const make = () => defineTool("t", { description: "x", handler: () => 1 });\nexport default () => ({ tools: [make()] });`,
  ),
  "a tool by an export list": from(`${head}const t = defineTool("t", { description: "x", handler: () => 1 });\nexport { t as greet };`),
  "a plain object with other names": from(
    'export default { name: "t", description: "x", inputSchema: { type: "object", properties: {} }, execute: () => 1 };',
  ),
  "SCHEMA and execute": from(
    'export const SCHEMA = { name: "t", description: "x", inputSchema: { type: "object", properties: {} } };\nexport const execute = () => ({ content: [{ type: "text", text: "x" }] });',
  ),
  "a tool of another file": from('export { default } from "./_t.ts";', { "tools/_t.ts": toolSource("t", "1") }),
  "types that are imported without saying so": from(
    `import { ToolContext, defineTool } from "skillhost";\nimport { Shape, value } from "./_types.ts";\nconst context: ToolContext | Shape | undefined = undefined;\nexport default defineTool("t", { description: "x", handler: () => [context, value] });`,
    {
      "tools/_types.ts": "export interface Shape { a: 1 }\nexport const value = 1;",
    },
  ),
  CommonJS: {
    files: {
      "SKILL.md": skillMd("bad"),
      "tools/t.cjs":
        'const { defineTool } = require("skillhost");\nmodule.exports = defineTool("t", { description: "x", handler: () => 1 });',
    },
  },
};

async function check(folder: string, runs = false): Promise<CheckReport> {
  const loader = createModuleLoader({ ...providedModules, guardExit: true });
  try {
    return await checkSkills({
      roots: [folder],
      loader,
      hostVersion: "0.1.0",
      strict: false,
      runs,
      importTimeout: 500,
      signal: new AbortController().signal,
    });
  } finally {
    loader[Symbol.dispose]();
  }
}

/** A bad skill beside a good one that some of its paths lead to. */
function folderOf({ files, prepare }: Pick<Defect, "files" | "prepare">): string {
  const root = tempFolder({ "good/SKILL.md": skillMd("good"), "good/tools/good.ts": toolSource("good", '"good"') });
  const folder = join(root, "bad");
  mkdirSync(folder);
  putAll(folder, files);
  prepare?.(folder, root);
  return folder;
}

const codesOf = (diagnostics: CheckReport["diagnostics"], severity: string): readonly string[] =>
  [...new Set(diagnostics.filter((each) => each.severity === severity).map(({ code }) => code))].sort();

/** Only running these shows what is wrong: something throws, never ends, or is computed. */
const onlyRunning = new Set([
  "a default function that throws",
  "a module that never stops loading",
  "a default function that never returns a tool",
]);

describe("check finds what loading finds, without running anything:", () => {
  test.each([...Object.entries(defects), ...Object.entries(written)])(
    "%s",
    async (title, defect: Pick<Defect, "files" | "prepare" | "options">) => {
      const folder = folderOf(defect);
      const kit = await openKit([folder], { watch: false, ...defect.options });
      const loaded = codesOf(kit.host.diagnostics, "error");
      const report = await check(folder);
      const checked = codesOf(report.diagnostics, "error");
      if (onlyRunning.has(title)) {
        expect(loaded).not.toEqual([]);
        expect(report.skills.flatMap(({ unrun }) => unrun)).not.toEqual([]);
        expect(codesOf((await check(folder, true)).diagnostics, "error")).toEqual(loaded);
      } else {
        // What stands behind a fault that ends a load is found, too.
        expect(checked).toEqual(expect.arrayContaining([...loaded]));
        expect(checked.length === 0).toBe(loaded.length === 0);
      }
    },
  );
});

describe("check finds no fault in", () => {
  test.each(Object.entries(sound))("%s", async (_title, skill) => {
    const folder = folderOf(skill);
    const kit = await openKit([folder], { watch: false });
    expect(kit.host.diagnostics).toEqual([]);
    expect(kit.skill("bad").tools).toEqual(["t"]);
    const report = await check(folder);
    expect(report.diagnostics.filter(({ code }) => !code.startsWith("ADVICE_"))).toEqual([]);
    expect(codesOf((await check(folder, true)).diagnostics, "error")).toEqual([]);
  });
});
