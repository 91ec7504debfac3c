import { skillEntry } from "@modelcontextprotocol/server/ext/skills";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { parse, stringify } from "yaml";
import { distinctServedName, normalizeSkillDocument, servedName } from "../../../src/formats/skills/served-document.ts";
import { parseSkillDocument } from "../../../src/formats/skills/skill-document.ts";
import { rounds } from "../../rounds.ts";

const served = { name: "plain-name", description: "What it does." };

function frontMatterOf(document: string): Record<string, unknown> {
  return parse(document.split("\n---\n")[0]!.slice("---\n".length)) as Record<string, unknown>;
}

describe("the name under which a skill is served", () => {
  test.each([
    ["code-review", "code-review"],
    ["Code Review", "code-review"],
    ["acme/code_review.v2", "acme-code-review-v2"],
    ["--a--b--", "a-b"],
    ["Café İstanbul", "cafe-istanbul"],
    ["ﬁle-２", "file-2"],
  ])("of %j is %j", (name, expected) => {
    expect(servedName(name)).toBe(expected);
  });

  test("conforms to the Agent Skills specification for every name, also when it must differ from another's", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme", maxLength: 200 }), (name) => {
        for (const found of [servedName(name), distinctServedName(name)]) {
          expect(found).toMatch(/^[a-z0-9]+(?:-[a-z0-9]+)*$/);
          expect(found.length).toBeLessThanOrEqual(64);
        }
      }),
    );
  });

  test("is a digest's for names without letters of ASCII, so that two of them differ", () => {
    expect(servedName("数据分析")).toMatch(/^skill-[0-9a-f]{8}$/);
    expect(servedName("数据分析")).not.toBe(servedName("データ分析"));
  });
});

describe("a normalised SKILL.md", () => {
  test("keeps the instructions and every key, with texts as values of metadata", () => {
    const text = [
      "---",
      "name: Weird Name",
      "description: Old.",
      "version: 2",
      "metadata:",
      "  openclaw: { requires: { bins: [jq] } }",
      "  priority: 3",
      "  none:",
      "allowed-tools: [Read, Bash(git:*)]",
      '"a key: with a colon": "line\\nbreak"',
      "---",
      "",
      "    code first",
      "---",
      "after a rule",
    ].join("\r\n");
    expect(normalizeSkillDocument(text, served)).toBe(
      [
        "---",
        'name: "plain-name"',
        'description: "What it does."',
        'metadata: {"openclaw":"{\\"requires\\":{\\"bins\\":[\\"jq\\"]}}","priority":"3","none":""}',
        "version: 2",
        'allowed-tools: ["Read","Bash(git:*)"]',
        '"a key: with a colon": "line\\nbreak"',
        "---",
        "",
        "    code first",
        "---",
        "after a rule",
        "",
      ].join("\n"),
    );
  });

  test.each([
    ["no front matter", "# Title\n\nDoes things.\n"],
    ["front matter that is not closed", "---\nname: x\ndescription: Does things.\n\n# Body\n"],
    ["values that need quotes", "---\nname: x\ndescription: Use it: now\nnote: @mention\n---\nBody\n"],
    ["tabs", "---\nname: x\ndescription: y\nmetadata:\n\ta: b\n---\nBody\n"],
    ["an anchor and an alias", "---\nname: x\ndescription: y\na: &a [1]\nb: *a\n---\nBody\n"],
    ["a compatibility that is too long", `---\nname: x\ndescription: y\ncompatibility: ${"c".repeat(600)}\n---\nBody\n`],
    ["a compatibility and metadata that are lists", "---\nname: x\ndescription: y\ncompatibility: [a]\nmetadata: [b]\n---\nBody\n"],
    ["nothing", ""],
  ])("of a text with %s is one that strict clients read", async (_title, text) => {
    const document = normalizeSkillDocument(text, served);
    const { frontmatter } = await skillEntry("plain-name", { "SKILL.md": document });
    expect(frontmatter).toMatchObject(served);
    const { body } = parseSkillDocument(text, { file: "SKILL.md", directoryName: "plain-name" }).document;
    expect(parseSkillDocument(document, { file: "SKILL.md", directoryName: "plain-name" }).document.body).toBe(body);
  });

  test("has a description within the limit, counted in code points, and never an empty one", async () => {
    const long = { ...served, description: "😀".repeat(2_000) };
    const { frontmatter } = await skillEntry("plain-name", { "SKILL.md": normalizeSkillDocument("Body", long) });
    expect([...frontmatter.description]).toHaveLength(1024);
    expect(normalizeSkillDocument("", { ...served, description: "" })).toContain('description: "plain-name"');
    expect(normalizeSkillDocument("---\ndescription: Own.\n---\n", { ...served, description: "" })).toContain('description: "Own."');
  });

  test("leaves out what aliases make larger than front matter may be, and keeps the rest", () => {
    const aliases = Array.from({ length: 1_000 }, () => "*a").join(", ");
    const text = `---\nname: x\ndescription: y\na: &a ${"z".repeat(40_000)}\nmany: [${aliases}]\nlast: 1\nmetadata: { big: [${aliases}] }\n---\nBody\n`;
    const document = normalizeSkillDocument(text, served);
    expect(document.length).toBeLessThan(70_000);
    expect(Object.keys(frontMatterOf(document))).toEqual(["name", "description", "metadata", "a", "last"]);
  });

  test("is read alike by the SDK's reader, by a YAML library and by this host, whatever the values are", async () => {
    const value = fc.jsonValue({ maxDepth: 4, stringUnit: "binary" });
    const key = fc.string({ unit: "binary", maxLength: 12 }).filter((name) => name !== "__proto__" && name.trim() !== "");
    await fc.assert(
      fc.asyncProperty(fc.dictionary(key, value, { noNullPrototype: true }), fc.string({ unit: "binary" }), async (extra, description) => {
        const given = stringify({ name: "x", ...extra });
        const document = normalizeSkillDocument(`---\n${given}---\nBody\n`, { name: "plain-name", description: description.trim() });
        const { frontmatter } = await skillEntry("plain-name", { "SKILL.md": document });
        const own = parseSkillDocument(document, { file: "SKILL.md", directoryName: "plain-name" }).document;
        expect(own.frontMatterState).toBe("parsed");
        expect(JSON.stringify(own.frontMatter)).toBe(JSON.stringify(frontmatter));
        expect(JSON.stringify(frontMatterOf(document))).toBe(JSON.stringify(frontmatter));
      }),
      { numRuns: rounds(30, 500) },
    );
  });
});
