import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { type CheckReport, checkSkills } from "../../src/advice/check-skills.ts";
import { positionAt } from "../../src/base/diagnostic.ts";
import { createModuleLoader } from "../../src/io/module-loader/create-module-loader.ts";
import { adviceCases, sample } from "./advice-cases.ts";

const root = realpathSync(mkdtempSync(join(tmpdir(), "skillhost-advice-")));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const document = "---\nname: sample-skill\ndescription: Counts words. Use it for texts.\n---\n\nCount.\n";
let count = 0;

function skillOf(files: string | Readonly<Record<string, string>>): string {
  const folder = join(root, String(++count), "sample-skill");
  const all = { "SKILL.md": document, ...(typeof files === "string" ? { "tools/sample.ts": files } : files) };
  for (const [path, text] of Object.entries(all)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
  return folder;
}

async function check(folder: string): Promise<CheckReport> {
  const empty = { defineTool() {} };
  using loader = createModuleLoader({ hostModules: { skillhost: empty, zod: empty, valibot: empty, "@sinclair/typebox": empty } });
  return checkSkills({ roots: [folder], loader, hostVersion: "0.1.0", strict: true, signal: new AbortController().signal });
}

describe.each(adviceCases)("$code: $what", ({ code, bad, good, at }) => {
  test("is found, with its place and what to do", async () => {
    const folder = skillOf(bad);
    const { diagnostics } = await check(folder);
    expect(diagnostics.map((diagnostic) => diagnostic.code)).toEqual([code]);
    const [found] = diagnostics;
    expect(found?.source).toBe("sample-skill");
    expect(found?.range?.start.line).toBeGreaterThan(0);
    // Every piece of advice ends in a sentence that says what to do.
    expect(found?.message).toMatch(/\. .+\.$/);
    if (at === undefined) return;
    const text = typeof bad === "string" ? bad : Object.values(bad).find((file) => file.includes(at))!;
    expect(found?.range?.start).toEqual(positionAt(text, text.indexOf(at)));
  });

  test("is gone when it was taken", async () => {
    const { diagnostics, skills } = await check(skillOf(good));
    expect(diagnostics).toEqual([]);
    expect(skills[0]?.tools).toHaveLength(1);
  });
});

test.each([
  ["an example", 'A city, for example "Oslo" or "Bergen".'],
  ["an abbreviated example", 'A tag (e.g. "a", "b").'],
  ["one quoted word", 'The branch, usually "main".'],
  ["words that describe", "An absolute or relative path."],
  ["a unit", "The speed in km/h."],
])("does not take %s for the only values", async (_what, description) => {
  const parameters = { type: "object", properties: { it: { type: "string", description } }, required: ["it"] };
  const { diagnostics } = await check(
    skillOf({ "tools/sample.json": JSON.stringify({ name: "sample", description: "Counts the words of a longer text.", parameters }) }),
  );
  expect(diagnostics).toEqual([]);
});

test.each([
  ["an options object that may hold the signal", "async ({ text }, options) => (await fetch(text, options)).text()"],
  ["a signal in a spread", "async ({ text }, { signal }) => { const own = { signal }; return (await fetch(text, { ...own })).text(); }"],
  [
    "an error that is only logged",
    "() => { try { return 'Counted 3.'; } catch (error) { console.error(error.message); return 'It could not be counted.'; } }",
  ],
  ["a message of another object", "() => { const answer = { message: 'Three words.' }; return `It says ${answer.message}`; }"],
  ["a handler that always throws", "() => { throw new Error('Not today.'); }"],
  ["a handler from elsewhere", "handle", "import { handle } from './_handle.ts';"],
  [
    "a temporary file",
    "({ text }) => { writeFileSync(join(tmpdir(), 'x'), text); return 'It was kept for later.'; }",
    "import { writeFileSync } from 'node:fs';\nimport { tmpdir } from 'node:os';\nimport { join } from 'node:path';",
  ],
  ["a path of a web address", "() => `Look at ${new URL('/about/us', 'https://example.org')}`"],
])("advice reports nothing about %s", async (_what, handler, before = "") => {
  const { diagnostics } = await check(
    skillOf({ "tools/sample.ts": sample(handler, "", before), "tools/_handle.ts": "export const handle = () => {};\n" }),
  );
  expect(diagnostics).toEqual([]);
});

test("a comment keeps one piece of advice from a line, and no other", async () => {
  const path = "const notes = '/home/ada/notes.md';\nexport { notes };";
  const ignored = await check(
    skillOf(sample("() => 'Counted 3.'", "", `// The demo's own machine. skillhost-ignore ADVICE_ABSOLUTE_PATH\n${path}`)),
  );
  expect(ignored.diagnostics).toEqual([]);
  const other = await check(skillOf(sample("() => 'Counted 3.'", "", `// skillhost-ignore ADVICE_NO_TIMEOUT\n${path}`)));
  expect(other.diagnostics).toHaveLength(1);
});

test("reads what a module says in constants, lists, plain objects and under type assertions", async () => {
  const { skills, diagnostics } = await check(
    skillOf(`const NAME = "first" as const;
const options = { description: "Counts words " + "of a longer text.", handler: () => "3 words." } satisfies object;
export default [defineTool(NAME, options), { name: "second", description: "Counts lines of a longer text.", handler() { return "3 lines."; } }];
export const third = defineTool("third", { ...options });
declare function defineTool(name: string, options: object): unknown;
`),
  );
  expect(diagnostics).toEqual([]);
  expect(skills[0]?.tools).toEqual(["first", "second", "third"]);
});

test.each([
  ["nests deeper than a parser can bear", `export default ${"[".repeat(60_000)}${"]".repeat(60_000)};`, "MODULE_SYNTAX"],
  ["does not parse", "export default {", "MODULE_SYNTAX"],
  ["exports nothing", "const x = 1;\n", "TOOL_FILE_SCRIPT"],
  ["gives a tool an illegal name", sample("() => 'Counted 3.'").replace('"sample"', '"no spaces"'), "TOOL_INVALID"],
  ["leaves out the description", sample("() => 'Counted 3.'").replace(/description: "Counts.*\n/, ""), "TOOL_DESCRIPTION_MISSING"],
])("advice reports a module that %s", async (_what, module, code) => {
  const { diagnostics } = await check(skillOf(module));
  expect(diagnostics.map((diagnostic) => diagnostic.code)).toEqual([code]);
});
