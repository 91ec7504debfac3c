import { mkdirSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { organisationPolicyFile } from "../../src/trust/organisation-policy.ts";
import { sourceFault } from "../../src/trust/package-rules.ts";
import { createPrivateKeyFile } from "../../src/trust/private-keys.ts";
import { loadTrustSettings, type TrustOptions } from "../../src/trust/trust-settings.ts";
import { formatKey } from "../../src/trust/trusted-keys.ts";
import { type Workplace, workplace } from "../cli/run-cli.ts";

let place: Workplace;

beforeEach(() => {
  place = workplace({});
  vi.stubEnv("SKILLHOST_POLICY", place.at("policy.json"));
});

afterEach(() => {
  vi.unstubAllEnvs();
  place[Symbol.dispose]();
});

function settings(organisation: object, user: object = {}, given: TrustOptions = {}): ReturnType<typeof loadTrustSettings> {
  place.write("policy.json", JSON.stringify(organisation));
  mkdirSync(dirname(place.at("home/trust.json")), { recursive: true });
  place.write("home/trust.json", JSON.stringify(user));
  return loadTrustSettings({ directory: place.at("home"), ...given });
}

test("the policy has a fixed place on each platform", () => {
  expect([
    organisationPolicyFile("linux", {}),
    organisationPolicyFile("darwin", {}),
    organisationPolicyFile("win32", { ProgramData: "D:\\Data" }),
    organisationPolicyFile("win32", {}),
  ]).toEqual([
    "/etc/skillhost/policy.json",
    "/Library/Application Support/skillhost/policy.json",
    "D:\\Data\\skillhost\\policy.json",
    "C:\\ProgramData\\skillhost\\policy.json",
  ]);
});

describe("users, projects and programs can only require more", () => {
  test("the stricter mode of each scope applies", () => {
    const { policy, definitions } = settings(
      { policy: { package: "require" }, definitions: { project: "first-use" } },
      { policy: { package: "off", project: "warn" }, definitions: { project: "require" } },
      { policy: { package: "warn", external: "require" }, definitions: "off" },
    );
    expect(policy).toMatchObject({ package: "require", project: "warn", external: "require", user: "off" });
    expect(definitions).toMatchObject({ project: "require", package: "require" });
  });

  test("a specific rule about provenance does not replace a general one of the organisation", () => {
    const { provenanceRule } = settings(
      { provenance: { "*": { repository: "https://github.com/acme/skills" } } },
      { provenance: { "@acme/x": "off" } },
      { provenance: { "@acme/x": { mode: "warn", repository: "https://github.com/evil/x", workflow: "w.yml" } } },
    );
    expect(provenanceRule("@acme/x")).toEqual({ mode: "require", repository: "https://github.com/acme/skills", workflow: "w.yml" });
  });

  test("lists of registries and packages are asked one by one", () => {
    const { sourceFault: fault } = settings(
      { registries: ["https://npm.acme.com/"], deniedPackages: ["left-pad"] },
      { packages: ["@acme/*", "left-pad"] },
      { registries: ["https://npm.acme.com/team/", "https://evil.example/"] },
    );
    const at = (name: string, address: string): string | undefined => fault({ name, address });
    expect(at("@acme/x", "https://npm.acme.com/team/@acme/x/-/x-1.0.0.tgz")).toBeUndefined();
    expect(at("@acme/x", "https://npm.acme.com/other/x.tgz")).toContain("The policy of this project or program does not allow it");
    expect(at("@acme/x", "https://evil.example/x.tgz")).toContain(`The policy of your organisation (${place.at("policy.json")})`);
    expect(at("other", "https://npm.acme.com/team/o.tgz")).toContain("Your policy");
    expect(at("left-pad", "https://npm.acme.com/team/l.tgz")).toContain('"deniedPackages" contains "left-pad"');
  });

  test("only keys that all lists name are expected, and revocations of the organisation cannot be undone", async () => {
    const keys = await Promise.all(["a", "b", "c"].map((name) => createPrivateKeyFile(place.at(`keys-${name}`), name, undefined)));
    const [a, b, c] = keys.map(formatKey) as [string, string, string];
    const revoked = [{ id: keys[1]!.id, at: "2026-01-01T00:00:00Z" }];
    const { keys: trusted } = settings({ onlyKeys: [a, b], keys: [{ key: a }], revoked }, { onlyKeys: [a, c], keys: [{ key: b }] });
    expect(keys.map(({ id }) => trusted.isExpected(id))).toEqual([true, false, false]);
    expect(trusted.all.map(({ name }) => name)).toEqual(["a"]);
  });
});

describe("a policy that cannot be used stops everything", () => {
  test.each([
    ["is not JSON", "{"],
    ["has an unknown setting", '{ "polcy": {} }'],
    ["has a wrong mode", '{ "policy": { "package": "always" } }'],
    ["has a registry without a protocol", '{ "registries": ["npm.acme.com"] }'],
    ["has a registry with a password", '{ "registries": ["https://a:b@npm.acme.com/"] }'],
    ["tries to trust folders", '{ "folders": [] }'],
  ])("one that %s", (_, text) => {
    place.write("policy.json", text);
    expect(() => loadTrustSettings({ directory: place.at("home") })).toThrow(
      expect.objectContaining({ code: "POLICY_INVALID", message: expect.stringContaining(place.at("policy.json")) }),
    );
  });

  test("one that SKILLHOST_POLICY names and that does not exist, or a folder in its place", () => {
    expect(() => loadTrustSettings({ directory: place.at("home") })).toThrow(expect.objectContaining({ code: "POLICY_INVALID" }));
    mkdirSync(place.at("policy.json"));
    expect(() => loadTrustSettings({ directory: place.at("home") })).toThrow(expect.objectContaining({ code: "POLICY_INVALID" }));
    vi.stubEnv("SKILLHOST_POLICY", "policy.json");
    expect(() => loadTrustSettings({ directory: place.at("home") })).toThrow(/absolute path/);
  });

  test("an empty policy requires nothing", () => {
    writeFileSync(place.at("policy.json"), '{ "$schema": "x" }');
    expect(loadTrustSettings({ directory: place.at("home") }).policy).toMatchObject({ package: "warn", project: "off" });
  });
});

test.each<[boolean, string, string]>([
  [true, "https://npm.acme.com/", "https://npm.acme.com/x/-/x-1.0.0.tgz"],
  [true, "https://npm.acme.com", "https://NPM.acme.com/x.tgz"],
  [true, "https://npm.acme.com/npm", "https://npm.acme.com/npm/x.tgz"],
  [true, "https://npm.acme.com/npm", "https://npm.acme.com/npm/@acme%2fx/-/x.tgz"],
  [true, "https://github.com/acme/", "https://github.com/acme/skills.git"],
  [true, "https://github.com/acme/skills.git", "https://github.com/acme/skills.git"],
  [true, "ssh://git@github.com/acme/".replace("git@", ""), "git@github.com:acme/skills.git"],
  [false, "https://npm.acme.com/npm", "https://npm.acme.com/npmevil/x.tgz"],
  [false, "https://npm.acme.com/npm", "https://npm.acme.com/npm/../evil/x.tgz"],
  [false, "https://npm.acme.com/npm", "https://npm.acme.com/npm/%2e%2e/evil/x.tgz"],
  [false, "https://npm.acme.com/npm", "https://npm.acme.com/npm/..%2fevil/x.tgz"],
  [false, "https://npm.acme.com/", "http://npm.acme.com/x.tgz"],
  [false, "https://npm.acme.com/", "https://npm.acme.com:8443/x.tgz"],
  [false, "https://npm.acme.com/", "https://npm.acme.com.evil.example/x.tgz"],
  [false, "https://npm.acme.com/", "https://npm.acme.com@evil.example/x.tgz"],
  [false, "https://npm.acme.com/", "file:///tmp/x.tgz"],
  [false, "https://npm.acme.com/", "not an address"],
  [false, "https://github.com/acme/", "git@github.com:acme/skills.git"],
])("%s: from %s may come %s", (isAllowed, registry, address) => {
  expect(sourceFault({ name: "x", address }, { registries: [registry] }) === undefined).toBe(isAllowed);
});

test("credentials in an address are not repeated", () => {
  const fault = sourceFault({ name: "x", address: "https://u:secret@evil.example/x.tgz?token=secret" }, { registries: [] });
  expect(fault).toContain("https://evil.example/x.tgz");
  expect(fault).not.toContain("secret");
});
