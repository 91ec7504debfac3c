import { expect, test } from "vitest";
import { parseGitSource, repositoryLabel } from "../../src/packages/sources/git-source.ts";

const github = "https://github.com/acme/skills.git";

test.each<[string, object]>([
  ["acme/skills", { url: github }],
  ["acme/skills.git", { url: github }],
  ["github:acme/skills", { url: github }],
  ["acme/skills@v1.2", { url: github, ref: "v1.2" }],
  ["acme/skills#feature/x", { url: github, ref: "feature/x" }],
  ["acme/skills@feature/x", { url: github, ref: "feature/x" }],
  ["acme/skills/skills/lint", { url: github, path: "skills/lint" }],
  ["acme/skills/skills/lint@main", { url: github, ref: "main", path: "skills/lint" }],
  ["acme/skills/@scope/lint#main", { url: github, ref: "main", path: "@scope/lint" }],
  ["acme/skills/skills/lint/SKILL.md", { url: github, path: "skills/lint" }],
  ["gitlab:acme/skills", { url: "https://gitlab.com/acme/skills.git" }],
  ["https://github.com/acme/skills", { url: github }],
  ["https://github.com/acme/skills/", { url: github }],
  ["https://github.com/acme/skills.git", { url: github }],
  ["https://github.com/acme/skills/tree/v1/skills/lint", { url: github, ref: "v1", path: "skills/lint" }],
  ["https://github.com/acme/skills/blob/main/skills/a%20b/SKILL.md", { url: github, ref: "main", path: "skills/a b" }],
  ["https://gitlab.com/acme/skills/-/tree/v1/lint", { url: "https://gitlab.com/acme/skills.git", ref: "v1", path: "lint" }],
  ["https://codeberg.org/acme/skills/src/branch/main/lint", { url: "https://codeberg.org/acme/skills.git", ref: "main", path: "lint" }],
  ["https://git.example.org/deep/group/skills.git", { url: "https://git.example.org/deep/group/skills.git" }],
  ["https://git.example.org/skills.git@v1", { url: "https://git.example.org/skills.git", ref: "v1" }],
  ["https://git.example.org/skills.git#release/1", { url: "https://git.example.org/skills.git", ref: "release/1" }],
  ["https://git.example.org/skills.git/lint@v1", { url: "https://git.example.org/skills.git", ref: "v1", path: "lint" }],
  ["git+https://git.example.org/skills#v1", { url: "https://git.example.org/skills", ref: "v1" }],
  ["git@github.com:acme/skills.git", { url: "git@github.com:acme/skills.git" }],
  ["git@github.com:acme/skills.git/lint@v1", { url: "git@github.com:acme/skills.git", ref: "v1", path: "lint" }],
  ["git@host:skills", { url: "git@host:skills" }],
  ["ssh://git@example.org:2222/acme/skills.git#v1", { url: "ssh://git@example.org:2222/acme/skills.git", ref: "v1" }],
  ["ssh://git@example.org/acme/skills@v1", { url: "ssh://git@example.org/acme/skills", ref: "v1" }],
  ["file:///srv/skills.git", { url: "file:///srv/skills.git" }],
])("%s is a Git repository", (given, source) => {
  expect(parseGitSource(given)).toEqual(source);
});

test.each([
  "linter",
  "linter@^1.2.0",
  "@acme/linter",
  "@acme/linter@1.0.0",
  "alias@npm:linter@1",
  "./acme/skills",
  "../acme/skills",
  "/acme/skills",
  "~/acme/skills",
  "C:/acme/skills",
  "file:../acme",
  "file:///srv/package",
  "acme/skills.tgz",
  "https://example.org/skills.tgz",
  "https://example.org/skills",
  "https://github.com/acme/skills/releases/download/v1/linter.tgz",
  "https://github.com/acme",
  "skillhost:memory",
])("%s is something else", (given) => {
  expect(parseGitSource(given)).toBeUndefined();
});

test.each([
  ["acme/skills#--upload-pack=/bin/sh", "valid branch"],
  ["acme/skills@-x", "valid branch"],
  ["acme/skills#a..b", "valid branch"],
  ["acme/skills#main:refs/heads/x", "valid branch"],
  ["acme/skills/../../etc", "not a path"],
  ["acme/skills/a//b", "not a path"],
  ["git://example.org/skills.git", "not encrypted"],
  ["http://example.org/skills.git", "not encrypted"],
  ["https://me:secret@example.org/skills.git", "credentials"],
  ["https://token@example.org/skills.git", "credentials"],
  ["ssh://-oProxyCommand=touch/skills.git", "hyphen"],
  ["file:///srv/a b.git", "space"],
])("%s is refused", (given, why) => {
  const parse = (): unknown => parseGitSource(given);
  expect(parse).toThrow(expect.objectContaining({ code: "GIT_SOURCE", message: expect.stringContaining(why) }));
  expect(parse).not.toThrow(/secret|token/);
});

test("repositories of GitHub have a short name", () => {
  expect([github, "https://gitlab.com/a/b.git", "git@host:a.git"].map(repositoryLabel)).toEqual([
    "acme/skills",
    "gitlab.com/a/b",
    "git@host:a",
  ]);
});
