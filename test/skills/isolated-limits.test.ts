import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import type * as Skillhost from "skillhost";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { buildPackage } from "../built-package.ts";
import { patience } from "../slowness.ts";
import { makeKey, resign } from "../trust/signatures/signing-kit.ts";
import { createHost, hasSystemSandbox, openIsolated } from "./isolation-kit.ts";
import { type Files, put, putAll, skillMd, tempFolder } from "./kit.ts";

const options = `{ skipPermission: true, parameters: { type: "object", properties: { path: { type: "string" }, name: { type: "string" } } } } as const`;
const module = `import { defineTool } from "skillhost";
import { execFileSync } from "node:child_process";
import { readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
const options = ${options};
const attempt = (run: () => unknown) => { try { return String(run() ?? "done"); } catch (error: any) { return "failed: " + (error.code ?? error.message); } };
export const reads = defineTool("reads", { ...options, description: "Reads.", handler: ({ path }: any) => attempt(() => readFileSync(path, "utf8")) });
export const writes = defineTool("writes", { ...options, description: "Writes.", handler: ({ path }: any) => attempt(() => writeFileSync(path, "written")) });
export const links = defineTool("links", { ...options, description: "Links.", handler: ({ path, name }: any) => attempt(() => { rmSync(name, { recursive: true }); symlinkSync(path, name); }) });
export const exits = defineTool("exits", { ...options, description: "Ends.", handler: () => process.exit(3) });
export const runs = defineTool("runs", { ...options, description: "Runs.", handler: ({ name }: any) => attempt(() => execFileSync(name, ["a b"], { encoding: "utf8" })) });
export const calls = defineTool("calls", { ...options, description: "Calls.", handler: async ({ name }: any, _invocation: any, context: any) => (await context.callTool(name, { path: "x" })).resultType });
export const temporary = defineTool("temporary", { ...options, description: "Writes a temporary file.", handler: () => attempt(() => { const file = process.env.TMPDIR + "/t"; writeFileSync(file, "t"); return readFileSync(file, "utf8") + process.env.HOME }) });
`;

function skill(permissions: object | undefined): Files {
  return {
    "SKILL.md": skillMd("s"),
    "skill.json": JSON.stringify({ name: "s", version: "1.0.0", description: "A skill for the test.", permissions }),
    "tools/all.ts": module,
  };
}

const codes = (host: Skillhost.Host): readonly string[] =>
  host.diagnostics.filter(({ severity }) => severity !== "info").map(({ code }) => code);

describe.skipIf(!hasSystemSandbox)("the declaration of a skill", () => {
  test("opens files, folders, programs and tools, and only these", { timeout: patience(60_000) }, async () => {
    const root = tempFolder({ "shared/data.txt": "shared", "other.txt": "other" });
    const workingDirectory = tempFolder();
    const permissions = { read: ["../../shared"], write: ["{workingDirectory}/out"], programs: ["echo"], tools: ["re*"] };
    putAll(join(root, "skills/s"), skill(permissions));
    const { host, text: call } = await openIsolated(join(root, "skills"), { isolation: "strict", workingDirectory });
    expect(codes(host)).toEqual([]);
    expect(host.skills[0]).toMatchObject({ isolation: "strict", permissions });
    expect(await call("reads", { path: join(root, "shared/data.txt") })).toBe("shared");
    expect(await call("writes", { path: join(root, "shared/data.txt") })).toBe("failed: EROFS");
    expect(await call("reads", { path: join(root, "other.txt") })).toBe("failed: ENOENT");
    expect(await call("writes", { path: join(workingDirectory, "out/new.txt") })).toBe("done");
    expect(readFileSync(join(workingDirectory, "out/new.txt"), "utf8")).toBe("written");
    expect(await call("writes", { path: join(workingDirectory, "new.txt") })).toMatch(/^failed: E/);
    expect(existsSync(join(workingDirectory, "new.txt"))).toBe(false);
    expect(await call("runs", { name: "echo" })).toBe("a b\n");
    expect(await call("runs", { name: "cat" })).toBe("failed: ENOENT");
    expect(await call("calls", { name: "reads" })).toBe("success");
    expect((await host.callTool("calls", { name: "writes" })).error).toContain('does not declare that it calls the tool "writes"');
    expect(await call("temporary")).toBe("t/tmp");
  });

  test("that changes applies to the next generation", { timeout: patience(60_000) }, async () => {
    const root = tempFolder({ "data.txt": "data" });
    putAll(join(root, "skills/s"), skill(undefined));
    const { host, text: call } = await openIsolated(join(root, "skills"), { isolation: "process" });
    expect(await call("reads", { path: join(root, "data.txt") })).toBe("failed: ENOENT");
    put(join(root, "skills/s/skill.json"), String(skill({ read: ["../../data.txt"] })["skill.json"]));
    await host.reload();
    expect(await call("reads", { path: join(root, "data.txt") })).toBe("data");
  });

  test("of a folder that cannot be created fails the call, with the reason", { timeout: patience(60_000) }, async () => {
    const root = tempFolder({ "file.txt": "a file" });
    putAll(join(root, "skills/s"), skill({ write: ["../../file.txt/folder"] }));
    const { host } = await openIsolated(join(root, "skills"), { isolation: "process" });
    const fault = host.diagnostics.find(({ severity }) => severity === "error");
    expect(fault).toMatchObject({ code: "ISOLATION_PATH", message: expect.stringContaining("cannot be created") });
  });

  test.each<[string, object]>([
    ["read", { read: ["./data"] }],
    ["read in a folder", { read: ["./data/inner/file.txt"] }],
    ["write", { write: ["./data"] }],
    ["write, not there yet", { write: ["./data/new"] }],
    ["write in the working directory", { write: ["{workingDirectory}/data"] }],
    ["programs", { programs: ["./data/run.sh"] }],
  ])("that leads through a link of the skill is refused (%s)", { timeout: patience(60_000) }, async (_name, permissions) => {
    const outside = tempFolder({ "inner/file.txt": "SECRET", "run.sh": "#!/bin/sh" });
    const root = tempFolder();
    putAll(join(root, "s"), skill(permissions));
    const workingDirectory = tempFolder();
    for (const folder of [join(root, "s"), workingDirectory]) symlinkSync(outside, join(folder, "data"));
    const { host } = await openIsolated(root, { isolation: "process", workingDirectory });
    const fault = host.diagnostics.find(({ severity }) => severity === "error");
    expect(fault).toMatchObject({ code: "ISOLATION_PATH", message: expect.stringContaining(`leads through a link to ${outside}`) });
    expect(host.tools).toEqual([]);
    expect(existsSync(join(outside, "new"))).toBe(false);
  });

  test("is compared with the files again when a child takes the place of one that ended", { timeout: patience(60_000) }, async () => {
    const outside = tempFolder({ "secret.txt": "SECRET" });
    const root = tempFolder();
    putAll(join(root, "s"), { ...skill({ write: ["."], read: ["./data"] }), "data/own.txt": "own" });
    const { host, text: call } = await openIsolated(root, { isolation: "process" });
    expect(await call("reads", { path: join(root, "s/data/own.txt") })).toBe("own");
    expect(await call("links", { path: outside, name: join(root, "s/data") })).toBe("done");
    const ended = await host.callTool("exits", {});
    const again = await host.callTool("reads", { path: join(root, "s/data/secret.txt") });
    expect([ended.ok, again.ok, again.error]).toEqual([false, false, expect.stringContaining("leads through a link")]);
  });
});

test("the command line says where the code of a skill runs, and how far its limits are enforced", { timeout: patience(60_000) }, () => {
  const root = tempFolder();
  putAll(join(root, "s"), skill({ read: ["/usr/share/dict"], tools: ["github/*"] }));
  const run = (...args: readonly string[]): string => {
    const env = { ...process.env, SKILLHOST_HOME: join(root, "home"), NO_COLOR: "1" };
    const given = [buildPackage().bin, ...args, "--skills", root, "--trust"];
    return spawnSync(process.execPath, given, { encoding: "utf8", env, cwd: root }).stdout;
  };
  const how = hasSystemSandbox ? /limits are enforced \(bubblewrap / : /limits are (?:partly|not) enforced \(/;
  for (const command of ["show", "explain"]) {
    const shown = run(command, "s", "--isolation", "process");
    expect(shown).toMatch(/may read \/usr\/share\/dict\n\s*may call the tools github\/\*\n\s*runs in a process, whose limits/);
    expect(shown).toMatch(how);
    expect(run(command, "s", "--isolation", "worker")).toContain("runs in a worker thread, which limits nothing that it reaches");
    expect(run(command, "s")).not.toContain("runs in a");
  }
  expect(run("doctor")).toMatch(/^isolated +limits of isolated skills are (?:enforced|partly enforced|not enforced) \(/m);
});

describe("the tier of a skill", () => {
  test("depends on its origin", { timeout: patience(60_000) }, async () => {
    const root = tempFolder({ "package-lock.json": '{ "packages": { "node_modules/s": { "version": "1.0.0" } } }' });
    putAll(join(root, "node_modules/s"), skill(undefined));
    const asPackage = await openIsolated(join(root, "node_modules"), {});
    expect(asPackage.host.skills[0]).toMatchObject({ isolation: "process" });
    expect(codes(asPackage.host).filter((code) => code !== "TOOL_ALWAYS_ASKED")).toEqual(hasSystemSandbox ? [] : ["ISOLATION_PARTLY"]);
    // The calling process has this file, and the skill does not declare it.
    put(join(root, "other.txt"), "other");
    const reads = async ({ host }: { readonly host: Skillhost.Host }): Promise<string> =>
      (await host.callTool("reads", { path: join(root, "other.txt") }, { onPermissionRequest: () => ({ kind: "approve-once" }) })).text;
    expect(await reads(asPackage)).toMatch(/^failed: (?:ENOENT|ERR_ACCESS_DENIED)$/);
    const unlimited = await openIsolated(join(root, "node_modules"), { isolation: { package: "off" } });
    expect(unlimited.host.skills[0]).not.toHaveProperty("isolation");
    expect(await reads(unlimited)).toBe("other");
    const own = tempFolder();
    putAll(join(own, "s"), skill(undefined));
    expect((await openIsolated(own, {})).host.skills[0]).not.toHaveProperty("isolation");
    expect((await openIsolated(own, { isolation: { project: "worker" } })).host.skills[0]).toMatchObject({ isolation: "worker" });
  });

  test.each(["skills", "user"])(
    "that was copied from a Git repository is that of packages (%s)",
    { timeout: patience(60_000) },
    async (kind) => {
      const root = tempFolder();
      if (kind === "user") vi.stubEnv("SKILLHOST_HOME", root);
      onTestFinished(() => void vi.unstubAllEnvs());
      const source = { kind: "git", url: "https://example.com/skills.git", digest: "sha256:0" };
      put(
        join(root, "skillhost-lock.json"),
        JSON.stringify({ lockfileVersion: 1, packages: {}, skills: { "skills/s": { name: "s", source }, "skills/own": { name: "own" } } }),
      );
      putAll(join(root, "skills/s"), skill(undefined));
      putAll(join(root, "skills/own"), {
        "SKILL.md": skillMd("own"),
        "tools/own.ts": module.replaceAll(/defineTool\("/g, 'defineTool("own_'),
      });
      const { host } = await openIsolated(join(root, "skills"), { isolation: "auto" });
      const tiers = Object.fromEntries(host.skills.map(({ name, isolation }) => [name, isolation]));
      expect(tiers).toEqual({ s: "process", own: undefined });
      const named = await openIsolated(join(root, "skills"), { isolation: { package: "worker" } });
      expect(named.host.skills.find(({ name }) => name === "s")).toMatchObject({ isolation: "worker" });
    },
  );

  test.each([
    [{ isolation: "full" }, "isolation"],
    [{ isolation: { packages: "strict" } }, "packages"],
    [{ isolation: { package: "auto" } }, "isolation.package"],
  ])("that is not valid is refused: %j", async (given, named) => {
    await expect(createHost(given as Skillhost.HostOptions)).rejects.toMatchObject({
      code: "HOST_OPTIONS",
      message: expect.stringContaining(named),
    });
  });
});

describe.each(["worker", "process"] as const)("a signed skill in a %s", (isolation) => {
  test("runs exactly the signed files", { timeout: patience(60_000) }, async () => {
    const key = makeKey();
    const root = tempFolder();
    const folder = join(root, "s");
    putAll(folder, { ...skill(undefined), "tools/_late.ts": "export const late = 1;" });
    put(
      join(folder, "tools/late.ts"),
      `import { defineTool } from "skillhost";
export default defineTool("late", { skipPermission: true, description: "Imports.", handler: async () => String((await import("./_late.ts")).late) });`,
    );
    await resign(folder, key, { skill: "s", version: "1.0.0" });
    const trust = { folders: true as const, keys: [key.text], policy: "require" as const };
    const { host, text: call } = await openIsolated(root, { isolation, trust });
    expect(codes(host)).toEqual([]);
    expect(await call("reads", { path: "/dev/null/x" })).toMatch(/^failed/);
    put(join(folder, "tools/_late.ts"), "export const late = 2;");
    const late = await host.callTool("late", {});
    expect([late.ok, late.error]).toEqual([false, expect.stringContaining("has changed since the skill was signed")]);
  });
});
