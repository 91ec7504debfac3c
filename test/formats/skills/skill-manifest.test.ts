import { describe, expect, test } from "vitest";
import { maxManifestBytes, parseSkillManifest } from "../../../src/formats/skills/skill-manifest.ts";

const file = "/skills/review/skill.json";
const parse = (value: object) => parseSkillManifest(JSON.stringify(value), file);
const found = (value: object) => parse({ name: "review", ...value }).diagnostics.map(({ severity, code }) => `${severity} ${code}`);

test("a skill manifest: every field is read as written", () => {
  const written = {
    $schema: "../../node_modules/skillhost/schemas/skill.schema.json",
    name: "review",
    description: "Reviews code.",
    displayName: "Code Review",
    version: "1.2.3-beta.1+build",
    author: { name: "A", email: "a@example.org", url: "https://example.org" },
    prompts: ["prompts/system.md", "./prompts/style/*.md"],
    tools: ["tools/*.json", { name: "count", parameters: { type: "object" } }],
    resources: ["resources/*.ts"],
    mcpServers: { files: { command: "npx", args: ["files"] } },
    engines: { skillhost: "^0.1.0", node: ">=20" },
    requires: { base: "1.x || 2.x" },
    promptMode: "on-demand",
    enabled: false,
  };
  const { manifest, diagnostics } = parse(written);
  const { $schema: _, ...fields } = written;
  expect(diagnostics).toEqual([]);
  expect(manifest).toEqual({ ...fields, extra: {} });
});

test("an absent list stays absent, an empty one empty", () => {
  expect(parse({ name: "review" }).manifest).toEqual({ name: "review", extra: {} });
  expect(parse({ name: "review", prompts: [], tools: [] }).manifest).toMatchObject({ prompts: [], tools: [] });
});

test("a catalogue card is a manifest, whose own keys are kept and named once", () => {
  const { manifest, diagnostics } = parse({
    name: "review",
    version: "1.0.0",
    author: "A",
    keywords: ["x"],
    licence: "MIT",
    promptmode: "eager",
  });
  expect(manifest).toMatchObject({ author: "A", extra: { keywords: ["x"], licence: "MIT", promptmode: "eager" } });
  expect(diagnostics).toMatchObject([{ severity: "info", code: "MANIFEST_UNKNOWN_KEYS", file }]);
  expect(diagnostics[0]?.message).toContain('"keywords", "licence", "promptmode" (did you mean "promptMode"?)');
});

describe("a wrong value is an error and counts for less, never for more", () => {
  test.each([
    ["a list that is text", { tools: "tools/x.json" }, { tools: [] }],
    ["prompts as an object", { prompts: { a: 1 } }, { prompts: [] }],
    ["tools as a map", { tools: { x: {} } }, { tools: [] }],
    ["null", { tools: null }, { tools: [] }],
    ["resources that are text", { resources: "resources/x.ts" }, { resources: [] }],
    ["a resource in place", { resources: [{ uri: "x:y" }, "a.ts"] }, { resources: ["a.ts"] }],
    ["an entry that is not a path", { prompts: ["a.md", 5, { name: "x" }] }, { prompts: ["a.md"] }],
    ["an entry that is neither path nor tool", { tools: [["x"], "a.json"] }, { tools: ["a.json"] }],
    ["enabled as text", { enabled: "true" }, { enabled: false }],
    ["an unknown promptMode", { promptMode: "lazy" }, {}],
    ["a number as version", { version: 1 }, {}],
    ["servers as a list", { mcpServers: [] }, {}],
    ["engines as text", { engines: "^1" }, {}],
    ["a range that is a number", { requires: { a: 1, b: "*" } }, { requires: { b: "*" } }],
    ["an author without a name", { author: { email: "x" } }, {}],
    ["an author that is a number", { author: 1 }, {}],
    ["a description that is a list", { description: ["x"] }, {}],
  ])("%s", (_what, value, expected) => {
    const { manifest, diagnostics } = parse({ name: "review", ...value });
    expect(manifest).toEqual({ name: "review", ...expected, extra: {} });
    expect(diagnostics.filter(({ severity }) => severity !== "error")).toEqual([]);
    expect(diagnostics.length).toBeGreaterThan(0);
    expect(diagnostics.every(({ code }) => code === "MANIFEST_FIELD_TYPE")).toBe(true);
  });
});

test("errors have the line and column of their key or element", () => {
  const text =
    '{\n  "name": "review",\n  "version": 1.0,\n  "tools": [\n    "tools/a.json",\n    "../b.json"\n  ],\n  "requires": { "base": "newest" }\n}\n';
  expect(
    parseSkillManifest(text, file).diagnostics.map(({ code, range }) => `${code} ${range?.start.line}:${range?.start.column}`),
  ).toEqual(["MANIFEST_FIELD_TYPE 3:3", "PATH_OUTSIDE 6:5", "MANIFEST_RANGE 8:17"]);
});

test.each(["1.0", "v1", "latest", " 1.0.0", "1.0.0.0", "01.0.0", ""])("the version %j is kept with a warning", (version) => {
  expect(found({ version })).toEqual(["warning MANIFEST_VERSION"]);
  expect(parse({ name: "review", version }).manifest?.version).toBe(version);
});

test("a range that cannot be read stays, so that nothing satisfies it", () => {
  const { manifest, diagnostics } = parse({ name: "review", engines: { skillhost: "newest" } });
  expect(manifest?.engines).toEqual({ skillhost: "newest" });
  expect(diagnostics).toMatchObject([{ severity: "error", code: "MANIFEST_RANGE" }]);
});

describe("paths of a skill manifest", () => {
  test.each(["prompts/a.md", "./a.md", "a b/ü.md", "prompts/**/*.md", "{a,b}.md", "...md", "a/..b.md", "prompts"])(
    "%s is taken",
    (path) => {
      expect(parse({ name: "review", prompts: [path] })).toMatchObject({ manifest: { prompts: [path] }, diagnostics: [] });
    },
  );

  test.each([
    ["../a.md", "PATH_OUTSIDE"],
    ["a/../../b.md", "PATH_OUTSIDE"],
    ["a/../b.md", "PATH_OUTSIDE"],
    ["..", "PATH_OUTSIDE"],
    ["/etc/passwd", "PATH_OUTSIDE"],
    ["~/a.md", "PATH_OUTSIDE"],
    ["C:\\a.md", "PATH_OUTSIDE"],
    ["c:a.md", "PATH_OUTSIDE"],
    ["\\\\server\\a.md", "PATH_OUTSIDE"],
    ["file:///etc/passwd", "PATH_OUTSIDE"],
    ["prompts\\a.md", "PATH_INVALID"],
    ["..\\a.md", "PATH_INVALID"],
    ["a\0.md", "PATH_INVALID"],
    [" ", "PATH_INVALID"],
    ["", "PATH_INVALID"],
  ])("%j is left out", (path, code) => {
    const { manifest, diagnostics } = parse({ name: "review", prompts: ["ok.md", path], tools: [path] });
    expect(manifest).toMatchObject({ prompts: ["ok.md"], tools: [] });
    expect(diagnostics.map((diagnostic) => `${diagnostic.severity} ${diagnostic.code}`)).toEqual([`error ${code}`, `error ${code}`]);
  });
});

describe("no manifest", () => {
  test.each([
    ["no name", "{}", "MANIFEST_NAME_MISSING"],
    ["a blank name", '{"name": " "}', "MANIFEST_NAME_MISSING"],
    ["a number as name", '{"name": 5}', "MANIFEST_FIELD_TYPE"],
    ["a list", "[]", "MANIFEST_FIELD_TYPE"],
    ["null", "null", "MANIFEST_FIELD_TYPE"],
    ["a trailing comma", '{"name": "a",}', "JSON_SYNTAX"],
    ["a comment", '// hi\n{"name": "a"}', "JSON_SYNTAX"],
    ["nothing", "", "JSON_SYNTAX"],
  ])("comes of %s", (_what, text, code) => {
    const { manifest, diagnostics } = parseSkillManifest(text, file);
    expect(manifest).toBeUndefined();
    expect(diagnostics).toMatchObject([{ severity: "error", code, file }]);
  });

  test("the manifest of an Alexa skill is ignored without an error", () => {
    const { manifest, diagnostics } = parse({ manifest: { publishingInformation: { locales: {} }, manifestVersion: "1.0" } });
    expect(manifest).toBeUndefined();
    expect(diagnostics).toMatchObject([{ severity: "info", code: "MANIFEST_FOREIGN" }]);
  });

  test("comes of a text beyond the limit, which is not parsed", () => {
    const text = `{"name": "a", "description": "${"x".repeat(maxManifestBytes)}"}`;
    expect(parseSkillManifest(text, file)).toMatchObject({ diagnostics: [{ severity: "error", code: "FILE_TOO_LARGE", file }] });
    expect(parseSkillManifest(text, file).manifest).toBeUndefined();
  });
});

test("keys that would reach a prototype reach nothing", () => {
  const text = '{"name": "a", "__proto__": {"enabled": false}, "constructor": {"x": 1}, "engines": {"__proto__": "x"}, "toString": 1}';
  const { manifest } = parseSkillManifest(text, file);
  expect(manifest).toEqual({ name: "a", engines: {}, extra: { constructor: { x: 1 }, toString: 1 } });
  expect(manifest?.enabled).toBeUndefined();
  expect(Object.getPrototypeOf(manifest?.extra)).toBeNull();
});

test("a file with a fault in every element reports the first hundred", () => {
  const { diagnostics } = parse({ name: "a", prompts: Array(5_000).fill("../x") });
  expect(diagnostics).toHaveLength(100);
});
