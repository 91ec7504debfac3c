import { expect, test } from "vitest";
import { createLogger } from "../../../src/base/logger.ts";
import { SkillResources } from "../../../src/servers/mcp/handlers/skills-extension.ts";
import type { Session } from "../../../src/session/session.ts";
import type { Resource } from "../../../src/tools/resource.ts";
import type { SkillEntry } from "../../../src/tools/tool-source.ts";
import { skillDocument } from "./serving-kit.ts";

type Files = Record<string, string>;

/** A skill in memory; its list of files is the one of now until it is replaced. */
function skillOf(name: string, files: Files, more: Partial<SkillEntry> = {}): SkillEntry {
  const resources: readonly Resource[] = Object.entries(files).map(([path, text]) => ({
    definition: { uri: `skill://${encodeURIComponent(name)}/${path}`, name: path, size: text.length },
    origin: { kind: "skill", source: name, nativeName: path },
    revision: "1",
    read: async () => [],
  }));
  return {
    name,
    description: "Helps tests.",
    files: { resources },
    instructions: async () => "",
    read: async (path) => Buffer.from(files[path] ?? ""),
    ...more,
  };
}

function shelfOf(...skills: readonly SkillEntry[]) {
  const lines: string[] = [];
  const session = { listSkills: () => skills } as unknown as Session;
  return { shelf: new SkillResources(session, createLogger({ level: "error", write: (line) => lines.push(line) })), lines };
}

test("a file that differs from its digest is refused, and its skill is listed again", async () => {
  const files: Files = { "SKILL.md": skillDocument("one"), "guide.md": "first" };
  const { shelf } = shelfOf(skillOf("one", files));
  const uri = "skill://one/guide.md";
  const before = await shelf.get("skill://one/SKILL.md");
  expect(await shelf.read(uri)).toMatchObject([{ text: "first" }]);
  files["guide.md"] = "other";
  await expect(shelf.read(uri)).rejects.toMatchObject({ code: -32603, data: { uri } });
  expect(await shelf.read(uri)).toMatchObject([{ text: "other" }]);
  expect(await shelf.get("skill://one/SKILL.md")).not.toEqual(before);
});

test("a normalised SKILL.md that has changed since it was listed is refused, too", async () => {
  const files: Files = { "SKILL.md": "# One\n\nFirst." };
  const { shelf } = shelfOf(skillOf("one", files));
  const uri = "skill://one/SKILL.md";
  const before = await shelf.get(uri);
  files["SKILL.md"] = "# One\n\nSecond.";
  await expect(shelf.read(uri)).rejects.toMatchObject({ code: -32603, data: { uri } });
  expect(await shelf.read(uri)).toMatchObject([{ text: expect.stringContaining("Second.") }]);
  expect(await shelf.get(uri)).not.toEqual(before);
});

test("a SKILL.md that keeps to the specification is served byte for byte", async () => {
  const text = "---\r\nname: one\r\ndescription: 'Helps.'\r\n---\r\n\r\n# One  \r\n";
  const { shelf } = shelfOf(skillOf("one", { "SKILL.md": text }));
  expect(await shelf.read("skill://one/SKILL.md")).toMatchObject([{ text }]);
});

test("a skill without a SKILL.md, or hidden from models, has no entry; its files are others' to give", async () => {
  for (const skill of [
    skillOf("one", { "skill.json": "{}" }),
    skillOf("one", { "docs/SKILL.md": skillDocument("one") }),
    skillOf("one", { "SKILL.md": skillDocument("one") }, { hiddenFromModel: true }),
  ]) {
    const { shelf, lines } = shelfOf(skill);
    expect((await shelf.list()).items).toEqual([]);
    expect(await shelf.get("skill://one/SKILL.md")).toBeUndefined();
    expect(await shelf.read("skill://one/SKILL.md")).toBeUndefined();
    expect(await shelf.directory("skill://one")).toBeUndefined();
    expect(lines).toEqual([]);
  }
});

test("a skill of too many files, or with a file that cannot be read, is left out, and an error names it", async () => {
  const many = Object.fromEntries(Array.from({ length: 512 }, (_value, index) => [`${index}.md`, ""]));
  const unreadable = (path: string): Promise<Uint8Array> =>
    path === "SKILL.md" ? Promise.resolve(Buffer.from(skillDocument("two"))) : Promise.reject(new Error("no permission"));
  const { shelf, lines } = shelfOf(
    skillOf("one", { "SKILL.md": skillDocument("one"), ...many }),
    skillOf("two", { "SKILL.md": skillDocument("two"), "a.md": "" }, { read: unreadable }),
    skillOf("three", { "SKILL.md": skillDocument("three") }),
  );
  expect((await shelf.list()).items.map(({ uri }) => uri)).toEqual(["skill://three/SKILL.md"]);
  expect(await shelf.read("skill://one/0.md")).toBeUndefined();
  expect(lines.sort()).toEqual([expect.stringMatching(/one.*513 files/), expect.stringMatching(/two.*no permission/)]);
});

test("skills get names that clients take, and no two the same", async () => {
  const skills = ["My Skill", "my-skill", "MY_SKILL", "hidden", "Hidden", "数据"].map((name) =>
    skillOf(name, { "SKILL.md": `I am ${name}.` }, name === "hidden" ? { hiddenFromModel: true } : {}),
  );
  const { shelf } = shelfOf(...skills);
  const { items: entries } = await shelf.list();
  const texts = await Promise.all(entries.map(async ({ uri }) => (await shelf.read(uri))?.[0]));
  const found = entries.map(({ frontmatter }, index) => [
    frontmatter.name,
    (texts[index] as { text: string }).text.match(/I am (.*)\./)?.[1],
  ]);
  expect(found.sort()).toEqual([
    [expect.stringMatching(/^hidden-[0-9a-f]{8}$/), "Hidden"],
    ["my-skill", "my-skill"],
    [expect.stringMatching(/^my-skill-[0-9a-f]{8}$/), expect.stringMatching(/^(?:MY_SKILL|My Skill)$/)],
    [expect.stringMatching(/^my-skill-[0-9a-f]{8}$/), expect.stringMatching(/^(?:MY_SKILL|My Skill)$/)],
    [expect.stringMatching(/^skill-[0-9a-f]{8}$/), "数据"],
  ]);
  const others = shelfOf(...[...skills].reverse()).shelf;
  expect((await others.list()).items).toEqual(entries);
});

test("a skill whose name begins as another's is not taken for it", async () => {
  const { shelf } = shelfOf(skillOf("one", { "SKILL.md": skillDocument("one") }));
  expect(await shelf.read("skill://one-more/SKILL.md")).toBeUndefined();
  expect(await shelf.directory("skill://on")).toBeUndefined();
});

test("a page reads only its own skills, a few at a time, and all pages have each served skill once, in order", async () => {
  const reads: string[] = [];
  let [reading, most] = [0, 0];
  const skills = Array.from({ length: 350 }, (_value, index) => {
    const name = `skill-${String((index * 3) % 350).padStart(3, "0")}`;
    const isBroken = index % 5 === 0;
    const read = async (): Promise<Uint8Array> => {
      reads.push(name);
      most = Math.max(most, ++reading);
      await new Promise((resolve) => setImmediate(resolve));
      reading--;
      if (isBroken) throw new Error("no permission");
      return Buffer.from(skillDocument(name));
    };
    return { skill: skillOf(name, { "SKILL.md": "" }, { read }), isBroken };
  });
  const { shelf } = shelfOf(...skills.map(({ skill }) => skill));
  const first = await shelf.list();
  expect(first.items).toHaveLength(100);
  expect(reads.length).toBeLessThanOrEqual(140);
  expect(most).toBeLessThanOrEqual(8);
  const uris = first.items.map(({ uri }) => uri);
  let { nextCursor } = first;
  while (nextCursor !== undefined) {
    const next = await shelf.list(nextCursor);
    uris.push(...next.items.map(({ uri }) => uri));
    nextCursor = next.nextCursor;
  }
  const served = skills.filter(({ isBroken }) => !isBroken).map(({ skill }) => `skill://${skill.name}/SKILL.md`);
  expect(uris).toEqual(served.sort());
  await expect(shelf.list(Buffer.from("nothing").toString("base64url"))).rejects.toMatchObject({ code: -32602 });
});
