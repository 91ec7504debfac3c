import { createHash } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { type CliRun, skillDocument } from "../cli/run-cli.ts";
import { type LoopbackRegistry, startRegistry } from "./loopback-registry.ts";
import { installed, lintTool, place, read, run, skillTarball, useProjects } from "./project-kit.ts";
import { packageTarball } from "./tar-kit.ts";

useProjects();

beforeEach(() => vi.stubEnv("SKILLHOST_POLICY", ""));
afterEach(() => vi.unstubAllEnvs());

function policy(content: object): void {
  place.write("policy.json", JSON.stringify(content));
  vi.stubEnv("SKILLHOST_POLICY", place.at("policy.json"));
}

function packed(name: string, version: string, dependencies: Readonly<Record<string, string>> = {}): Buffer {
  const files = { "skills/lint/SKILL.md": skillDocument("lint"), "skills/lint/tools/lint.json": JSON.stringify(lintTool) };
  return packageTarball({ name, version, dependencies }, files);
}

const online = (registry: LoopbackRegistry, argv: readonly string[], more: Readonly<Record<string, string>> = {}): Promise<CliRun> =>
  run(argv, { env: { npm_config_offline: "false", npm_config_registry: registry.url, npm_config_fetch_retries: "0", ...more } });

test("only registries of the organisation's policy may be installed from, in add, update and ci", async () => {
  const registry = await startRegistry();
  registry.publish("linter", { version: "1.0.0", tarball: packed("linter", "1.0.0") });
  policy({ registries: ["https://npm.acme.com/"] });
  const refused = await online(registry, ["add", "linter", "--yes"]);
  expect([refused.code, refused.stdout]).toEqual([1, ""]);
  expect(refused.stderr).toContain(`linter@1.0.0: The policy of your organisation (${place.at("policy.json")}) does not allow it`);
  expect(refused.stderr).toContain(`It comes from ${registry.url}linter/-/linter-1.0.0.tgz`);
  expect(installed()).toEqual([]);
  expect(registry.asked.filter((path) => path.endsWith(".tgz"))).toEqual([]);

  policy({ registries: [registry.url] });
  expect((await online(registry, ["add", "linter", "--yes"])).code).toBe(0);
  registry.publish("linter", { version: "1.1.0", tarball: packed("linter", "1.1.0") });
  policy({ registries: ["https://npm.acme.com/"] });
  const noUpdate = await online(registry, ["update", "--yes"], { npm_config_prefer_online: "true" });
  expect([noUpdate.code, noUpdate.stderr]).toEqual([1, expect.stringContaining("linter@1.1.0")]);
  const noCi = await online(registry, ["ci"]);
  expect([noCi.code, noCi.stderr]).toEqual([1, expect.stringContaining("linter@1.0.0")]);
  expect(JSON.parse(read("project/node_modules/linter/package.json")).version).toBe("1.0.0");
  // What is denied can still be removed.
  expect((await online(registry, ["remove", "linter"])).code).toBe(0);
});

test("a tarball at another address than its registry, and a dependency, are compared too", async () => {
  const [own, other] = [await startRegistry(), await startRegistry()];
  const dependent = packed("linter", "1.0.0", { helper: "1.0.0" });
  own.publish("linter", { version: "1.0.0", tarball: dependent, dependencies: { helper: "1.0.0" } });
  const helper = packageTarball({ name: "helper", version: "1.0.0" }, { "index.js": "" });
  other.publish("helper", { version: "1.0.0", tarball: helper });
  own.publish("helper", { version: "1.0.0", tarball: helper }, `${other.url}helper/-/helper-1.0.0.tgz`);
  policy({ registries: [own.url] });
  const refused = await online(own, ["add", "linter", "--yes"]);
  expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining(`helper@1.0.0`)]);
  expect(refused.stderr).toContain(`It comes from ${other.url}helper/-/helper-1.0.0.tgz`);
  policy({ registries: [own.url, other.url], packages: ["linter"] });
  expect((await online(own, ["add", "linter", "--yes"])).stderr).toContain("helper@1.0.0: The policy of your organisation");
  policy({ registries: [own.url, other.url], packages: ["linter", "help*"] });
  expect((await online(own, ["add", "linter", "--yes"])).code).toBe(0);
});

test("an address of npm's own registry is compared as the address that npm really asks", async () => {
  const mirror = await startRegistry();
  mirror.publish(
    "linter",
    { version: "1.0.0", tarball: packed("linter", "1.0.0") },
    "https://registry.npmjs.org/linter/-/linter-1.0.0.tgz",
  );
  policy({ registries: ["https://registry.npmjs.org/"] });
  const refused = await online(mirror, ["add", "linter", "--yes"]);
  expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining(`It comes from ${mirror.url}linter/-/linter-1.0.0.tgz`)]);
  policy({ registries: [mirror.url] });
  expect((await online(mirror, ["add", "linter", "--yes"])).code).toBe(0);
});

test("local tarballs and Git repositories are packages of no registry", async () => {
  policy({ registries: ["https://npm.acme.com/"] });
  const tarball = await run(["add", skillTarball(), "--yes"]);
  expect([tarball.code, tarball.stderr]).toEqual([1, expect.stringContaining("It comes from file://")]);
  const git = await run(["add", "evil/skills", "--yes"]);
  expect([git.code, git.stderr]).toEqual([1, expect.stringContaining("It comes from https://github.com/evil/skills.git")]);
  expect(installed()).toEqual([]);
});

test("a project can deny packages, and cannot allow what its user denies", async () => {
  writeFileSync(place.at("project/skillhost.json"), '{ "trust": { "deniedPackages": ["linter"] } }');
  expect((await run(["add", skillTarball(), "--yes"])).stderr).toContain("The policy of this project or program");
  writeFileSync(place.at("project/skillhost.json"), '{ "trust": { "packages": ["linter"] } }');
  expect((await run(["trust", "policy", "deny", "linter"])).code).toBe(0);
  expect((await run(["add", skillTarball(), "--yes"])).stderr).toContain("Your policy");
  expect((await run(["trust", "policy", "allow", "linter"])).stdout).toContain("Only these packages may be installed");
  expect((await run(["add", skillTarball(), "--yes"])).code).toBe(0);
});

test("a policy that cannot be read stops installing and running", async () => {
  place.write("policy.json", "{");
  vi.stubEnv("SKILLHOST_POLICY", place.at("policy.json"));
  for (const argv of [["add", skillTarball(), "--yes"], ["list"], ["trust", "policy", "show"]]) {
    const { code, stderr } = await run(argv);
    expect([argv[0], code, stderr]).toEqual([argv[0], 1, expect.stringContaining("the policy of your organisation, cannot be used")]);
  }
});

test("outdated compares the installed packages with their registry, and its exit code is 1 if one is old", async () => {
  const registry = await startRegistry();
  for (const name of ["linter", "@acme/lint"]) registry.publish(name, { version: "1.0.0", tarball: packed(name, "1.0.0") });
  expect((await online(registry, ["add", "linter", "@acme/lint", "--yes"])).code).toBe(0);
  const fresh = { npm_config_prefer_online: "true" };
  expect(await online(registry, ["outdated"], fresh)).toEqual({ code: 0, stdout: "Everything is up to date.\n", stderr: "" });
  registry.publish("linter", { version: "1.2.0", tarball: packed("linter", "1.2.0") });
  registry.publish("linter", { version: "2.0.0", tarball: packed("linter", "2.0.0") });
  const old = await online(registry, ["outdated"], fresh);
  expect(old).toMatchObject({
    code: 1,
    stdout: "package  current  wanted  latest\nlinter   1.0.0    1.2.0   2.0.0\n",
    stderr: expect.stringContaining("skillhost update"),
  });
  const { stdout } = await online(registry, ["outdated", "--json"], fresh);
  expect(JSON.parse(stdout)).toMatchObject({
    ok: false,
    data: {
      outdated: ["linter"],
      packages: [
        { name: "@acme/lint", isOutdated: false },
        { name: "linter", range: "^1.0.0", wanted: "1.2.0" },
      ],
    },
  });
  expect((await online(registry, ["outdated", "@acme/lint"], fresh)).code).toBe(0);
  expect(await online(registry, ["outdated", "lintr"], fresh)).toMatchObject({ code: 1, stderr: expect.stringContaining("linter") });
  const gone = await online(registry, ["outdated", "linter"], { ...fresh, npm_config_registry: "http://127.0.0.1:9/" });
  expect([gone.code, gone.stderr]).toEqual([1, expect.stringContaining("The versions of linter cannot be looked up")]);
});

test("what is approved is logged before it counts: packages, folders, keys and settings", async () => {
  expect((await run(["add", skillTarball(), "--yes"])).code).toBe(0);
  expect((await run(["remove", "linter"])).code).toBe(0);
  expect((await run(["trust", "add", place.at("project")])).code).toBe(0);
  expect((await run(["trust", "remove", place.at("project")])).code).toBe(0);
  expect((await run(["keys", "new", "alice"])).code).toBe(0);
  expect((await run(["trust", "policy", "set", "policy.package", "require"])).code).toBe(0);
  const { stdout, code } = await run(["trust", "log", "--json"]);
  const { data } = JSON.parse(stdout) as { data: { records: readonly Record<string, string>[] } };
  expect([code, data.records.map(({ action, kind, by }) => `${action} ${kind} ${by}`)]).toEqual([
    0,
    [
      "approved package skillhost add --yes",
      "revoked package skillhost remove",
      expect.stringMatching(/^approved folder /),
      "revoked folder skillhost trust remove",
      "approved key skillhost keys new",
      "changed policy skillhost trust policy",
    ],
  ]);
  expect(data.records[0]).toMatchObject({
    id: "linter@1.0.0",
    digest: expect.stringMatching(/^sha512-/),
    user: expect.stringMatching(/./),
  });
  const last = await run(["trust", "log", "--last", "1"]);
  expect(last.stdout).toMatch(/^\S+ \S+ changed policy policy\.package = require, by skillhost trust policy\n$/);
});

test("a log that something else has changed is reported, and one that cannot be written approves nothing", async () => {
  expect((await run(["trust", "add", place.at("project")])).code).toBe(0);
  const file = place.at("home/approvals.jsonl");
  writeFileSync(file, `${readFileSync(file, "utf8")}{"time":"never"}\n`);
  const changed = await run(["trust", "log"]);
  expect([changed.code, changed.stderr]).toEqual([1, expect.stringContaining("approvals.jsonl:2:1")]);
  expect(changed.stdout).toContain("approved folder");
  place.write("other/approvals.jsonl/in-the-way", "");
  vi.stubEnv("SKILLHOST_HOME", place.at("other"));
  const refused = await run(["trust", "add", place.at("project")]);
  expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining("nothing was approved")]);
  expect(existsSync(place.at("other/trust.json"))).toBe(false);
});

test("websites are compared with their redirects and with what their index names, and copied skills by ci", async () => {
  const pages = new Map<string, string | URL>();
  const server = createServer((request, response) => {
    const page = pages.get(request.url ?? "");
    if (page instanceof URL) response.writeHead(302, { location: page.href }).end();
    else response.writeHead(page === undefined ? 404 : 200).end(page);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const document = skillDocument("greeter");
  const digest = `sha256:${createHash("sha256").update(document).digest("hex")}`;
  const entry = { name: "greeter", type: "skill-md", description: "A skill.", url: `${origin}/files/SKILL.md`, digest };
  const $schema = "https://schemas.agentskills.io/discovery/0.2.0/schema.json";
  pages.set("/team/.well-known/agent-skills/index.json", JSON.stringify({ $schema, skills: [entry] }));
  pages.set("/files/SKILL.md", document);

  policy({ registries: [`${origin}/team/`] });
  const outside = await run(["add", `${origin}/team/`, "--yes"]);
  expect([outside.code, outside.stderr]).toEqual([1, expect.stringContaining(`It comes from ${origin}/files/SKILL.md`)]);
  pages.set("/team/.well-known/agent-skills/index.json", new URL(`${origin}/elsewhere/index.json`));
  pages.set("/elsewhere/index.json", JSON.stringify({ $schema, skills: [entry] }));
  expect((await run(["add", `${origin}/team/`, "--yes"])).code).toBe(1);
  expect(existsSync(place.at("project/skills"))).toBe(false);

  policy({ registries: [origin] });
  expect((await run(["add", `${origin}/team/`, "--yes"])).code).toBe(0);
  expect((await run(["ci"])).code).toBe(0);
  policy({ registries: ["https://npm.acme.com/"] });
  const refused = await run(["ci"]);
  expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining("does not allow it")]);
  const { stdout } = await run(["trust", "log", "--json"]);
  const { records } = (JSON.parse(stdout) as { data: { records: readonly { kind: string; id: string }[] } }).data;
  expect(records.find(({ kind }) => kind === "skill")?.id).toContain("skills/greeter from http://127.0.0.1");
});
