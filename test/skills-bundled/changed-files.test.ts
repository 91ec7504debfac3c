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

describe("get_changed_files in a repository with changes", () => {
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

  test("accepts the working directory as an absolute path", async () => {
    expect((await changed({ repositoryPath: repository })).textResultForLlm).toBe(all);
  });

  test("lists the files of a subfolder relative to that folder", async () => {
    write("sub/inner.txt");
    git("add", "sub");
    write("sub/other.txt");
    const result = await changed({ repositoryPath: "sub" });
    expect(result.textResultForLlm).toBe("## Staged files\ninner.txt\n\n## Untracked files\nother.txt");
  });

  test("lists names with spaces, quotes, line breaks and other scripts unambiguously", async () => {
    for (const name of ["with space.txt", "zażółć 漢字 😀.txt", 'quo"te.txt', "line\nbreak.txt", "-rf"]) write(`names/${name}`);
    const result = await changed({ sourceControlState: "untracked", repositoryPath: "names" });
    const lines = result.textResultForLlm.split("\n");
    expect(lines).toEqual(["## Untracked files", "-rf", '"line\\nbreak.txt"', '"quo\\"te.txt"', "with space.txt", "zażółć 漢字 😀.txt"]);
  });

  test("rejects an unknown state and lists the valid ones", async () => {
    const result = await changed({ sourceControlState: "modified" });
    expect(result.resultType).toBe("failure");
    expect(result.textResultForLlm).toMatch(/sourceControlState.*all.*staged.*unstaged.*untracked/s);
  });

  test("does not start programs that the repository's settings name", async () => {
    const proof = join(root, "proof");
    writeFileSync(join(root, "hook.sh"), `#!/bin/sh\ntouch ${proof}\n`, { mode: 0o755 });
    git("config", "core.fsmonitor", join(root, "hook.sh"));
    git("config", "core.hooksPath", root);
    git("config", "diff.external", join(root, "hook.sh"));
    writeFileSync(join(root, "post-index-change"), `#!/bin/sh\ntouch ${proof}\n`, { mode: 0o755 });
    expect((await changed()).textResultForLlm).toBe(all);
    expect(() => realpathSync(proof)).toThrow("ENOENT");
  });

  test("ignores the variables that git sets for hooks", async () => {
    vi.stubEnv("GIT_DIR", join(root, "elsewhere"));
    vi.stubEnv("GIT_INDEX_FILE", join(root, "index"));
    expect((await changed()).textResultForLlm).toBe(all);
  });
});

describe("get_changed_files without anything to list", () => {
  test("reports that a clean repository has no changed files", async () => {
    git("init", "-q");
    expect(await changed()).toMatchObject({ resultType: "success", textResultForLlm: "No changed files found." });
  });

  test("lists the staged files of a repository without commits", async () => {
    git("init", "-q");
    write("first.txt");
    git("add", ".");
    expect((await changed()).textResultForLlm).toBe("## Staged files\nfirst.txt");
  });

  test("fails outside a repository without showing paths of the host", async () => {
    // Git looks for a repository upwards; the temporary folder must not be within one.
    vi.stubEnv("GIT_CEILING_DIRECTORIES", root);
    const result = await changed();
    expect(result).toMatchObject({ resultType: "failure", textResultForLlm: "This folder is not part of a git repository." });
    expect(result.error).toContain("not a git repository");
  });

  test("fails in a bare repository", async () => {
    git("init", "-q", "--bare");
    expect(await changed()).toMatchObject({ resultType: "failure", textResultForLlm: expect.stringContaining("bare repository") });
  });

  test("reports that git is not installed", async () => {
    git("init", "-q");
    vi.stubEnv("PATH", root);
    expect(await changed()).toMatchObject({
      resultType: "failure",
      textResultForLlm: "git is not installed, or not on the PATH of the host.",
    });
  });

  test.each([
    ["..", "is outside the working directory"],
    ["/", "is outside the working directory"],
    ["out", "is outside the working directory"],
    ["missing", 'folder "missing" was not found'],
    ["file.txt", "is not a folder"],
    ["nul\0byte", "was not found"],
  ])("refuses the path %j", async (repositoryPath, reason) => {
    git("init", "-q");
    write("file.txt");
    symlinkSync(root, join(repository, "out"));
    const result = await changed({ repositoryPath });
    expect(result.resultType).toBe("failure");
    expect(result.textResultForLlm).toContain(reason);
    expect(result.textResultForLlm).not.toContain(root);
  });
});
