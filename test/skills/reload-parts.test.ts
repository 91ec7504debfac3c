import { mkdirSync, rmSync, unlinkSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { type Files, type Kit, openKit, put, putAll, short, skillMd, tempFolder, toolSource } from "./kit.ts";

const greeter = (answer: string): Files => ({
  "SKILL.md": skillMd("greeter"),
  "tools/greet.ts": toolSource("greet", JSON.stringify(answer)),
});

function open(root: string): Promise<Kit> {
  return openKit([root], { watchBackend: "directory" });
}

describe("files that a tool module is made of", () => {
  const helpers: [extension: string, statement: string, source: (word: string) => string][] = [
    ["ts", 'import { word } from "./part.ts";', (word) => `export const word: string = "${word}";`],
    ["mts", 'import { word } from "./part.mts";', (word) => `export const word: string = "${word}";`],
    ["cts", 'import part from "./part.cts";\nconst { word } = part;', (word) => `export = { word: "${word}" as string };`],
    [
      "tsx",
      'import { word } from "./part.tsx";',
      (word) =>
        `/** @jsxRuntime classic */\n/** @jsx h */\nconst h = (_: string, p: { w: string }) => p.w;\nexport const word = <b w="${word}" />;`,
    ],
    ["js", 'import { word } from "./part.js";', (word) => `export const word = "${word}";`],
    ["mjs", 'import { word } from "./part.mjs";', (word) => `export const word = "${word}";`],
    ["cjs", 'import part from "./part.cjs";\nconst { word } = part;', (word) => `module.exports = { word: "${word}" };`],
    ["json", 'import part from "./part.json" with { type: "json" };\nconst { word } = part;', (word) => JSON.stringify({ word })],
  ];

  test.each(helpers)("saving an indirectly imported .%s helper reloads the tool", async (extension, statement, source) => {
    const root = tempFolder({
      "package.json": '{ "type": "module" }',
      "s/SKILL.md": skillMd("s"),
      "s/tools/say.ts": toolSource("say", "word", 'import { word } from "../lib/between.ts";'),
      "s/lib/between.ts": `${statement}\nexport { word };\n`,
      [`s/lib/part.${extension}`]: source("old"),
    });
    const kit = await open(root);
    expect(await kit.says("say")).toBe("old");
    const changes = await kit.saved(() => put(join(root, `s/lib/part.${extension}`), source("new")));
    expect(changes.map(short)).toEqual(["~s: ~say"]);
    expect(await kit.says("say")).toBe("new");
  });

  test.each([
    ["that has been called", true],
    ["that has never been called", false],
  ])("saving a handler module %s, or a helper of it, reloads the JSON tool", async (_title, isCalled) => {
    const root = tempFolder({
      "s/SKILL.md": skillMd("s"),
      "s/tools/say.json": JSON.stringify({ name: "say", description: "Says.", handler: { module: "../lib/say.ts" } }),
      "s/lib/say.ts": 'import { word } from "./word.ts";\nexport default () => `one ${word}`;\n',
      "s/lib/word.ts": 'export const word = "old";\n',
    });
    const kit = await open(root);
    if (isCalled) expect(await kit.says("say")).toBe("one old");
    const first = await kit.saved(() => put(join(root, "s/lib/word.ts"), 'export const word = "new";\n'));
    expect(first.map(short)).toEqual(["~s: ~say"]);
    if (isCalled) expect(await kit.says("say")).toBe("one new");
    const second = await kit.saved(() =>
      put(join(root, "s/lib/say.ts"), 'import { word } from "./word.ts";\nexport default () => `two ${word}`;\n'),
    );
    expect(second.map(short)).toEqual(["~s: ~say"]);
    expect(await kit.says("say")).toBe("two new");
  });

  test("a JSON tool gains and loses the module beside it", async () => {
    const root = tempFolder({
      "s/SKILL.md": skillMd("s"),
      "s/tools/say.json": JSON.stringify({ name: "say", description: "Says." }),
    });
    const kit = await open(root);
    const isCallable = (): boolean => kit.session.catalog.executables.get("say")?.hasHandler ?? false;
    expect(isCallable()).toBe(false);
    const added = await kit.saved(() => put(join(root, "s/tools/say.ts"), 'export default () => "hello";\n'));
    expect(added.map(short)).toEqual(["~s: ~say"]);
    expect(await kit.says("say")).toBe("hello");
    await kit.saved(() => unlinkSync(join(root, "s/tools/say.ts")));
    expect(isCallable()).toBe(false);
  });

  test("added and deleted modules add and remove their tools", async () => {
    const root = tempFolder();
    putAll(join(root, "greeter"), greeter("hello"));
    const kit = await open(root);
    const added = await kit.saved(() => put(join(root, "greeter/tools/part.ts"), toolSource("part", '"bye"')));
    expect(added.map(short)).toEqual(["~greeter: +part"]);
    const removed = await kit.saved(() => unlinkSync(join(root, "greeter/tools/greet.ts")));
    expect(removed.map(short)).toEqual(["~greeter: -greet"]);
    expect(await kit.says("part")).toBe("bye");
  });

  test("an inline tool of the manifest is unaffected by edits of other lines", async () => {
    const manifest = (version: string, description: string): string =>
      JSON.stringify({
        name: "s",
        version,
        tools: [
          { name: "a", description: "A." },
          { name: "b", description },
        ],
      });
    const root = tempFolder({ "s/skill.json": manifest("1.0.0", "B.") });
    const kit = await open(root);
    expect((await kit.saved(() => put(join(root, "s/skill.json"), manifest("1.0.1", "B.")))).map(short)).toEqual(["~s"]);
    expect((await kit.saved(() => put(join(root, "s/skill.json"), manifest("1.0.1", "Another.")))).map(short)).toEqual(["~s: ~b"]);
  });

  test("enabled in the manifest disables and enables the skill", async () => {
    const root = tempFolder({
      "s/skill.json": JSON.stringify({ name: "s" }),
      "s/tools/say.ts": toolSource("say", '"hello"'),
    });
    const kit = await open(root);
    await kit.saved(() => put(join(root, "s/skill.json"), JSON.stringify({ name: "s", enabled: false })));
    expect(kit.skill("s")).toMatchObject({ state: "disabled", rule: expect.stringContaining("enabled") });
    expect(kit.session.tools).toEqual([]);
    await kit.saved(() => put(join(root, "s/skill.json"), JSON.stringify({ name: "s", enabled: true })));
    expect(await kit.says("say")).toBe("hello");
  });

  test("a root that is a skill itself and one that becomes a skill are loaded", async () => {
    const root = tempFolder({ "SKILL.md": skillMd("alone"), "tools/say.ts": toolSource("say", '"one"') });
    const kit = await open(root);
    await kit.saved(() => put(join(root, "tools/say.ts"), toolSource("say", '"two"')));
    expect(await kit.says("say")).toBe("two");
    const gone = await kit.saved(() => unlinkSync(join(root, "SKILL.md")));
    expect(gone.map(short)).toEqual(["-alone: -say"]);
    const back = await kit.saved(() => put(join(root, "SKILL.md"), skillMd("alone")));
    expect(back.map(short)).toEqual(["+alone: +say"]);
  });

  test("a new folder that matches a pattern of roots is loaded", async () => {
    const place = tempFolder({ "teams/a/skills/one/SKILL.md": skillMd("one") });
    const kit = await open(join(place, "teams/*/skills"));
    expect(kit.skill("one").state).toBe("active");
    const changes = await kit.saved(() => put(join(place, "teams/b/skills/two/SKILL.md"), skillMd("two")));
    expect(changes.map(short)).toEqual(["+two"]);
  });

  test("an empty folder becomes a skill when a SKILL.md is added", async () => {
    const root = tempFolder({ "other/SKILL.md": skillMd("other") });
    mkdirSync(join(root, "s/tools"), { recursive: true });
    const kit = await open(root);
    expect(await kit.unnoticed(() => put(join(root, "s/tools/say.ts"), toolSource("say", '"hello"')))).toEqual([]);
    const changes = await kit.saved(() => put(join(root, "s/SKILL.md"), skillMd("s")));
    expect(changes.map(short)).toEqual(["+s: +say"]);
  });
});

describe("a host that does not watch", () => {
  test("reload loads changed files, and only those, in a host that does not watch", async () => {
    const root = tempFolder({ "s/SKILL.md": skillMd("s"), "s/lib/word.ts": 'export const word = "old";\n' });
    putAll(join(root, "s/tools"), {
      "say.ts": toolSource("say", "word", 'import { word } from "../lib/word.ts";'),
      "rest.ts": toolSource("rest", '"rest"'),
    });
    const kit = await openKit([root], { watch: false });
    put(join(root, "s/lib/word.ts"), 'export const word = "new";\n');
    await kit.host.reload();
    expect(await kit.says("say")).toBe("new");
    const settled = kit.changes.length;
    await kit.host.reload();
    expect(kit.changes.length).toBe(settled);
    put(join(root, "s/tools/more.ts"), toolSource("more", '"more"'));
    put(join(root, "two/SKILL.md"), skillMd("two"));
    await kit.host.reload();
    expect(await kit.says("more")).toBe("more");
    expect(kit.skill("two").state).toBe("active");
    rmSync(join(root, "two"), { recursive: true });
    await kit.host.reload();
    expect(kit.host.skills.map(({ name }) => name)).toEqual(["s"]);
  });
});
