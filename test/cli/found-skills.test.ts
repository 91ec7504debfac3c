import { existsSync, mkdirSync, symlinkSync } from "node:fs";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { type CliRun, type CliSetup, runCli, skillDocument, type Workplace, workplace } from "./run-cli.ts";

let place: Workplace;
beforeEach(() => {
  place = workplace({ "project/.git/HEAD": "ref: refs/heads/main\n", "project/package.json": '{ "name": "project" }' });
  vi.stubEnv("SKILLHOST_HOME", place.at("home"));
});
afterEach(() => {
  vi.unstubAllEnvs();
  place[Symbol.dispose]();
});

const run = (argv: readonly string[], setup: CliSetup = {}): Promise<CliRun> => runCli(argv, { cwd: place.at("project"), ...setup });

function skill(at: string, name: string, text = name): void {
  const marker = JSON.stringify(place.at(`ran-${name}`));
  place.write(`${at}/SKILL.md`, skillDocument(name));
  place.write(
    `${at}/tools/${name}.mjs`,
    `import { writeFileSync } from "node:fs";\nwriteFileSync(${marker}, "");\nexport default { name: "${name}", description: "Returns a text.", handler: () => "${text}" };\n`,
  );
}

async function names(argv: readonly string[], setup: CliSetup = {}): Promise<readonly string[]> {
  const { data } = JSON.parse((await run(["list", ...argv, "--json"], setup)).stdout) as {
    data: { skills: { name: string; state: string }[] };
  };
  return data.skills.map(({ name, state }) => (state === "active" ? name : `${name} ${state}`)).sort();
}

function everywhere(): void {
  skill("project/.claude/skills/one", "one");
  skill("project/.agents/skills/two", "two");
  skill("project/.github/skills/three", "three");
  skill("project/skills/four", "four");
  skill("home/skills/five", "five");
}

test("auto finds the skills of other clients, the project's own and the user's", async () => {
  everywhere();
  expect(await names(["--skills", "auto"])).toEqual(["five", "four", "one", "three", "two"]);
  expect(await names([])).toEqual(["four"]);
  expect((await run(["call", "one", "--skills", "auto", "--yes"])).stdout.trim()).toBe("one");
});

test("auto keeps the directories of the configuration and the skills of packages", async () => {
  everywhere();
  skill("project/mine/six", "six");
  skill("project/node_modules/packaged", "packaged");
  place.write("project/node_modules/packaged/package.json", '{ "name": "packaged", "version": "1.0.0" }');
  place.write("project/package.json", '{ "dependencies": { "packaged": "1" }, "skillhost": { "packages": ["packaged"] } }');
  place.write("project/skillhost.json", '{ "skillDirectories": ["./mine"] }');
  expect(await names(["--skills", "auto"])).toEqual(["five", "one", "packaged", "six", "three", "two"]);
});

test("in a folder of the checkout auto finds what is here and at the top", async () => {
  everywhere();
  skill("project/part/.claude/skills/seven", "seven");
  expect(await names(["--skills", "auto"], { cwd: place.at("project/part") })).toEqual(["five", "one", "seven", "three", "two"]);
});

test("the project's own skill takes precedence over that of another client", async () => {
  skill("project/.claude/skills/same", "same", "theirs");
  skill("project/skills/same", "same", "ours");
  expect((await run(["call", "same", "--skills", "auto", "--yes"])).stdout.trim()).toBe("ours");
});

test("what auto finds in an untrusted project is not run, and the question names it", async () => {
  everywhere();
  const untrusted = { isTrusted: false };
  const refused = await run(["call", "one", "--skills", "auto", "--yes"], untrusted);
  expect([refused.code, refused.stderr]).toEqual([1, expect.stringMatching(/is not trusted.*4 skills/)]);
  expect(await names(["--skills", "auto"], untrusted)).toEqual([
    "five",
    "four untrusted",
    "one untrusted",
    "three untrusted",
    "two untrusted",
  ]);
  place.write("elsewhere.json", '{ "skillDirectories": [] }');
  const configured = await run(["call", "one", "--skills", "auto", "--config", "../elsewhere.json", "--yes"], untrusted);
  expect(configured.code).toBe(1);
  expect(["one", "two", "three", "four"].filter((name) => existsSync(place.at(`ran-${name}`)))).toEqual([]);
});

test("a new skill is written to the project's own directory", async () => {
  everywhere();
  expect((await run(["new", "skill", "fresh", "--skills", "auto"])).code).toBe(0);
  expect(existsSync(place.at("project/skills/fresh/SKILL.md"))).toBe(true);
  expect((await run(["add", "skillhost:line-counts", "--skills", "auto"])).code).toBe(0);
  expect(existsSync(place.at("project/skills/line-counts"))).toBe(true);
});

test("a new skill does not trust the code that was in the project, whatever directory is named", async () => {
  everywhere();
  const untrusted = { isTrusted: false };
  mkdirSync(place.at("project/other"));
  expect((await run(["new", "skill", "fresh", "--skills", "other"], untrusted)).code).toBe(0);
  expect(await names([], untrusted)).toEqual(["four untrusted"]);
});

test.skipIf(process.platform === "win32")(
  "a folder that is a link to another counts once, and one that leads out of the project is not used",
  async () => {
    skill("project/skills/one", "one");
    skill("outside/two", "two");
    mkdirSync(place.at("project/.claude"));
    symlinkSync("../skills", place.at("project/.claude/skills"));
    mkdirSync(place.at("project/.agents"));
    symlinkSync("../../outside", place.at("project/.agents/skills"));
    const listed = await run(["list", "--skills", "auto"]);
    expect(listed.stderr).toContain(".agents/skills is, or is below, a symbolic link that points out of the project");
    expect(await names(["--skills", "auto"])).toEqual(["one"]);
  },
);

test("where nothing is found, auto is the default, and it cannot be mixed with folders", async () => {
  expect((await run(["list", "--skills", "auto"])).code).toBe(0);
  expect((await run(["list", "--skills", "auto", "--skills", "./skills"])).code).toBe(2);
  skill("project/auto/eight", "eight");
  expect(await names(["--skills", "./auto"])).toEqual(["eight"]);
});
