import { execFileSync, spawnSync } from "node:child_process";
import { readFileSync, realpathSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { isTrackedByGit, parseGitIndex } from "../../src/trust/installed-packages.ts";
import { scopeOfFolder } from "../../src/trust/trust-policy.ts";
import { put, tempFolder } from "../skills/kit.ts";

const hasGit = spawnSync("git", ["--version"]).status === 0;
const lock = JSON.stringify({ lockfileVersion: 3, packages: { "node_modules/a": { version: "1.0.0" } } });
const files = {
  "package-lock.json": lock,
  "node_modules/a/skills/x/SKILL.md": "x",
  "node_modules/a/skills/x/tools/a-rather-long-name-of-a-tool.ts": "x",
  "node_modules/ab/SKILL.md": "x",
  "src/deep/node_modules/b/index.js": "x",
  "README.md": "x",
};

function checkout(): { readonly root: string; git(...args: string[]): void } {
  const root = realpathSync(tempFolder(files));
  const git = (...args: string[]): void => void execFileSync("git", args, { cwd: root, stdio: "pipe" });
  git("init", "--quiet");
  return { root, git };
}

describe.skipIf(!hasGit)("a package that Git tracks", () => {
  test.each(["2", "3", "4"])("is part of the project, with an index of version %s", (version) => {
    const { root, git } = checkout();
    const [a, ab] = [join(root, "node_modules/a"), join(root, "node_modules/ab")];
    expect(isTrackedByGit(a)).toBe(false);
    expect(scopeOfFolder(join(a, "skills/x"))).toBe("package");
    git("add", "--force", "package-lock.json", "README.md", "src", "node_modules/ab");
    git("update-index", "--index-version", version);
    // An entry that is only intended makes version 3 necessary.
    if (version === "3") git("add", "--intent-to-add", "--force", "node_modules/ab");
    expect([isTrackedByGit(a), isTrackedByGit(ab)]).toEqual([false, true]);
    expect(scopeOfFolder(join(a, "skills/x"))).toBe("package");
    git("add", "--force", "node_modules");
    expect(isTrackedByGit(a)).toBe(true);
    expect(isTrackedByGit(join(root, "src/deep/node_modules/b"))).toBe(true);
    expect(scopeOfFolder(join(a, "skills/x"))).toBe("project");
  });

  test("is part of the project in a worktree, too", () => {
    const { root, git } = checkout();
    git("add", "--force", ".");
    git("-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "--quiet", "--message", "all");
    git("worktree", "add", "--quiet", "other");
    expect(scopeOfFolder(join(root, "other/node_modules/a/skills/x"))).toBe("project");
  });

  test("counts as tracked where the index is split, damaged, or not one", () => {
    const { root, git } = checkout();
    git("add", "--force", "node_modules");
    git("update-index", "--split-index");
    expect(isTrackedByGit(join(root, "node_modules/a"))).toBe(true);
    for (const text of ["DIRC", "", "DIRC\0\0\0\u0002\0\0\0\u0009"]) {
      put(join(root, ".git/index"), text);
      expect(isTrackedByGit(join(root, "node_modules/a"))).toBe(true);
    }
  });
});

test.skipIf(!hasGit)("an index of which some bytes were changed is read or refused, and never throws", () => {
  const { root, git } = checkout();
  git("add", "--force", ".");
  git("update-index", "--index-version", "4");
  const whole = readFileSync(join(root, ".git/index"));
  expect(parseGitIndex(whole)).toContain("node_modules/ab/SKILL.md");
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.nat(whole.length - 1), fc.nat(255)), { maxLength: 8 }), fc.nat(whole.length), (changes, length) => {
      const bytes = Buffer.from(whole);
      for (const [at, value] of changes) bytes[at] = value;
      const paths = parseGitIndex(bytes.subarray(0, length));
      expect(paths === undefined || paths.every((path) => typeof path === "string")).toBe(true);
    }),
    { numRuns: 3_000 },
  );
});
