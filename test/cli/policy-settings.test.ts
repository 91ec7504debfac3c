import { readFileSync } from "node:fs";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { runCli, type Workplace, workplace } from "./run-cli.ts";

let place: Workplace;

beforeEach(() => {
  place = workplace({ "skillhost.json": '{ "trust": { "policy": { "project": "warn" } } }' });
  vi.stubEnv("SKILLHOST_HOME", place.at("home"));
  vi.stubEnv("SKILLHOST_POLICY", "");
});

afterEach(() => {
  vi.unstubAllEnvs();
  place[Symbol.dispose]();
});

const policy = (...argv: string[]) => runCli(["trust", "policy", ...argv], { cwd: place.path });
const file = (): Record<string, unknown> => JSON.parse(readFileSync(place.at("home/trust.json"), "utf8")) as Record<string, unknown>;

test("set changes one setting, and default takes it back", async () => {
  expect((await policy("set", "policy.package", "require")).stdout).toBe("Set policy.package to require.\n");
  expect((await policy("set", "policy.project", "warn")).code).toBe(0);
  expect((await policy("set", "definitions", "first-use")).code).toBe(0);
  expect((await policy("set", "provenance.@acme/*", "require", "--repository", "https://github.com/acme/skills")).code).toBe(0);
  expect(file()).toEqual({
    policy: { project: "warn", package: "require" },
    definitions: { user: "first-use", project: "first-use", package: "first-use" },
    provenance: { "@acme/*": { mode: "require", repository: "https://github.com/acme/skills" } },
  });
  for (const setting of ["policy.project", "definitions", "provenance.@acme/*"])
    expect((await policy("set", setting, "default")).code).toBe(0);
  expect(file()).toEqual({ policy: { package: "require" }, definitions: {}, provenance: {} });
});

test.each([
  ["an unknown setting", ["set", "polcy.package", "require"], "The settings are"],
  ["an unknown scope", ["set", "policy.packages", "require"], "user, project, package, external"],
  ["a wrong word", ["set", "policy.package", "first-use"], "off, warn, require"],
  ["a word of another setting", ["set", "definitions.package", "warn"], "first-use"],
  ["a package that cannot be one", ["set", "provenance.a b", "require"], "the name of a package"],
  ["an option of another setting", ["set", "policy.package", "require", "--repository", "x"], "provenance"],
  ["an address with a password", ["allow", "https://a:b@npm.acme.com/"], "credentials"],
  ["an address without a host", ["allow", "file:///tmp/"], "https://"],
])("%s is wrong usage, and nothing changes", async (_, argv, text) => {
  const { code, stderr } = await policy(...argv);
  expect([code, stderr]).toEqual([2, expect.stringContaining(text)]);
  expect(() => file()).toThrow();
});

test("allow and deny keep the lists of packages and addresses", async () => {
  const first = await policy("allow", "@acme/*", "https://npm.acme.com/");
  expect(first.stdout).toBe(
    "Packages may come only from: https://npm.acme.com/.\nOnly these packages may be installed, with all that they depend on: @acme/*.\n",
  );
  await policy("deny", "@acme/old");
  await policy("allow", "@acme/old", "lint");
  expect(file()).toMatchObject({ registries: ["https://npm.acme.com/"], packages: ["@acme/*", "@acme/old", "lint"], deniedPackages: [] });
  expect(await policy("deny", "https://other.example/")).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("is not among the addresses"),
  });
  expect((await policy("deny", "https://npm.acme.com/", "lint")).stdout).toContain("Packages may come only from: nowhere.");
  expect(file()).toMatchObject({ registries: [], packages: ["@acme/*", "@acme/old"], deniedPackages: ["lint"] });
  for (const setting of ["registries", "packages", "deniedPackages"]) await policy("set", setting, "default");
  expect(file()).toEqual({});
});

test("show says what applies and which file requires it, and set says when the organisation requires more", async () => {
  place.write("policy.json", '{ "policy": { "package": "require" }, "packages": ["@acme/*"] }');
  vi.stubEnv("SKILLHOST_POLICY", place.at("policy.json"));
  const set = await policy("set", "policy.package", "off");
  expect([set.code, set.stderr]).toEqual([
    0,
    expect.stringContaining("In effect is policy.package require, because something else requires it"),
  ]);
  const { stdout } = await policy("show");
  expect(stdout).toContain("  policy.package require\n");
  expect(stdout).toContain(`organisation (${place.at("policy.json")}):\n  policy.package require\n  packages @acme/*\n`);
  expect(stdout).toContain(`user (${place.at("home/trust.json")}):\n  policy.package off\n`);
  expect(stdout).toContain("project (");
  expect(stdout).toContain("  policy.project warn\n");
  const { data } = JSON.parse((await policy("show", "--json")).stdout) as { data: { sources: readonly { from: string }[] } };
  expect(data.sources.map(({ from }) => from)).toEqual(["organisation", "user", "project"]);
});
