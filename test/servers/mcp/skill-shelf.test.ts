import { expect, test } from "vitest";
import { silentLogger } from "../../../src/base/logger.ts";
import { SkillShelf } from "../../../src/servers/mcp/skill-shelf.ts";
import type { Session } from "../../../src/session/session.ts";
import type { Resource } from "../../../src/tools/resource.ts";
import type { SkillEntry } from "../../../src/tools/tool-source.ts";
import { skillDocument } from "./serving-kit.ts";

/** A skill in memory; its list of files is the one of now until it is replaced. */
function shelfOf(name: string, files: Record<string, string>) {
  const resources: readonly Resource[] = Object.entries(files).map(([path, text]) => ({
    definition: { uri: `skill://${name}/${path}`, name: path, size: text.length },
    origin: { kind: "skill", source: name, nativeName: path },
    revision: "1",
    read: async () => [],
  }));
  const skill: SkillEntry = {
    name,
    description: "",
    files: { resources },
    instructions: async () => "",
    read: async (path) => Buffer.from(files[path] ?? ""),
  };
  const session = { listSkills: () => [skill] } as unknown as Session;
  return { shelf: new SkillShelf(session, silentLogger) };
}

test("a file that is another than it was listed as is refused, and then listed anew", async () => {
  const files: Record<string, string> = { "SKILL.md": skillDocument("one"), "guide.md": "first" };
  const { shelf } = shelfOf("one", files);
  const uri = "skill://one/guide.md";
  const before = await shelf.get("skill://one/SKILL.md");
  expect(await shelf.read(uri)).toMatchObject([{ text: "first" }]);
  files["guide.md"] = "other";
  await expect(shelf.read(uri)).rejects.toMatchObject({ code: -32603, data: { uri } });
  expect(await shelf.read(uri)).toMatchObject([{ text: "other" }]);
  expect(await shelf.get("skill://one/SKILL.md")).not.toEqual(before);
});

test("a skill without a SKILL.md, with another name in it, or of too many files has no entry; its files are others' to give", async () => {
  const many = Object.fromEntries(Array.from({ length: 513 }, (_value, index) => [`${index}.md`, ""]));
  for (const files of [
    { "skill.json": "{}" },
    { "SKILL.md": skillDocument("other") },
    { "SKILL.md": "no front matter" },
    { "SKILL.md": skillDocument("one"), ...many },
  ]) {
    const { shelf } = shelfOf("one", files);
    expect(await shelf.list()).toEqual([]);
    expect(await shelf.get("skill://one/SKILL.md")).toBeUndefined();
    expect(await shelf.read("skill://one/SKILL.md")).toBeUndefined();
    expect(await shelf.directory("skill://one")).toBeUndefined();
  }
});

test("a skill whose name begins as another's is not taken for it", async () => {
  const { shelf } = shelfOf("one", { "SKILL.md": skillDocument("one") });
  expect(await shelf.read("skill://one-more/SKILL.md")).toBeUndefined();
  expect(await shelf.directory("skill://on")).toBeUndefined();
});
