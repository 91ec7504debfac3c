import { readFileSync } from "node:fs";
import { Ajv } from "ajv";
import { createHost } from "skillhost";
import { expect, test } from "vitest";
import { loadConfig } from "../../src/cli/config.ts";
import { workplace } from "./run-cli.ts";

const schema = JSON.parse(readFileSync(new URL("../../schemas/skillhost.schema.json", import.meta.url), "utf8"));
const isValid = new Ajv({ strict: true, strictRequired: false, strictTypes: false }).compile(schema);

/** Values of each key that the reader and the schema must judge equally. */
const cases: Readonly<Record<string, { readonly good: readonly unknown[]; readonly bad: readonly unknown[] }>> = {
  $schema: { good: ["./x.json"], bad: [] },
  skillDirectories: { good: [[], ["./skills", "~/skills", "packages/*/skills"]], bad: ["./skills", [1], [""], null, {}] },
  packageSkills: { good: [true, false, [], ["."]], bad: ["yes", 1, [1], null, {}] },
  disabledSkills: { good: [[], ["a"]], bad: ["a", [""], [null], {}] },
  conflicts: {
    good: ["override", "keep-first", "rename", "error", {}, { default: "error", names: { a: "rename" } }],
    bad: ["last", 1, [], null, { names: { a: "last" } }, { default: 1 }, { other: "error" }],
  },
  plugins: {
    good: [[], ["library-docs"], [{ use: "library-docs" }], [{ use: "library-docs", config: {} }]],
    bad: ["library-docs", [1], [""], [{}], [{ use: "" }], [{ use: "a", more: 1 }], null],
  },
  mcpServers: { good: [{}, { a: { command: "node" } }, { a: { url: "https://example.org/mcp", timeout: 1 } }], bad: [[], 1, "a", null] },
  trust: {
    good: [
      {},
      { policy: "require" },
      { definitions: "require" },
      { policy: { package: "require" } },
      { definitions: { package: "first-use" } },
      { provenance: { "*": "warn" } },
      { registries: ["https://npm.acme.com/"], packages: ["@acme/*"], deniedPackages: [] },
    ],
    bad: [
      [],
      1,
      "require",
      null,
      { policy: "always" },
      { definitions: "pin" },
      { policy: { other: "warn" } },
      { other: 1 },
      { keys: [] },
      { directory: "/" },
      { onlyKeys: 1 },
      { onlyKeys: [1] },
      { provenance: 1 },
      { registries: "https://npm.acme.com/" },
      { registries: ["npm.acme.com"] },
      { packages: [""] },
      { deniedPackages: 1 },
    ],
  },
  importTimeout: { good: [1, 0.5, 60_000], bad: [0, -1, "1", null, []] },
  watchBackend: { good: ["auto", "directory", "chokidar"], bad: ["poll", 1, null] },
  workingDirectory: { good: ["."], bad: [1, [], null, {}] },
  sessionsDirectory: { good: ["sessions"], bad: [1, [], null, {}] },
  isolation: {
    good: ["auto", "off", "process", "strict", { package: "strict", user: "worker" }],
    bad: ["full", { package: "auto" }, { other: "off" }, 5],
  },
  logLevel: { good: ["error", "warning", "info", "debug"], bad: ["trace", 1, null] },
  logFile: { good: ["log.txt"], bad: [1, [], null, {}] },
};

/** What is wrong with a file, according to the reader and the options of a host. */
async function isAccepted(value: unknown): Promise<boolean> {
  using place = workplace({ "config.json": JSON.stringify(value), "skills/.keep": "" });
  try {
    const { conflicts } = loadConfig("config.json", place.path);
    if (conflicts !== undefined)
      await (await createHost({ watch: false, workingDirectory: place.path, conflicts: conflicts as never })).close();
    return true;
  } catch {
    return false;
  }
}

test("the schema has each key that the reader has", () => {
  expect(Object.keys(schema.properties).sort()).toEqual(Object.keys(cases).sort());
  using place = workplace({ "config.json": '{ "unknown": 1 }' });
  let message = "";
  try {
    loadConfig("config.json", place.path);
  } catch (error) {
    message = (error as { readonly diagnostics: readonly { readonly message: string }[] }).diagnostics[0]!.message;
  }
  const keys = /The keys are (.*)\.$/.exec(message)?.[1]?.split(", ");
  expect(["$schema", ...(keys ?? [])].sort()).toEqual(Object.keys(cases).sort());
});

test.each(Object.entries(cases))("the schema and the reader judge %s equally", async (key, { good, bad }) => {
  for (const [values, expected] of [
    [good, true],
    [bad, false],
  ] as const) {
    for (const value of values) {
      const config = { [key]: value };
      expect([JSON.stringify(value), isValid(config), await isAccepted(config)]).toEqual([JSON.stringify(value), expected, expected]);
    }
  }
});

test("anything but an object with known keys is refused by both", async () => {
  for (const value of [null, 1, "a", [], { unknown: 1 }, { skilldirectories: [] }])
    expect([JSON.stringify(value), isValid(value), await isAccepted(value)]).toEqual([JSON.stringify(value), false, false]);
});
