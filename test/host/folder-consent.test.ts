import { existsSync, mkdirSync, renameSync } from "node:fs";
import { join } from "node:path";
import { createHost, definePlugin, type HostOptions } from "skillhost";
import { afterEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { silentLogger } from "../../src/base/logger.ts";
import { trustFolderIn } from "../../src/trust/trust-file.ts";
import { putAll, skillMd, tempFolder } from "../skills/kit.ts";

afterEach(() => vi.unstubAllEnvs());

/** A skill that leaves a file in the project when its module is loaded. */
function skillFiles(folder: string, name: string): Readonly<Record<string, string>> {
  const mark = `import { writeFileSync } from "node:fs";\nwriteFileSync(new URL("../../../ran-${name}", import.meta.url), "");\n`;
  return {
    [`${folder}/${name}/SKILL.md`]: skillMd(name),
    [`${folder}/${name}/tools/${name}.mjs`]: `${mark}export default { name: "${name}", description: "Runs.", handler: () => "ran" };\n`,
    [`${folder}/${name}/tools/shell.json`]: JSON.stringify({ name: `${name}_shell`, description: "Runs.", handler: { command: "true" } }),
  };
}

interface Project {
  readonly root: string;
  readonly home: string;
  readonly ran: () => boolean;
  open(options?: HostOptions): ReturnType<typeof createHost>;
}

function project(): Project {
  const base = tempFolder(skillFiles("project/skills", "own"));
  const [root, home] = [join(base, "project"), join(base, "home")];
  vi.stubEnv("SKILLHOST_HOME", home);
  return {
    root,
    home,
    ran: () => existsSync(join(root, "ran-own")),
    async open(options = {}) {
      const host = await createHost({ workingDirectory: root, watch: false, plugins: [], logger: silentLogger, ...options });
      onTestFinished(() => host.close());
      return host;
    },
  };
}

test("the host lists ./skills without running it unless it is named, and the diagnostic names the command", async () => {
  const { root, open, ran } = project();
  const host = await open();
  expect(ran()).toBe(false);
  expect(host.skills).toMatchObject([{ name: "own", state: "untrusted", tools: ["own", "own_shell"] }]);
  expect(host.diagnostics).toMatchObject([
    { severity: "error", code: "FOLDER_UNTRUSTED", message: expect.stringContaining(`skillhost trust add ${root}`) },
  ]);
  const session = await host.createSession({ persist: false });
  expect(session.listTools().filter(({ source }) => source.kind === "skill")).toEqual([]);
  expect(await session.callTool("own", {})).toMatchObject({ resultType: "failure" });
  expect(await session.callTool("own_shell", {})).toMatchObject({ resultType: "failure" });
  expect(host.explain("own")).toMatchObject({ skills: [{ state: "untrusted" }], tools: [{ state: "lost" }] });
  expect(ran()).toBe(false);
});

describe("a folder of skills runs", () => {
  test.each<[string, (project: Project) => HostOptions | Promise<HostOptions>]>([
    ["when it is named", () => ({ skillDirectories: ["./skills"] })],
    ["when the program lists it in trust.folders", ({ root }) => ({ trust: { folders: [root] } })],
    ["when the program trusts every folder", () => ({ trust: { folders: true } })],
    ["when the user trusts the folder", ({ root, home }) => trustFolderIn(join(home, "trust.json"), root).then(() => ({}))],
    [
      "when the environment names the folder",
      ({ root }) => {
        vi.stubEnv("SKILLHOST_TRUST", root);
        return {};
      },
    ],
  ])("%s", async (_, consent) => {
    const made = project();
    const host = await made.open(await consent(made));
    expect(host.skills).toMatchObject([{ name: "own", state: "active" }]);
    expect(host.diagnostics).toEqual([]);
    expect(made.ran()).toBe(true);
  });

  test("a folder of skills runs once a session names it, even if the host found it before", async () => {
    const { open, ran } = project();
    const host = await open();
    const session = await host.createSession({
      skillDirectories: ["./skills"],
      onPermissionRequest: () => ({ kind: "approve-once" }),
      persist: false,
    });
    await session.ready();
    expect(await session.callTool("own", {})).toMatchObject({ textResultForLlm: "ran" });
    expect(ran()).toBe(true);
  });

  test("a folder of skills runs after a reload if it was trusted before the reload", async () => {
    const { open, ran, root, home } = project();
    const host = await open();
    await trustFolderIn(join(home, "trust.json"), root);
    await host.reload();
    expect(host.skills).toMatchObject([{ state: "active" }]);
    expect(ran()).toBe(true);
  });
});

test("with a list of trusted folders, naming skills or plugins is not enough to run them", async () => {
  const { root, open, ran } = project();
  putAll(root, {
    "plugin.mjs": "globalThis.pluginRan = true; export default { name: 'p', activate() {} };",
    "other/x/SKILL.md": skillMd("x"),
  });
  const inline = definePlugin({ name: "inline", activate() {} });
  const host = await open({
    skillDirectories: ["./skills", "./other"],
    plugins: ["./plugin.mjs", inline],
    trust: { folders: ["./other"] },
  });
  expect(ran()).toBe(false);
  expect((globalThis as { pluginRan?: boolean }).pluginRan).toBeUndefined();
  expect(host.skills.map(({ name, state }) => `${name} ${state}`)).toEqual(["own untrusted", "x active"]);
  expect(host.plugins).toMatchObject([
    { state: "failed", diagnostics: [{ code: "FOLDER_UNTRUSTED" }] },
    { name: "inline", state: "active" },
  ]);
});

test("packages of a discovered project run only if the project is trusted; packages of a named project always run", async () => {
  const { root, open } = project();
  putAll(root, {
    "package.json": '{ "name": "p", "dependencies": { "dep": "1.0.0" }, "skillhost": { "packages": ["dep"] } }',
    "node_modules/dep/package.json": '{ "name": "dep", "version": "1.0.0" }',
    ...skillFiles("node_modules/dep/skills", "packaged"),
  });
  const found = await open({ skillDirectories: [], packageSkills: true });
  expect(found.skills).toMatchObject([{ name: "packaged", state: "untrusted" }]);
  const named = await open({ skillDirectories: [], packageSkills: ["."] });
  expect(named.skills).toMatchObject([{ name: "packaged", state: "active" }]);
});

test("a folder that replaces a trusted one while the host runs does not run, and the old one ends", async () => {
  const { root, open, home } = project();
  await trustFolderIn(join(home, "trust.json"), root);
  const host = await open();
  expect(host.skills).toMatchObject([{ state: "active" }]);
  renameSync(root, `${root}-before`);
  mkdirSync(root);
  putAll(root, skillFiles("skills", "own"));
  await host.reload();
  expect(host.skills).toMatchObject([{ name: "own", state: "untrusted" }]);
  expect(existsSync(join(root, "ran-own"))).toBe(false);
  const session = await host.createSession({ persist: false });
  expect(await session.callTool("own", {})).toMatchObject({ resultType: "failure" });
});

test("MCP servers of an untrusted skill are not available", async () => {
  const { root, open } = project();
  putAll(root, { "skills/own/skill.json": '{ "name": "own", "mcpServers": { "s": { "command": "true" } } }' });
  const host = await open();
  expect(host.listServers()).toEqual([]);
});
