import { describe, expect, test } from "vitest";
import { type BundleDialect, manifestPlaces } from "../../../src/formats/plugins/plugin-dialects.ts";
import { parsePluginManifest } from "../../../src/formats/plugins/plugin-manifest.ts";

const schema = "https://agent-plugins.org/schemas/1.0.0/plugin.schema.json";
const parse = (dialect: BundleDialect, value: unknown) =>
  parsePluginManifest(typeof value === "string" ? value : JSON.stringify(value), {
    file: "/p/plugin.json",
    dialect,
    folderName: "the-folder",
  });
const codes = (dialect: BundleDialect, value: unknown) =>
  parse(dialect, value).diagnostics.map(({ severity, code }) => `${severity} ${code}`);

describe("Agent Plugins 1.0", () => {
  const base = { $schema: schema, name: "p" };

  test("a root plugin.json that declares it is read by its rules", () => {
    const author = { name: "A", email: "not an address", url: "neither" };
    const all = { ...base, version: "not semver", description: "d", author, homepage: "h", repository: "r", license: "?", keywords: ["k"] };
    expect(parse("copilot", { ...all, extensions: { "example.x": { a: 1 } } })).toEqual({
      manifest: { dialect: "agent-plugins", name: "p", version: "not semver", description: "d", components: {}, variables: [] },
      dialect: "agent-plugins",
      diagnostics: [],
    });
  });

  test.each(["a", "my-plugin", "acme.tools", "lint3r", "a".repeat(64)])("%s is a name", (name) => {
    expect(codes("copilot", { ...base, name })).toEqual([]);
  });

  test.each(["", "My-Plugin", "-start", "end-", ".dot", "has--double", "too..many", "under_score", "a".repeat(65), 7, null, undefined])(
    "%j is not a valid name, which is a fatal error",
    (name) => {
      const read = parse("copilot", { ...base, name });
      expect([read.manifest, read.diagnostics.map(({ code }) => code)]).toEqual([undefined, ["PLUGIN_NAME"]]);
    },
  );

  test.each([
    ["version", 1],
    ["version", null],
    ["description", []],
    ["author", "A"],
    ["author", { name: 1 }],
    ["author", { name: "A", phone: "1" }],
    ["homepage", {}],
    ["repository", { url: "r" }],
    ["license", true],
    ["keywords", "k"],
    ["keywords", [1]],
  ])("%s of the wrong type (%j) is fatal", (key, value) => {
    const read = parse("copilot", { ...base, [key]: value });
    expect([read.manifest, read.diagnostics]).toMatchObject([undefined, [{ severity: "error", code: "PLUGIN_FIELD_TYPE" }]]);
  });

  test("unknown keys and extensions that are not an object are reported and ignored", () => {
    const read = parse("copilot", { ...base, skills: "./elsewhere", hooks: {}, extensions: [] });
    expect(read.manifest?.components).toEqual({});
    expect(read.diagnostics).toMatchObject([
      { severity: "warning", code: "PLUGIN_KEY_UNKNOWN", message: expect.stringContaining('"skills", "hooks"') },
      { severity: "warning", code: "PLUGIN_FIELD_TYPE" },
    ]);
  });

  test.each([
    ["a later version", "https://agent-plugins.org/schemas/1.1.0/plugin.schema.json", "version 1.1.0"],
    ["another spelling", "https://www.agent-plugins.org/schemas/1.0.0/plugin.schema.json", "exactly"],
  ])("%s of the schema is refused", (_what, $schema, says) => {
    const read = parse("copilot", { ...base, $schema });
    expect([read.manifest, read.diagnostics]).toMatchObject([
      undefined,
      [{ code: "PLUGIN_SCHEMA_UNKNOWN", message: expect.stringContaining(says) }],
    ]);
  });
});

describe("what each dialect requires", () => {
  test.each<[BundleDialect, unknown, string | undefined, readonly string[]]>([
    ["claude", { name: "p" }, "p", []],
    ["claude", {}, undefined, ["error PLUGIN_NAME"]],
    ["claude", { name: "two words" }, undefined, ["error PLUGIN_NAME"]],
    ["claude", { name: "p", author: "A", repository: { url: "r" } }, "p", []],
    ["claude", { name: "p", keywords: "k" }, undefined, ["error PLUGIN_FIELD_TYPE"]],
    ["claude", { name: "p", agents: 7 }, undefined, ["error PLUGIN_FIELD_TYPE"]],
    ["claude", { name: "p", skills: { a: 1 } }, undefined, ["error PLUGIN_FIELD_TYPE"]],
    ["claude", { name: "p", metadata: 7, experimental: 7 }, "p", ["info PLUGIN_KEY_UNSUPPORTED"]],
    ["claude", { name: "p", skills: "skills" }, "p", ["warning PLUGIN_PATH_FORM"]],
    ["claude", { name: "p", skills: "." }, "p", []],
    ["copilot", { name: "p", agents: 7, keywords: "k" }, "p", ["warning PLUGIN_FIELD_TYPE", "error PLUGIN_FIELD_TYPE"]],
    ["copilot", { name: "p", skills: ["skills", "more/"] }, "p", []],
    ["codex", {}, "the-folder", []],
    ["codex", { name: "a b" }, "a-b", ["warning PLUGIN_NAME"]],
    ["codex", { name: "p", skills: "skills" }, "p", ["error PLUGIN_PATH_FORM"]],
    ["gemini", { name: "p" }, undefined, ["error PLUGIN_FIELD_MISSING"]],
    ["gemini", { name: "p", version: "1" }, "p", []],
    ["cursor", { name: "p", rules: "rules" }, "p", []],
    ["openclaw", { id: "claw" }, "claw", []],
    ["openclaw", {}, "the-folder", []],
    ["claude", [], undefined, ["error PLUGIN_MANIFEST_TYPE"]],
    ["claude", "no json", undefined, ["error JSON_SYNTAX"]],
    ["claude", "", undefined, ["error JSON_SYNTAX"]],
    ["claude", "../.claude-plugin/plugin.json", undefined, ["error JSON_SYNTAX", "error PLUGIN_MANIFEST_LINK"]],
    ["claude", '{"name":"p","__proto__":{"hooks":{}}}', "p", ["warning JSON_KEY_REFUSED"]],
  ])("%s: %j", (dialect, value, name, expected) => {
    expect([parse(dialect, value).manifest?.name, codes(dialect, value)]).toEqual([name, expected]);
  });

  test("paths and inline components know where they stand", () => {
    const text = '{\n  "name": "p",\n  "mcpServers": ["./a.json", { "x": {} }],\n  "hooks": { "Stop": [] }\n}';
    expect(parse("claude", text).manifest?.components).toEqual({
      mcpServers: [
        { kind: "path", path: "./a.json", start: { line: 3, column: 18 } },
        { kind: "inline", value: { x: {} }, at: ["mcpServers", 1] },
      ],
      hooks: [{ kind: "inline", value: { Stop: [] }, at: ["hooks"] }],
    });
  });

  test("a manifest of a megabyte and more is not parsed", () => {
    expect(codes("claude", JSON.stringify({ name: "x".repeat(1_100_000) }))).toEqual(["error FILE_TOO_LARGE"]);
  });

  test("every place has a dialect whose manifest can be empty of components", () => {
    for (const { dialect } of manifestPlaces) expect(parse(dialect, { name: "p", version: "1" }).manifest?.components).toEqual({});
  });
});
