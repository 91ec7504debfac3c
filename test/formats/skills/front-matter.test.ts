import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { stringify } from "yaml";
import { type FrontMatter, parseFrontMatter } from "../../../src/formats/skills/front-matter.ts";

const plain = (read: FrontMatter) => ({ ...read.data });
const codes = (read: FrontMatter) => read.problems.map(({ code }) => code);

describe("front matter as it should be", () => {
  test("gives the data, the body and the body's first line", () => {
    const read = parseFrontMatter("---\nname: tidy\ndescription: Tidies up.\n---\n\n# Tidy\n");
    expect(plain(read)).toEqual({ name: "tidy", description: "Tidies up." });
    expect(read).toMatchObject({ state: "parsed", body: "\n# Tidy\n", bodyStartLine: 5, problems: [] });
  });

  test.each([
    ["a byte order mark", "\uFEFF---\nname: a\n---\nBody"],
    ["CRLF", "---\r\nname: a\r\n---\r\nBody"],
    ["lone carriage returns", "---\rname: a\r---\rBody"],
    ["white space after the dashes", "---  \nname: a\n--- \t\nBody"],
    ["comments inside", "---\n# who\nname: a # me\n---\nBody"],
  ])("reads on over %s", (_what, text) => {
    const read = parseFrontMatter(text);
    expect(plain(read)).toEqual({ name: "a" });
    expect(read).toMatchObject({ state: "parsed", body: "Body", problems: [] });
  });

  test("keeps the types of YAML 1.2: yes is text, 1.0 a number, a date text", () => {
    const read = parseFrontMatter("---\na: yes\nb: 1.0\nc: 2024-01-31\nd: ~\ne: [x, 2]\nf: {g: true}\nh: 0o17\n---\n");
    expect(plain(read)).toEqual({ a: "yes", b: 1, c: "2024-01-31", d: null, e: ["x", 2], f: { g: true }, h: 15 });
  });

  test("reads block scalars, folded text and dashes inside them", () => {
    const read = parseFrontMatter("---\na: |\n  one\n  --- two\nb: >-\n  three\n  four\n---\nBody");
    expect(plain(read)).toEqual({ a: "one\n--- two\n", b: "three four" });
  });

  test("agrees with the yaml package on whatever that writes", () => {
    const data = fc.dictionary(
      fc.stringMatching(/^[a-z][a-z_-]{0,9}$/),
      fc.jsonValue({ maxDepth: 3 }).filter((value) => !JSON.stringify(value).includes("__proto__")),
      { minKeys: 1 },
    );
    fc.assert(
      // By way of JSON, which has no -0.
      fc.property(
        data.map((value) => JSON.parse(JSON.stringify(value))),
        (value) => {
          const read = parseFrontMatter(`---\n${stringify(value)}---\nBody`);
          expect(plain(read)).toEqual(value);
          expect(read.state).toBe("parsed");
        },
      ),
    );
  });

  test("says where each key stands in the file", () => {
    const { positions } = parseFrontMatter("---\nname: a\n\nmetadata:\n  x: 1\nlast: z\n---\n");
    expect([...positions]).toEqual([
      ["name", { line: 2, column: 1 }],
      ["metadata", { line: 4, column: 1 }],
      ["last", { line: 6, column: 1 }],
    ]);
  });

  test("is empty between two lines of dashes", () => {
    expect(parseFrontMatter("---\n---\nBody")).toMatchObject({ state: "parsed", body: "Body", problems: [] });
    expect(parseFrontMatter("---\n# nothing yet\n---\nBody")).toMatchObject({ state: "parsed", body: "Body", problems: [] });
  });
});

describe("a text without front matter", () => {
  test.each([
    ["an empty text", ""],
    ["a heading", "# Title\n\nText\n"],
    ["a thematic break first, and no second one", "---\n\n# Title\n\nText"],
    ["text that happens to have a colon", "Note: this is prose.\n\n---\n\nMore"],
    ["four dashes", "----\nname: a\n----\n"],
    ["an opening comment that never ends", "<!-- \n---\nname: a\n---\n"],
  ])("is all body: %s", (_what, text) => {
    expect(parseFrontMatter(text)).toMatchObject({ state: "absent", body: text, bodyStartLine: 1, data: {}, problems: [] });
  });

  test("keeps everything when prose stands between two thematic breaks", () => {
    const text = "---\nJust some prose here.\n---\n\nMore.";
    const read = parseFrontMatter(text);
    expect(read).toMatchObject({ state: "absent", body: text });
    expect(codes(read)).toEqual(["FRONT_MATTER_NOT_MAP"]);
  });

  test("says what is wrong with a fence around front matter", () => {
    const read = parseFrontMatter("```markdown\n---\nname: a\n---\n\n# A\n```\n");
    expect(read.state).toBe("absent");
    expect(read.problems).toMatchObject([{ code: "FRONT_MATTER_FENCED", severity: "warning", range: { start: { line: 1, column: 1 } } }]);
  });
});

describe("front matter in the wrong place", () => {
  test.each([
    ["blank lines", "\n \n---\nname: a\n---\nBody", 4],
    ["an HTML comment", "<!-- from\n elsewhere -->\n---\nname: a\n---\nBody", 4],
  ])("is read after %s", (_what, text, line) => {
    const read = parseFrontMatter(text);
    expect(plain(read)).toEqual({ name: "a" });
    expect(read).toMatchObject({ state: "parsed", body: "Body" });
    expect(read.problems).toMatchObject([{ code: "FRONT_MATTER_LATE", range: { start: { line } } }]);
  });

  test("after a comment, a thematic break is not taken for front matter", () => {
    const text = "<!-- x -->\n---\nPlease note: this.\n---\nBody";
    expect(parseFrontMatter(text)).toMatchObject({ state: "absent", body: text, problems: [] });
  });

  test("is read without its closing line, up to the first blank one", () => {
    const read = parseFrontMatter("---\nname: a\ndescription: What it: does\nlist:\n  - x\n\n# Title\n\nText");
    expect(plain(read)).toEqual({ name: "a", description: "What it: does", list: ["x"] });
    expect(read).toMatchObject({ state: "unclosed", body: "\n# Title\n\nText", bodyStartLine: 6 });
    expect(codes(read)).toEqual(["FRONT_MATTER_REPAIRED", "FRONT_MATTER_UNCLOSED"]);
  });

  test("is read without its closing line when a thematic break follows far below", () => {
    const read = parseFrontMatter(
      "---\n\n## name: a\nversion: 1\ndescription: Does it.\n\n# Title\n\nSome prose.\nNote: **x\n\n---\n\nMore",
    );
    expect(plain(read)).toEqual({ version: 1, description: "Does it." });
    expect(read).toMatchObject({ state: "unclosed", body: "\n# Title\n\nSome prose.\nNote: **x\n\n---\n\nMore" });
  });

  test("is read without its opening line when it begins with a name", () => {
    const read = parseFrontMatter("name: A and B\ndescription: Does it.\n\n---\n\nBody");
    expect(plain(read)).toEqual({ name: "A and B", description: "Does it." });
    expect(read).toMatchObject({ state: "unopened", body: "\nBody", bodyStartLine: 5 });
    expect(codes(read)).toEqual(["FRONT_MATTER_UNOPENED"]);
  });
});

describe("front matter that is not valid YAML", () => {
  test.each([
    ["a colon in a value", "d: Use when: asked", "Use when: asked"],
    ["a colon at the end", "d: Usage:", "Usage:"],
    ["an at sign", "d: @scope is used", "@scope is used"],
    ["a backtick", "d: `x` runs", "`x` runs"],
    ["a comma", "d: , then", ", then"],
    ["a percent sign", "d: %d items", "%d items"],
    ["several lists", "d: [file] [line]", "[file] [line]"],
    ["text after a list", "d: [WIP] do not use", "[WIP] do not use"],
    ["text after a mapping", "d: {x} is filled", "{x} is filled"],
    ["a star", "d: *Important* thing", "*Important* thing"],
    ["a star word", "d: *everything", "*everything"],
    ["an exclamation mark", "d: !important thing", "!important thing"],
    ["an ampersand twice", "d: &a &b", "&a &b"],
    ["a dash", "d: - not a list", "- not a list"],
    ["quotes inside quotes", 'd: "say "hi" now"', 'say "hi" now'],
    ["an unclosed quote", 'd: "say', '"say'],
    ["an apostrophe inside", "d: 'it's'", "it's"],
    ["a backslash", "d: C:\\x: y", "C:\\x: y"],
    ["a continued line", "d: one: two\n  three", "one: two three"],
  ])("is read with quotes around the value: %s", (_what, line, value) => {
    const read = parseFrontMatter(`---\nname: a\n${line}\nz: 1\n---\nBody`);
    expect(plain(read)).toEqual({ name: "a", d: value, z: 1 });
    expect(read.state).toBe("repaired");
    expect(read.problems).toMatchObject([{ code: "FRONT_MATTER_REPAIRED", severity: "warning" }]);
    expect(read.positions.get("z")).toEqual({ line: 3 + line.split("\n").length, column: 1 });
  });

  test("says where the fault is, in lines and columns of the file", () => {
    const { problems } = parseFrontMatter("---\nname: a\ndescription: Use when: asked\n---\n");
    expect(problems[0]?.range?.start).toEqual({ line: 3, column: 14 });
  });

  test("leaves block scalars alone and repairs nested values when it must", () => {
    const read = parseFrontMatter("---\nname: a\ntext: |\n  key: x: y\nmeta:\n  note: b: c\n  ok: 1\n---\n");
    expect(plain(read)).toEqual({ name: "a", text: "key: x: y\n", meta: { note: "b: c", ok: 1 } });
  });

  test("is read line by line when no quotes help", () => {
    const read = parseFrontMatter(
      '---\nname: "a"\ndescription: |\n  One\n  two\ntools:\n  - x\n  - "y"\n}{ broken\n\t- [\nversion: 1\n---\nBody',
    );
    expect(plain(read)).toEqual({ name: "a", description: "One two", tools: ["x", "y"], version: "1" });
    expect(read).toMatchObject({ state: "scanned", body: "Body" });
    expect(codes(read)).toEqual(["FRONT_MATTER_SCANNED"]);
  });

  test("reads a tab before a key line by line", () => {
    const read = parseFrontMatter("---\nname: a\nmetadata:\n\tx: 1\ndescription: Does it.\n---\n");
    expect(read.data).toMatchObject({ name: "a", description: "Does it." });
    expect(read.state).toBe("scanned");
  });
});

describe("front matter made to hurt", () => {
  test("takes the last of two equal keys and says where it is", () => {
    const read = parseFrontMatter("---\nname: a\nname: b\n---\n");
    expect(plain(read)).toEqual({ name: "b" });
    expect(read.problems).toMatchObject([{ code: "FRONT_MATTER_DUPLICATE_KEY", range: { start: { line: 3, column: 1 } } }]);
  });

  test("leaves out __proto__ at every depth and keeps constructor as a plain key", () => {
    const read = parseFrontMatter("---\nname: a\n__proto__: {x: 1}\nmetadata:\n  __proto__: {y: 2}\n  constructor: z\n---\n");
    expect(Object.getPrototypeOf(read.data)).toBeNull();
    expect(JSON.stringify(read.data)).toBe('{"name":"a","metadata":{"constructor":"z"}}');
    expect(Object.getPrototypeOf(read.data["metadata"])).toBe(Object.prototype);
    expect(codes(read)).toEqual(["FRONT_MATTER_KEY_REFUSED", "FRONT_MATTER_KEY_REFUSED"]);
    expect(Object.hasOwn(parseFrontMatter("---\nname: a\n__proto__: x: y\n}{\n---\n").data, "__proto__")).toBe(false);
  });

  test("leaves out keys that are lists", () => {
    const read = parseFrontMatter("---\nname: a\n? [x, y]\n: 1\n---\n");
    expect(plain(read)).toEqual({ name: "a" });
    expect(codes(read)).toEqual(["FRONT_MATTER_KEY_REFUSED"]);
  });

  test("follows aliases, but not into their own value", () => {
    expect(plain(parseFrontMatter("---\nname: &n a\nother: *n\n---\n"))).toEqual({ name: "a", other: "a" });
    const cyclic = parseFrontMatter("---\nname: a\nloop: &l\n  - *l\n---\n");
    expect(cyclic.data["name"]).toBe("a");
    expect(() => JSON.stringify(cyclic.data)).not.toThrow();
  });

  test("does not write out a tower of aliases", () => {
    const levels = [..."bcdefghijk"].map((name, at) => `${name}: &${name} [${`*${"abcdefghij"[at]},`.repeat(9)}]`);
    const read = parseFrontMatter(`---\nname: a\na: &a [x]\n${levels.join("\n")}\n---\n`);
    expect(read.data["name"]).toBe("a");
    expect(JSON.stringify(read.data).length).toBeLessThan(10_000);
  });

  test("reads only the names of what is nested beyond measure", () => {
    const read = parseFrontMatter(`---\nname: a\ndeep: ${"[".repeat(60_000)}\n---\nBody`);
    expect(read).toMatchObject({ state: "scanned", body: "Body" });
    expect(read.data["name"]).toBe("a");
  });

  test("reads the first part of front matter that is too long", () => {
    const read = parseFrontMatter(`---\nname: a\n${"k: v\n".repeat(100_000)}---\nBody`);
    expect(read).toMatchObject({ state: "scanned", body: "Body", data: { name: "a", k: "v" } });
    expect(codes(read)).toEqual(["FRONT_MATTER_TOO_LARGE"]);
  });
});

describe("an indented closing line", () => {
  const long = "A description of many words, which says when to use the skill.";

  test.each([
    ["before a text", `---\nname: x\ndescription: ${long}\n  ---\nSome text.\n`, "Some text.\n"],
    ["before a title", `---\nname: x\ndescription: ${long}\n ---\n# Title\n\nText.\n`, "# Title\n\nText.\n"],
    ["before a thematic break", `---\nname: x\ndescription: ${long}\n\t---\n\nText.\n\n---\n\nMore.\n`, "\nText.\n\n---\n\nMore.\n"],
    ["at the end", `---\nname: x\ndescription: ${long}\n   ---`, ""],
    ["before Windows line ends", `---\r\nname: x\r\ndescription: ${long}\r\n  ---\r\nText.\r\n`, "Text.\n"],
  ])("closes the front matter, with a warning: %s", (_, text, body) => {
    const read = parseFrontMatter(text);
    expect(read.data).toMatchObject({ name: "x", description: long });
    expect(read.body).toBe(body);
    expect(read.problems).toMatchObject([{ severity: "warning", code: "FRONT_MATTER_INDENTED", range: { start: { line: 4 } } }]);
  });

  test("an indented --- line is part of a value where YAML continues below it", () => {
    const read = parseFrontMatter("---\nname: x\ndescription: |\n  First.\n  ---\n  Second.\nlicense: MIT\n---\nText.\n");
    expect(read.data).toMatchObject({ description: "First.\n---\nSecond.\n", license: "MIT" });
    expect([read.body, read.problems]).toEqual(["Text.\n", []]);
  });
});
