import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve, sep } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { confinePath, isInside } from "../../src/io/confine-path.ts";
import { generated } from "../rounds.ts";

let base = "";
let root = "";
beforeAll(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), "confine-")));
  root = join(base, "root");
  mkdirSync(join(root, "docs"), { recursive: true });
  mkdirSync(join(base, "root-sibling"));
  writeFileSync(join(root, "docs/a.md"), "a");
  writeFileSync(join(base, "secret.txt"), "s");
  symlinkSync("..", join(root, "out"));
  symlinkSync("../secret.txt", join(root, "out.txt"));
  symlinkSync("docs", join(root, "in"));
  symlinkSync("../../root/docs", join(root, "docs/round"));
  symlinkSync("../missing/file", join(root, "dangling"));
  symlinkSync("self", join(root, "self"));
});
afterAll(() => rmSync(base, { recursive: true, force: true }));

describe("confinePath", () => {
  test.each([
    ["docs/a.md", "docs/a.md"],
    ["./docs//a.md", "docs/a.md"],
    ["docs/../docs/a.md", "docs/a.md"],
    ["docs\\a.md", "docs/a.md"],
    ["", ""],
    [".", ""],
    ["new/deep/file.md", "new/deep/file.md"],
    ["docs/a.md/below-a-file", "docs/a.md/below-a-file"],
    ["..c", "..c"],
    ["...c/x", "...c/x"],
    ["in/a.md", "in/a.md"],
    ["docs/round/a.md", "docs/round/a.md"],
    ["~/x", "~/x"],
    ["console.md", "console.md"],
    ["__proto__", "__proto__"],
  ])("%j stays inside", (path, expected) => {
    expect(confinePath(root, path)).toEqual({ ok: true, path: resolve(root, expected) });
  });

  test.each([
    ["/etc/passwd", "absolute"],
    ["\\\\server\\share", "absolute"],
    ["//server/share", "absolute"],
    ["\\windows", "absolute"],
    ["C:\\x", "absolute"],
    ["c:x", "absolute"],
    ["..", "escapes"],
    ["../root-sibling/x", "escapes"],
    ["docs/../../secret.txt", "escapes"],
    ["..\\secret.txt", "escapes"],
    ["docs/..\\..\\secret.txt", "escapes"],
    ["a\0.md", "invalid"],
    ["nul", "invalid"],
    ["docs/CON.txt", "invalid"],
    ["docs/com1 .md", "invalid"],
    ["docs/AUX:stream", "invalid"],
    [".. /secret.txt", "invalid"],
    ["docs/ ../x", "invalid"],
    ["docs/.../x", "invalid"],
    ["out", "link-out"],
    ["out/secret.txt", "link-out"],
    ["out/new/file", "link-out"],
    ["out.txt", "link-out"],
    ["in/../out/secret.txt", "link-out"],
    ["dangling", "unreadable"],
    ["self", "unreadable"],
  ])("%j is refused: %s", (path, reason) => {
    const confined = confinePath(root, path);
    expect(confined).toMatchObject({ ok: false, reason });
    if (!confined.ok) expect(confined.message).not.toContain(base);
  });

  test("a root may be a link or not exist yet", () => {
    symlinkSync("root", join(base, "alias"));
    expect(confinePath(join(base, "alias"), "docs/a.md")).toMatchObject({ ok: true });
    expect(confinePath(join(base, "alias"), "out/secret.txt")).toMatchObject({ ok: false, reason: "link-out" });
    expect(confinePath(join(base, "later"), "x/y")).toEqual({ ok: true, path: join(base, "later/x/y") });
  });

  test("every accepted path is inside the root, for any combination of segments", () => {
    const piece = fc.oneof(
      fc.constantFrom(
        "..",
        ".",
        "",
        "docs",
        "out",
        "in",
        "round",
        "a.md",
        "out.txt",
        "~",
        "C:",
        "nul",
        "...",
        ".. ",
        "new",
        "\0",
        "%2e%2e",
        "dangling",
        "self",
        "secret.txt",
        "root-sibling",
        "aux.",
        "\uff0e\uff0e",
        "..\u200b",
      ),
      fc.string({ maxLength: 6 }),
      fc.string({ unit: "grapheme", maxLength: 4 }),
    );
    const path = fc
      .tuple(fc.array(piece, { maxLength: 8 }), fc.constantFrom("/", "\\", "//", "/./"))
      .map(([pieces, separator]) => pieces.join(separator));
    fc.assert(
      fc.property(path, (candidate) => {
        const confined = confinePath(root, candidate);
        if (!confined.ok) return confined.message.length > 0;
        const real = existsSync(confined.path) ? realpathSync(confined.path) : confined.path;
        return isInside(root, confined.path) && isInside(root, real);
      }),
      { numRuns: generated(2_000, 300_000) },
    );
  });
});

describe("isInside", () => {
  test("a folder and its descendants are inside, siblings and parents are outside", () => {
    expect(isInside("/a/b", "/a/b")).toBe(true);
    expect(isInside("/a/b", "/a/b/c")).toBe(true);
    expect(isInside("/a/b", "/a/b/..c")).toBe(true);
    expect(isInside("/a/b/", "/a/b/c/../d")).toBe(true);
    expect(isInside("/a/b", "/a/bc")).toBe(false);
    expect(isInside("/a/b", "/a")).toBe(false);
    expect(isInside("/a/b", "/a/b/../c")).toBe(false);
    expect(isInside("/", "/anything")).toBe(true);
  });

  test("joined ordinary names stay inside, and one more parent segment leads outside", () => {
    const name = fc.stringMatching(/^[a-z][a-z0-9.]{0,8}$/);
    fc.assert(
      fc.property(fc.array(name, { minLength: 1, maxLength: 5 }), (names) => {
        const path = join(sep, "folder", ...names);
        return isInside(join(sep, "folder"), path) && !isInside(path, join(path, ".."));
      }),
    );
  });
});
