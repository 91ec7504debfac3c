import { existsSync, lstatSync, readdirSync, writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { skillDocument, toolModule } from "../cli/run-cli.ts";
import { addLinter, installed, json, lintTool, place, read, run, skillTarball, useProjects } from "./project-kit.ts";
import { packageTarball, tarball } from "./tar-kit.ts";

useProjects();

test("a package is shown, installed, locked, verified and taken away again, and its scripts never run", async () => {
  const added = await run(["add", skillTarball(), "--yes"]);
  expect(added).toMatchObject({ code: 0 });
  expect(added.stdout).toContain("tool lint");
  expect(added.stdout).toContain("description: Checks a file.");
  expect(added.stdout).toContain("has install scripts, which are not run");
  expect(added.stdout).toMatch(/^Code of these skills runs in a process, whose limits are (?:partly |not )?enforced \(/m);
  expect(added.stdout).toContain("Installed linter@1.0.0.");
  expect(existsSync(place.at("project/node_modules/linter/ran-a-script"))).toBe(false);
  expect(installed()).toEqual(["linter"]);
  const { packages } = JSON.parse(read("project/skillhost-lock.json"));
  expect(packages.linter).toMatchObject({ version: "1.0.0", integrity: expect.stringMatching(/^sha512-/) });
  expect(Object.keys(packages.linter.files)).toEqual(["SKILL.md", "package.json", "tools/lint.json"]);
  expect((await run(["verify"])).stdout).toBe("1 skill (1 package, 3 files) verified against skillhost-lock.json.\n");
  expect((await run(["list"])).stdout).toContain("of linter@1.0.0");
  expect((await run(["remove", "linter"])).stdout).toContain("Removed linter@1.0.0.");
  expect(installed()).toEqual([]);
  expect(JSON.parse(read("project/package.json")).dependencies ?? {}).toEqual({});
  expect(JSON.parse(read("project/skillhost-lock.json")).packages).toEqual({});
});

test("without consent nothing is installed: the user cannot be asked, or declines", async () => {
  const spec = skillTarball();
  const alone = await run(["add", spec]);
  expect([alone.code, alone.stderr]).toEqual([1, expect.stringContaining("run again with --yes to install it")]);
  const asked = await run(["add", spec], { isTTY: true, answer: () => "n" });
  expect([asked.code, asked.stderr]).toEqual([1, expect.stringContaining("Nothing was installed.")]);
  expect(read("project/package.json")).toBe('{ "name": "project", "version": "1.0.0" }\n');
  expect(installed()).toEqual([]);
  const agreed = await run(["add", spec], { isTTY: true, answer: () => "y" });
  expect(agreed.code).toBe(0);
});

test.each<[string, () => Buffer, string]>([
  [
    "leads out of its folder",
    () => tarball([{ path: "package/package.json", data: '{"name":"bad","version":"1.0.0"}' }, { path: "package/../../../evil" }]),
    "PACKAGE_TARBALL",
  ],
  [
    "holds a link",
    () =>
      tarball([
        { path: "package/package.json", data: '{"name":"bad","version":"1.0.0"}' },
        { path: "package/l", type: "2", link: "/" },
      ]),
    "PACKAGE_TARBALL",
  ],
  [
    "is a bomb",
    () =>
      tarball([
        { path: "package/package.json", data: '{"name":"bad","version":"1.0.0"}' },
        { path: "package/a", data: Buffer.alloc(8 * 1024 * 1024) },
      ]),
    "PACKAGE_TARBALL",
  ],
  ["brings no skill", () => packageTarball({ name: "bad", version: "1.0.0" }, { "index.js": "" }), "PACKAGE_NO_SKILLS"],
])("a package whose tarball %s is refused, and nothing has changed", async (_what, make, code) => {
  writeFileSync(place.at("bad.tgz"), make());
  const answer = await json(["add", "../bad.tgz", "--yes"]);
  expect([answer.code, answer.ok, answer.error?.code]).toEqual([1, false, code]);
  expect(readdirSync(place.at("project")).sort()).toEqual(["node_modules", "package.json"]);
  expect(installed()).toEqual([]);
  expect(existsSync(place.at("evil"))).toBe(false);
});

test("a manifest with wrong types does not crash the command", async () => {
  const manifest = {
    name: "odd",
    version: "1.0.0",
    skills: 7,
    skillhost: [],
    pi: { skills: [null, 1, "../../.."] },
    scripts: "x",
    bin: 5,
    dependencies: [],
  };
  writeFileSync(place.at("odd.tgz"), packageTarball(manifest, { "SKILL.md": skillDocument("odd") }));
  const answer = await json(["add", "../odd.tgz", "--yes"]);
  expect([answer.code, answer.error?.code]).toEqual([1, "PACKAGE_NO_SKILLS"]);
});

test("a newer version is shown with what is different about its tools", async () => {
  await addLinter();
  const spec = skillTarball("1.1.0", { ...lintTool, parameters: { ...lintTool.parameters, required: ["path"] } });
  const { stdout } = await run(["add", spec, "--yes"]);
  expect(stdout).toContain("linter 1.1.0 (was 1.0.0)");
  expect(stdout).toContain("- parameters: object\n      + parameters: object; required path");
  expect((await run(["verify"])).code).toBe(0);
});

test("a policy that requires signatures rejects an unsigned package before anything is installed", async () => {
  place.write("project/skillhost.json", '{ "trust": { "policy": { "package": "require" } } }');
  const answer = await json(["add", skillTarball(), "--yes"]);
  expect([answer.code, answer.error?.code, answer.error?.message]).toEqual([1, "PACKAGE_REFUSED", expect.stringContaining("linter@1.0.0")]);
  expect(installed()).toEqual([]);
});

test("a package without the required provenance is rejected", async () => {
  place.write("project/skillhost.json", '{ "trust": { "provenance": { "linter": "require" } } }');
  const answer = await json(["add", skillTarball(), "--yes"]);
  expect([answer.code, answer.error?.code, answer.error?.message]).toEqual([1, "PACKAGE_REFUSED", expect.stringContaining("provenance")]);
});

test("what is there already is not asked about again", async () => {
  const spec = skillTarball();
  await run(["add", spec, "--yes"]);
  expect(await run(["add", spec])).toMatchObject({ code: 0, stdout: "Already installed.\n" });
});

test("the folder of a package is linked, and one without package.json is not npm's to install", async () => {
  place.write("plain/SKILL.md", skillDocument("plain"));
  expect((await json(["add", "../plain", "--yes"])).error?.code).toBe("PACKAGE_FOLDER");
  place.write("mine/package.json", '{"name":"mine","version":"1.0.0"}');
  place.write("mine/skills/hammer/SKILL.md", skillDocument("hammer"));
  place.write("mine/skills/hammer/tools/hit.ts", toolModule("hit", "Hit"));
  expect((await run(["add", "../mine", "--yes"])).code).toBe(0);
  expect(lstatSync(place.at("project/node_modules/mine")).isSymbolicLink()).toBe(true);
  expect(JSON.parse(read("project/package.json")).dependencies).toEqual({ mine: "file:../mine" });
  expect((await run(["call", "hit", '{"name":"it"}', "--yes"])).stdout.trim()).toBe("Hit it");
  expect((await run(["verify"])).code).toBe(0);
});

test("what a user installs for every project is there in each of them, below the project's own", async () => {
  expect((await run(["add", skillTarball(), "--user", "--yes"])).code).toBe(0);
  expect(existsSync(place.at("project/node_modules/linter"))).toBe(false);
  expect((await run(["list"])).stdout).toContain("of linter@1.0.0");
  expect((await run(["verify", "--user"])).code).toBe(0);
  expect((await run(["add", skillTarball("2.0.0"), "--yes"])).code).toBe(0);
  const skills = (await json(["list"])).data["skills"] as { state: string; package: { version: string } }[];
  expect(skills.map(({ state, package: of }) => `${state} ${of.version}`)).toEqual(["shadowed 1.0.0", "active 2.0.0"]);
});

test("a project of another package manager is left to that", async () => {
  place.write("project/pnpm-lock.yaml", "");
  const answer = await json(["add", skillTarball(), "--yes"]);
  expect([answer.code, answer.error?.code, answer.error?.message]).toEqual([1, "PACKAGES_MANAGER", expect.stringContaining("pnpm add")]);
  expect((await run(["lock"])).code).toBe(0);
});
