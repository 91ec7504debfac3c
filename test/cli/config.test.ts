import { expect, test } from "vitest";
import { runCli, skillDocument, workplace } from "./run-cli.ts";

const skills = { "tools-here/a/SKILL.md": skillDocument("a"), "skills/b/SKILL.md": skillDocument("b") };

async function namesIn(cwd: string, ...argv: string[]): Promise<string[]> {
  const { stdout, stderr } = await runCli(["list", "--json", ...argv], { cwd });
  expect(stderr).toBe("");
  return JSON.parse(stdout).data.skills.map((skill: { name: string }) => skill.name);
}

test("without options and configuration ./skills counts", async () => {
  using place = workplace(skills);
  expect(await namesIn(place.path)).toEqual(["b"]);
});

test("reads skillhost.json, whose paths start at its folder, before a key of package.json", async () => {
  using place = workplace({
    ...skills,
    "package.json": JSON.stringify({ name: "x", skillhost: { skillDirectories: ["skills"] } }),
    "skillhost.json": JSON.stringify({ $schema: "x", skillDirectories: ["tools-here"] }),
  });
  expect(await namesIn(place.path)).toEqual(["a"]);
});

test("reads the skillhost key of package.json", async () => {
  using place = workplace({ ...skills, "package.json": JSON.stringify({ skillhost: { disabledSkills: ["b"] } }) });
  const { stdout } = await runCli(["list", "--json"], { cwd: place.path });
  expect(JSON.parse(stdout).data.skills).toMatchObject([{ name: "b", state: "disabled" }]);
});

test("looks for a configuration up to the top of the checkout, and no further", async () => {
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

test("--skills takes the place of the configured directories and may be repeated; --config names a file", async () => {
  using place = workplace({
    ...skills,
    "skillhost.json": '{"skillDirectories": []}',
    "other.json": '{"skillDirectories": ["tools-here"]}',
  });
  expect(await namesIn(place.path)).toEqual([]);
  expect(await namesIn(place.path, "--skills", "skills", "--skills", "tools-here")).toEqual(["b", "a"]);
  expect(await namesIn(place.path, "--config", "other.json")).toEqual(["a"]);
});

test("names an unknown key and a value of the wrong type with their places", async () => {
  using place = workplace({ "skillhost.json": '{\n  "skillDirectory": ["x"],\n  "disabledSkills": "b",\n  "importTimeout": -1\n}\n' });
  const { code, stdout, stderr } = await runCli(["list"], { cwd: place.path });
  expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
  expect(stderr).toContain(
    'skillhost.json:2:3 error CONFIG_UNKNOWN_KEY "skillDirectory" is no key of the configuration. Did you mean "skillDirectories"?',
  );
  expect(stderr).toContain("skillhost.json:3:3 error CONFIG_TYPE");
  expect(stderr).toContain("skillhost.json:4:3 error CONFIG_TYPE");
  const asJson = await runCli(["list", "--json"], { cwd: place.path });
  expect(JSON.parse(asJson.stdout)).toMatchObject({ ok: false, command: "list", error: { code: "CONFIG" } });
  expect(JSON.parse(asJson.stdout).diagnostics).toHaveLength(3);
});

test("says what is wrong with a policy for clashes, which the host checks", async () => {
  using place = workplace({ "skillhost.json": '{"conflicts": "sometimes"}' });
  const { code, stderr } = await runCli(["list"], { cwd: place.path });
  expect(code).toBe(2);
  expect(stderr).toContain("conflicts");
});

test.each([
  ["is not there", "none.json"],
  ["does not parse", "broken.json"],
  ["holds no object", "list.json"],
  ["has no key for us", "package.json"],
])("refuses a named configuration that %s", async (_what, file) => {
  using place = workplace({ "broken.json": "{", "list.json": "[]", "package.json": "{}" });
  const { code, stderr } = await runCli(["list", "--config", file], { cwd: place.path });
  expect(code).toBe(2);
  expect(stderr).toContain(file);
});
