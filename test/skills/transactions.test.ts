import { rmSync, unlinkSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { type Files, type Kit, openKit, put, putAll, short, skillMd, tempFolder, toolSource } from "./kit.ts";

const manifest = JSON.stringify({ name: "desk", prompts: ["prompts/rules.md"] });
const served: Files = {
  "skill.json": manifest,
  "SKILL.md": skillMd("desk", "Old body."),
  "prompts/rules.md": "Old rules.",
  "tools/module.ts": toolSource("module", '"module"'),
  "tools/json.json": JSON.stringify({ name: "json", description: "Old.", handler: { module: "../lib/json.ts" } }),
  "lib/json.ts": 'export default () => "json";\n',
  "tools/sibling.ts": toolSource("sibling", '"sibling"'),
};

async function openSkill(more: Files = {}): Promise<{ kit: Kit; root: string; path: (file: string) => string }> {
  const root = tempFolder({ "other/SKILL.md": skillMd("other"), "other/tools/other.ts": toolSource("other", '"other"') });
  putAll(join(root, "desk"), { ...served, ...more });
  const kit = await openKit([root]);
  return { kit, root, path: (file) => join(root, "desk", file) };
}

async function allAnswer(kit: Kit): Promise<void> {
  for (const tool of ["module", "json", "sibling", "other"]) expect(await kit.says(tool)).toBe(tool);
  expect(kit.skill("desk").prompts).toEqual([{ path: "prompts/rules.md", text: "Old rules." }]);
}

describe("a save that breaks something leaves the last working generation active", () => {
  const breaks: [what: string, code: string, file: string, line: number | undefined, destroy: (path: (file: string) => string) => void][] =
    [
      ["a module that does not parse", "MODULE_SYNTAX", "tools/module.ts", 1, (path) => put(path("tools/module.ts"), "export default ((")],
      [
        "a module that throws while it loads",
        "MODULE_THREW",
        "tools/module.ts",
        2,
        (path) => put(path("tools/module.ts"), 'const a = 1;\nthrow new Error("no");\n'),
      ],
      [
        "a module that imports what is not there",
        "MODULE_NOT_FOUND",
        "tools/module.ts",
        undefined,
        (path) => put(path("tools/module.ts"), 'import "./nowhere.ts";\n'),
      ],
      [
        "a module that exports no tool any more",
        "MODULE_NO_TOOLS",
        "tools/module.ts",
        undefined,
        (path) => put(path("tools/module.ts"), ""),
      ],
      [
        "a tool JSON that is not valid JSON",
        "JSON_SYNTAX",
        "tools/json.json",
        1,
        (path) => put(path("tools/json.json"), '{ "name": "json", }'),
      ],
      ["a tool JSON without its handler module", "MODULE_NOT_FOUND", "lib/json.ts", undefined, (path) => unlinkSync(path("lib/json.ts"))],
      ["a handler module that was never called", "MODULE_SYNTAX", "lib/json.ts", 1, (path) => put(path("lib/json.ts"), "export default (")],
      ["a manifest that is not valid JSON", "JSON_SYNTAX", "skill.json", 1, (path) => put(path("skill.json"), '{ "name": ')],
      ["a manifest without a name", "MANIFEST_NAME_MISSING", "skill.json", undefined, (path) => put(path("skill.json"), "{}")],
      ["a manifest that has become empty", "JSON_SYNTAX", "skill.json", undefined, (path) => put(path("skill.json"), "")],
      [
        "a prompt that is gone and still listed",
        "PROMPT_MISSING",
        "prompts/rules.md",
        undefined,
        (path) => unlinkSync(path("prompts/rules.md")),
      ],
      [
        "a prompt that is a folder",
        "FILE_NOT_REGULAR",
        "prompts/rules.md",
        undefined,
        (path) => {
          unlinkSync(path("prompts/rules.md"));
          put(path("prompts/rules.md/x"), "x");
        },
      ],
      ["a SKILL.md that has become empty", "SKILL_FILE_EMPTY", "SKILL.md", undefined, (path) => put(path("SKILL.md"), "")],
      [
        "a manifest that asks for another host",
        "SKILL_ENGINE",
        "skill.json",
        undefined,
        (path) => put(path("skill.json"), JSON.stringify({ name: "desk", prompts: ["prompts/rules.md"], engines: { skillhost: ">=999" } })),
      ],
    ];

  test.each(breaks)("%s (%s)", async (_title, code, file, line, destroy) => {
    const { kit, path } = await openSkill();
    const changes = await kit.saved(() => destroy(path));
    expect(changes.map(short)).toEqual(["!desk"]);
    const failed = changes[0]?.failed[0];
    expect(failed).toMatchObject({ name: "desk", folder: path("."), lastGoodServes: true });
    const fault = failed?.diagnostics.find((diagnostic) => diagnostic.code === code);
    expect(fault).toMatchObject({ severity: "error" });
    expect(fault?.file === path(file) || fault?.message.includes(file.replace(/^.*\//, ""))).toBe(true);
    if (line !== undefined) expect(fault).toMatchObject({ file: path(file), range: { start: { line } } });
    expect(kit.skill("desk")).toMatchObject({ stale: true, generation: 1, state: "active" });
    await allAnswer(kit);

    // Restores the text of the active generation.
    rmSync(path(file), { recursive: true, force: true });
    const fixed = await kit.saved(
      () => put(path(file), served[file] as string),
      (seen) => seen.some((change) => change.updated.length > 0),
    );
    expect(short(fixed.at(-1))).toMatch(/^~desk/);
    expect(kit.skill("desk").stale).toBe(false);
    expect(kit.host.diagnostics.filter(({ severity }) => severity === "error")).toEqual([]);
    await allAnswer(kit);
  });

  test("a broken skill can be fixed by a different save", async () => {
    const { kit, path } = await openSkill();
    await kit.saved(() => put(path("tools/module.ts"), "export default (("));
    const changes = await kit.saved(() => put(path("tools/module.ts"), toolSource("module", '"fixed"')));
    expect(changes.map(short)).toEqual(["~desk: ~module"]);
    expect(await kit.says("module")).toBe("fixed");
  });

  test("a fault is reported once until its files change again", async () => {
    const { kit, path } = await openSkill();
    await kit.saved(() => put(path("tools/module.ts"), "export default (("));
    expect(await kit.unnoticed(() => put(path("assets/picture.txt"), "new"))).toEqual([]);
    const again = await kit.saved(() => put(path("tools/module.ts"), "export default ((("));
    expect(again.map(short)).toEqual(["!desk"]);
  });

  test("fixing one of two broken files is not enough", async () => {
    const { kit, path } = await openSkill();
    await kit.saved(() => put(path("tools/module.ts"), "export default (("));
    await kit.saved(() => put(path("tools/json.json"), "{"));
    const one = await kit.saved(() => put(path("tools/module.ts"), toolSource("module", '"new"')));
    expect(one.map(short)).toEqual(["!desk"]);
    await allAnswer(kit);
    const both = await kit.saved(() => put(path("tools/json.json"), served["tools/json.json"] as string));
    expect(both.map(short)).toEqual(["~desk: ~module ~json"].map((text) => expect.stringMatching(sameTools(text))));
    expect(await kit.says("module")).toBe("new");
  });

  test("a part that the author removes on purpose is removed despite another fault", async () => {
    const { kit, path } = await openSkill({ "tools/faulty.ts": "export default ((" });
    const changes = await kit.saved(() => unlinkSync(path("tools/sibling.ts")));
    expect(changes.map(short)).toEqual(["~desk: -sibling"]);
  });

  test("when a helper of two skills breaks, both stay active", async () => {
    const place = tempFolder({ "shared/word.ts": 'export const word = "old";\n' });
    const root = join(place, "skills");
    for (const name of ["one", "two"])
      putAll(join(root, name), {
        "SKILL.md": skillMd(name),
        "tools/say.ts": toolSource(`say-${name}`, "word", 'import { word } from "../../../shared/word.ts";'),
      });
    const kit = await openKit([root]);
    const broken = await kit.saved(
      () => put(join(place, "shared/word.ts"), "export const word = ;"),
      (seen) => seen.length === 2,
    );
    expect(broken.map(short).sort()).toEqual(["!one", "!two"]);
    expect([await kit.says("say-one"), await kit.says("say-two")]).toEqual(["old", "old"]);
    const fixed = await kit.saved(
      () => put(join(place, "shared/word.ts"), 'export const word = "new";\n'),
      (seen) => seen.length === 2,
    );
    expect(fixed.map(short).sort()).toEqual(["~one: ~say-one", "~two: ~say-two"]);
    expect([await kit.says("say-one"), await kit.says("say-two")]).toEqual(["new", "new"]);
  });
});

describe("a cold start without a last working generation", () => {
  test("a faulty tool is missing with a diagnostic, and its siblings and other skills load", async () => {
    const { kit, path } = await openSkill({ "tools/faulty.ts": "export const a = 1;\nexport default ((" });
    await allAnswer(kit);
    expect(kit.skill("desk")).toMatchObject({ state: "active", stale: false, tools: ["json", "module", "sibling"] });
    expect(kit.found("MODULE_SYNTAX")).toMatchObject([{ file: path("tools/faulty.ts"), range: { start: { line: 2 } }, source: "desk" }]);
    const changes = await kit.saved(() => put(path("tools/faulty.ts"), toolSource("faulty", '"fixed"')));
    expect(changes.map(short)).toEqual(["~desk: +faulty"]);
    expect(kit.found("MODULE_SYNTAX")).toEqual([]);
  });

  test("a save that only moves the fault is reported, too", async () => {
    const { kit, path } = await openSkill({ "tools/faulty.ts": "export default ((" });
    const changes = await kit.saved(() => put(path("tools/faulty.ts"), "\n\nexport default (("));
    expect(changes.map(short)).toEqual(["~desk"]);
    expect(kit.found("MODULE_SYNTAX")).toMatchObject([{ range: { start: { line: 3 } } }]);
  });

  test("an unreadable manifest provides no tools, because it may exclude all of them", async () => {
    const { kit, path } = await openSkill({ "skill.json": '{ "name": "desk", "tools": [], }' });
    expect(kit.skill("desk")).toMatchObject({ state: "active", tools: [], prompts: [] });
    expect(kit.found("JSON_SYNTAX")).toMatchObject([{ file: path("skill.json"), severity: "error" }]);
    await kit.saved(() => put(path("skill.json"), manifest));
    await allAnswer(kit);
  });

  test("a skill without any readable file has failed and loads when it is fixed", async () => {
    const root = tempFolder({ "desk/skill.json": "{", "other/SKILL.md": skillMd("other") });
    const kit = await openKit([root]);
    expect(kit.skill("desk")).toMatchObject({ state: "failed", folder: join(root, "desk") });
    const changes = await kit.saved(() => put(join(root, "desk/skill.json"), '{ "name": "desk" }'));
    expect(changes.map(short)).toEqual(["+desk"]);
  });
});

function sameTools(text: string): RegExp {
  const [skill, tools = ""] = text.split(": ");
  return new RegExp(
    `^${skill}: ${tools
      .split(" ")
      .map((tool) => `(?=.*${tool})`)
      .join("")}[~a-z ]+$`,
  );
}

test("after quick edits, a failure that stays is reported once, and ends with the repair", async () => {
  const { kit, path } = await openSkill();
  const module = (head: string): string => `${head}\n${toolSource("module", '"module"')}`;
  for (const head of ["// one", "// two"]) await kit.saved(() => put(path("tools/module.ts"), module(head)));
  const failing = await kit.saved(
    () => put(path("tools/module.ts"), module('throw new Error("no");')),
    (seen) => seen.some(({ failed }) => failed.length > 0),
  );
  expect(failing.flatMap(({ failed }) => failed).map(({ diagnostics }) => diagnostics[0]?.code)).toEqual(["MODULE_THREW"]);
  expect(await kit.says("module")).toBe("module");
  const repaired = await kit.saved(() => put(path("tools/module.ts"), module("// three")));
  expect(repaired.flatMap(({ failed }) => failed)).toEqual([]);
  expect(kit.found("MODULE_THREW")).toEqual([]);
});
