import { mkdirSync, realpathSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { scopeOfFolder } from "../../src/trust/trust-policy.ts";
import { loadTrustSettings, type TrustOptions } from "../../src/trust/trust-settings.ts";
import { openKit, put, skillMd, tempFolder, toolSource } from "../skills/kit.ts";

const skill = (at: string): Readonly<Record<string, string>> => ({
  [`${at}/SKILL.md`]: skillMd("stranger"),
  [`${at}/tools/ran.ts`]: toolSource("ran", '"it ran"'),
});

const lockOf = (...locations: readonly string[]): string =>
  JSON.stringify({ lockfileVersion: 3, packages: Object.fromEntries(["", ...locations].map((at) => [at, { version: "1.0.0" }])) });

function admitted(folder: string, trust: TrustOptions): { readonly kind: string; readonly mode?: string } {
  const settings = loadTrustSettings({ ...trust, directory: join(dirname(folder), "unused") });
  const admission = settings.skills?.admit(folder);
  return admission === undefined ? { kind: "not looked at" } : { kind: admission.kind, mode: admission.state.mode };
}

describe("a folder is of the scope", () => {
  const cases: readonly [scope: string, lock: Readonly<Record<string, string>>, folder: string][] = [
    ["package", { "package-lock.json": lockOf("node_modules/a") }, "node_modules/a/skills/x"],
    ["package", { "package-lock.json": lockOf("node_modules/@s/a") }, "node_modules/@s/a"],
    ["package", { "node_modules/.package-lock.json": lockOf("node_modules/a") }, "node_modules/a/skills/x"],
    ["package", { "npm-shrinkwrap.json": lockOf("node_modules/a") }, "node_modules/a"],
    [
      "package",
      { "package-lock.json": lockOf("node_modules/b", "node_modules/b/node_modules/a") },
      "node_modules/b/node_modules/a/skills/x",
    ],
    ["project", {}, "node_modules/a/skills/x"],
    ["project", { "package-lock.json": lockOf("node_modules/a") }, "x/node_modules/a"],
    ["project", { "package-lock.json": lockOf("node_modules/ab") }, "node_modules/a"],
    ["project", { "package-lock.json": lockOf("node_modules/a") }, "node_modules/@s/a"],
    ["project", { "package-lock.json": lockOf("node_modules/a") }, "node_modules/a/skills/x/node_modules/hidden"],
    ["project", { "package-lock.json": lockOf("node_modules/b") }, "node_modules/b/node_modules/a"],
    ["project", { "package-lock.json": lockOf(""), "node_modules/.package-lock.json": lockOf("node_modules/a") }, "node_modules/a"],
    ["project", { "package-lock.json": "{ not JSON" }, "node_modules/a"],
    ["project", { "package-lock.json": '{ "packages": ["node_modules/a"] }' }, "node_modules/a"],
    ["project", { "package-lock.json": '{ "packages": { "node_modules/a": { "link": true, "resolved": "a" } } }' }, "node_modules/a"],
    ["project", { "package-lock.json": lockOf("node_modules") }, "node_modules"],
  ];
  test.each(cases)("%s with the locks %o at %s", (scope, files, folder) => {
    const root = tempFolder({ ...files, ...skill(folder) });
    expect(scopeOfFolder(realpathSync(join(root, folder)))).toBe(scope);
  });

  test("package only until its lock no longer lists it", () => {
    const root = tempFolder({ "package-lock.json": lockOf("node_modules/a"), ...skill("node_modules/a") });
    const folder = realpathSync(join(root, "node_modules/a"));
    expect(scopeOfFolder(folder)).toBe("package");
    put(join(root, "package-lock.json"), lockOf());
    expect(scopeOfFolder(folder)).toBe("project");
  });
});

test.each([
  ["lies in a folder named node_modules", "x/node_modules/a", undefined],
  ["is reached by a link into such a folder", "x/node_modules/a", "skills/a"],
  ["lies in a folder named node_modules of a listed package", "node_modules/b/node_modules/a", undefined],
  ["is listed by a lock that the checkout brought", "node_modules/a", undefined],
])("a policy for projects holds for a skill that %s", async (_, folder, link) => {
  const root = tempFolder({ "package-lock.json": lockOf("node_modules/a", "node_modules/b"), ...skill(folder) });
  if (link !== undefined) {
    mkdirSync(join(root, dirname(link)), { recursive: true });
    symlinkSync(join("..", folder), join(root, link), "dir");
  }
  const directory = join(root, link ?? folder);
  const kit = await openKit([directory], { watch: false, trust: { policy: { project: "require" } } });
  expect(kit.host.skills).toMatchObject([{ state: "refused", diagnostics: [{ code: "TRUST_UNSIGNED" }] }]);
  expect(kit.session.listTools()).toEqual([]);
});

describe("of a policy", () => {
  const installed = (): string => {
    const root = realpathSync(tempFolder({ "package-lock.json": lockOf("node_modules/a"), ...skill("node_modules/a") }));
    return join(root, "node_modules/a");
  };
  const unlisted = (): string => join(realpathSync(tempFolder(skill("node_modules/a"))), "node_modules/a");

  test("a policy for projects also applies to their packages unless it sets another one for packages", () => {
    expect(admitted(installed(), { policy: { project: "require" } })).toEqual({ kind: "refused", mode: "require" });
    expect(admitted(installed(), { policy: { project: "require", package: "off" } })).toEqual({ kind: "not looked at" });
    expect(admitted(installed(), { policy: { project: "warn" } })).toMatchObject({ mode: "warn" });
    expect(admitted(installed(), {})).toMatchObject({ mode: "warn" });
    expect(admitted(installed(), { policy: { project: "off" } })).toMatchObject({ mode: "warn" });
  });

  test("a weaker policy from another source does not lower the user's policy for projects", () => {
    const root = tempFolder({ "home/trust.json": '{ "policy": { "project": "require" } }' });
    const settings = loadTrustSettings({
      policy: { package: "warn" },
      definitions: { package: "first-use" },
      directory: join(root, "home"),
    });
    expect(settings.policy).toMatchObject({ project: "require", package: "require" });
  });

  test("definitions are raised in the same way", () => {
    const nowhere = join(tempFolder({}), "home");
    const { definitions } = loadTrustSettings({ definitions: { project: "require" }, directory: nowhere });
    expect(definitions).toEqual({ user: "off", project: "require", package: "require" });
    const both = loadTrustSettings({ definitions: { project: "require" }, directory: nowhere });
    expect([both.definitionsFor(installed()), both.definitionsFor(unlisted())]).toEqual(["require", "require"]);
  });

  test("the stricter policy applies to skills below node_modules that are not in a lock", () => {
    expect(admitted(unlisted(), { policy: { package: "require" } })).toEqual({ kind: "refused", mode: "require" });
    expect(admitted(unlisted(), { policy: { project: "require", package: "off" } })).toEqual({ kind: "refused", mode: "require" });
    expect(admitted(unlisted(), { policy: { project: "off", package: "off" } })).toEqual({ kind: "not looked at" });
  });
});
