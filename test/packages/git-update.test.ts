import { existsSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { skillDocument, toolModule } from "../cli/run-cli.ts";
import { noGit, TestRepository, useGitHome } from "./git-kit.ts";
import { addLinter, json, lintTool, place, read, run, skillTarball, useProjects } from "./project-kit.ts";

useProjects();
useGitHome();

const linter = { "skills/linter/SKILL.md": skillDocument("linter"), "skills/linter/tools/lint.json": JSON.stringify(lintTool) };
const greeter = { "skills/greeter/SKILL.md": skillDocument("greeter"), "skills/greeter/tools/hello.ts": toolModule("hello", "Hello") };
const skills = (): string[] => readdirSync(place.at("project/skills")).sort();
const lock = (): Record<string, { source?: { commit: string; ref?: string }; files: object }> =>
  JSON.parse(read("project/skillhost-lock.json")).skills;

describe.skipIf(noGit !== undefined)(`copied skills later ${noGit ?? ""}`, () => {
  test("update shows how files and tools differ, asks, and replaces the folder", async () => {
    const repository = new TestRepository("tools", { ...linter, "skills/linter/old.txt": "old" });
    const first = repository.head;
    await run(["add", repository.url, "--yes"]);
    expect((await run(["update"])).stdout).toBe("Already up to date.\n");
    const tool = { ...lintTool, description: "Checks a file, and sends it." };
    const changed = { "skills/linter/tools/lint.json": JSON.stringify(tool), "skills/linter/new.txt": "one\ntwo\n" };
    repository.commit({ ...changed, "skills/linter/SKILL.md": `${skillDocument("linter")}Send each file.\n` }, ["skills/linter/old.txt"]);
    const shown = await run(["update"]);
    expect([shown.code, shown.stderr]).toEqual([1, expect.stringContaining("run again with --yes")]);
    expect(shown.stdout).toContain(`(was ${first.slice(0, 12)})`);
    expect(shown.stdout).toContain("~ linter lint is defined differently");
    expect(shown.stdout).toContain("- description: Checks a file.");
    expect(shown.stdout).toContain("+ description: Checks a file, and sends it.");
    expect(shown.stdout).toContain("    ~ SKILL.md\n");
    expect(shown.stdout).toContain("      +Send each file.\n");
    expect(shown.stdout).toContain("    + new.txt\n");
    expect(shown.stdout).toContain("    - old.txt\n");
    expect(existsSync(place.at("project/skills/linter/old.txt"))).toBe(true);
    expect(await run(["update", "linter", "--yes"])).toMatchObject({ code: 0, stdout: expect.stringContaining("Updated skills/linter.") });
    expect(readdirSync(place.at("project/skills/linter")).sort()).toEqual(["SKILL.md", "new.txt", "tools"]);
    expect(lock()["skills/linter"]?.source?.commit).toBe(repository.head);
    expect((await run(["verify"])).code).toBe(0);
  });

  test("a commit that changes other files only is recorded without a question", async () => {
    const repository = new TestRepository("tools", linter);
    await run(["add", repository.url, "--yes"]);
    repository.commit({ "README.md": "New." });
    expect(await run(["update"])).toMatchObject({ code: 0, stdout: "Already up to date.\n" });
    expect(lock()["skills/linter"]?.source?.commit).toBe(repository.head);
  });

  test("a tag that moves is reported by verify --remote and by update", async () => {
    const repository = new TestRepository("tools", linter);
    const first = repository.head;
    repository.git("tag", "--annotate", "--message=One", "v1");
    await run(["add", `${repository.url}@v1`, "--yes"]);
    expect((await run(["verify", "--remote"])).code).toBe(0);
    repository.commit({ "skills/linter/SKILL.md": skillDocument("linter", "Something else entirely.") });
    repository.git("tag", "--force", "--annotate", "--message=Two", "v1");
    expect((await run(["verify"])).code).toBe(0);
    const drift = await json(["verify", "--remote"]);
    expect([drift.code, drift.data["drift"]]).toEqual([
      1,
      [
        {
          kind: "source",
          subject: "skills/linter",
          message: `comes from "v1" of ${repository.url}, which has moved`,
          diff: [`- ${first}`, `+ ${repository.head}`],
        },
      ],
    ]);
    expect((await run(["update"])).stdout).toContain("the tag was moved to another commit since it was added");
    const updated = await json(["update", "--yes"]);
    expect(updated.data["sources"]).toMatchObject([{ was: first, isMovedTag: true, commit: repository.head }]);
    repository.git("tag", "--delete", "v1");
    expect((await run(["verify", "--remote"])).stdout).toContain("no longer exists");
  });

  test("a branch is followed after a force push, and a commit is not asked about", async () => {
    const repository = new TestRepository("tools", linter);
    const first = repository.head;
    await run(["add", `${repository.url}@main`, "--yes"]);
    repository.git("checkout", "--quiet", "--orphan", "other");
    repository.commit({ "skills/linter/SKILL.md": skillDocument("linter", "Written again.") });
    repository.git("branch", "--force", "main", "other");
    expect((await run(["update", "--yes"])).code).toBe(0);
    expect(read("project/skills/linter/SKILL.md")).toContain("Written again.");
    await run(["remove", "linter"]);
    await run(["add", `${repository.url}@${first}`, "--yes"]);
    expect((await run(["verify", "--remote"])).code).toBe(0);
    expect((await run(["update"])).stdout).toBe("Already up to date.\n");
  });

  test("another ref is chosen by adding the skill again", async () => {
    const repository = new TestRepository("tools", linter);
    repository.git("tag", "v1");
    repository.commit({ "skills/linter/SKILL.md": skillDocument("linter", "The second version.") });
    repository.git("tag", "v2");
    await run(["add", `${repository.url}@v1`, "--yes"]);
    const added = await run(["add", `${repository.url}@v2`, "--yes"]);
    expect(added.stdout).toContain("Updated skills/linter.");
    expect(lock()["skills/linter"]?.source?.ref).toBe("v2");
    expect(read("project/skills/linter/SKILL.md")).toContain("The second version.");
  });

  test("changes that were made here are not lost without consent", async () => {
    const repository = new TestRepository("tools", linter);
    await run(["add", repository.url, "--yes"]);
    place.write("project/skills/linter/SKILL.md", skillDocument("linter", "My own words."));
    expect((await run(["update"])).stdout).toBe("Already up to date.\n");
    repository.commit({ "skills/linter/SKILL.md": skillDocument("linter", "Their words.") });
    expect((await json(["update", "--yes"])).error?.code).toBe("SKILL_EDITED");
    expect((await json(["remove", "linter"])).error?.code).toBe("SKILL_EDITED");
    expect(read("project/skills/linter/SKILL.md")).toContain("My own words.");
    const asked = await run(["update", "--no-color"], { isTTY: true, answer: () => "y" });
    expect(asked.stdout).toContain("its files were changed here; these changes are lost");
    expect(asked.stdout).toMatch(/-description: My own words\.\n +\+description: Their words\./);
    expect(read("project/skills/linter/SKILL.md")).toContain("Their words.");
  });

  test("a skill that its repository has no longer stays, with a warning", async () => {
    const repository = new TestRepository("tools", { ...linter, ...greeter });
    await run(["add", repository.url, "--yes"]);
    repository.commit({ "skills/greeter/note.txt": "x" }, ["skills/linter"]);
    const updated = await run(["update", "--yes"]);
    expect(updated.stdout).toContain("SKILL_GONE");
    expect(updated.stdout).toContain("Updated skills/greeter.");
    expect(skills()).toEqual(["greeter", "linter"]);
  });

  test("remove deletes the folder and its entry", async () => {
    const { url } = new TestRepository("tools", { ...linter, ...greeter });
    await run(["add", url, "--yes"]);
    expect(await json(["remove", "linter"])).toMatchObject({ code: 0, data: { removed: ["skills/linter"] } });
    expect([skills(), Object.keys(lock())]).toEqual([["greeter"], ["skills/greeter"]]);
    expect((await json(["remove", "linter"])).error?.code).toBe("PACKAGE_UNKNOWN");
    expect((await run(["verify"])).code).toBe(0);
  });

  test("update without names covers packages and copied skills", async () => {
    await addLinter();
    const repository = new TestRepository("tools", greeter);
    await run(["add", repository.url, "--yes"]);
    repository.commit({ "skills/greeter/SKILL.md": skillDocument("greeter", "Greets cats.") });
    const updated = await json(["update", "--yes"]);
    expect(updated).toMatchObject({ code: 0, data: { changed: true, packages: [], sources: [{ skills: [{ path: "skills/greeter" }] }] } });
    expect((await run(["verify"])).code).toBe(0);
    expect((await json(["remove", "linter", "greeter"])).code).toBe(2);
    expect((await run(["add", skillTarball("1.1.0"), "--yes"])).code).toBe(0);
    expect(lock()["skills/greeter"]).toHaveProperty("source");
  });

  test("ci fetches what is missing at the locked commit, or nothing", async () => {
    const repository = new TestRepository("tools", { ...linter, ...greeter });
    await run(["add", repository.url, "--yes"]);
    repository.commit({ "skills/linter/SKILL.md": skillDocument("linter", "Something else entirely.") });
    rmSync(place.at("project/skills"), { recursive: true });
    expect(await run(["verify"])).toMatchObject({ code: 1, stdout: expect.stringContaining("is in skillhost-lock.json but is missing") });
    const installed = await json(["ci"]);
    expect(installed).toMatchObject({ code: 0, data: { copied: ["skills/greeter", "skills/linter"] } });
    expect(read("project/skills/linter/SKILL.md")).toBe(skillDocument("linter"));
    rmSync(place.at("project/skills"), { recursive: true });
    place.write(
      "project/skillhost-lock.json",
      read("project/skillhost-lock.json").replace(/("SKILL.md": "sha256:)[0-9a-f]{8}/, "$100000000"),
    );
    expect(await json(["ci"])).toMatchObject({ code: 1, error: { code: "PACKAGES_DRIFT" } });
    expect(existsSync(place.at("project/skills/linter"))).toBe(false);
  });

  test.each([
    ["../../evil", "PATH_OUTSIDE"],
    [".git/hooks", "PATH_OUTSIDE"],
    ["node_modules/x", "PATH_OUTSIDE"],
  ])("a lock file cannot place a skill at %s", async (path, code) => {
    const repository = new TestRepository("tools", linter);
    await run(["add", repository.url, "--yes"]);
    place.write("project/skillhost-lock.json", read("project/skillhost-lock.json").replace('"skills/linter": {', `"${path}": {`));
    rmSync(place.at("project/skills"), { recursive: true });
    expect((await json(["ci"])).error?.code).toBe(code);
    expect((await json(["update", path, "--yes"])).error?.code).toMatch(new RegExp(`${code}|PACKAGE_UNKNOWN`));
    expect([existsSync(place.at("project/.git")), existsSync(place.at("evil"))]).toEqual([false, false]);
  });

  test.each(["ext::sh -c touch% evil", "--upload-pack=touch evil", "git://example.org/x.git"])(
    "a lock file cannot make git use %s",
    async (url) => {
      const repository = new TestRepository("tools", linter);
      await run(["add", repository.url, "--yes"]);
      place.write("project/skillhost-lock.json", read("project/skillhost-lock.json").replace(repository.url, url));
      rmSync(place.at("project/skills"), { recursive: true });
      for (const command of [["ci"], ["update", "--yes"], ["verify", "--remote"]]) {
        expect([command, (await json(command)).error?.code]).toEqual([command, "GIT_SOURCE"]);
      }
    },
  );

  test("list shows where a copied skill came from, and reports a lock file that cannot be read", async () => {
    const repository = new TestRepository("tools", linter);
    await run(["add", `${repository.url}@main`, "--yes"]);
    expect((await run(["list"])).stdout).toContain(`from     ${repository.url.slice(0, -4)} main ${repository.head.slice(0, 12)}\n`);
    expect((await json(["list"])).data["skills"]).toMatchObject([{ name: "linter", source: { kind: "git", ref: "main" } }]);
    place.write("project/skillhost-lock.json", "{");
    expect(await run(["list"])).toMatchObject({ code: 0, stdout: expect.stringContaining("PACKAGES_LOCK") });
  });

  test("an update of a trusted skill stays trusted, and one of an untrusted project does not become so", async () => {
    const untrusted = { isTrusted: false };
    const repository = new TestRepository("tools", greeter);
    place.write("project/skills/foreign/SKILL.md", skillDocument("foreign"));
    place.write("project/skills/foreign/tools/evil.ts", toolModule("evil", "Evil"));
    await run(["add", repository.url, "--yes"], untrusted);
    repository.commit({ "skills/greeter/tools/hello.ts": toolModule("hello", "Good day") });
    expect((await run(["update", "--yes"], untrusted)).code).toBe(0);
    expect((await run(["list"], untrusted)).stdout).toMatch(/greeter +active/);
    rmSync(place.at("home"), { recursive: true });
    mkdirSync(place.at("home"));
    repository.commit({ "skills/greeter/tools/hello.ts": toolModule("hello", "Bye") });
    expect((await run(["update", "--yes"], untrusted)).code).toBe(0);
    expect((await run(["list"], untrusted)).stdout).toMatch(/greeter +untrusted/);
  });

  test("a policy of the machine decides which repositories are asked", async () => {
    const repository = new TestRepository("tools", linter);
    await run(["add", repository.url, "--yes"]);
    place.write("policy.json", '{ "registries": ["https://npm.example.com/"] }');
    const before = process.env["SKILLHOST_POLICY"];
    process.env["SKILLHOST_POLICY"] = place.at("policy.json");
    try {
      for (const command of [
        ["verify", "--remote"],
        ["update", "--yes"],
        ["add", repository.url, "--yes"],
      ]) {
        expect([command, (await json(command)).error?.code]).toEqual([command, "PACKAGE_NOT_ALLOWED"]);
      }
      expect((await run(["verify"])).code).toBe(0);
    } finally {
      if (before === undefined) delete process.env["SKILLHOST_POLICY"];
      else process.env["SKILLHOST_POLICY"] = before;
    }
  });

  test("skills of a user are updated and removed with --user", async () => {
    const repository = new TestRepository("tools", linter);
    await run(["add", repository.url, "--user", "--yes"]);
    repository.commit({ "skills/linter/SKILL.md": skillDocument("linter", "The second version.") });
    expect((await run(["update", "--user", "--yes"])).code).toBe(0);
    expect(read("home/skills/linter/SKILL.md")).toContain("The second version.");
    expect((await run(["remove", "linter", "--user"])).code).toBe(0);
    expect(existsSync(place.at("home/skills/linter"))).toBe(false);
  });
});
