import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { createTestHost } from "skillhost/testing";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";

const skill = fileURLToPath(new URL("../../skills/changed-files/", import.meta.url));
let root: string;
let repository: string;

beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), "changed-files-")));
  repository = join(root, "repository");
  mkdirSync(repository);
});

afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(root, { recursive: true, force: true });
});

function git(...args: string[]): void {
  const identity = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main", "-c", "commit.gpgsign=false"];
  execFileSync("git", [...identity, ...args], { cwd: repository, stdio: "pipe" });
}

function write(path: string, text = path): void {
  mkdirSync(dirname(join(repository, path)), { recursive: true });
  writeFileSync(join(repository, path), text);
}

async function changed(args: object = {}, workingDirectory = repository) {
  await using server = await createTestHost({ skillDirectories: [skill], workingDirectory, watch: false });
  return await server.call("get_changed_files", args);
}

/** A repository with one file of each state, and one that is both staged and edited again. */
function prepare(): void {
  git("init", "-q");
  for (const path of ["edited.txt", "staged.txt", "both.txt", "same.txt"]) write(path);
  write(".gitignore", "ignored.txt\n");
  git("add", ".");
  git("commit", "-q", "-m", "first");
  for (const path of ["edited.txt", "staged.txt", "both.txt"]) write(path, "new");
  git("add", "staged.txt", "both.txt");
  write("both.txt", "newer");
  write("fresh.txt");
  write("ignored.txt");
}

const all = "## Staged files\nboth.txt\nstaged.txt\n\n## Unstaged changes\nboth.txt\nedited.txt\n\n## Untracked files\nfresh.txt";

describe("a repository with changes", () => {
  beforeEach(prepare);

  test.each([
    [{}, all],
    [{ sourceControlState: "all" }, all],
    [{ sourceControlState: "staged" }, "## Staged files\nboth.txt\nstaged.txt"],
    [{ sourceControlState: "unstaged" }, "## Unstaged changes\nboth.txt\nedited.txt"],
    [{ sourceControlState: "untracked" }, "## Untracked files\nfresh.txt"],
    [{ repositoryPath: "." }, all],
  ])("lists %o", async (args, text) => {
    expect(await changed(args)).toMatchObject({ resultType: "success", textResultForLlm: text });
  });

  test("an absolute path of the working directory is the working directory", async () => {
    expect((await changed({ repositoryPath: repository })).textResultForLlm).toBe(all);
  });

  test("in a folder of the repository, lists what is below it, relative to it", async () => {
    write("sub/inner.txt");
    git("add", "sub");
    write("sub/other.txt");
    const result = await changed({ repositoryPath: "sub" });
    expect(result.textResultForLlm).toBe("## Staged files\ninner.txt\n\n## Untracked files\nother.txt");
  });

  test("names with spaces, quotes, line breaks and other scripts are listed so that each can be told", async () => {
    for (const name of ["with space.txt", "zażółć 漢字 😀.txt", 'quo"te.txt', "line\nbreak.txt", "-rf"]) write(`names/${name}`);
    const result = await changed({ sourceControlState: "untracked", repositoryPath: "names" });
    const lines = result.textResultForLlm.split("\n");
    expect(lines).toEqual(["## Untracked files", "-rf", '"line\\nbreak.txt"', '"quo\\"te.txt"', "with space.txt", "zażółć 漢字 😀.txt"]);
  });

  test("a state outside the list is refused with the list", async () => {
    const result = await changed({ sourceControlState: "modified" });
    expect(result.resultType).toBe("failure");
    expect(result.textResultForLlm).toMatch(/sourceControlState.*all.*staged.*unstaged.*untracked/s);
  });

  test("settings that the repository brings along start no program", async () => {
    const proof = join(root, "proof");
    writeFileSync(join(root, "hook.sh"), `#!/bin/sh\ntouch ${proof}\n`, { mode: 0o755 });
    git("config", "core.fsmonitor", join(root, "hook.sh"));
    git("config", "core.hooksPath", root);
    git("config", "diff.external", join(root, "hook.sh"));
    writeFileSync(join(root, "post-index-change"), `#!/bin/sh\ntouch ${proof}\n`, { mode: 0o755 });
    expect((await changed()).textResultForLlm).toBe(all);
    expect(() => realpathSync(proof)).toThrow("ENOENT");
  });

  test("variables that git sets for its hooks do not lead to another repository", async () => {
    vi.stubEnv("GIT_DIR", join(root, "elsewhere"));
    vi.stubEnv("GIT_INDEX_FILE", join(root, "index"));
    expect((await changed()).textResultForLlm).toBe(all);
  });
});

describe("nothing to list", () => {
  test("a clean repository has no changed files", async () => {
    git("init", "-q");
    expect(await changed()).toMatchObject({ resultType: "success", textResultForLlm: "No changed files found." });
  });

  test("a repository without a commit lists what is staged", async () => {
    git("init", "-q");
    write("first.txt");
    git("add", ".");
    expect((await changed()).textResultForLlm).toBe("## Staged files\nfirst.txt");
  });

  test("a folder that is no repository is a failure that says so, without the host's paths", async () => {
    // Git looks for a repository upwards; the temporary folder must not be within one.
    vi.stubEnv("GIT_CEILING_DIRECTORIES", root);
    const result = await changed();
    expect(result).toMatchObject({ resultType: "failure", textResultForLlm: "This folder is not part of a git repository." });
    expect(result.error).toContain("not a git repository");
  });

  test("a bare repository is told from a repository without changes", async () => {
    git("init", "-q", "--bare");
    expect(await changed()).toMatchObject({ resultType: "failure", textResultForLlm: expect.stringContaining("bare repository") });
  });

  test("without git the failure says what is missing", async () => {
    git("init", "-q");
    vi.stubEnv("PATH", root);
    expect(await changed()).toMatchObject({
      resultType: "failure",
      textResultForLlm: "git is not installed, or not on the PATH of the host.",
    });
  });

  test.each([
    ["..", "lies outside the working directory"],
    ["/", "lies outside the working directory"],
    ["out", "lies outside the working directory"],
    ["missing", 'There is no folder "missing"'],
    ["file.txt", "is not a folder"],
    ["nul\0byte", "There is no folder"],
  ])("a path such as %j is refused", async (repositoryPath, reason) => {
    git("init", "-q");
    write("file.txt");
    symlinkSync(root, join(repository, "out"));
    const result = await changed({ repositoryPath });
    expect(result.resultType).toBe("failure");
    expect(result.textResultForLlm).toContain(reason);
    expect(result.textResultForLlm).not.toContain(root);
  });
});
