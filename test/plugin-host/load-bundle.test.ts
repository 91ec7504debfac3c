import { existsSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { isBundleFolder } from "../../src/plugin-host/bundles/load-bundle.ts";
import { entryOf, readMarketplace } from "../../src/plugin-host/bundles/read-marketplace.ts";
import { openKit, tempFolder } from "../skills/kit.ts";
import { diagnosticsOf, fixture, load, loadFiles } from "./bundle-kit.ts";

const skill = (name: string) => `---\nname: ${name}\ndescription: Does it. Use for it.\n---\nDo it.\n`;

describe("components of each dialect", () => {
  test("Agent Plugins 1.0: conforming skills, and the closed mcp.json", () => {
    const folder = fixture("agent-plugins");
    const bundle = load(folder);
    expect(bundle).toMatchObject({ name: "acme.reports", version: "1.2.0", dialect: "agent-plugins", isRefused: false });
    expect(bundle.skillDirectories).toEqual([join(folder, "skills/summarize")]);
    expect(bundle.skills).toEqual(["summarize"]);
    const data = bundle.data.path;
    expect([...bundle.mcpServers]).toEqual([
      [
        "validator",
        {
          type: "stdio",
          command: join(folder, "bin/validator.mjs"),
          args: ["--data", `${data}/v`, "${OTHER}"],
          env: { CONFIG: `${folder}/config.json`, PLUGIN_ROOT: folder, PLUGIN_DATA: data },
          cwd: folder,
        },
      ],
      ["deploy", { type: "http", url: "https://deploy.example/mcp", headers: { "X-Tenant": "public" } }],
    ]);
    expect(existsSync(data)).toBe(true);
    expect(diagnosticsOf(bundle)).toEqual([
      "error BUNDLE_SKILL skills/strict-only/SKILL.md",
      "warning MCP_VARIABLE_UNKNOWN mcp.json",
      "error MCP_ENTRY_INVALID mcp.json",
      "error MCP_ENTRY_INVALID mcp.json",
    ]);
  });

  test("Claude Code: skills in addition to paths, agents, commands, hooks and servers", () => {
    const folder = fixture("claude");
    const bundle = load(folder);
    expect(bundle).toMatchObject({ name: "house-rules", version: "0.3.1", dialect: "claude" });
    expect(bundle.skillDirectories).toEqual([join(folder, "skills"), join(folder, "more-skills")]);
    expect(bundle.skills).toEqual(["tidy", "sweep"]);
    expect(bundle.agents).toMatchObject([
      { name: "inspector", tools: ["view", "grep"], prompt: "You look at changes and say what is wrong." },
    ]);
    expect(bundle.commands.map(({ name }) => name)).toEqual(["house-rules:greet", "house-rules:team:stand-up"]);
    expect(bundle.hooks.map(({ event, moment, matcher, timeout }) => [event, moment, matcher, timeout])).toEqual([
      ["PreToolUse", "preToolUse", "Bash|Write", 10_000],
      ["SessionStart", "sessionStart", undefined, 60_000],
    ]);
    expect(bundle.mcpServers.get("ledger")).toMatchObject({ args: [`${folder}/server.mjs`, "none"], env: { CLAUDE_PLUGIN_ROOT: folder } });
    expect(bundle.mcpServers.get("asks")).toMatchObject({ reason: expect.stringContaining("user_config.host") });
    expect(bundle.mcpServers.has("typo")).toBe(false);
    expect(diagnosticsOf(bundle)).toEqual([
      "info PLUGIN_KEY_UNSUPPORTED .claude-plugin/plugin.json",
      "warning PLUGIN_KEY_UNKNOWN .claude-plugin/plugin.json",
      "info AGENT_FRONT_MATTER_MISSING agents/README.md",
      "warning HOOK_EVENT_UNSUPPORTED hooks/hooks.json",
      "error HOOK_TYPE_UNSUPPORTED hooks/hooks.json",
      "error MCP_ENTRY_EMPTY .mcp.json",
    ]);
    expect(bundle.diagnostics.every(({ source }) => source === "house-rules" || source === "typo")).toBe(true);
  });

  test("Copilot CLI: the manifest of .github/plugin, *.agent.md, hooks.json", () => {
    const bundle = load(fixture("copilot"));
    expect(bundle).toMatchObject({ name: "pull-helper", dialect: "copilot", skills: ["pull"] });
    expect(bundle.agents).toMatchObject([{ name: "reviewer", description: "Reviews pull requests." }]);
    expect(bundle.commands.map(({ name }) => name)).toEqual(["pull-helper:open"]);
    expect(bundle.hooks.map(({ event, protocol, timeout }) => [event, protocol, timeout])).toEqual([
      ["preToolUse", "copilot", 5_000],
      ["userPromptTransformed", "copilot", 30_000],
    ]);
    expect(bundle.mcpServers.get("hub")).toMatchObject({ tools: ["list"] });
    expect(diagnosticsOf(bundle)).toEqual(["error HOOK_TYPE_UNSUPPORTED hooks.json"]);
  });

  test("Codex: the folder's name, paths that must begin with ./, servers and hooks", () => {
    const folder = fixture("codex");
    const bundle = load(folder);
    expect(bundle).toMatchObject({ name: "codex", version: "0.1.0", dialect: "codex", skills: ["note"] });
    expect(bundle.mcpServers.get("files")).toMatchObject({ command: "node", args: ["server.mjs"], cwd: folder });
    expect(bundle.hooks.map(({ event }) => event)).toEqual(["Stop"]);
    expect(diagnosticsOf(bundle)).toEqual([
      "info PLUGIN_KEY_UNSUPPORTED .codex-plugin/plugin.json",
      "error PLUGIN_PATH_FORM .codex-plugin/plugin.json",
    ]);
  });

  test("Gemini: context files, commands in TOML, its own variables and settings", async () => {
    const folder = fixture("gemini");
    const workingDirectory = tempFolder();
    const bundle = load(folder, { workingDirectory, environment: { WEATHER_KEY: "sunny", OTHER: "x" } });
    expect(bundle).toMatchObject({ name: "weather", dialect: "gemini", skills: ["umbrella"] });
    expect(bundle.context).toEqual([{ path: "WEATHER.md", text: "Speak of the weather first.\n" }]);
    expect(bundle.mcpServers.get("sky")).toMatchObject({
      args: [join(folder, "sky.mjs"), workingDirectory],
      cwd: folder,
      env: { WEATHER_KEY: "sunny" },
    });
    const [cast] = bundle.commands;
    expect(cast).toMatchObject({ name: "fore:cast", description: "Says how it will be." });
    const invocation = { sessionId: "s", arguments: "Rome", signal: new AbortController().signal };
    expect(await cast!.handler(invocation)).toBe('Say how the weather in Rome will be, and keep "quotes".');
    expect(bundle.hooks).toMatchObject([{ moment: "preToolUse", protocol: "gemini", timeout: 5_000 }]);
    expect(diagnosticsOf(bundle)).toEqual(["info PLUGIN_KEY_UNSUPPORTED gemini-extension.json", "error TOML_SYNTAX commands/broken.toml"]);
  });

  test("Cursor: rules that always apply, commands, mcp.json; its hooks have no effect", () => {
    const bundle = load(fixture("cursor"));
    expect(bundle).toMatchObject({ name: "style", dialect: "cursor", skills: ["rewrite"], hooks: [] });
    expect(bundle.context).toEqual([{ path: "rules/always.mdc", text: "Write short sentences." }]);
    expect(bundle.commands.map(({ name }) => name)).toEqual(["shorten"]);
    expect(bundle.mcpServers.get("dictionary")).toMatchObject({ type: "http" });
    expect(diagnosticsOf(bundle)).toEqual(["info PLUGIN_KEY_UNSUPPORTED .cursor-plugin/plugin.json", "info BUNDLE_RULE rules/tests.mdc"]);
  });

  test("OpenClaw: id, skills and servers", () => {
    const bundle = load(fixture("openclaw"));
    expect(bundle).toMatchObject({ name: "claws", dialect: "openclaw", skills: ["grip"] });
    expect([...bundle.mcpServers.keys()]).toEqual(["claw"]);
  });

  test("a folder without a manifest has Claude Code's folders and its own name", () => {
    const bundle = load(fixture("unmarked"));
    expect(bundle).toMatchObject({ name: "unmarked", dialect: "claude", skills: ["plain"] });
    expect(bundle.manifestFile).toBeUndefined();
    expect(bundle.agents.map(({ name }) => name)).toEqual(["helper"]);
  });
});

describe("the choice between manifests", () => {
  test("the first manifest with components is used, and one without components is reported", () => {
    const bundle = loadFiles({
      ".plugin/plugin.json": '{"name":"empty"}',
      ".claude-plugin/plugin.json": '{"name":"full","skills":["./extra"]}',
      "gemini-extension.json": '{"name":"third","version":"1.0.0"}',
      "extra/a/SKILL.md": skill("a"),
    });
    expect(bundle).toMatchObject({ name: "full", dialect: "claude", skills: ["a"] });
    expect(diagnosticsOf(bundle)).toEqual(["info BUNDLE_MANIFESTS .claude-plugin/plugin.json"]);
    expect(bundle.diagnostics[0]?.message).toBe(
      "The manifest at .plugin/plugin.json adds nothing, so the one at .claude-plugin/plugin.json is used, and these are not read: gemini-extension.json.",
    );
  });

  test("the first manifest is used where none has components, and where the first is refused", () => {
    const empty = { ".plugin/plugin.json": '{"name":"one"}', ".claude-plugin/plugin.json": '{"name":"two"}' };
    const nothing = loadFiles(empty);
    expect(nothing).toMatchObject({ name: "one", isRefused: false });
    expect(diagnosticsOf(nothing)).toEqual(["warning BUNDLE_EMPTY", "info BUNDLE_MANIFESTS .plugin/plugin.json"]);
    const folders = { "skills/a/SKILL.md": skill("a") };
    expect(loadFiles({ ...empty, ...folders, ".plugin/plugin.json": "[]" })).toMatchObject({ isRefused: true, skills: [] });
    const broken = { ...empty, ".claude-plugin/plugin.json": "[]" };
    expect(loadFiles(broken)).toMatchObject({ name: "one", isRefused: false });
  });

  test("the first manifest in the Copilot runtime's order, then in Claude Code's, is used, and the others are reported", () => {
    const bundle = loadFiles({
      ".claude-plugin/plugin.json": '{"name":"second"}',
      ".codex-plugin/plugin.json": '{"name":"third"}',
      "plugin.json": '{"name":"first"}',
      "skills/a/SKILL.md": skill("a"),
    });
    expect(bundle).toMatchObject({ name: "first", dialect: "copilot" });
    expect(bundle.diagnostics).toMatchObject([
      { code: "BUNDLE_MANIFESTS", message: expect.stringContaining(".claude-plugin/plugin.json, .codex-plugin/plugin.json") },
    ]);
  });

  test("a root plugin.json of Agent Plugins takes precedence over all others", () => {
    const $schema = "https://agent-plugins.org/schemas/1.0.0/plugin.schema.json";
    const files = { ".plugin/plugin.json": '{"name":"second"}', "plugin.json": JSON.stringify({ $schema, name: "first" }) };
    expect(loadFiles({ ...files, "skills/a/SKILL.md": skill("a") })).toMatchObject({
      name: "first",
      dialect: "agent-plugins",
      skills: ["a"],
    });
  });

  test("a folder with code is asked for its module before its folders make it a bundle", () => {
    const folders = [
      { "skills/a/SKILL.md": skill("a") },
      { "SKILL.md": skill("a") },
      { "skills/a/SKILL.md": skill("a"), "package.json": "{}" },
      { "commands/x.ts": "", "index.ts": "" },
      { "src/x.ts": "" },
      { "package.json": "{}", ".claude-plugin/plugin.json": "{}" },
    ];
    expect(folders.map((files) => isBundleFolder(tempFolder(files)))).toEqual([true, true, false, false, false, true]);
  });

  test("one SKILL.md at the root is a plugin with one skill", () => {
    const folder = tempFolder({ "SKILL.md": skill("alone"), ".claude-plugin/plugin.json": '{"name":"alone"}' });
    expect(load(folder)).toMatchObject({ skillDirectories: [folder], skills: ["alone"] });
  });

  test.each([
    ["claude", ".claude-plugin/plugin.json", 2, ["usual", "named"]],
    ["codex", ".codex-plugin/plugin.json", 1, ["named"]],
    ["copilot", "plugin.json", 1, ["named"]],
  ])("paths in a manifest of %s are added to the usual files or replace them", (_dialect, path, hooks, servers) => {
    const bundle = loadFiles({
      [path]: JSON.stringify({ name: "p", hooks: "./own.json", mcpServers: { named: { command: "x" } } }),
      "own.json": '{"hooks":{"Stop":[{"hooks":[{"command":"own"}]}]}}',
      "hooks/hooks.json": '{"hooks":{"Stop":[{"hooks":[{"command":"usual"}]}]}}',
      ".mcp.json": '{"mcpServers":{"usual":{"command":"x"}}}',
    });
    expect([bundle.hooks.length, [...bundle.mcpServers.keys()]]).toEqual([hooks, servers]);
  });

  test("a manifest may name skills by their file", () => {
    const folder = tempFolder({ "s/one/SKILL.md": skill("one"), "plugin.json": '{"name":"p","skills":["s/one/SKILL.md"]}' });
    expect(load(folder).skillDirectories).toEqual([join(folder, "s/one")]);
  });
});

describe("a skill directly in the usual folder", () => {
  const named = (name: string | undefined, files: Record<string, string>) =>
    loadFiles({ ...files, "skills/SKILL.md": `---\n${name === undefined ? "" : `name: ${name}\n`}description: Does it.\n---\nDo it.\n` });

  test("a skill in the usual folder has the name in its front matter, or else the bundle's", () => {
    const manifest = { ".claude-plugin/plugin.json": '{"name":"house"}' };
    expect(named("sweep", manifest).skills).toEqual(["sweep"]);
    expect(named(undefined, manifest).skills).toEqual(["house"]);
    expect(named(undefined, { "agents/a.md": "A." }).skills).not.toEqual(["skills"]);
  });

  test.each([
    ["skills", "skills/SKILL.md"],
    [".", "SKILL.md"],
  ])("a skill in the usual folder is loaded under that name from %s", async (directory, file) => {
    const folder = tempFolder({
      ".claude-plugin/plugin.json": '{"name":"house"}',
      [file]: "---\ndescription: Does it.\n---\nDo it.\n",
    });
    const kit = await openKit([join(folder, directory)], { watch: false });
    expect(kit.host.skills.map(({ name }) => name)).toEqual(load(folder).skills);
    expect(kit.host.skills).toMatchObject([{ name: "house" }]);
  });
});

describe("unreadable hooks", () => {
  const guard = { hooks: [{ type: "command", command: "exit 2" }] };
  const files = { "skills/a/SKILL.md": skill("a"), ".claude-plugin/plugin.json": '{"name":"p"}' };

  test.each<[string, Record<string, string>]>([
    ["events at the top level", { "hooks/hooks.json": JSON.stringify({ PreToolUse: [guard] }) }],
    ["a list", { "hooks/hooks.json": JSON.stringify({ hooks: [guard] }) }],
    ["an event that is not a list", { "hooks/hooks.json": JSON.stringify({ hooks: { PreToolUse: guard } }) }],
    ["a group that is not a list", { "hooks/hooks.json": JSON.stringify({ hooks: { PreToolUse: [{ hooks: {} }] } }) }],
    ["broken JSON", { "hooks/hooks.json": '{"hooks": {' }],
    ["more hooks than the limit", { "hooks/hooks.json": JSON.stringify({ hooks: { Stop: Array.from({ length: 501 }, () => guard) } }) }],
    ["events in the manifest that are not lists", { ".claude-plugin/plugin.json": '{"name":"p","hooks":{"PreToolUse":"deny"}}' }],
    ["a missing file", { ".claude-plugin/plugin.json": '{"name":"p","hooks":"./guard.json"}' }],
    ["a path that leads outside", { ".claude-plugin/plugin.json": '{"name":"p","hooks":"../guard.json"}' }],
    ["a folder", { ".claude-plugin/plugin.json": '{"name":"p","hooks":"./skills"}' }],
    ["top-level events of Copilot", { "plugin.json": '{"name":"p"}', "hooks.json": JSON.stringify({ preToolUse: [guard] }) }],
  ])("hooks refuse the bundle: %s", (_what, hooks) => {
    const bundle = loadFiles({ ...files, ...hooks });
    expect(bundle).toMatchObject({ isRefused: true, skills: [], skillDirectories: [], hooks: [] });
    const codes = bundle.diagnostics.filter(({ severity }) => severity === "error").map(({ code }) => code);
    expect(codes).toContain("BUNDLE_HOOKS");
    expect(codes.length).toBeGreaterThan(1);
  });

  test.each<[string, Record<string, string>]>([
    ["an empty file", { "hooks/hooks.json": "{}" }],
    ["all hooks disabled", { "hooks/hooks.json": '{"disableAllHooks":true}' }],
    ["an unsupported type", { "hooks/hooks.json": '{"hooks":{"Stop":[{"hooks":[{"type":"prompt","prompt":"x"}]}]}}' }],
    ["an unknown event", { "hooks/hooks.json": '{"hooks":{"Never":"x"}}' }],
  ])("hooks do not refuse the bundle: %s", (_what, hooks) => {
    expect(loadFiles({ ...files, ...hooks })).toMatchObject({ isRefused: false, skills: ["a"] });
  });

  test("hooks that the options disable do not refuse the bundle", () => {
    const bundle = loadFiles({ ...files, "hooks/hooks.json": JSON.stringify({ PreToolUse: [guard] }) }, { hooks: "off" });
    expect(bundle).toMatchObject({ isRefused: false, skills: ["a"], hooks: [] });
  });

  test.skipIf(process.platform === "win32")("a hook file that is a link out of the bundle refuses the bundle", () => {
    const outside = tempFolder({ "h.json": JSON.stringify({ hooks: { PreToolUse: [guard] } }) });
    const folder = tempFolder(files);
    mkdirSync(join(folder, "hooks"));
    symlinkSync(join(outside, "h.json"), join(folder, "hooks/hooks.json"));
    expect(load(folder)).toMatchObject({ isRefused: true });
  });
});

describe.skipIf(process.platform === "win32")("links within the checkout that contains a bundle", () => {
  const repository = (files: Record<string, string> = {}) =>
    tempFolder({
      ".git/HEAD": "ref: refs/heads/main\n",
      "shared/tidy/SKILL.md": skill("tidy"),
      "plugins/p/.claude-plugin/plugin.json": '{"name":"p"}',
      "plugins/p/skills/own/SKILL.md": skill("own"),
      ...files,
    });

  test("links to one skill, to an agent and to the whole folder are followed", async () => {
    const root = repository({ "shared/helper.md": "---\nname: helper\n---\nHelp." });
    const folder = join(root, "plugins/p");
    mkdirSync(join(folder, "agents"));
    symlinkSync("../../../shared/tidy", join(folder, "skills/tidy"));
    symlinkSync("../../../shared/helper.md", join(folder, "agents/helper.md"));
    const bundle = load(folder);
    expect(bundle).toMatchObject({ skills: ["own", "tidy"], skillDirectories: [join(folder, "skills")], diagnostics: [{}] });
    expect(bundle.agents.map(({ name }) => name)).toEqual(["helper"]);
    const kit = await openKit([...bundle.skillDirectories], { watch: false });
    expect(kit.host.skills.map(({ name, state }) => [name, state])).toEqual([
      ["own", "active"],
      ["tidy", "active"],
    ]);
    const whole = join(root, "plugins/q");
    mkdirSync(whole);
    symlinkSync("../../shared", join(whole, "skills"));
    expect(load(whole)).toMatchObject({ skills: ["tidy"], diagnostics: [] });
  });

  test("links out of the checkout and into its .git are not followed", () => {
    const outside = tempFolder({ "secret/SKILL.md": skill("secret") });
    const root = repository({ ".git/modules/SKILL.md": skill("modules") });
    const folder = join(root, "plugins/p");
    symlinkSync(join(outside, "secret"), join(folder, "skills/secret"));
    symlinkSync("../../../.git/modules", join(folder, "skills/modules"));
    const bundle = load(folder);
    expect(bundle.skills).toEqual(["own"]);
    expect(bundle.skillDirectories).toEqual([join(folder, "skills/own")]);
    expect(diagnosticsOf(bundle)).toEqual(["error BUNDLE_PATH skills/modules", "error BUNDLE_PATH skills/secret"]);
  });

  test("links of a bundle without a checkout, or in an installed package, are not followed", () => {
    const root = tempFolder({
      ".git/HEAD": "",
      "shared/tidy/SKILL.md": skill("tidy"),
      "node_modules/p/.claude-plugin/plugin.json": '{"name":"p"}',
      "node_modules/p/more/SKILL.md": skill("more"),
    });
    const folder = join(root, "node_modules/p");
    mkdirSync(join(folder, "skills"));
    symlinkSync("../../../shared/tidy", join(folder, "skills/tidy"));
    symlinkSync("../more", join(folder, "skills/more"));
    expect(load(folder).skills).toEqual(["more"]);
    const alone = tempFolder({ "shared/tidy/SKILL.md": skill("tidy"), "p/.claude-plugin/plugin.json": '{"name":"p"}' });
    mkdirSync(join(alone, "p/skills"));
    symlinkSync("../../shared/tidy", join(alone, "p/skills/tidy"));
    expect(load(join(alone, "p")).skills).toEqual([]);
  });

  test("links are not followed for paths in a manifest, for a manifest, or for a bundle of the neutral specification", () => {
    const root = repository({ "plugins/p/.claude-plugin/plugin.json": '{"name":"p","skills":["./linked","../../shared"]}' });
    const folder = join(root, "plugins/p");
    symlinkSync("../../shared", join(folder, "linked"));
    const bundle = load(folder);
    expect(bundle.skills).toEqual(["own"]);
    expect(diagnosticsOf(bundle).slice(1)).toEqual([
      "error BUNDLE_PATH .claude-plugin/plugin.json",
      "error BUNDLE_PATH .claude-plugin/plugin.json",
    ]);
    const other = repository({ "manifest.json": '{"name":"theirs"}' });
    symlinkSync("../../manifest.json", join(other, "plugins/p/plugin.json"));
    expect(load(join(other, "plugins/p"))).toMatchObject({ isRefused: true });
    const $schema = "https://agent-plugins.org/schemas/1.0.0/plugin.schema.json";
    const neutral = repository({ "plugins/n/plugin.json": JSON.stringify({ $schema, name: "n" }) });
    mkdirSync(join(neutral, "plugins/n/skills"));
    symlinkSync("../../../shared/tidy", join(neutral, "plugins/n/skills/tidy"));
    expect(load(join(neutral, "plugins/n")).skills).toEqual([]);
  });
});

describe("the entry of a marketplace", () => {
  const market = (plugins: readonly object[], files: Record<string, string>) =>
    tempFolder({ ".claude-plugin/marketplace.json": JSON.stringify({ name: "m", plugins }), ...files });
  const loadListed = (root: string) => {
    const marketplace = readMarketplace(root);
    if (marketplace === undefined) throw new Error("There is no marketplace.");
    return marketplace.plugins.flatMap((plugin) =>
      plugin.folder === undefined ? [] : [load(plugin.folder, { listed: entryOf(marketplace, plugin) })],
    );
  };
  const collection = {
    "skills/a/SKILL.md": skill("a"),
    "skills/b/SKILL.md": skill("b"),
    "other/c/SKILL.md": skill("c"),
    "agents/helper.md": "---\nname: helper\ndescription: Helps.\n---\nHelp.",
  };

  test("an entry gives plugins that share a folder their own skills", () => {
    const root = market(
      [
        { name: "one", source: "./", strict: false, version: "1.0.0", description: "One.", skills: ["./skills/a"] },
        { name: "two", source: "./", strict: false, skills: ["./skills/b", "./other/c"], agents: "./agents/helper.md" },
        { name: "rest", source: "./", strict: false },
      ],
      collection,
    );
    expect(loadListed(root)).toMatchObject([
      { name: "one", version: "1.0.0", description: "One.", skills: ["a"], skillDirectories: [join(root, "skills/a")] },
      { name: "two", skills: ["b", "c"], agents: [{ name: "helper" }] },
      { name: "rest", skills: ["a", "b"] },
    ]);
  });

  test("an entry is added to the manifest and to the files in the usual places", () => {
    const root = market(
      [{ name: "p", source: "./plugins/p", skills: "./extra", hooks: { Stop: [] }, mcpServers: { s: { command: "x" } } }],
      {
        "plugins/p/.claude-plugin/plugin.json": '{"name":"p","version":"2.0.0","skills":["./more"]}',
        "plugins/p/skills/a/SKILL.md": skill("a"),
        "plugins/p/more/b/SKILL.md": skill("b"),
        "plugins/p/extra/c/SKILL.md": skill("c"),
      },
    );
    const [bundle] = loadListed(root);
    expect(bundle).toMatchObject({ name: "p", version: "2.0.0", skills: ["a", "b", "c"], diagnostics: [] });
    expect([...bundle!.mcpServers.keys()]).toEqual(["s"]);
  });

  test("an entry that is the whole definition conflicts only with a manifest that names components", () => {
    const entry = { name: "p", source: "./p", strict: false, skills: ["./extra"] };
    const files = { "p/extra/c/SKILL.md": skill("c") };
    const [clash] = loadListed(market([entry], { ...files, "p/.claude-plugin/plugin.json": '{"name":"p","agents":["./x.md"]}' }));
    expect(clash).toMatchObject({ isRefused: true, diagnostics: [{ severity: "error", code: "BUNDLE_CLASH" }] });
    const [fine] = loadListed(market([entry], { ...files, "p/.claude-plugin/plugin.json": '{"name":"q","version":"1.0.0"}' }));
    expect(fine).toMatchObject({ name: "p", version: "1.0.0", skills: ["c"] });
  });

  test("problems in an entry are reported in the marketplace's file, and its hooks follow the same rules", () => {
    const root = market([{ name: "p", source: "./p", skills: ["./gone"], hooks: { PreToolUse: "deny" } }], { "p/README.md": "" });
    const [bundle] = loadListed(root);
    const file = join(root, ".claude-plugin/marketplace.json");
    expect(bundle).toMatchObject({ isRefused: true });
    expect(bundle?.diagnostics.map(({ code, file: at }) => [code, at])).toEqual([
      ["BUNDLE_FILE_MISSING", file],
      ["HOOKS_TYPE", file],
      ["BUNDLE_HOOKS", file],
    ]);
    expect(bundle?.diagnostics[0]?.range).toBeDefined();
  });

  test("a folder without a manifest is a bundle of all entries for the folder itself", () => {
    const entries = [
      { name: "one", source: "./", strict: false, skills: ["./other/c"] },
      { name: "two", source: "./", strict: false, skills: ["./skills/b"] },
      { name: "elsewhere", source: "./agents", skills: ["./skills/a"] },
    ];
    const both = load(market(entries, collection));
    expect(both).toMatchObject({ name: "m", dialect: "claude", skills: ["c", "b"] });
    expect([...both.files].some((file) => file.endsWith("marketplace.json"))).toBe(true);
    expect(load(market(entries.slice(0, 1), collection))).toMatchObject({ name: "one", skills: ["c"] });
    expect(load(market([...entries, { name: "all", source: "." }], collection))).toMatchObject({ skills: ["a", "b", "c"] });
    expect(load(market(entries, { ...collection, ".plugin/plugin.json": '{"name":"own"}' }))).toMatchObject({
      name: "own",
      skills: ["a", "b"],
    });
    expect(isBundleFolder(market(entries, {}))).toBe(true);
  });
});

describe("paths out of the bundle", () => {
  test.each([
    ["up", "../outside"],
    ["up within", "./skills/../../outside"],
    ["absolute", "/etc"],
    ["of another system", "C:\\Windows"],
    ["a device", "./aux"],
    ["NUL", "./a\u0000b"],
  ])("a path that goes %s is omitted, and the rest loads", (_what, path) => {
    const bundle = loadFiles({
      ".claude-plugin/plugin.json": JSON.stringify({
        name: "p",
        skills: [path],
        agents: [path],
        commands: [path],
        mcpServers: path,
      }),
      "skills/good/SKILL.md": skill("good"),
    });
    expect(bundle.skills).toEqual(["good"]);
    expect(bundle.diagnostics.filter(({ code }) => code === "BUNDLE_PATH")).toHaveLength(4);
    expect(bundle.diagnostics.every(({ range }) => range !== undefined)).toBe(true);
  });

  test("links to folders outside are reported, and their siblings are loaded one by one", () => {
    const outside = tempFolder({ "secret/SKILL.md": skill("secret"), "agent.md": "---\nname: spy\n---\nSpy.", "cmd.md": "Spy." });
    const folder = tempFolder({
      "plugin.json": '{"name":"p","commands":"commands"}',
      "skills/good/SKILL.md": skill("good"),
      "agents/x.md": "---\nname: x\n---\nX.",
    });
    mkdirSync(join(folder, "commands"));
    symlinkSync(join(outside, "secret"), join(folder, "skills/secret"));
    symlinkSync(join(outside, "agent.md"), join(folder, "agents/spy.md"));
    symlinkSync(join(outside, "cmd.md"), join(folder, "commands/spy.md"));
    const bundle = load(folder);
    expect(bundle.skillDirectories).toEqual([join(folder, "skills/good")]);
    expect(bundle.agents.map(({ name }) => name)).toEqual(["x"]);
    expect(bundle.commands).toEqual([]);
    expect(diagnosticsOf(bundle).filter((line) => line.includes("BUNDLE_PATH"))).toEqual([
      "error BUNDLE_PATH skills/secret",
      "error BUNDLE_PATH agents/spy.md",
      "error BUNDLE_PATH commands/spy.md",
    ]);
  });

  test("a manifest that is a link out of the bundle refuses the bundle, and no other manifest replaces it", () => {
    const outside = tempFolder({ "plugin.json": '{"name":"theirs"}' });
    const folder = tempFolder({ ".claude-plugin/plugin.json": '{"name":"mine"}', "skills/a/SKILL.md": skill("a") });
    symlinkSync(join(outside, "plugin.json"), join(folder, "plugin.json"));
    const bundle = load(folder);
    expect(bundle).toMatchObject({ isRefused: true, skillDirectories: [] });
    expect(bundle.diagnostics[0]?.code).toBe("BUNDLE_PATH");
  });

  test("cyclic links end the search", () => {
    const folder = tempFolder({ "plugin.json": '{"name":"p"}', "agents/a.md": "---\nname: a\n---\nA." });
    symlinkSync("..", join(folder, "agents/up"));
    symlinkSync("loop", join(folder, "agents/loop"));
    expect(load(folder).agents.map(({ name }) => name)).toEqual(["a"]);
  });

  test("a server's own program and folder stay inside the bundle", () => {
    const folder = tempFolder({
      ".mcp.json": JSON.stringify({
        mcpServers: {
          out: { command: "./bin/out" },
          up: { command: "../x" },
          root: { command: "${CLAUDE_PLUGIN_ROOT}/bin/out" },
          bare: { command: "node" },
        },
      }),
      "skills/a/SKILL.md": skill("a"),
    });
    mkdirSync(join(folder, "bin"));
    symlinkSync("/bin/sh", join(folder, "bin/out"));
    const bundle = load(folder);
    expect([...bundle.mcpServers.keys()]).toEqual(["bare"]);
    expect(diagnosticsOf(bundle).filter((line) => line.includes("BUNDLE_PATH"))).toHaveLength(3);
  });
});

describe("unreadable bundles", () => {
  test.each([
    ["a missing folder", {}, "BUNDLE_UNREADABLE"],
    ["a manifest of the wrong type", { ".claude-plugin/plugin.json": "[]" }, "PLUGIN_MANIFEST_TYPE"],
    ["invalid JSON", { ".claude-plugin/plugin.json": "{" }, "JSON_SYNTAX"],
    ["the text of a link", { ".claude-plugin/plugin.json": "../../plugin.json" }, "JSON_SYNTAX"],
    ["10 MB", { ".claude-plugin/plugin.json": `{"name":"p","x":"${"y".repeat(10_000_000)}"}` }, "FILE_TOO_LARGE"],
    ["a missing name", { "plugin.json": "{}" }, "PLUGIN_NAME"],
    [
      "another version",
      { "plugin.json": '{"$schema":"https://agent-plugins.org/schemas/2.0.0/plugin.schema.json","name":"p"}' },
      "PLUGIN_SCHEMA_UNKNOWN",
    ],
  ])("%s refuses the bundle with a reason", (_what, files: Record<string, string>, code) => {
    const folder = Object.keys(files).length === 0 ? join(tempFolder(), "gone") : tempFolder({ ...files, "skills/a/SKILL.md": skill("a") });
    const bundle = load(folder);
    expect(bundle).toMatchObject({ isRefused: true, skillDirectories: [], agents: [] });
    expect(bundle.diagnostics.map((found) => found.code)).toContain(code);
  });

  test("a component that cannot be read does not affect the others", () => {
    const bundle = loadFiles({
      ".claude-plugin/plugin.json": '{"name":"p"}',
      "skills/a/SKILL.md": skill("a"),
      "agents/good.md": "---\nname: good\n---\nGood.",
      "agents/bad.md": "---\nname: [\n---\n",
      "agents/kept.md": "---\nname: kept\ndisallowedTools: Bash\n---\nKept.",
      "commands/good.md": "Good.",
      "commands/empty.md": "---\ndescription: x\n---\n",
      "commands/two words.md": "Bad.",
      "hooks/hooks.json": '{"hooks":{"PreToolUse":[{"hooks":[{"type":"prompt","prompt":"x"}]}]}}',
      ".mcp.json": '{"mcpServers":{"a":{"command":"x"},"b":7}}',
    });
    expect([bundle.skills, bundle.agents.map(({ name }) => name), bundle.commands.map(({ name }) => name)]).toEqual([
      ["a"],
      expect.arrayContaining(["good"]),
      ["p:good"],
    ]);
    expect([...bundle.mcpServers.keys()]).toEqual(["a"]);
    const codes = bundle.diagnostics.map(({ code }) => code);
    for (const code of ["AGENT_LEFT_OUT", "COMMAND_EMPTY", "COMMAND_NAME", "HOOK_TYPE_UNSUPPORTED", "MCP_ENTRY_TYPE"])
      expect(codes).toContain(code);
  });

  test("a folder with more entries than the limit is read in part", () => {
    const folder = tempFolder({ "plugin.json": '{"name":"p"}', "agents/a.md": "---\nname: a\n---\nA." });
    for (let at = 0; at < 5_100; at++) writeFileSync(join(folder, `agents/x${at}.txt`), "");
    const bundle = load(folder);
    expect(bundle.agents.map(({ name }) => name)).toEqual(["a"]);
    expect(diagnosticsOf(bundle)).toContain("error BUNDLE_TOO_MANY agents");
  });

  test("keys named like object prototypes are unknown keys", () => {
    const bundle = loadFiles({
      ".claude-plugin/plugin.json": '{"name":"p","__proto__":{"skills":["/etc"]},"constructor":1,"hooks":{"__proto__":[],"toString":[]}}',
      ".mcp.json": '{"mcpServers":{"__proto__":{"command":"x"},"constructor":{"command":"y"}}}',
      "skills/a/SKILL.md": skill("a"),
    });
    expect(bundle.skills).toEqual(["a"]);
    expect([...bundle.mcpServers.keys()]).toEqual(["constructor"]);
    expect(({} as Record<string, unknown>)["skills"]).toBeUndefined();
  });

  test("a bundle without usable components is reported", () => {
    expect(diagnosticsOf(loadFiles({ "plugin.json": '{"name":"p"}' }))).toEqual(["warning BUNDLE_EMPTY"]);
  });
});

describe("the data folder of a bundle", () => {
  test("the data folder is created on first reference, and each bundle has its own", () => {
    const files = (args: string) => ({
      ".mcp.json": `{"mcpServers":{"s":{"type":"http","url":"https://x.example/${args}"}}}`,
      ".claude-plugin/plugin.json": '{"name":"p"}',
    });
    const dataDirectory = join(tempFolder(), "data");
    const without = loadFiles(files("plain"), { dataDirectory });
    expect(existsSync(dataDirectory)).toBe(false);
    const withIt = loadFiles(files("${CLAUDE_PLUGIN_DATA}"), { dataDirectory });
    expect(existsSync(withIt.data.path)).toBe(true);
    expect(withIt.data.path).not.toBe(without.data.path);
    writeFileSync(join(withIt.data.path, "kept"), "");
  });
});
