import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { runCli, skillDocument, toolModule, type Workplace, workplace } from "../cli/run-cli.ts";

const homeless = {
  ".env": "SECRET=1\n",
  ".npmrc": "//registry.npmjs.org/:_authToken=abc\n",
  ".gitignore": "node_modules\n",
  ".gitattributes": "* -text\n",
  "test/greet.test.ts": "throw new Error('a test ran');\n",
  "node_modules/left-pad/index.js": "module.exports = 1;\n",
};
const packed = ["SKILL.md", "package.json", "skill.sig.json", "tools/greet.ts"];

let place: Workplace;

beforeEach(async () => {
  place = workplace({ "greeter/SKILL.md": skillDocument("greeter"), "greeter/tools/greet.ts": toolModule("greet", "Hello") });
  vi.stubEnv("SKILLHOST_HOME", place.at("home"));
  await json("keys", "new", "alice");
});

afterEach(() => {
  vi.unstubAllEnvs();
  place[Symbol.dispose]();
});

interface Answer {
  readonly code: number;
  readonly data: { readonly left: readonly string[]; readonly files: readonly { readonly path: string }[]; readonly fileName: string };
  readonly diagnostics: readonly { readonly code: string; readonly file?: string; readonly message: string }[];
}

async function json(...argv: string[]): Promise<Answer> {
  const { code, stdout } = await runCli([...argv, "--json"], { cwd: place.path });
  return { code, ...JSON.parse(stdout) };
}

function write(files: Readonly<Record<string, string>>, at = "greeter"): void {
  for (const [path, text] of Object.entries(files)) place.write(`${at}/${path}`, text);
}

const signedFiles = (at = "greeter"): string[] => Object.keys(JSON.parse(readFileSync(place.at(`${at}/skill.sig.json`), "utf8")).files);

/** Unpacks a tarball as an installed package, and loads it where every signature is required. */
async function loadPacked(fileName: string, skill: string): Promise<Answer & { readonly data: object }> {
  mkdirSync(place.at("installed"), { recursive: true });
  execFileSync("tar", ["-xzf", place.at(fileName), "-C", place.at("installed"), "--strip-components=1"]);
  place.write("skillhost.json", '{ "trust": { "policy": "require" } }');
  return json("list", "--skills", skill);
}

test("a skill that was packed, then signed, is packed with its signature, and is accepted where signatures are required", async () => {
  write(homeless);
  expect((await json("pack", "greeter")).code).toBe(0);
  const { data } = await json("sign", "greeter");
  expect(data.left).toEqual([".env", ".gitattributes", ".gitignore", ".npmrc", "node_modules/", "test/"]);
  expect(signedFiles()).toEqual(["SKILL.md", "package.json", "tools/greet.ts"]);
  const again = await json("pack", "greeter");
  expect([again.code, again.data.files.map(({ path }) => path)]).toEqual([0, packed]);
  expect(again.data.left).toEqual([".env", ".gitattributes", ".gitignore", ".npmrc", "node_modules/", "test/"]);
  expect((await loadPacked(again.data.fileName, "installed")).data).toMatchObject({
    skills: [{ name: "greeter", state: "active", trust: { status: "signed" } }],
  });
});

test("the commands say what is neither signed nor packed", async () => {
  write(homeless);
  const left = ".env, .gitattributes, .gitignore, .npmrc, node_modules/, test/";
  expect((await runCli(["pack", "greeter"], { cwd: place.path })).stderr).toContain(`Not included: ${left}.`);
  const signed = await runCli(["sign", "greeter"], { cwd: place.path });
  expect(signed.stdout).toContain(`Not signed, because these files are not packed: ${left}.`);
  expect(signed.stderr).toContain("but not from this folder while it contains these files");
  expect(signed.stderr).toContain('Added the signature to "files"');
});

test("a skill that is signed before it is a package gets its package.json with the first pack, and is packed once it is signed again", async () => {
  write({ ".env": "A=1\n" });
  expect((await json("sign", "greeter")).code).toBe(0);
  expect(existsSync(place.at("greeter/package.json"))).toBe(false);
  const first = await json("pack", "greeter");
  expect(first.diagnostics.filter(({ code }) => code === "PACK_SIGNED")).toMatchObject([
    { file: place.at("greeter/package.json"), message: expect.stringContaining("added after the skill was signed") },
  ]);
  expect((await json("sign", "greeter")).code).toBe(0);
  const second = await json("pack", "greeter");
  expect([second.code, second.data.files.map(({ path }) => path)]).toEqual([0, packed]);
});

test("a file that changed after signing, or that a pattern leaves out, prevents packing", async () => {
  await json("pack", "greeter");
  await json("sign", "greeter");
  place.write("greeter/tools/greet.ts", toolModule("greet", "Hullo"));
  const changed = await json("pack", "greeter");
  expect([changed.code, changed.diagnostics.filter(({ code }) => code === "PACK_SIGNED").map(({ file }) => file)]).toEqual([
    1,
    [place.at("greeter/tools/greet.ts")],
  ]);
  expect(existsSync(place.at("greeter/package.json"))).toBe(true);
  await json("sign", "greeter");
  expect((await json("pack", "greeter")).code).toBe(0);
});

test("of a package with several skills, each is signed as the package packs it", async () => {
  const manifest = { name: "@me/kit", version: "1.0.0", license: "MIT", files: ["skills"] };
  for (const name of ["first", "second"]) {
    write({ "SKILL.md": skillDocument(name), "tools/hi.ts": toolModule(`hi_${name}`, "Hi"), "tests/hi.test.ts": "" }, `kit/skills/${name}`);
  }
  write({ "package.json": JSON.stringify(manifest), ".npmignore": "", "skills/first/.npmrc": "a=b\n" }, "kit");
  write({ ".npmignore": "tests\n" }, "kit/skills/second");
  expect((await json("sign", "kit/skills/first")).data.left).toEqual([".npmrc"]);
  expect((await json("sign", "kit/skills/second")).data.left).toEqual([".npmignore", "tests/"]);
  expect(signedFiles("kit/skills/first")).toEqual(["SKILL.md", "tests/hi.test.ts", "tools/hi.ts"]);
  expect(JSON.parse(readFileSync(place.at("kit/package.json"), "utf8"))).toEqual(manifest);
  const { code, data } = await json("pack", "kit");
  expect(code).toBe(0);
  expect((await loadPacked(data.fileName, "installed/skills")).data).toMatchObject({
    skills: [
      { name: "first", trust: { status: "signed" } },
      { name: "second", trust: { status: "signed" } },
    ],
  });
});

test("a skill of a project whose package ships other files is signed whole", async () => {
  write({ "package.json": '{ "name": "app", "files": ["dist"] }', "dist/index.js": "" }, "app");
  write({ "SKILL.md": skillDocument("mine"), "tools/mine.ts": toolModule("mine", "Hi"), "assets/a.txt": "a" }, "app/skills/mine");
  expect((await json("sign", "app/skills/mine")).code).toBe(0);
  expect(signedFiles("app/skills/mine")).toEqual(["SKILL.md", "assets/a.txt", "tools/mine.ts"]);
  expect(readdirSync(place.at("app/skills/mine")).sort()).toEqual(["SKILL.md", "assets", "skill.sig.json", "tools"]);
});

test("what is not covered by a signature is refused where one is required, but for files of git and npm", async () => {
  place.write("skillhost.json", '{ "trust": { "policy": "require" } }');
  write({ ".gitattributes": "* -text\n", "assets/.gitignore": "*.tmp\n", "assets/a.txt": "a" });
  await json("sign", "greeter");
  expect((await json("list", "--skills", "greeter")).data).toMatchObject({ skills: [{ state: "active" }] });
  writeFileSync(place.at("greeter/.env"), "A=1\n");
  expect((await json("list", "--skills", "greeter")).data).toMatchObject({
    skills: [{ state: "refused", diagnostics: [{ code: "TRUST_FILE_ADDED", message: expect.stringContaining("is not packed") }] }],
  });
});
