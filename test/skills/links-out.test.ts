import { execFileSync } from "node:child_process";
import { linkSync, mkdirSync, rmSync, symlinkSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { describe, expect, test } from "vitest";
import { checkSkills } from "../../src/advice/check-skills.ts";
import { chooseAgent } from "../../src/cli/project-agents.ts";
import { createModuleLoader } from "../../src/io/module-loader/create-module-loader.ts";
import { readMarketplace } from "../../src/plugin-host/bundles/read-marketplace.ts";
import { findInstructionFiles, instructionPlaces } from "../../src/session/prompt/instruction-files.ts";
import { load } from "../plugin-host/bundle-kit.ts";
import { openKit, put, skillMd, tempFolder, toolSource } from "./kit.ts";

const planted = "planted-secret-of-a-user";

/** File formats that are read in a skill, and what a stolen file contains in that format. */
const ofSkills: Readonly<Record<string, { readonly content: string; readonly files: Readonly<Record<string, string>> }>> = {
  "SKILL.md": { content: `# Notes\n\n${planted} is what this is about.\n`, files: {} },
  "skill.md": { content: skillMd("bad", planted), files: {} },
  "skill.json": { content: JSON.stringify({ name: "bad", description: planted }), files: {} },
  "prompts/p.md": { content: planted, files: { "SKILL.md": skillMd("bad") } },
  "prompts/listed.txt": { content: planted, files: { "skill.json": '{ "name": "bad", "prompts": ["prompts/listed.txt"] }' } },
  "tools/t.json": { content: JSON.stringify({ name: "t", description: planted }), files: { "SKILL.md": skillMd("bad") } },
  "tools/t.ts": { content: toolSource("t", JSON.stringify(planted)), files: { "SKILL.md": skillMd("bad") } },
  "tools/beside.ts": {
    content: `export default () => "${planted}";`,
    files: { "SKILL.md": skillMd("bad"), "tools/beside.json": '{ "name": "t", "description": "Beside a module." }' },
  },
  "lib/handler.ts": {
    content: `export default () => "${planted}";`,
    files: {
      "SKILL.md": skillMd("bad"),
      "tools/t.json": '{ "name": "t", "description": "In a module.", "handler": { "module": "../lib/handler.ts" } }',
    },
  },
};

/** Ways to make a name in a folder lead to a file outside. */
const ways: Readonly<Record<string, (at: string, outside: string) => void>> = {
  "a relative link": (at, outside) => symlinkSync(relative(dirname(at), outside), at),
  "an absolute link": (at, outside) => symlinkSync(outside, at),
  "a link to a link": (at, outside) => {
    symlinkSync(outside, `${at}.hop`);
    symlinkSync(`${at}.hop`, at);
  },
  "the environment of a process": (at) => symlinkSync("/proc/self/environ", at),
  "a device": (at) => symlinkSync("/dev/zero", at),
  "a pipe": (at) => void execFileSync("mkfifo", [at]),
};

const isWindows = process.platform === "win32";

describe.skipIf(isWindows).each(Object.entries(ofSkills))("%s of a skill", (path, { content, files }) => {
  const place = (way: string): { root: string; at: string } => {
    const outside = join(tempFolder({ "stolen.txt": content }), "stolen.txt");
    const root = tempFolder();
    for (const [name, text] of Object.entries(files)) put(join(root, "bad", name), text);
    put(join(root, "good/SKILL.md"), skillMd("good"));
    const at = join(root, "bad", path);
    mkdirSync(dirname(at), { recursive: true });
    ways[way]!(at, outside);
    return { root, at };
  };

  test.each(Object.keys(ways))("is not read where it is %s", async (way) => {
    const { root, at } = place(way);
    const kit = await openKit([root], { watch: false });
    const shown = JSON.stringify([kit.host.skills, kit.session.listTools(), kit.session.listPrompts(), kit.host.diagnostics]);
    expect(shown).not.toContain(planted);
    expect(shown).not.toContain(process.env["PATH"]);
    const errors = kit.host.diagnostics.filter(({ severity }) => severity === "error");
    expect(errors.map(({ code }) => code)).toContain(way === "a pipe" && !path.endsWith(".ts") ? "FILE_NOT_REGULAR" : errors[0]?.code);
    if (way !== "a pipe") expect(errors.map(({ code }) => code)).toContain("PATH_OUTSIDE");
    expect(await kit.says("t")).not.toContain(planted);
    expect(kit.skill("good").state).toBe("active");
    // A check reads the same files.
    const report = await checkSkills({
      roots: [root],
      loader: createModuleLoader({ hostModules: {} }),
      hostVersion: "1.0.0",
      strict: true,
      signal: new AbortController().signal,
    });
    expect(JSON.stringify(report)).not.toContain(planted);
    expect(report.diagnostics.some(({ severity, file }) => severity === "error" && file?.includes(join(root, "bad")))).toBe(true);
    rmSync(at);
  });
});

describe.skipIf(isWindows)("a SKILL.md that is a link", () => {
  test("SKILL.md may be a link within its skill", async () => {
    const root = tempFolder({ "s/docs/SKILL.md": skillMd("s", "Shared.") });
    symlinkSync("docs/SKILL.md", join(root, "s/SKILL.md"));
    const kit = await openKit([root], { watch: false });
    expect([kit.skill("s").state, kit.host.diagnostics]).toEqual(["active", []]);
  });

  test("SKILL.md may be shared by the skills of one plugin, but nothing else may", async () => {
    const root = tempFolder({
      ".claude-plugin/plugin.json": '{ "name": "p" }',
      ".env": planted,
      "shared/SKILL.md": skillMd("s", "Shared."),
      "skills/s/notes.md": "",
      "skills/t/notes.md": "",
    });
    symlinkSync("../../shared/SKILL.md", join(root, "skills/s/SKILL.md"));
    symlinkSync("../../.env", join(root, "skills/t/SKILL.md"));
    const kit = await openKit([join(root, "skills")], { watch: false });
    expect(kit.skill("s").state).toBe("active");
    expect(kit.found("PATH_OUTSIDE").map(({ file }) => file)).toEqual([join(root, "skills/t/SKILL.md")]);
    expect(JSON.stringify([kit.host.skills, kit.session.listPrompts()])).not.toContain(planted);
  });

  test("SKILL.md is read if the skill folder itself is a link, because its path was given", async () => {
    const elsewhere = tempFolder({ "SKILL.md": skillMd("s") });
    const root = tempFolder();
    symlinkSync(elsewhere, join(root, "s"));
    const kit = await openKit([root], { watch: false });
    expect([kit.skill("s").state, kit.host.diagnostics]).toEqual(["active", []]);
  });

  // A hard link cannot be distinguished from the file. Its creator may read the file anyway, and git stores none.
  test("a SKILL.md that is a hard link is an ordinary file", async () => {
    const outside = tempFolder({ "x.md": skillMd("s") });
    const root = tempFolder({ "s/notes.md": "" });
    linkSync(join(outside, "x.md"), join(root, "s/SKILL.md"));
    const kit = await openKit([root], { watch: false });
    expect(kit.skill("s").state).toBe("active");
  });

  test("a SKILL.md that becomes a link to outside is refused, and the last working generation stays", async () => {
    const outside = join(tempFolder({ "x.md": skillMd("s", planted) }), "x.md");
    const root = tempFolder({ "s/SKILL.md": skillMd("s", "Mine.") });
    const kit = await openKit([root]);
    await kit.saved(
      () => {
        rmSync(join(root, "s/SKILL.md"));
        symlinkSync(outside, join(root, "s/SKILL.md"));
      },
      () => kit.found("PATH_OUTSIDE").length > 0,
    );
    expect(kit.skill("s")).toMatchObject({ state: "active", stale: true });
    expect(JSON.stringify(await kit.call("skill", { skill: "s" }))).not.toContain(planted);
  });
});

const manifest = '{ "name": "p", "version": "1.0.0" }';
const ofBundles: Readonly<Record<string, string>> = {
  ".claude-plugin/plugin.json": JSON.stringify({ name: "p", description: planted }),
  "agents/a.md": `---\nname: a\ndescription: ${planted}\n---\n${planted}`,
  "commands/c.md": planted,
  "hooks/hooks.json": JSON.stringify({ hooks: { Stop: [{ hooks: [{ type: "command", command: planted }] }] } }),
  ".mcp.json": JSON.stringify({ mcpServers: { s: { command: planted } } }),
  "skills/s/SKILL.md": skillMd("s", planted),
};

describe.skipIf(isWindows).each(Object.entries(ofBundles))("%s of a plugin", (path, content) => {
  test.each(Object.keys(ways).filter((way) => way !== "a pipe"))("is not read where it is %s", async (way) => {
    const outside = join(tempFolder({ "stolen.txt": content }), "stolen.txt");
    const folder = tempFolder(path.endsWith("plugin.json") ? {} : { ".claude-plugin/plugin.json": manifest });
    const at = join(folder, path);
    mkdirSync(dirname(at), { recursive: true });
    ways[way]!(at, outside);
    const bundle = load(folder);
    const kit = await openKit([...bundle.skillDirectories], { watch: false });
    const { agents, commands, hooks, mcpServers } = bundle;
    const shown = JSON.stringify([bundle, [...mcpServers], kit.host.skills, kit.session.listPrompts(), kit.host.diagnostics]);
    expect(shown).not.toContain(planted);
    expect([agents, commands, hooks, [...mcpServers]]).toEqual([[], [], [], []]);
    const reported = [...bundle.diagnostics, ...kit.host.diagnostics].filter(({ file }) => file === at);
    expect(reported.map(({ severity, code }) => `${severity} ${code}`)).toEqual([
      path.includes("SKILL.md") ? "error PATH_OUTSIDE" : "error BUNDLE_PATH",
    ]);
    rmSync(at);
  });
});

test.skipIf(isWindows)("a marketplace that is a link to outside is not read", () => {
  const outside = tempFolder({ "m.json": JSON.stringify({ name: planted, owner: { name: "x" }, plugins: [] }) });
  const folder = tempFolder({ ".claude-plugin/notes.md": "" });
  symlinkSync(join(outside, "m.json"), join(folder, ".claude-plugin/marketplace.json"));
  expect(JSON.stringify(readMarketplace(folder) ?? {})).not.toContain(planted);
});

describe.skipIf(isWindows)("files of a project", () => {
  test.each(["AGENTS.md", "CLAUDE.md", ".github/copilot-instructions.md", ".github/instructions/x.instructions.md"])(
    "instructions in %s are not read if the file is a link out of the project",
    (name) => {
      const outside = join(tempFolder({ "x.md": planted }), "x.md");
      const project = tempFolder({ ".git/HEAD": "", "sub/AGENTS.md": "Be brief." });
      mkdirSync(dirname(join(project, name)), { recursive: true });
      symlinkSync(outside, join(project, name));
      const left: string[] = [];
      const found = findInstructionFiles(instructionPlaces(join(project, "sub")), (path) => left.push(path));
      expect(found.map(({ content }) => content)).toEqual(["Be brief."]);
      expect(left).toEqual([join(project, name)]);
    },
  );

  test("instructions that are a link within the project are read once", () => {
    const project = tempFolder({ ".git/HEAD": "", "AGENTS.md": "Be brief." });
    symlinkSync("AGENTS.md", join(project, "CLAUDE.md"));
    expect(findInstructionFiles(instructionPlaces(project)).map(({ content }) => content)).toEqual(["Be brief."]);
  });

  test("agents are not searched in a folder that is a link to outside", () => {
    const outside = tempFolder({ "spy.md": `---\nname: spy\ndescription: x\n---\n${planted}` });
    const project = tempFolder({ "agents/mine.md": "---\nname: mine\ndescription: x\n---\nMine." });
    mkdirSync(join(project, ".claude"));
    symlinkSync(outside, join(project, ".claude/agents"));
    const context = { io: { cwd: project, env: {} }, config: {}, consent: { isTrusted: true } } as unknown as Parameters<
      typeof chooseAgent
    >[0];
    expect(() => chooseAgent(context, "spy")).toThrow(/No agent is named "spy"/);
    const { options, diagnostics } = chooseAgent(context, "mine");
    expect(options.customAgents?.map(({ name }) => name)).toEqual(["mine"]);
    expect(diagnostics.map(({ code }) => code)).toEqual(["PATH_OUTSIDE"]);
  });
});
