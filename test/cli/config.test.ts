import { existsSync, readFileSync, symlinkSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { runCli, skillDocument, workplace } from "./run-cli.ts";

const skills = { "tools-here/a/SKILL.md": skillDocument("a"), "skills/b/SKILL.md": skillDocument("b") };

async function namesIn(cwd: string, ...argv: string[]): Promise<string[]> {
  const { stdout, stderr } = await runCli(["list", "--json", ...argv], { cwd });
  expect(stderr).toBe("");
  return JSON.parse(stdout).data.skills.map((skill: { name: string }) => skill.name);
}

test("without options and configuration, ./skills is loaded", async () => {
  using place = workplace(skills);
  expect(await namesIn(place.path)).toEqual(["b"]);
});

test("skillhost.json takes precedence over a key of package.json, and its paths are relative to its folder", async () => {
  using place = workplace({
    ...skills,
    "package.json": JSON.stringify({ name: "x", skillhost: { skillDirectories: ["skills"] } }),
    "skillhost.json": JSON.stringify({ $schema: "x", skillDirectories: ["tools-here"] }),
  });
  expect(await namesIn(place.path)).toEqual(["a"]);
});

test("a configuration is read from the skillhost key of package.json", async () => {
  using place = workplace({ ...skills, "package.json": JSON.stringify({ skillhost: { disabledSkills: ["b"] } }) });
  const { stdout } = await runCli(["list", "--json"], { cwd: place.path });
  expect(JSON.parse(stdout).data.skills).toMatchObject([{ name: "b", state: "disabled" }]);
});

test("a configuration is searched up to the root of the checkout, and no further", async () => {
  using place = workplace({
    ...skills,
    "skillhost.json": JSON.stringify({ skillDirectories: ["tools-here"] }),
    "inside/deep/file": "",
    "skills/.keep": "",
  });
  expect(await namesIn(place.at("inside/deep"))).toEqual([]);
  place.write(".git/HEAD", "ref: refs/heads/main\n");
  expect(await namesIn(place.at("inside/deep"))).toEqual(["a"]);
});

test("--skills replaces the configured directories and may be repeated, and --config names a file", async () => {
  using place = workplace({
    ...skills,
    "skillhost.json": '{"skillDirectories": []}',
    "other.json": '{"skillDirectories": ["tools-here"]}',
  });
  expect(await namesIn(place.path)).toEqual([]);
  expect(await namesIn(place.path, "--skills", "skills", "--skills", "tools-here")).toEqual(["b", "a"]);
  expect(await namesIn(place.path, "--config", "other.json")).toEqual(["a"]);
});

test("an unknown key and a value of the wrong type are reported with their positions", async () => {
  using place = workplace({ "skillhost.json": '{\n  "skillDirectory": ["x"],\n  "disabledSkills": "b",\n  "importTimeout": -1\n}\n' });
  const { code, stdout, stderr } = await runCli(["list"], { cwd: place.path });
  expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
  expect(stderr).toContain(
    'skillhost.json:2:3 error CONFIG_UNKNOWN_KEY "skillDirectory" is not a configuration key. Did you mean "skillDirectories"?',
  );
  expect(stderr).toContain("skillhost.json:3:3 error CONFIG_TYPE");
  expect(stderr).toContain("skillhost.json:4:3 error CONFIG_TYPE");
  const asJson = await runCli(["list", "--json"], { cwd: place.path });
  expect(JSON.parse(asJson.stdout)).toMatchObject({ ok: false, command: "list", error: { code: "CONFIG" } });
  expect(JSON.parse(asJson.stdout).diagnostics).toHaveLength(3);
});

test("an invalid conflict policy is reported by the host", async () => {
  using place = workplace({ "skillhost.json": '{"conflicts": "sometimes"}' });
  const { code, stderr } = await runCli(["list"], { cwd: place.path });
  expect(code).toBe(2);
  expect(stderr).toContain("conflicts");
});

test.each([
  ["does not exist", "none.json"],
  ["does not parse", "broken.json"],
  ["contains no object", "list.json"],
  ["lacks our key", "package.json"],
])("a named configuration is refused that %s", async (_what, file) => {
  using place = workplace({ "broken.json": "{", "list.json": "[]", "package.json": "{}" });
  const { code, stderr } = await runCli(["list", "--config", file], { cwd: place.path });
  expect(code).toBe(2);
  expect(stderr).toContain(file);
});

describe("a discovered configuration", () => {
  const debug = { logLevel: "debug", logFile: "../outside.log" };

  test("a discovered configuration sets no log file, and the position of the key is reported", async () => {
    using place = workplace({ "p/skillhost.json": JSON.stringify(debug, undefined, 2), "p/skills/b/SKILL.md": skillDocument("b") });
    const { code, stderr } = await runCli(["list"], { cwd: place.at("p") });
    expect({ code, hasLog: existsSync(place.at("outside.log")) }).toEqual({ code: 0, hasLog: false });
    expect(stderr).toContain("skillhost.json:3:3 warning CONFIG_USER_ONLY");
  });

  test("a discovered configuration sets no log file by a key of package.json or inside the project either", async () => {
    using place = workplace({ "package.json": JSON.stringify({ skillhost: { logFile: "run.log" } }) });
    const { stderr } = await runCli(["list"], { cwd: place.path });
    expect([existsSync(place.at("run.log")), stderr]).toEqual([false, expect.stringContaining("CONFIG_USER_ONLY")]);
  });

  test("a discovered configuration does not set the level of a log file that the user names", async () => {
    using place = workplace({ "skillhost.json": '{ "logLevel": "debug", "disabledSkills": ["$(touch pwned)"] }' });
    await runCli(["list", "--log-file", "own.log"], { cwd: place.path });
    expect(readFileSync(place.at("own.log"), "utf8")).not.toContain('"debug"');
    await runCli(["list", "--log-file", "own.log", "--log-level", "debug"], { cwd: place.path });
    const text = readFileSync(place.at("own.log"), "utf8");
    expect([text.includes('"debug"'), text.includes("pwned")]).toEqual([true, false]);
  });

  test.each(["sessionsDirectory", "workingDirectory"])(
    "a discovered configuration confines %s to the project after resolving links",
    async (key) => {
      using place = workplace({ "p/.git/HEAD": "", "p/inside/x": "", "outside/x": "" });
      symlinkSync(place.at("outside"), place.at("p/link"), "dir");
      symlinkSync(place.at("nowhere"), place.at("p/dangling"), "dir");
      for (const path of ["../outside", place.at("outside"), "link", "link/below", "dangling", "inside/../../outside"]) {
        place.write("p/skillhost.json", JSON.stringify({ [key]: path }));
        expect((await runCli(["list"], { cwd: place.at("p") })).stderr, path).toContain("CONFIG_OUTSIDE");
      }
      for (const path of ["inside", "inside/new", "."]) {
        place.write("p/skillhost.json", JSON.stringify({ [key]: path }));
        expect((await runCli(["list"], { cwd: place.at("p") })).stderr, path).not.toContain("CONFIG_");
      }
    },
  );
});

test("a named configuration has the user's authority, even for a log file", async () => {
  using place = workplace({ "p/mine.json": '{ "logLevel": "info", "logFile": "../own.log" }' });
  const { code, stderr } = await runCli(["list", "--config", "mine.json"], { cwd: place.at("p") });
  expect({ code, stderr, hasLog: existsSync(place.at("own.log")) }).toMatchObject({ code: 0, hasLog: true });
  expect(stderr).not.toContain("CONFIG_");
});

test.skipIf(process.platform === "win32")("a log file is not written through a link", async () => {
  using place = workplace({ victim: "mine\n" });
  symlinkSync(place.at("victim"), place.at("run.log"));
  const { code, stderr } = await runCli(["list", "--log-file", "run.log"], { cwd: place.path });
  expect({ code, stderr }).toMatchObject({ code: 2, stderr: expect.stringContaining("run.log") });
  expect(readFileSync(place.at("victim"), "utf8")).toBe("mine\n");
});
