import { existsSync, mkdirSync, readdirSync, renameSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { openStaging } from "../../src/packages/commit.ts";
import { placeSkills } from "../../src/packages/sources/place-skills.ts";
import { skillDocument } from "../cli/run-cli.ts";
import { noGit, TestRepository, useGitHome } from "./git-kit.ts";
import { place, read, run, useProjects } from "./project-kit.ts";

useProjects();
useGitHome();

test.each([
  ["the lock file cannot be written", "skills/two", () => Promise.reject(new Error("The disk is full."))],
  ["a later skill has no place", "package.json/two", () => Promise.resolve()],
])("when %s, everything is as before", async (_what, second, finish) => {
  const staging = await openStaging(place.at("project"));
  place.write("project/skills/one/SKILL.md", "old");
  for (const name of ["one", "two"]) place.write(`project/node_modules/${staging.folder.split(/[\\/]/).at(-1)}/${name}/SKILL.md`, "new");
  const placements = [
    { staged: `${staging.folder}/one`, folder: place.at("project/skills/one") },
    { staged: `${staging.folder}/two`, folder: place.at(`project/${second}`) },
    { folder: place.at("project/skills/absent") },
  ];
  await expect(placeSkills(staging, placements, finish)).rejects.toThrow();
  expect(read("project/skills/one/SKILL.md")).toBe("old");
  expect(readdirSync(place.at("project/skills"))).toEqual(["one"]);
});

describe.skipIf(noGit !== undefined)(`after a process was killed ${noGit ?? ""}`, () => {
  test("a skill that was placed and not recorded is recorded by the same command, and leftovers are deleted", async () => {
    const { url } = new TestRepository("tools", { "skills/linter/SKILL.md": skillDocument("linter") });
    place.write("project/skills/linter/SKILL.md", skillDocument("linter"));
    mkdirSync(place.at("project/node_modules/.skillhost-0123456789ab/source-0.git"), { recursive: true });
    expect(await run(["add", url])).toMatchObject({ code: 0, stdout: "Already up to date.\n" });
    expect(JSON.parse(read("project/skillhost-lock.json")).skills["skills/linter"].source.url).toBe(url);
    expect(readdirSync(place.at("project/node_modules"))).toEqual([]);
  });

  test("a skill that was taken away for its new version is copied again", async () => {
    const { url } = new TestRepository("tools", { "skills/linter/SKILL.md": skillDocument("linter") });
    await run(["add", url, "--yes"]);
    mkdirSync(place.at("project/node_modules/.skillhost-0123456789ab"), { recursive: true });
    renameSync(place.at("project/skills/linter"), place.at("project/node_modules/.skillhost-0123456789ab/old-0"));
    expect((await run(["verify"])).code).toBe(1);
    expect(await run(["update", "--yes"])).toMatchObject({ code: 0, stdout: expect.stringContaining("Added skills/linter.") });
    expect(existsSync(place.at("project/skills/linter/SKILL.md"))).toBe(true);
    expect((await run(["verify"])).code).toBe(0);
  });
});
