import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test, vi } from "vitest";
import { locationOf } from "../../src/trust/trust-file.ts";

const root = realpathSync(mkdtempSync(join(tmpdir(), "locations-test-")));
afterAll(() => rmSync(root, { recursive: true, force: true }));

test("a folder in a checkout is known by the checkout's root", () => {
  const checkout = join(root, "checkout");
  mkdirSync(join(checkout, ".git"), { recursive: true });
  mkdirSync(join(checkout, "packages", "one"), { recursive: true });
  expect(locationOf(join(checkout, "packages", "one"))).toBe(checkout);
  expect(locationOf(checkout)).toBe(checkout);
});

test("a linked work tree has a file for .git", () => {
  const tree = join(root, "tree");
  mkdirSync(join(tree, "src"), { recursive: true });
  writeFileSync(join(tree, ".git"), "gitdir: elsewhere");
  expect(locationOf(join(tree, "src"))).toBe(tree);
});

test("any other folder is itself, links followed", () => {
  const plain = join(root, "plain");
  mkdirSync(plain);
  symlinkSync(plain, join(root, "link"), "junction");
  expect(locationOf(plain)).toBe(plain);
  expect(locationOf(join(root, "link"))).toBe(plain);
  expect(locationOf(join(root, "not-there"))).toBe(join(root, "not-there"));
});

test.skipIf(process.platform === "win32")("a home folder that is a checkout does not stand for all that is below it", () => {
  const home = join(root, "home");
  mkdirSync(join(home, ".git"), { recursive: true });
  mkdirSync(join(home, "project"));
  vi.stubEnv("HOME", home);
  try {
    expect(homedir()).toBe(home);
    expect(locationOf(join(home, "project"))).toBe(join(home, "project"));
    expect(locationOf(home)).toBe(home);
  } finally {
    vi.unstubAllEnvs();
  }
});
