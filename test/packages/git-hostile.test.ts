import { randomBytes } from "node:crypto";
import { chmodSync, existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import { fetchRepository, type GitLimits } from "../../src/packages/sources/git-repository.ts";
import { skillDocument, startCli } from "../cli/run-cli.ts";
import { noGit, serveRepositories, TestRepository, useGitHome } from "./git-kit.ts";
import { json, place, run, useProjects } from "./project-kit.ts";

useProjects();
useGitHome();

const linter = { "skills/linter/SKILL.md": skillDocument("linter") };
const project = (): string[] => readdirSync(place.at("project")).filter((name) => name !== "node_modules");

describe.skipIf(noGit !== undefined)(`hostile Git repositories ${noGit ?? ""}`, () => {
  test.each<[what: string, change: (repository: TestRepository) => void, path: string, why: string]>([
    ["a link out of itself", (r) => r.addEntry("120000", "skills/linter/l", "../../../../etc/passwd"), "skills/linter/l", "symbolic link"],
    ["a link to a folder of its own", (r) => r.addEntry("120000", "skills/linter/l", "tools"), "skills/linter/l", "symbolic link"],
    ["a submodule", (r) => r.addEntry("160000", "skills/linter/sub", r.head), "skills/linter/sub", "submodule"],
    [
      "a pointer of Git LFS",
      (r) =>
        r.addEntry("100644", "skills/linter/a.bin", `version https://git-lfs.github.com/spec/v1\noid sha256:${"0".repeat(64)}\nsize 5\n`),
      "skills/linter/a.bin",
      "Git LFS",
    ],
    ["a name with a line break", (r) => r.addEntry("100644", "skills/linter/a\nb", "x"), "skills/linter/a\\nb", "invisible"],
    ["a name that only differs in case", (r) => r.addEntry("100644", "skills/linter/skill.MD", "x"), "skills/linter/skill.MD", "same name"],
    ["the name of a device", (r) => r.addEntry("100644", "skills/linter/aux.txt", "x"), "skills/linter/aux.txt", "Windows device"],
    ["a backslash in a name", (r) => r.addEntry("100644", "skills/linter/..\\..\\x", "x"), "skills/linter/..\\\\..\\\\x", "backslash"],
    [
      "a node_modules folder",
      (r) => r.addEntry("100644", "skills/linter/node_modules/x/index.js", "x"),
      "skills/linter/node_modules/x/index.js",
      "node_modules",
    ],
  ])("a skill with %s is refused, and nothing has changed", async (_what, change, path, why) => {
    const repository = new TestRepository("tools", linter);
    change(repository);
    repository.commitIndex();
    const answer = await json(["add", repository.url, "--yes"]);
    expect([answer.code, answer.error]).toEqual([1, { code: "GIT_TREE", message: expect.stringContaining(`"${path}" `) }]);
    expect(answer.error?.message).toContain(why);
    expect(project()).toEqual(["package.json"]);
  });

  test("a short name of .git is refused, by git itself or by us", async () => {
    const repository = new TestRepository("tools", linter);
    repository.addEntry("100644", "skills/linter/git~1/config", "x");
    repository.commitIndex();
    expect((await json(["add", repository.url, "--yes"])).error?.code).toMatch(/^GIT_(?:TREE|FETCH)$/);
    expect(project()).toEqual(["package.json"]);
  });

  test("what is outside of the chosen skills does not matter: links, submodules, pointers", async () => {
    const repository = new TestRepository("tools", linter);
    repository.addEntry("120000", "link", "/etc/passwd");
    repository.addEntry("120000", ".claude/skills", "../skills");
    repository.addEntry("160000", "sub", repository.head);
    repository.commitIndex();
    expect(await run(["add", repository.url, "--yes"])).toMatchObject({ code: 0 });
    expect(readdirSync(place.at("project/skills/linter"))).toEqual(["SKILL.md"]);
  });

  test.each<[string, Readonly<Record<string, string>>, string, string, string]>([
    ["has no skills", { "README.md": "x" }, "", "GIT_NO_SKILLS", "contains no folder with a SKILL.md"],
    ["has only skills in node_modules", { "node_modules/x/SKILL.md": skillDocument("x") }, "", "GIT_NO_SKILLS", "SKILL.md"],
    ["has another product's skill.json", { "alexa/skill.json": "{}" }, "", "GIT_NO_SKILLS", "SKILL.md"],
    ["lacks the folder", linter, "/tools", "GIT_PATH", 'nothing in "tools"'],
    ["lacks skills in the folder", { ...linter, "tools/a": "b" }, "/tools", "GIT_NO_SKILLS", 'in "tools"'],
    ["lacks the ref", linter, "@nosuch", "GIT_REF", '"nosuch"'],
    ["lacks the commit", linter, `@${"1".repeat(40)}`, "GIT_REF", "1111"],
    ["lacks the abbreviated commit", linter, "@1111111", "GIT_REF", "1111111"],
    ["has a skill whose folder cannot be one", { "skills/-x/SKILL.md": skillDocument("x") }, "", "GIT_TREE", "skills/-x"],
  ])("a repository that %s ends with an error that says so", async (_what, files, rest, code, text) => {
    const { url } = new TestRepository("tools", files);
    expect((await json(["add", `${url}${rest}`, "--yes"])).error).toEqual({ code, message: expect.stringContaining(text) });
    expect(project()).toEqual(["package.json"]);
  });

  test("an empty repository, a missing one and a server that answers something else are errors", async () => {
    await using server = await serveRepositories();
    const { url } = new TestRepository("empty");
    expect((await json(["add", url, "--yes"])).error?.code).toBe("GIT_REF");
    expect((await json(["add", `${server.origin}/nosuch.git`, "--yes"])).error).toEqual({
      code: "GIT_FETCH",
      message: expect.stringContaining("/nosuch.git/' not found. If the repository is private"),
    });
    await using other = await listen(createServer((_request, response) => response.end("hello")));
    // Some versions of git take any text for a list of no refs.
    expect((await json(["add", `${other.origin}/x.git`, "--yes"])).error?.code).toMatch(/^GIT_(?:REF|FETCH)$/);
    await using asking = await listen(createServer((_request, response) => response.writeHead(401, { "www-authenticate": "Basic" }).end()));
    expect((await json(["add", `${asking.origin}/x.git`, "--yes"])).error?.code).toBe("GIT_FETCH");
  });

  test("a redirect from the server does not lead to another protocol", async () => {
    const { url } = new TestRepository("tools", linter);
    await using server = await listen(createServer((_request, response) => response.writeHead(302, { location: url }).end()));
    expect((await json(["add", `${server.origin}/x.git`, "--yes"])).error?.code).toBe("GIT_FETCH");
    expect(project()).toEqual(["package.json"]);
  });

  test("neither the project's git configuration nor the environment leads git elsewhere", async () => {
    const [wanted, other] = [new TestRepository("wanted", linter), new TestRepository("other", linter)];
    other.commit({ "skills/linter/SKILL.md": skillDocument("linter", "Something else entirely.") });
    mkdirSync(place.at("project/.git"));
    place.write("project/.git/HEAD", "ref: refs/heads/main\n");
    place.write("project/.git/config", `[core]\n  repositoryformatversion = 0\n[url "${other.url}"]\n  insteadOf = ${wanted.url}\n`);
    mkdirSync(place.at("project/.git/objects"));
    mkdirSync(place.at("project/.git/refs"));
    const variables = {
      GIT_DIR: place.at("project/.git"),
      GIT_CONFIG_COUNT: "1",
      GIT_CONFIG_KEY_0: `url.${other.url}.insteadOf`,
      GIT_CONFIG_VALUE_0: wanted.url,
    };
    Object.assign(process.env, variables);
    try {
      const answer = await json(["add", wanted.url, "--yes"]);
      expect(answer.data["sources"]).toMatchObject([{ commit: wanted.head }]);
    } finally {
      for (const name of Object.keys(variables)) delete process.env[name];
    }
  });

  test("no hook, filter or helper of the user's git runs", async () => {
    const repository = new TestRepository("tools", { ...linter, ".gitattributes": "* filter=evil diff=evil\n" });
    const program = place.at("evil.sh");
    writeFileSync(program, `#!/bin/sh\ntouch "${place.at("ran")}"\ncat\n`);
    chmodSync(program, 0o755);
    mkdirSync(place.at("hooks"));
    for (const hook of ["post-checkout", "reference-transaction", "post-index-change", "pre-auto-gc"]) {
      writeFileSync(place.at(`hooks/${hook}`), `#!/bin/sh\ntouch "${place.at("ran")}"\n`, { mode: 0o755 });
    }
    const filters = `[filter "evil"]\n  smudge = ${program}\n  clean = ${program}\n  required = true\n[diff "evil"]\n  textconv = ${program}\n`;
    place.write("git-home/.gitconfig", `[core]\n  hooksPath = ${place.at("hooks")}\n  fsmonitor = ${program}\n${filters}`);
    expect(await run(["add", repository.url, "--yes"])).toMatchObject({ code: 0 });
    // An abbreviated commit needs all refs, and to write these.
    expect(await run(["add", `${repository.url}@${repository.head.slice(0, 9)}`, "--yes"])).toMatchObject({ code: 0 });
    expect(existsSync(place.at("ran"))).toBe(false);
  });

  test("a repository that is larger than the limit, or lists more files, is not read", async () => {
    const repository = new TestRepository("large", linter);
    writeFileSync(`${repository.folder}/random`, randomBytes(3 * 1024 * 1024));
    repository.commit({});
    const { signal } = new AbortController();
    const fetch = (folder: string, limits: GitLimits): ReturnType<typeof fetchRepository> =>
      fetchRepository({ url: repository.url }, { folder: place.at(folder), signal, limits });
    await expect(fetch("one", { fetchedBytes: 1024 * 1024, entries: 100 })).rejects.toMatchObject({ code: "GIT_SIZE" });
    const fetched = await fetch("two", { fetchedBytes: 256 * 1024 * 1024, entries: 1 });
    await expect(fetched.list(undefined, signal)).rejects.toMatchObject({ code: "GIT_SIZE" });
    expect(await fetched.list("skills", signal)).toHaveLength(1);
  });

  test("a tree of trees that would never end to list is not read to its end", async () => {
    const repository = new TestRepository("bomb");
    const blob = repository.gitWith("x", "hash-object", "-w", "--stdin").trim();
    let tree = repository.gitWith(Array.from({ length: 10 }, (_, i) => `100644 blob ${blob}\tf${i}\n`).join(""), "mktree").trim();
    for (let level = 0; level < 9; level++)
      tree = repository.gitWith(Array.from({ length: 10 }, (_, i) => `040000 tree ${tree}\td${i}\n`).join(""), "mktree").trim();
    repository.git("update-ref", "refs/heads/main", repository.git("commit-tree", "-m", "x", tree).trim());
    expect((await json(["add", repository.url, "--yes"])).error).toEqual({
      code: "GIT_SIZE",
      message: expect.stringContaining("200000 files"),
    });
  });

  test("a transfer that stalls is ended by an interruption, and leaves nothing", async () => {
    let asked = (): void => {};
    const isAsked = new Promise<void>((resolve) => {
      asked = resolve;
    });
    await using server = await listen(createServer(() => asked()));
    const running = startCli(["add", `${server.origin}/x.git`, "--yes"], { cwd: place.at("project") });
    await isAsked;
    running.interrupt();
    expect((await running.done).code).not.toBe(0);
    expect(project()).toEqual(["package.json"]);
    expect(existsSync(place.at("project/node_modules"))).toBe(false);
  });
});

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.closeAllConnections();
});

async function listen(server: Server): Promise<AsyncDisposable & { readonly origin: string }> {
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
