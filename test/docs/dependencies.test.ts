import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const root = fileURLToPath(new URL("../../", import.meta.url));
const page = readFileSync(join(root, "docs/dependencies.md"), "utf8");

interface LockedEntry {
  readonly dev?: boolean;
  readonly os?: readonly string[];
  readonly cpu?: readonly string[];
  readonly libc?: readonly string[];
}

test("docs/dependencies.md lists every dependency and no other, with its purpose and the reason for its choice", () => {
  const rows = page.split("\n").filter((line) => line.startsWith("| `"));
  const reasons = rows.flatMap((row) => {
    const [names = "", use = "", why = ""] = row.split("|").slice(1, -1);
    expect([use.trim() !== "", why.trim() !== ""], row).toEqual([true, true]);
    return [...names.matchAll(/`([^`]+)`/g)].map(([, name]) => name!);
  });
  const { dependencies } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { dependencies: Record<string, string> };
  expect(reasons.sort()).toEqual(Object.keys(dependencies).sort());
});

test("docs/dependencies.md gives the number of packages that an installation on Linux has", () => {
  const { packages } = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")) as { packages: Record<string, LockedEntry> };
  const isThere = (list: readonly string[] | undefined, own: string): boolean => list === undefined || list.includes(own);
  const installed = Object.entries(packages).filter(
    ([path, { dev, os, cpu, libc }]) =>
      path !== "" && dev !== true && isThere(os, "linux") && isThere(cpu, "x64") && isThere(libc, "glibc"),
  );
  expect(Number(/they are (\d+) packages/.exec(page)?.[1])).toBe(installed.length);
});
