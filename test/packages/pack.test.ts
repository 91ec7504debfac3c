import { existsSync, readdirSync, readFileSync } from "node:fs";
import { afterEach, beforeEach, expect, test } from "vitest";
import { findSecret } from "../../src/packages/packed-files.ts";
import { runCli, skillDocument, toolModule, type Workplace, workplace } from "../cli/run-cli.ts";

let place: Workplace;
beforeEach(() => {
  place = workplace();
});
afterEach(() => place[Symbol.dispose]());

interface Packed {
  readonly code: number;
  readonly stdout: string;
  readonly data: {
    readonly fileName: string;
    readonly files: readonly { readonly path: string }[];
    readonly manifest: Record<string, unknown>;
    readonly added: readonly string[];
  };
  readonly codes: readonly string[];
  readonly error: string | undefined;
}

async function pack(folder: string, ...args: string[]): Promise<Packed> {
  const { code, stdout } = await runCli(["pack", ...args, "--json"], { cwd: place.at(folder) });
  const { data, diagnostics, error } = JSON.parse(stdout);
  return { code, stdout, data, codes: diagnostics.map((each: { code: string }) => each.code), error: error?.code };
}

function plainSkill(files: Readonly<Record<string, string>> = {}): void {
  const all = {
    "SKILL.md": skillDocument("greeter"),
    "README.md": "# Greeter\n",
    "tools/greet.ts": toolModule("greet", "Hello"),
    ...files,
  };
  for (const [path, text] of Object.entries(all)) place.write(`greeter/${path}`, text);
}

test("a skill's own folder becomes a package: what package.json has to say is taken from the skill", async () => {
  plainSkill({
    "skill.json": '{"name":"greeter","version":"2.3.4","engines":{"skillhost":">=0.1"}}',
    "tests/greet.test.ts": "",
    ".env": "A=1",
  });
  const { code, data, codes } = await pack("greeter");
  expect([code, codes]).toEqual([0, ["PACK_LICENSE"]]);
  expect(JSON.parse(readFileSync(place.at("greeter/package.json"), "utf8"))).toEqual({
    name: "greeter",
    version: "2.3.4",
    description: "Greets people by name. Use it when the user says hello.",
    keywords: ["agent-skill", "skillhost"],
    type: "module",
    files: ["README.md", "SKILL.md", "skill.json", "tools"],
    engines: { skillhost: ">=0.1" },
  });
  expect(data.files.map(({ path }) => path)).toEqual(["README.md", "SKILL.md", "package.json", "skill.json", "tools/greet.ts"]);
  expect(existsSync(place.at("greeter/greeter-2.3.4.tgz"))).toBe(true);
});

test("a dry run writes nothing and lists what it would write", async () => {
  plainSkill();
  const { code, data } = await pack("greeter", "--dry-run");
  expect([code, data.added.includes("name")]).toEqual([0, true]);
  expect(readdirSync(place.at("greeter")).sort()).toEqual(["README.md", "SKILL.md", "tools"]);
});

test("what its author wrote into package.json stays, and keywords are added to", async () => {
  place.write(
    "kit/package.json",
    JSON.stringify({ name: "@me/kit", version: "1.0.0", license: "MIT", keywords: ["mine"], files: ["skills"], custom: { a: 1 } }),
  );
  place.write("kit/skills/greeter/SKILL.md", skillDocument("greeter"));
  place.write("kit/skills/greeter/tools/greet.ts", toolModule("greet", "Hello"));
  const { code, data } = await pack("kit", "--out", "../out");
  expect(code).toBe(0);
  expect(data.manifest).toMatchObject({
    name: "@me/kit",
    keywords: ["mine", "agent-skill", "skillhost"],
    custom: { a: 1 },
    files: ["skills"],
  });
  expect(readdirSync(place.at("out"))).toEqual(["me-kit-1.0.0.tgz"]);
});

test.each<[string, Readonly<Record<string, string>>, string]>([
  ["a secret by its content", { "tools/_key.ts": `export const key = "npm_${"a1".repeat(18)}";\n` }, "PACK_SECRET"],
  ["a private key", { "assets/deploy.txt": "-----BEGIN OPENSSH PRIVATE KEY-----\nx\n" }, "PACK_SECRET"],
  ["a key file", { "assets/server.pem": "x" }, "PACK_SECRET"],
  [
    "an import that is not a dependency",
    { "tools/greet.ts": `import pad from "left-pad";\n${toolModule("greet", "Hello")}` },
    "PACK_DEPENDENCY",
  ],
  ["a tool that does not parse", { "tools/greet.ts": "export default {{{" }, "MODULE_SYNTAX"],
  ["a skill that npm leaves out", { ".npmignore": "tools\n", "package.json": '{"name":"greeter","version":"1.0.0"}' }, "PACK_SKILL_BROKEN"],
])("%s keeps a skill from being packed, and nothing is written", async (_what, files, expected) => {
  plainSkill(files);
  const before = readdirSync(place.at("greeter")).sort();
  const { code, codes, error } = await pack("greeter");
  expect([code, error]).toEqual([1, "PACK_REFUSED"]);
  expect(codes).toContain(expected);
  expect(readdirSync(place.at("greeter")).sort()).toEqual(before);
});

test("types, Node's own modules, relative files and declared dependencies may be imported", async () => {
  plainSkill({
    "package.json": '{"name":"greeter","version":"1.0.0","license":"MIT","dependencies":{"@a/b":"1"}}',
    "tools/_more.ts":
      'import type { X } from "types-only";\nimport { join } from "node:path";\nimport fs from "fs";\nimport { y } from "./_y.ts";\nimport b from "@a/b/deep";\nexport const z: X = [join, fs, y, b];\n',
    "tools/_y.ts": "export const y = 1;\n",
  });
  const { code, codes } = await pack("greeter");
  expect([code, codes.filter((each) => each === "PACK_DEPENDENCY")]).toEqual([0, []]);
});

test.each<[string, Readonly<Record<string, string>>, string]>([
  ["no skill", { "README.md": "" }, "PACK_NO_SKILLS"],
  [
    "a name that npm does not allow",
    { "SKILL.md": skillDocument("greeter"), "package.json": '{"name":"Not A Name","version":"1.0.0"}' },
    "PACK_NAME",
  ],
  ["a version that is invalid", { "SKILL.md": skillDocument("greeter"), "package.json": '{"name":"x","version":"one"}' }, "PACK_VERSION"],
])("a folder with %s cannot be packed", async (_what, files, expected) => {
  for (const [path, text] of Object.entries(files)) place.write(`greeter/${path}`, text);
  expect(await pack("greeter")).toMatchObject({ code: 1, error: expected });
});

test("publish asks first and never publishes a private package", async () => {
  plainSkill({ "package.json": '{"name":"greeter","version":"1.0.0","private":true}' });
  const unasked = await runCli(["publish"], { cwd: place.at("greeter") });
  expect([unasked.code, unasked.stderr]).toEqual([1, expect.stringContaining("Nothing was published.")]);
  const reported = await runCli(["publish", "--yes"], { cwd: place.at("greeter") });
  expect([reported.code, reported.stderr]).toEqual([1, expect.stringContaining('"private": true')]);
});

test.each<[string, string, boolean]>([
  [".env", "", true],
  [".env.production", "", true],
  [".env.example", "", false],
  ["a/.npmrc", "", true],
  ["keys/id_ed25519", "", true],
  ["notes.md", "//registry.npmjs.org/:_authToken=abc", true],
  ["a.ts", `const t = "ghp_${"a".repeat(36)}";`, true],
  ["a.ts", "const key = process.env.OPENAI_API_KEY;", false],
  ["a.md", `AKIA${"A1".repeat(8)}`, true],
  ["a.md", "sk-your-key-here", false],
  ["a.md", `sk-ant-${"x".repeat(40)}`, true],
  ["tokens.md", "About tokens and keys.", false],
])("a file %s with %j is taken for a secret: %s", (path, text, expected) => {
  expect(findSecret(path, Buffer.from(text)) !== undefined).toBe(expected);
});
