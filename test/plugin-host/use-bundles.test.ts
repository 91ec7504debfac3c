import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { loadSessionBundles } from "../../src/plugin-host/bundles/bundle-plugin.ts";
import { approveAll } from "../../src/tools/tool.ts";
import { fakeChat } from "../doubles/fake-chat.ts";
import { put, skillMd, tempFolder } from "../skills/kit.ts";
import { fixture, fixtureCopy, optionsIn } from "./bundle-kit.ts";
import { found, hostWith } from "./plugin-kit.ts";

const own = (bundle: string) => ({ pluginDataDirectory: join(tempFolder(), bundle) });

describe("a bundle that a host names", () => {
  test("a bundle adds skills, agents, commands, hooks and servers like any plugin", async () => {
    const folder = fixture("claude");
    const { host, session } = await hostWith([folder], own("claude"));
    expect(host.plugins).toMatchObject([
      {
        name: "house-rules",
        version: "0.3.1",
        state: "active",
        bundle: { dialect: "claude", folder, manifestFile: join(folder, ".claude-plugin/plugin.json"), skills: ["tidy", "sweep"] },
        agents: ["inspector"],
        hooks: ["preToolUse", "sessionStart"],
        mcpServers: ["ledger", "asks"],
      },
    ]);
    expect(host.skills.map(({ name, state }) => [name, state])).toEqual([
      ["tidy", "active"],
      ["sweep", "active"],
    ]);
    expect(session.commands.map(({ name }) => name)).toEqual(["house-rules:greet", "house-rules:team:stand-up"]);
    expect(await session.runCommand("house-rules:greet", "Ada")).toBe(`Greet Ada from ${folder}.`);
    expect(host.listServers()).toMatchObject([
      { name: "ledger", origin: { kind: "plugin", source: "house-rules" } },
      { name: "asks", status: "not_configured" },
    ]);
    expect(found(host, "HOOK_TYPE_UNSUPPORTED")).toMatchObject([
      { source: "house-rules", file: join(folder, "hooks/hooks.json"), range: { start: { line: 9 } } },
    ]);
  });

  test("the hook programs of a bundle decide about calls", async () => {
    const tools = ["bash", "create", "view"].map((name) => ({ name, parameters: { type: "object" }, handler: () => "ran" }));
    const { host } = await hostWith([fixture("claude")], own("claude"));
    const session = await host.createSession({ tools, onPermissionRequest: approveAll });
    const of = async (tool: string, args: object) => {
      const { resultType, textResultForLlm } = await session.callTool(tool, args);
      return `${resultType}: ${textResultForLlm}`;
    };
    expect(await of("bash", { command: "ls" })).toBe("success: ran");
    expect(await of("view", { path: "secret.txt" })).toBe("success: ran");
    expect(await of("bash", { command: "rm -r ." })).toContain("Nothing is removed here.");
    expect(await of("create", { path: "secret.txt", file_text: "x" })).toContain("Secrets stay as they are (Write).");
  });

  test("a bundle has no hooks if its configuration disables them", async () => {
    const { host } = await hostWith([{ use: fixture("claude"), config: { hooks: false } }], own("claude"));
    expect(host.plugins).toMatchObject([{ state: "active", hooks: [] }]);
  });

  test("a bundle gets from the configuration what its client would ask the user for", async () => {
    const { host } = await hostWith(
      [{ use: fixture("claude"), config: { hooks: false, settings: { host: "house.example" } } }],
      own("claude"),
    );
    expect(host.listServers()).toMatchObject([{ name: "ledger" }, { name: "asks", status: expect.not.stringMatching("not_configured") }]);
  });

  test("an installed package may be a bundle, and its code is asked for a plugin only if it has no manifest", async () => {
    const workingDirectory = tempFolder({
      "node_modules/house/package.json": '{"name":"house","version":"1.0.0","main":"./index.js"}',
      "node_modules/house/index.js": "throw new Error('never run');",
      "node_modules/house/.claude-plugin/plugin.json": '{"name":"house"}',
      "node_modules/house/skills/dust/SKILL.md": skillMd("dust"),
    });
    const { host } = await hostWith(["house"], { ...own("package"), workingDirectory });
    expect(host.plugins).toMatchObject([{ name: "house", state: "active", bundle: { dialect: "claude", skills: ["dust"] } }]);
    expect(host.skills.map(({ name }) => name)).toEqual(["dust"]);
  });

  test("a refused bundle is a failed plugin with the reason and its position", async () => {
    const folder = tempFolder({ ".claude-plugin/plugin.json": '{\n  "name": "Not A Name"\n}' });
    const { host } = await hostWith([folder], own("refused"));
    expect(host.plugins).toMatchObject([{ state: "failed" }]);
    expect(found(host, "PLUGIN_NAME")).toMatchObject([{ severity: "error", range: { start: { line: 2 } } }]);
    expect(found(host, "PLUGIN_INVALID")).toHaveLength(1);
  });

  test("a bundle adds its context before a new conversation, and its command replaces a message", async () => {
    const chat = fakeChat("Sunny.");
    const { host } = await hostWith([{ use: fixture("gemini"), config: { hooks: false } }], own("gemini"));
    const session = await host.createSession({ persist: false, chatModel: chat });
    await session.sendAndWait("/fore:cast Rome");
    const texts = chat.requests[0]!.messages.filter(({ role }) => role === "user").map(({ content }) => String(content));
    expect(texts.join("\n")).toContain('<plugin_context plugin="weather" file="WEATHER.md">\nSpeak of the weather first.');
    expect(texts.at(-1)).toContain("Say how the weather in Rome will be");
  });

  test("skills of a bundle know its folder", async () => {
    const folder = fixtureCopy("claude");
    put(
      join(folder, "skills/run/SKILL.md"),
      skillMd("run", "Run ${CLAUDE_PLUGIN_ROOT}/x.sh in ${CLAUDE_SKILL_DIR}, \\${CLAUDE_PLUGIN_ROOT} as it is."),
    );
    const alone = tempFolder({ "alone/SKILL.md": skillMd("alone", "Run ${CLAUDE_PLUGIN_ROOT}/x.sh.") });
    const chat = fakeChat("Done.");
    const { host } = await hostWith([{ use: folder, config: { hooks: false } }], { ...own("claude"), skillDirectories: [alone] });
    const session = await host.createSession({ persist: false, chatModel: chat });
    const bodyOf = async (skill: string) => {
      await session.sendAndWait(`/${skill}`);
      return String(chat.requests.at(-1)?.messages.findLast(({ role }) => role === "user")?.content);
    };
    expect(await bodyOf("run")).toContain(`Run ${folder}/x.sh in ${folder}/skills/run, \\${"$"}{CLAUDE_PLUGIN_ROOT} as it is.`);
    expect(await bodyOf("alone")).toContain("Run ${CLAUDE_PLUGIN_ROOT}/x.sh.");
  });

  test("skills of a bundle are reloaded when they are saved, and the bundle when its files are", async () => {
    const folder = fixtureCopy("claude");
    const { host } = await hostWith([folder], { ...own("claude"), watch: true });
    put(join(folder, "skills/polish/SKILL.md"), skillMd("polish"));
    await expect.poll(() => host.skills.map(({ name }) => name).sort()).toEqual(["polish", "sweep", "tidy"]);
    writeFileSync(join(folder, ".mcp.json"), '{"mcpServers":{"other":{"command":"node"}}}');
    await expect.poll(() => host.plugins[0]?.mcpServers).toEqual(["other"]);
    writeFileSync(join(folder, ".claude-plugin/plugin.json"), "{");
    await expect.poll(() => host.plugins[0]?.stale).toBe(true);
    expect(host.plugins).toMatchObject([{ state: "active", mcpServers: ["other"] }]);
    writeFileSync(join(folder, ".claude-plugin/plugin.json"), '{"name":"house-rules","version":"9.0.0"}');
    await expect.poll(() => host.plugins[0]?.version).toBe("9.0.0");
  });
});

describe("bundles that a session names", () => {
  const signal = new AbortController().signal;
  const given = (directories: readonly string[], more = {}) =>
    loadSessionBundles(directories, { ...optionsIn(tempFolder()), signal, ...more });

  test("bundles rank below the session's own options", () => {
    const bundles = given([fixture("claude"), fixture("copilot"), fixture("cursor")]);
    const hook = () => undefined;
    const options = bundles.addTo({
      skillDirectories: ["/mine"],
      customAgents: [{ name: "inspector", prompt: "Mine." }],
      mcpServers: { ledger: { command: "mine" } },
      hooks: { onPreToolUse: hook },
      model: "m",
    });
    expect(options.skillDirectories?.at(-1)).toBe("/mine");
    expect(options.customAgents?.map(({ name, prompt }) => `${name}: ${prompt}`)).toEqual(["inspector: Mine.", "reviewer: You review."]);
    expect(Object.keys(options.mcpServers ?? {})).toEqual(["ledger", "asks", "hub", "dictionary"]);
    expect(options.mcpServers?.["ledger"]).toEqual({ command: "mine" });
    expect([options.hooks?.onPreToolUse].flat()).toHaveLength(3);
    expect([options.hooks?.onPreToolUse].flat().at(-1)).toBe(hook);
    expect(options.model).toBe("m");
  });

  test("a refused bundle contributes only its diagnostics", () => {
    const bundles = given([join(tempFolder(), "gone")]);
    expect(bundles.addTo({})).toEqual({});
    expect(bundles.diagnostics).toMatchObject([{ code: "BUNDLE_UNREADABLE" }]);
  });

  test("disabled hooks are reported", () => {
    const bundles = given([fixture("claude")], { hooks: "off" });
    expect(bundles.addTo({}).hooks).toBeUndefined();
    expect(bundles.diagnostics.map(({ code }) => code)).toContain("BUNDLE_HOOKS_OFF");
  });

  test("bundles work in a session", async () => {
    const { host } = await hostWith([], {});
    const folder = fixture("gemini");
    const tools = [{ name: "create", parameters: { type: "object" }, handler: () => "ran" }];
    const session = await host.createSession(given([folder]).addTo({ tools, onPermissionRequest: approveAll }));
    expect((await session.callTool("create", { path: "x", file_text: "y" })).textResultForLlm).toContain("It rains.");
    expect(existsSync(folder)).toBe(true);
  });
});
