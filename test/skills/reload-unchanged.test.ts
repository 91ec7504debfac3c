import fs, { renameSync, rmSync, symlinkSync, unlinkSync, utimesSync, writeFileSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, onTestFinished, test } from "vitest";
import { type Files, type Kit, openKit, put, skillMd, tempFolder, toolSource } from "./kit.ts";

/** Longer than the steps of the file system's clock: earlier writes cannot be mistaken for later ones. */
const clockStepMs = 30;

async function openSettled(root: string): Promise<Kit> {
  await sleep(clockStepMs);
  const kit = await openKit([root], { watch: false });
  // The second reload relies on what the first one found.
  await kit.host.reload();
  return kit;
}

function textsOf(kit: Kit): readonly string[] {
  return kit.host.skills.map((skill) => `${skill.name}: ${skill.description}`);
}

describe("host.reload() without a watcher notices", () => {
  const two: Files = { "one/SKILL.md": skillMd("one"), "two/SKILL.md": skillMd("two") };
  const edits: [what: string, files: Files, edit: (root: string) => void, seen: (kit: Kit) => unknown, expected: unknown][] = [
    [
      "a text of the same length whose time was set back",
      two,
      (root) => {
        const file = join(root, "one/SKILL.md");
        const { atime, mtime } = fs.statSync(file);
        writeFileSync(file, skillMd("one").replace("for a test", "for a TEST"));
        utimesSync(file, atime, mtime);
      },
      (kit) => textsOf(kit)[0],
      "one: The skill one, for a TEST.",
    ],
    [
      "a file that another one replaced",
      { ...two, "spare.md": skillMd("one").replace("for a test", "renamed") },
      (root) => renameSync(join(root, "spare.md"), join(root, "one/SKILL.md")),
      (kit) => textsOf(kit)[0],
      "one: The skill one, renamed.",
    ],
    [
      "a folder that another one replaced",
      { ...two, "spare/one/SKILL.md": skillMd("one").replace("for a test", "another folder") },
      (root) => {
        rmSync(join(root, "one"), { recursive: true });
        renameSync(join(root, "spare/one"), join(root, "one"));
      },
      (kit) => textsOf(kit)[0],
      "one: The skill one, another folder.",
    ],
    [
      "a removed SKILL.md",
      two,
      (root) => unlinkSync(join(root, "one/SKILL.md")),
      (kit) => kit.host.skills.map(({ name }) => name),
      ["two"],
    ],
    [
      "a new skill",
      two,
      (root) => put(join(root, "six/SKILL.md"), skillMd("six")),
      (kit) => kit.host.skills.map(({ name }) => name),
      ["one", "six", "two"],
    ],
    ["a first prompt", two, (root) => put(join(root, "one/prompts/ask.md"), "Ask."), (kit) => kit.skill("one").prompts.length, 1],
    [
      "another prompt in a folder that it has read",
      { ...two, "one/prompts/ask.md": "Ask." },
      (root) => put(join(root, "one/prompts/answer.md"), "Answer."),
      (kit) => kit.skill("one").prompts.length,
      2,
    ],
    [
      "a first tool",
      two,
      (root) => put(join(root, "one/tools/say.ts"), toolSource("say", '"hello"')),
      (kit) => kit.skill("one").tools.length,
      1,
    ],
    [
      "a first manifest",
      two,
      (root) => put(join(root, "one/skill.json"), JSON.stringify({ name: "one", displayName: "The first" })),
      (kit) => kit.skill("one").displayName,
      "The first",
    ],
    [
      "the name of the plugin around a skill without a name",
      { "plugin/SKILL.md": "---\ndescription: A skill without a name.\n---\nText.\n" },
      (root) => put(join(root, "plugin/.claude-plugin/plugin.json"), JSON.stringify({ name: "renamed" })),
      (kit) => kit.host.skills.map(({ name }) => name),
      ["renamed"],
    ],
    [
      "another target of a linked folder",
      { "a/SKILL.md": skillMd("linked", "First."), "b/SKILL.md": skillMd("linked").replace("for a test", "behind a link") },
      (root) => {
        unlinkSync(join(root, "skills/linked"));
        symlinkSync(join(root, "b"), join(root, "skills/linked"), "junction");
      },
      (kit) => textsOf(kit)[0],
      "linked: The skill linked, behind a link.",
    ],
    [
      "another target of a linked document",
      { "one/first.md": skillMd("one"), "one/second.md": skillMd("one").replace("for a test", "behind a link") },
      (root) => {
        unlinkSync(join(root, "one/SKILL.md"));
        symlinkSync("second.md", join(root, "one/SKILL.md"));
      },
      (kit) => textsOf(kit)[0],
      "one: The skill one, behind a link.",
    ],
  ];

  test.each(edits)("%s", async (what, files, edit, seen, expected) => {
    const root = tempFolder(files);
    if (what.includes("linked folder")) {
      fs.mkdirSync(join(root, "skills"));
      symlinkSync(join(root, "a"), join(root, "skills/linked"), "junction");
    }
    if (what.includes("linked document")) symlinkSync("first.md", join(root, "one/SKILL.md"));
    const kit = await openSettled(what.includes("linked folder") ? join(root, "skills") : root);
    const before = seen(kit);
    edit(root);
    await kit.host.reload();
    expect(before).not.toEqual(expected);
    expect(seen(kit)).toEqual(expected);
  });

  test("an edit right after the load, within one step of the file system's clock", async () => {
    for (let round = 0; round < 20; round++) {
      const root = tempFolder({ "one/SKILL.md": skillMd("one", "0") });
      const kit = await openKit([root], { watch: false });
      for (const text of ["first", "again"]) {
        writeFileSync(join(root, "one/SKILL.md"), skillMd("one").replace("for a test", text));
        await kit.host.reload();
        expect(textsOf(kit)).toEqual([`one: The skill one, ${text}.`]);
      }
    }
  });
});

test("host.reload() reads only the skills that changed", async () => {
  const names = Array.from({ length: 40 }, (_, index) => `skill-${index}`);
  const root = tempFolder(Object.fromEntries(names.map((name) => [`${name}/SKILL.md`, skillMd(name)])));
  const kit = await openSettled(root);
  const read: string[] = [];
  const { openSync } = fs;
  fs.openSync = (path, ...rest) => {
    read.push(String(path));
    return openSync(path, ...rest);
  };
  syncBuiltinESMExports();
  onTestFinished(() => {
    fs.openSync = openSync;
    syncBuiltinESMExports();
  });
  await kit.host.reload();
  const unchanged = read.splice(0).filter((path) => path.startsWith(root));
  writeFileSync(join(root, "skill-7/SKILL.md"), skillMd("skill-7").replace("for a test", "changed"));
  await kit.host.reload();
  expect(unchanged).toEqual([]);
  expect(new Set(read.filter((path) => path.startsWith(root)))).toEqual(new Set([join(root, "skill-7/SKILL.md")]));
  expect(textsOf(kit)).toContain("skill-7: The skill skill-7, changed.");
});
