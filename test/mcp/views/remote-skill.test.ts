import { createHash } from "node:crypto";
import { describe, expect, test } from "vitest";
import { readSkillEntry, remoteSkill, type SkillListing } from "../../../src/mcp/views/remote-skill.ts";
import type { SkillEntry } from "../../../src/tools/tool-source.ts";
import { FakeServer, type Json, localSpec } from "../fake-servers.ts";

const manifest =
  "---\nname: refunds\ndescription: Refunds customers.\nallowed-tools: Bash(*)\n---\n\n# Refunds\n\nRead references/a b.md for $ARGUMENTS.\n";
const root = "skill://acme/billing/refunds";

interface File {
  readonly uri: string;
  readonly digest: string;
  readonly size: number;
}

function fileOf(path: string, content: string | Buffer): File {
  const bytes = Buffer.from(content);
  return { uri: `${root}/${path}`, digest: `sha256:${createHash("sha256").update(bytes).digest("hex")}`, size: bytes.length };
}

const image = Buffer.from([0, 255, 128, 10]);
const files: readonly File[] = [fileOf("SKILL.md", manifest), fileOf("references/a%20b.md", "# A"), fileOf("logo.png", image)];
const frontmatter = { name: "refunds", description: "Refunds customers.", "allowed-tools": "Bash(*)" };
const entry: Json = { uri: `${root}/SKILL.md`, frontmatter, resources: files };

function listingOf(raw: Json): SkillListing {
  const read = readSkillEntry(raw);
  if (!read.ok) throw new Error(read.reason);
  return read.listing;
}

function setUp(
  raw: Json = entry,
  served: Readonly<Record<string, Json>> = {},
): { skill: SkillEntry; server: FakeServer; mismatches: string[] } {
  const server = new FakeServer(localSpec("bank"));
  const contents: Record<string, Json> = {
    [`${root}/SKILL.md`]: { text: manifest },
    [`${root}/references/a%20b.md`]: { text: "# A" },
    [`${root}/logo.png`]: { blob: image.toString("base64") },
    ...served,
  };
  server.answer = ({ params }) => ({ contents: [{ uri: params["uri"], ...contents[String(params["uri"])] }] });
  const mismatches: string[] = [];
  const onMismatch = (): void => void mismatches.push("reported");
  return { skill: remoteSkill(listingOf(raw), { server, serverName: "bank", name: "bank/refunds", onMismatch }), server, mismatches };
}

describe("an entry of a skill", () => {
  test("is read with its files by their paths, whatever way they are written", () => {
    const listing = listingOf(entry);
    expect(listing).toMatchObject({ uri: `${root}/SKILL.md`, root, folder: "acme/billing/refunds", name: "refunds", frontmatter });
    expect([...(listing.files as ReadonlyMap<string, unknown>).keys()]).toEqual(["SKILL.md", "references/a b.md", "logo.png"]);
  });

  test("may have any scheme, and files that are made as they are read", () => {
    expect(listingOf({ ...entry, resources: "dynamic" }).files).toBe("dynamic");
    const uri = "github://owner/repo/refunds/SKILL.md";
    expect(listingOf({ uri, frontmatter, resources: [{ ...files[0], uri }] }).folder).toBe("owner/repo/refunds");
  });

  test("may have 512 files and 16 MiB, and not one more", () => {
    const many = (count: number): File[] => [
      files[0]!,
      ...Array.from({ length: count - 1 }, (_, index) => ({ ...files[1]!, uri: `${root}/${index}` })),
    ];
    expect(readSkillEntry({ ...entry, resources: many(512) }).ok).toBe(true);
    expect(readSkillEntry({ ...entry, resources: many(513) })).toMatchObject({ ok: false, reason: expect.stringContaining("513") });
    const sized = (bytes: number): Json => ({ ...entry, resources: [files[0], { ...files[1], size: bytes - files[0]!.size }] });
    expect(readSkillEntry(sized(16 * 1024 * 1024)).ok).toBe(true);
    expect(readSkillEntry(sized(16 * 1024 * 1024 + 1))).toMatchObject({ ok: false, reason: expect.stringContaining("16777217") });
  });

  const prototype = JSON.parse('{"name":"refunds","description":"x","__proto__":{"name":"other"}}');
  test.each<[string, unknown]>([
    ["nothing", null],
    ["no address", { frontmatter, resources: files }],
    ["an address of another file", { ...entry, uri: `${root}/README.md` }],
    ["an address without a folder", { ...entry, uri: "skill:///SKILL.md" }],
    ["an address with a query", { ...entry, uri: `${root}/SKILL.md?a` }],
    ["no front matter", { ...entry, frontmatter: undefined }],
    ["front matter for the prototype", { ...entry, frontmatter: prototype }],
    [
      "front matter beyond reason",
      { ...entry, frontmatter: { ...frontmatter, deep: JSON.parse(`${"[".repeat(5000)}${"]".repeat(5000)}`) } },
    ],
    ["another name than its folder", { ...entry, frontmatter: { ...frontmatter, name: "other" } }],
    ["an invalid name", { ...entry, uri: "skill://a/A_b/SKILL.md", frontmatter: { ...frontmatter, name: "A_b" } }],
    ["no description", { ...entry, frontmatter: { name: "refunds", description: "" } }],
    ["a description over 1024 characters", { ...entry, frontmatter: { ...frontmatter, description: "x".repeat(1025) } }],
    ["no resources", { ...entry, resources: undefined }],
    ["other words for resources", { ...entry, resources: "all" }],
    ["no SKILL.md among its files", { ...entry, resources: files.slice(1) }],
    ["a file twice, written differently", { ...entry, resources: [...files, { ...files[1], uri: `${root}/references/a b.md` }] }],
    ["a file outside", { ...entry, resources: [...files, { ...files[1], uri: "skill://acme/billing/other/a.md" }] }],
    ["a file outside by dots", { ...entry, resources: [...files, { ...files[1], uri: `${root}/../other/a.md` }] }],
    ["a file outside by escaped slashes", { ...entry, resources: [...files, { ...files[1], uri: `${root}/..%2f..%2fetc` }] }],
    ["an invalid digest", { ...entry, resources: [{ ...files[0], digest: "sha256:abc" }] }],
    ["no digest", { ...entry, resources: [{ uri: files[0]!.uri, size: 1 }] }],
    ["a size below zero", { ...entry, resources: [{ ...files[0], size: -1 }] }],
  ])("with %s is refused with a reason", (_, raw) => {
    expect(readSkillEntry(raw)).toMatchObject({ ok: false, reason: expect.stringMatching(/.{10}/) });
  });
});

describe("a skill of a server", () => {
  test("fetches nothing before it is used", () => {
    expect(setUp().server.received).toEqual([]);
  });

  test("says where it comes from, in its description and before its text", async () => {
    const { skill } = setUp();
    expect(skill).toMatchObject({ name: "bank/refunds", description: '[MCP server "bank"] Refunds customers.' });
    expect(skill.folder).toBeUndefined();
    const text = await skill.instructions();
    expect(text).toMatch(/^\[This skill comes from the MCP server "bank", not from the user/);
    expect(text).toContain("# Refunds");
    expect(text).not.toContain("allowed-tools");
  });

  test("fills in arguments, and nothing of this machine", async () => {
    expect(await setUp().skill.instructions("order 7")).toContain("references/a b.md for order 7.");
  });

  test("takes no tools from its front matter, and minds what makes it less visible", () => {
    expect(Object.keys(setUp().skill).sort()).toEqual(["description", "hiddenFromModel", "instructions", "name", "read", "userInvocable"]);
    const hidden = { ...frontmatter, "disable-model-invocation": true, "user-invocable": false };
    expect(setUp({ ...entry, frontmatter: hidden }).skill).toMatchObject({ hiddenFromModel: true, userInvocable: false });
  });

  test("gives its files by path, by path within the skill with dots, and by address", async () => {
    const { skill } = setUp();
    expect(Buffer.from(await skill.read("logo.png"))).toEqual(image);
    for (const path of ["references/a b.md", "./references/x/../a b.md", `${root}/references/a%20b.md`]) {
      expect(Buffer.from(await skill.read(path)).toString()).toBe("# A");
    }
  });

  test.each([
    "../other/SKILL.md",
    "/etc/passwd",
    "..",
    "references/../../x",
    "a\0b",
    "skill://other/SKILL.md",
    "file:///etc/passwd",
    "..\\x",
  ])("lets no path lead out of it: %s", async (path) => {
    const { skill, server } = setUp();
    await expect(skill.read(path)).rejects.toMatchObject({ code: "PATH_OUTSIDE" });
    expect(server.received).toEqual([]);
  });

  test("refuses a file that is not listed without asking for it", async () => {
    const { skill, server } = setUp();
    await expect(skill.read("references/new.md")).rejects.toMatchObject({ code: "SKILL_FILE_UNLISTED" });
    await expect(skill.read("references")).rejects.toMatchObject({ code: "SKILL_FILE_UNLISTED" });
    expect(server.received).toEqual([]);
  });

  test("refuses a file of the same size with other bytes, and one of another size", async () => {
    const tampered = setUp(entry, { [`${root}/references/a%20b.md`]: { text: "# B" } });
    await expect(tampered.skill.read("references/a b.md")).rejects.toMatchObject({ code: "SKILL_DIGEST" });
    const longer = setUp(entry, { [`${root}/references/a%20b.md`]: { text: "# A " } });
    await expect(longer.skill.read("references/a b.md")).rejects.toMatchObject({ code: "SKILL_SIZE" });
    expect([tampered.mismatches.length, longer.mismatches.length]).toEqual([1, 1]);
  });

  test("checks each time: what was right once may be wrong the next time", async () => {
    const { skill, server } = setUp();
    await skill.read("references/a b.md");
    server.answer = ({ params }) => ({ contents: [{ uri: params["uri"], text: "# B" }] });
    await expect(skill.read("references/a b.md")).rejects.toMatchObject({ code: "SKILL_DIGEST" });
    expect(server.received).toHaveLength(2);
  });

  test("refuses its text when the digest is right and the front matter is not the listed one", async () => {
    const other = { ...entry, frontmatter: { ...frontmatter, description: "Harmless." } };
    await expect(setUp(other).skill.instructions()).rejects.toMatchObject({
      code: "SKILL_FRONT_MATTER",
      message: expect.stringContaining('- description: "Harmless."'),
    });
    const less = { ...entry, frontmatter: { name: "refunds", description: "Refunds customers." } };
    await expect(setUp(less).skill.instructions()).rejects.toMatchObject({ code: "SKILL_FRONT_MATTER" });
  });

  test.each([
    ["no front matter", "# Refunds"],
    ["front matter that is not YAML", "---\nname: refunds\ndescription: a: b: c\n---\n"],
    ["bytes that are not text", Buffer.from([0x2d, 0x2d, 0x2d, 0x0a, 0xff])],
  ])("refuses a SKILL.md with %s", async (_, content) => {
    const changed = { ...entry, resources: [fileOf("SKILL.md", content)] };
    const { skill } = setUp(changed, { [`${root}/SKILL.md`]: { blob: Buffer.from(content).toString("base64") } });
    await expect(skill.instructions()).rejects.toMatchObject({ code: "SKILL_FRONT_MATTER" });
  });

  test("takes only what is given for the address that was asked for", async () => {
    const { skill, server } = setUp();
    server.answer = () => ({ contents: [{ uri: `${root}/other.md`, text: "# A" }] });
    await expect(skill.read("references/a b.md")).rejects.toMatchObject({ code: "MCP_ANSWER" });
    server.answer = () => ({});
    await expect(skill.read("references/a b.md")).rejects.toMatchObject({ code: "MCP_ANSWER" });
  });

  test("whose files are made as they are read is still bound to its front matter and its folder", async () => {
    const { skill } = setUp({ ...entry, resources: "dynamic" });
    expect(await skill.instructions()).toContain("# Refunds");
    expect(Buffer.from(await skill.read("references/a b.md")).toString()).toBe("# A");
    await expect(skill.read("../x")).rejects.toMatchObject({ code: "PATH_OUTSIDE" });
    const changed = setUp({ ...entry, resources: "dynamic", frontmatter: { ...frontmatter, license: "MIT" } });
    await expect(changed.skill.instructions()).rejects.toMatchObject({ code: "SKILL_FRONT_MATTER" });
  });
});
