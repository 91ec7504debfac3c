import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { discoverRoot, fixedPart, resolveRoot } from "../../src/skills/store/skill-roots.ts";

let base: string;
beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), "discover-"));
});
afterEach(() => rmSync(base, { recursive: true, force: true }));

function skillAt(path: string, file = "SKILL.md"): void {
  mkdirSync(join(base, path), { recursive: true });
  writeFileSync(join(base, path, file), file.endsWith("json") ? "{}" : "x");
}

const foldersOf = (root: string): string[] => discoverRoot(resolveRoot(root, base)).folders.map((folder) => folder.slice(base.length + 1));

test("a root is a skill's own folder or a parent of skill folders in the order of their names", () => {
  skillAt("skills/b");
  skillAt("skills/a", "skill.json");
  skillAt("skills/c", "Skill.md");
  mkdirSync(join(base, "skills/empty"));
  skillAt("skills/node_modules/x");
  skillAt("skills/deep/inner");
  expect(foldersOf("skills")).toEqual(["skills/a", "skills/b", "skills/c"]);
  expect(foldersOf("./skills/a")).toEqual(["skills/a"]);
  expect(foldersOf("nowhere")).toEqual([]);
});

test("a folder with tools and no manifest is reported, and other folders are not", () => {
  skillAt("skills/a/tools", "one.ts");
  skillAt("skills/b/tools", "one.ts");
  skillAt("skills/b");
  skillAt("skills/c/tools", "notes.txt");
  mkdirSync(join(base, "skills/d/tools"), { recursive: true });
  const { folders, diagnostics } = discoverRoot(join(base, "skills"));
  expect(folders).toEqual([join(base, "skills/b")]);
  expect(diagnostics).toMatchObject([{ code: "SKILL_NO_MANIFEST", severity: "warning", file: join(base, "skills/a") }]);
  expect(diagnostics[0]?.message).toContain("SKILL.md");
});

test("patterns of skill folders and the home folder are expanded", () => {
  skillAt("packages/one/skills/x");
  skillAt("packages/two/skills/y");
  const root = resolveRoot("packages/*/skills", base);
  expect(foldersOf("packages/*/skills")).toEqual(["packages/one/skills/x", "packages/two/skills/y"]);
  expect(fixedPart(root)).toBe(join(base, "packages"));
  expect(resolveRoot("~/x/skills", base)).toBe(join(homedir(), "x/skills"));
});

test.skipIf(process.platform === "win32")(
  "links to folders are followed once each, a broken link is reported, and a circular one is harmless",
  () => {
    skillAt("real/a");
    mkdirSync(join(base, "skills"));
    symlinkSync(join(base, "real/a"), join(base, "skills/linked"));
    symlinkSync(join(base, "real/a"), join(base, "skills/twice"));
    symlinkSync(join(base, "gone"), join(base, "skills/broken"));
    symlinkSync(join(base, "skills"), join(base, "skills/circle"));
    const listing = discoverRoot(join(base, "skills"));
    expect(listing.folders).toEqual([join(base, "skills/linked")]);
    expect(listing.diagnostics).toMatchObject([{ code: "SKILL_LINK_BROKEN", file: join(base, "skills/broken") }]);
  },
);
