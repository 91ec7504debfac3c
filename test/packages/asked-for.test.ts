import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { createHost } from "skillhost";
import { expect, test } from "vitest";
import { silentLogger } from "../../src/base/logger.ts";
import { skillDocument } from "../cli/run-cli.ts";
import { json, place, read, run, skillTarball, useProjects } from "./project-kit.ts";

useProjects();

/** Installs a package as npm would, without skillhost. */
function npmInstall(group: string, name: string, files: Readonly<Record<string, string>>): void {
  const manifest = JSON.parse(read("project/package.json"));
  place.write(
    "project/package.json",
    `${JSON.stringify({ ...manifest, [group]: { ...manifest[group], [name]: "1.0.0" } }, undefined, 2)}\n`,
  );
  for (const [path, text] of Object.entries({ "package.json": JSON.stringify({ name, version: "1.0.0" }), ...files })) {
    place.write(`project/node_modules/${name}/${path}`, text);
  }
}

async function names(): Promise<readonly string[]> {
  return ((await json(["list"])).data["skills"] as { name: string }[]).map(({ name }) => name);
}

test("a project lists what its author put there, whatever npm installed, on the command line and in a program alike", async () => {
  place.write("project/skills/mine/SKILL.md", skillDocument("mine"));
  npmInstall("dependencies", "words", { "skills/words/SKILL.md": skillDocument("words") });
  npmInstall("devDependencies", "arktype", { "skills/ark/SKILL.md": skillDocument("ark") });
  npmInstall("devDependencies", "other", {});
  mkdirSync(place.at("project/node_modules"), { recursive: true });
  symlinkSync(fileURLToPath(new URL("../..", import.meta.url)), place.at("project/node_modules/skillhost"), "junction");
  const manifest = JSON.parse(read("project/package.json"));
  place.write("project/package.json", JSON.stringify({ ...manifest, dependencies: { ...manifest.dependencies, skillhost: "*" } }));
  expect(await names()).toEqual(["mine"]);
  await using host = await createHost({
    workingDirectory: place.at("project"),
    watch: false,
    plugins: [],
    logger: silentLogger,
    trust: { folders: true },
  });
  expect(host.skills.map(({ name }) => name)).toEqual(["mine"]);
});

test("adding a package requests its skills, removing it ends that, and package.json records both", async () => {
  const manifest = '{\n\t"name": "project",\n\t"version": "1.0.0",\n\t"skillhost": { "plugins": [] }\n}\n';
  place.write("project/package.json", manifest);
  expect((await run(["add", skillTarball(), "--yes"])).code).toBe(0);
  expect(JSON.parse(read("project/package.json"))).toMatchObject({ skillhost: { plugins: [], packages: ["linter"] } });
  expect(read("project/package.json")).toContain('\n\t"skillhost"');
  expect(await names()).toEqual(["linter"]);
  expect((await run(["remove", "linter", "--yes"])).code).toBe(0);
  expect(JSON.parse(read("project/package.json"))["skillhost"]).toEqual({ plugins: [] });
  expect(await names()).toEqual([]);
});

test("a package that is installed already is asked for by adding it, also from its folder", async () => {
  place.write("words/package.json", '{ "name": "words", "version": "1.0.0" }');
  place.write("words/skills/words/SKILL.md", skillDocument("words"));
  place.write("project/package.json", '{ "name": "project", "dependencies": { "words": "file:../words" } }');
  mkdirSync(place.at("project/node_modules"));
  symlinkSync("../../words", place.at("project/node_modules/words"), "junction");
  expect(await names()).toEqual([]);
  expect((await run(["add", "../words", "--yes"])).code).toBe(0);
  expect(await names()).toEqual(["words"]);
  expect((await run(["list"])).stdout).toContain("of words@1.0.0");
});

test("a key of package.json that only names packages does not configure a host", async () => {
  place.write("project/package.json", '{ "name": "project", "skillhost": { "packages": ["absent"] } }');
  expect(await run(["list"])).toMatchObject({ code: 0, stderr: expect.not.stringContaining("CONFIG") });
});

test("a skill that comes with skillhost is copied into the project, where it is the project's", async () => {
  expect(await names()).toEqual([]);
  const added = await run(["add", "skillhost:fact-lookup"]);
  expect(added).toMatchObject({ code: 0, stdout: "Added skills/fact-lookup.\n" });
  expect(await names()).toEqual(["fact-lookup"]);
  expect((await run(["list"])).stdout).not.toMatch(/ of \S+@/);
  const copied = readFileSync(place.at("project/skills/fact-lookup/skill.json"), "utf8");
  expect(copied).toBe(readFileSync(new URL("../../skills/fact-lookup/skill.json", import.meta.url), "utf8"));
  expect(await run(["add", "skillhost:fact-lookup"])).toMatchObject({ code: 1, stderr: expect.stringContaining("already exists") });
});

test("what cannot be copied is refused before anything is written", async () => {
  const unknown = await json(["add", "skillhost:memory", "skillhost:memorie"]);
  expect(unknown).toMatchObject({ code: 1, error: { code: "SKILL_UNKNOWN", message: expect.stringContaining('"memory"') } });
  expect(await json(["add", "skillhost:memory", "left-pad"])).toMatchObject({ code: 2 });
  expect(await json(["add", "skillhost:../skills"])).toMatchObject({ code: 1 });
  expect(existsSync(place.at("project/skills"))).toBe(false);
});

test("for the user a skill is copied into their own folder", async () => {
  expect((await run(["add", "skillhost:memory", "--user"])).code).toBe(0);
  expect(existsSync(join(place.at("home"), "skills/memory/skill.json"))).toBe(true);
});

test.each([
  ["without a name", {}],
  ["with a name that is not a text", { name: 7 }],
  ["with an empty name", { name: " " }],
])("the folder of a package %s is not added", async (_, manifest) => {
  writeFileSync(place.at("project/package.json"), JSON.stringify(manifest));
  place.write("project/skills/mine/SKILL.md", skillDocument("mine"));
  const refused = await json(["add", ".", "--yes"]);
  expect(refused).toMatchObject({ code: 1, error: { code: "PACKAGE_FOLDER", message: expect.stringContaining('has no "name"') } });
});
