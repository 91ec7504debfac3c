import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { skillDocument, toolModule } from "../cli/run-cli.ts";
import { noGit, serveRepositories, TestRepository, useGitHome } from "./git-kit.ts";
import { json, lintTool, place, read, run, useProjects } from "./project-kit.ts";

useProjects();
useGitHome();

const linter = { "skills/linter/SKILL.md": skillDocument("linter"), "skills/linter/tools/lint.json": JSON.stringify(lintTool) };
const greeter = { "skills/greeter/SKILL.md": skillDocument("greeter"), "skills/greeter/tools/hello.ts": toolModule("hello", "Hello") };
const project = (): string[] =>
  readdirSync(place.at("project"))
    .filter((name) => name !== "node_modules")
    .sort();
const skills = (): string[] => readdirSync(place.at("project/skills")).sort();
const lock = (): Record<string, { source: Record<string, string>; files: Record<string, string> }> =>
  JSON.parse(read("project/skillhost-lock.json")).skills;

describe.skipIf(noGit !== undefined)(`skills of Git repositories ${noGit ?? ""}`, () => {
  test("a skill is shown, copied, locked, verified and used", async () => {
    const repository = new TestRepository("tools", { ...greeter, "README.md": "Read me." });
    const added = await run(["add", repository.url, "--yes"]);
    expect(added).toMatchObject({ code: 0 });
    expect(added.stdout).toContain(`  commit ${repository.head}\n`);
    expect(added.stdout).toContain("skill greeter — Greets people by name.");
    expect(added.stdout).toMatch(/^Code of these skills runs in a process, whose limits are (?:partly |not )?enforced \(/m);
    expect(added.stdout).toContain("tool hello");
    expect(added.stdout).toContain("to skills/greeter  2 files");
    expect(added.stdout).toContain("Added skills/greeter.");
    expect(lock()["skills/greeter"]).toMatchObject({
      name: "greeter",
      source: {
        kind: "git",
        url: repository.url,
        commit: repository.head,
        path: "skills/greeter",
        digest: expect.stringMatching(/^sha256:[0-9a-f]{64}$/),
      },
    });
    expect(Object.keys(lock()["skills/greeter"]!.files)).toEqual(["SKILL.md", "tools/hello.ts"]);
    expect((await run(["call", "hello", '{"name":"Ada"}', "--yes"])).stdout.trim()).toBe("Hello Ada");
    expect((await run(["verify"])).stdout).toContain("verified against skillhost-lock.json");
    expect((await run(["lock"])).stdout).toContain("unchanged");
    expect(lock()["skills/greeter"]).toHaveProperty("source");
    place.write("project/skills/greeter/SKILL.md", skillDocument("greeter", "Greets cats."));
    expect(await run(["verify"])).toMatchObject({ code: 1, stdout: expect.stringContaining("skills/greeter SKILL.md has changed") });
  });

  test("owner/repo is a repository of GitHub, fetched over HTTP with the addresses that the user's git replaces", async () => {
    await using server = await serveRepositories();
    const repository = new TestRepository("acme/tools", linter);
    repository.git("tag", "--annotate", "--message=One", "v1");
    const first = repository.head;
    repository.commit({ "skills/linter/SKILL.md": skillDocument("linter", "Checks files. Use it for every file.") });
    writeFileSync(place.at("git-home/.gitconfig"), `[url "${server.origin}/"]\n  insteadOf = https://github.com/\n`);
    expect(await run(["add", "acme/tools@v1", "--yes"])).toMatchObject({ code: 0, stdout: expect.stringContaining("acme/tools v1") });
    expect(lock()["skills/linter"]?.source).toMatchObject({ url: "https://github.com/acme/tools.git", ref: "v1", commit: first });
    expect(read("project/skills/linter/SKILL.md")).toBe(skillDocument("linter"));
  });

  test("a branch, a tag, a commit, an abbreviated one and a folder are found over HTTP", async () => {
    await using server = await serveRepositories();
    const repository = new TestRepository("tools", { "deep/er/linter/SKILL.md": skillDocument("linter", "One of many. Use it first.") });
    const first = repository.head;
    repository.git("tag", "v1");
    repository.git("branch", "feature/old");
    repository.commit({ "deep/er/linter/SKILL.md": skillDocument("linter", "Two of many. Use it second.") });
    const commitOf = async (source: string): Promise<unknown> => {
      rmSync(place.at("project/skills"), { recursive: true, force: true });
      rmSync(place.at("project/skillhost-lock.json"), { force: true });
      const answer = await json(["add", `${server.origin}/tools.git${source}`, "--yes"]);
      return (answer.data["sources"] as { commit: string }[] | undefined)?.[0]?.commit ?? answer.error;
    };
    for (const source of ["@v1", "#feature/old", `@${first}`, `@${first.slice(0, 9)}`, "/deep/er/linter@v1", "/deep@v1"]) {
      expect([source, await commitOf(source)]).toEqual([source, first]);
    }
    expect(await commitOf("@main")).toBe(repository.head);
  });

  test("without consent nothing is copied: the user cannot be asked, or declines", async () => {
    const { url } = new TestRepository("tools", linter);
    const alone = await run(["add", url]);
    expect([alone.code, alone.stderr]).toEqual([1, expect.stringContaining("run again with --yes to install it")]);
    const asked = await run(["add", url], { isTTY: true, answer: () => "n" });
    expect([asked.code, asked.stderr]).toEqual([1, expect.stringContaining("Nothing was installed.")]);
    expect(await json(["add", url])).toMatchObject({ code: 1, ok: false, error: { code: "NOT_AGREED" }, data: { changed: false } });
    expect(project()).toEqual(["package.json"]);
    expect(await run(["add", url], { isTTY: true, answer: () => "y" })).toMatchObject({ code: 0 });
    expect(skills()).toEqual(["linter"]);
    expect(await run(["add", url])).toMatchObject({ code: 0, stdout: "Already up to date.\n" });
  });

  test("of several skills the user chooses, names some with --skill, or gets all", async () => {
    const { url } = new TestRepository("tools", { ...linter, ...greeter, "examples/odd/SKILL.md": skillDocument("odd") });
    const questions: string[] = [];
    const answer = (question: string): string => (questions.push(question) === 1 ? "2" : "y");
    const chosen = await run(["add", url], { isTTY: true, answer });
    expect([chosen.code, chosen.stdout]).toEqual([0, expect.stringContaining("contains 2 skills:\n   1. greeter\n   2. linter\n")]);
    expect(skills()).toEqual(["linter"]);
    expect((await run(["add", url, "--skill", "odd", "--yes"])).code).toBe(0);
    expect(skills()).toEqual(["linter", "odd"]);
    expect((await json(["add", url, "--skill", "nosuch", "--yes"])).error).toEqual({
      code: "GIT_SKILL_UNKNOWN",
      message: expect.stringContaining("It has odd, greeter, linter."),
    });
    expect((await run(["add", url, "--yes"])).code).toBe(0);
    expect(skills()).toEqual(["greeter", "linter", "odd"]);
  });

  test("with --user skills are copied to the user's own folder, which is locked and verified too", async () => {
    const { url } = new TestRepository("tools", linter);
    expect(await run(["add", url, "--user", "--yes"])).toMatchObject({ code: 0 });
    expect(existsSync(place.at("home/skills/linter/SKILL.md"))).toBe(true);
    expect(project()).toEqual(["package.json"]);
    expect((await run(["verify", "--user"])).code).toBe(0);
    place.write("home/skills/linter/SKILL.md", skillDocument("linter", "Something else."));
    expect(await run(["verify", "--user"])).toMatchObject({ code: 1, stdout: expect.stringContaining("SKILL.md has changed") });
  });

  test("consent to a skill trusts it, and nothing else that was here before", async () => {
    const { url } = new TestRepository("tools", greeter);
    const untrusted = { isTrusted: false };
    expect((await run(["add", url, "--yes"], untrusted)).code).toBe(0);
    expect((await run(["call", "hello", "{}", "--yes"], untrusted)).stdout.trim()).toBe("Hello stranger");
    mkdirSync(place.at("other"));
    place.write("other/package.json", "{}");
    place.write("other/skills/foreign/SKILL.md", skillDocument("foreign"));
    place.write("other/skills/foreign/tools/evil.ts", toolModule("evil", "Evil"));
    const other = { ...untrusted, cwd: place.at("other") };
    expect((await run(["add", url, "--yes"], other)).code).toBe(0);
    expect((await run(["list"], other)).stdout).toMatch(/foreign.*untrusted/);
    expect((await run(["call", "evil", "{}", "--yes"], other)).stderr).toContain("is not trusted");
  });

  test("a skill at the top of a repository gets its own name, and scripts stay executable", async () => {
    const repository = new TestRepository("some-repository", {
      "SKILL.md": skillDocument("greeter"),
      ".github/x.yml": "a: 1",
      ".DS_Store": "x",
    });
    writeFileSync(`${repository.folder}/run.sh`, "#!/bin/sh\n", { mode: 0o755 });
    repository.commit({});
    expect(await run(["add", repository.url, "--yes"])).toMatchObject({ code: 0 });
    expect(readdirSync(place.at("project/skills/greeter")).sort()).toEqual([".github", "SKILL.md", "run.sh"]);
    if (process.platform !== "win32") expect(statSync(place.at("project/skills/greeter/run.sh")).mode & 0o111).toBe(0o111);
    expect((await run(["verify"])).code).toBe(0);
  });

  test("another skill in the place is kept", async () => {
    const { url } = new TestRepository("tools", linter);
    place.write("project/skills/linter/SKILL.md", skillDocument("linter", "Mine."));
    expect((await json(["add", url, "--yes"])).error?.code).toBe("SKILL_EXISTS");
    expect(read("project/skills/linter/SKILL.md")).toContain("Mine.");
    const other = new TestRepository("others", linter);
    rmSync(place.at("project/skills"), { recursive: true });
    expect((await run(["add", url, "--yes"])).code).toBe(0);
    other.commit({ "skills/linter/SKILL.md": skillDocument("linter", "Another one.") });
    expect((await json(["add", other.url, "--yes"])).error).toEqual({ code: "SKILL_EXISTS", message: expect.stringContaining(url) });
  });

  test("a policy that requires signatures rejects an unsigned skill", async () => {
    place.write("project/skillhost.json", '{ "trust": { "policy": { "project": "require" } } }');
    const { url } = new TestRepository("tools", linter);
    expect((await json(["add", url, "--yes"])).error?.code).toBe("PACKAGE_REFUSED");
    expect(existsSync(place.at("project/skills"))).toBe(false);
  });

  test("5,000 skills are not copied by accident, and one of them is found", async () => {
    const repository = new TestRepository("many");
    const document = repository.gitWith(skillDocument("many"), "hash-object", "-w", "--stdin").trim();
    const entries = Array.from({ length: 5_000 }, (_, index) => `100644 ${document}\tskills/s${index}/SKILL.md\0`).join("");
    repository.gitWith(entries, "update-index", "-z", "--add", "--index-info");
    repository.commitIndex();
    const all = await json(["add", repository.url, "--yes"]);
    expect(all.error).toEqual({ code: "GIT_SKILLS_MANY", message: expect.stringMatching(/5000 skills: s0, .* and 4980 more\./) });
    expect(project()).toEqual(["package.json"]);
    expect(await run(["add", repository.url, "--skill", "s4321", "--yes"])).toMatchObject({ code: 0 });
    expect(skills()).toEqual(["s4321"]);
  });

  test("mixed sources and options of the other kind are wrong usage", async () => {
    expect(await json(["add", "acme/tools", "linter"])).toMatchObject({
      code: 2,
      error: { message: expect.stringContaining("linter is not a Git repository") },
    });
    expect((await json(["add", "linter", "--skill", "x"])).code).toBe(2);
    expect((await json(["add", "acme/tools", "--exact"])).code).toBe(2);
    place.write("project/skillhost.json", '{ "skillDirectories": ["./skills/*"] }');
    expect((await json(["add", "acme/tools", "--yes"])).error?.code).toBe("SKILLS_PATTERN");
  });

  test("a folder with the name of a repository is pointed out", async () => {
    place.write("project/acme/tools/SKILL.md", skillDocument("tools"));
    writeFileSync(place.at("git-home/.gitconfig"), `[url "file://${place.at("nowhere")}/"]\n  insteadOf = https://github.com/\n`);
    const added = await run(["add", "acme/tools", "--yes"]);
    expect([added.code, added.stderr]).toEqual([1, expect.stringContaining("For the folder, write ./acme/tools.")]);
  });

  test("without git the error says what to do", async () => {
    const before = process.env["PATH"];
    process.env["PATH"] = place.at("nowhere");
    try {
      expect((await json(["add", "acme/tools", "--yes"])).error).toEqual({
        code: "GIT_MISSING",
        message: expect.stringContaining("install git"),
      });
    } finally {
      process.env["PATH"] = before;
    }
    expect(project()).toEqual(["package.json"]);
  });

  test("nothing is left over, and no node_modules is made", async () => {
    const { url } = new TestRepository("tools", linter);
    await run(["add", url, "--yes"]);
    await run(["add", `${url}#nosuch`, "--yes"]);
    expect(readdirSync(place.at("project")).sort()).toEqual(["package.json", "skillhost-lock.json", "skills"]);
    expect(readFileSync(place.at("project/package.json"), "utf8")).toBe('{ "name": "project", "version": "1.0.0" }\n');
  });
});
