import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { definePlugin } from "../../src/plugin-host/define-plugin.ts";
import type { PluginApi } from "../../src/plugin-host/plugin-api.ts";
import type { Session } from "../../src/session/session.ts";
import type { Tool } from "../../src/tools/tool.ts";
import type { ToolSource } from "../../src/tools/tool-source.ts";
import { skillMd, tempFolder, toolSource } from "../skills/kit.ts";
import { found, hostWith, sourceOfTools } from "./plugin-kit.ts";

const plugin = (name: string, activate: (api: PluginApi) => void | Promise<void>) => definePlugin({ name, activate });
const says = (name: string, text: string) => ({ name, description: "Says something.", handler: () => text });
const twice = (add: () => void): void => {
  add();
  add();
};
const chat = { id: "m", address: "h", complete: () => Promise.reject(new Error("No test asks it.")) };

describe("contributions of a plugin", () => {
  test("contributions are listed, and their consumers find them", async () => {
    const { host } = await hostWith([
      plugin("all", (api) => {
        api.addTools(says("t", "x"));
        api.addToolSource(sourceOfTools("s", [api.createTool(says("u", "x"))]));
        api.addAgent({ name: "reviewer", prompt: "Be strict." });
        api.addHooks({ onPreToolUse: () => undefined, onSessionEnd: [] });
        api.addCommand({ name: "deploy", description: "Deploys.", handler() {} });
        api.addModelProvider("local", () => chat);
        api.addMcpServer("files", { command: "files-server" });
      }),
    ]);
    expect(host.plugins).toMatchObject([
      {
        tools: ["t", "u"],
        toolSources: ["s"],
        agents: ["reviewer"],
        hooks: ["preToolUse"],
        commands: [{ name: "deploy", description: "Deploys." }],
        modelProviders: ["local"],
        mcpServers: ["files"],
        diagnostics: [],
      },
    ]);
  });

  test.each<readonly [string, (api: PluginApi) => void, string]>([
    ["a source without an id", (api) => api.addToolSource({ ...sourceOfTools(""), id: "" }), "its id must be"],
    ["two sources with the same id", (api) => twice(() => api.addToolSource(sourceOfTools("s"))), 'with the id "s"'],
    [
      "a runner for an extension that the host reads itself",
      (api) => api.addToolRunner({ extensions: [".ts"], load: () => Promise.reject() }),
      "read by the host",
    ],
    ["a runner without a dot", (api) => api.addToolRunner({ extensions: ["py"], load: () => Promise.reject() }), "not a valid extension"],
    ["a relative skill directory", (api) => api.addSkillDirectory("./skills"), "not an absolute path"],
    ["an unknown hook", (api) => api.addHooks({ onPreTolUse: () => undefined } as never), "onPreTolUse"],
    ["a command without a handler", (api) => api.addCommand({ name: "c" } as never), "handler must be a function"],
    ["two agents with the same name", (api) => twice(() => api.addAgent({ name: "a" })), 'already added one named "a"'],
    ["an invalid MCP server", (api) => api.addMcpServer("m", null as never), "must be an object"],
    ["a nameless model provider", (api) => api.addModelProvider("", () => chat), "its name must be"],
  ])("an invalid contribution is refused by name: %s", async (_what, add, words) => {
    let code: unknown;
    const { host } = await hostWith([
      plugin("p", (api) => {
        try {
          add(api);
        } catch (error) {
          code = (error as { code?: unknown }).code;
          throw error;
        }
      }),
    ]);
    expect(code).toBe("PLUGIN_CONTRIBUTION");
    expect(found(host, "PLUGIN_ACTIVATION")).toMatchObject([{ message: expect.stringContaining(words) }]);
  });

  test("a name that two plugins use belongs to the earlier one", async () => {
    const adds = (name: string) => plugin(name, (api) => api.addCommand({ name: "deploy", handler() {} }));
    const { host } = await hostWith([adds("a"), adds("b")]);
    expect(found(host, "PLUGIN_CONTRIBUTION_TAKEN")).toMatchObject([
      { severity: "warning", source: "b", message: expect.stringContaining('command "deploy"') },
    ]);
  });
});

describe("tools of plugins", () => {
  test("an invalid tool is omitted with a diagnostic, and the plugin and its other tools stay", async () => {
    const { host, call } = await hostWith([plugin("p", (api) => api.addTools([says("no blanks", "x"), says("fine", "Fine.")]))]);
    expect(found(host, "TOOL_INVALID")).toMatchObject([{ severity: "error", source: "p", message: expect.stringContaining("no blanks") }]);
    expect((await call("fine")).textResultForLlm).toBe("Fine.");
  });

  test("tools of plugins rank above a skill's and below the session's own", async () => {
    const root = tempFolder({
      "s/SKILL.md": skillMd("s"),
      "s/tools/t.ts": toolSource("t", '"skill"'),
      "s/tools/u.ts": toolSource("u", '"skill"'),
    });
    const { call, session } = await hostWith([plugin("p", (api) => api.addTools([says("t", "plugin"), says("u", "plugin")]))], {
      skillDirectories: [root],
    });
    await session.setTools([says("u", "session")]);
    expect([(await call("t")).textResultForLlm, (await call("u")).textResultForLlm]).toEqual(["plugin", "session"]);
  });

  test("tools of a source follow it into open sessions, and rank as the plugin's whatever kind they claim", async () => {
    const source = sourceOfTools("live");
    let make: ((text: string) => Tool) | undefined;
    const { host, call, session } = await hostWith([
      plugin("p", (api) => {
        api.addToolSource(source);
        make = (text) => api.createTool(says("t", text));
      }),
    ]);
    expect(session.catalog.executables.has("t")).toBe(false);
    const made = make!("one");
    const { signature, revision } = made;
    const origin = { kind: "external" as const, source: "someone", nativeName: "t" };
    const posing: Tool = Object.freeze({ ...made, signature, revision, origin });
    source.publish([posing]);
    expect((await call("t")).textResultForLlm).toBe("one");
    expect(session.catalog.executables.get("t")?.origin).toMatchObject({ kind: "plugin", source: "p" });
    const before = session.catalog.executables.get("t");
    source.publish([posing]);
    expect(session.catalog.executables.get("t")).toBe(before);
    source.publish([make!("two")]);
    expect((await call("t")).textResultForLlm).toBe("two");
    await host.close();
    expect(source.ended).toBe(1);
  });

  test("an unreadable source keeps its previous tools", async () => {
    const source = sourceOfTools("s");
    let snapshot: (() => ToolSource["snapshot"]) | undefined;
    const broken = Object.create(source, { snapshot: { get: () => snapshot!() }, id: { value: "s" } }) as typeof source;
    const { call, session } = await hostWith([
      plugin("p", (api) => {
        snapshot = () => ({ tools: [api.createTool(says("t", "x")), { not: "a tool" } as never], skills: [], diagnostics: [] });
        const first = snapshot();
        snapshot = () => first;
        api.addToolSource(broken);
      }),
    ]);
    expect(session.catalog.diagnostics).toMatchObject([{ code: "PLUGIN_TOOL_INVALID", source: "p" }]);
    snapshot = () => {
      throw new Error("The connection is gone.");
    };
    source.publish([]);
    expect((await call("t")).textResultForLlm).toBe("x");
    expect(session.catalog.diagnostics.map(({ code }) => code)).toEqual(["PLUGIN_TOOL_INVALID", "PLUGIN_SOURCE"]);
  });

  test("a source that is never ready delays no session", async () => {
    const never: ToolSource = Object.create(sourceOfTools("never"), {
      ready: { value: () => new Promise(() => {}) },
      id: { value: "never" },
    });
    const { host } = await hostWith([plugin("p", (api) => api.addToolSource(never))], { activationTimeout: 50 });
    expect(found(host, "PLUGIN_SOURCE")).toMatchObject([
      { source: "p", message: expect.stringContaining("not ready within 0.05 seconds") },
    ]);
  });
});

describe("skills of plugins", () => {
  test("a skill of a plugin's directory ranks below the host's own", async () => {
    const files = (words: string) => ({ "s/SKILL.md": skillMd("s"), "s/tools/t.ts": toolSource("t", JSON.stringify(words)) });
    const own = tempFolder(files("own"));
    const bundled = tempFolder({ ...files("plugin"), "other/SKILL.md": skillMd("other") });
    const { host, call } = await hostWith([plugin("p", (api) => api.addSkillDirectory(bundled))], { skillDirectories: [own] });
    expect((await call("t")).textResultForLlm).toBe("own");
    expect(host.skills.map(({ folder, state }) => [folder, state])).toEqual([
      [join(bundled, "other"), "active"],
      [join(bundled, "s"), "shadowed"],
      [join(own, "s"), "active"],
    ]);
  });

  test("a skill may define tools in files that a plugin's runner reads", async () => {
    const root = tempFolder({ "s/SKILL.md": skillMd("s"), "s/tools/greet.txt": "Good morning." });
    const { call, session } = await hostWith(
      [
        plugin("texts", (api) =>
          api.addToolRunner({
            extensions: [".txt"],
            async load(file, { skill, generation }) {
              const text = await readFile(file, "utf8");
              const tool = api.createTool(says("greet", text), { generation, ofSkill: { name: skill.name, file } });
              return { tools: [tool], files: new Set([file]), diagnostics: [] };
            },
          }),
        ),
      ],
      { skillDirectories: [root] },
    );
    expect((await call("greet")).textResultForLlm).toBe("Good morning.");
    expect(session.catalog.executables.get("greet")?.origin).toMatchObject({ kind: "skill", source: "s" });
  });

  test("what a runner finds about the whole skill with each of its files is reported once", async () => {
    const root = tempFolder({ "s/SKILL.md": skillMd("s"), "s/tools/a.txt": "a", "s/tools/b.txt": "b" });
    const { host } = await hostWith(
      [
        plugin("texts", (api) =>
          api.addToolRunner({
            extensions: [".txt"],
            async load(file, { skill, generation }) {
              const tool = api.createTool(says(await readFile(file, "utf8"), ""), { generation, ofSkill: { name: skill.name, file } });
              const about = { severity: "warning", code: "TEXTS_OLD" } as const;
              const diagnostics = [
                { ...about, file: skill.folder, message: "Of the skill." },
                { ...about, file, message: "Of the file." },
              ];
              return { tools: [tool], files: new Set([file]), diagnostics };
            },
          }),
        ),
      ],
      { skillDirectories: [root] },
    );
    expect(found(host, "TEXTS_OLD").map(({ file }) => file)).toEqual([
      join(root, "s"),
      join(root, "s/tools/a.txt"),
      join(root, "s/tools/b.txt"),
    ]);
  });
});

describe("hooks of plugins", () => {
  test("hooks of plugins run in every session before its own, even after the session's have changed", async () => {
    const order: string[] = [];
    const hook = (name: string) => ({ onPreToolUse: () => void order.push(name) });
    const adds = (name: string) => plugin(name, (api) => api.addHooks(hook(name)));
    const { host } = await hostWith([adds("a"), adds("b")]);
    const run = async (session: Session): Promise<readonly string[]> => {
      await session.callTool("t");
      return order.splice(0);
    };
    const session = await host.createSession({ tools: [says("t", "x")], hooks: hook("own"), persist: false });
    expect(await run(session)).toEqual(["a", "b", "own"]);
    await session.update({ hooks: hook("other") });
    expect(await run(session)).toEqual(["a", "b", "other"]);
    await session.update({ hooks: undefined });
    expect(await run(session)).toEqual(["a", "b"]);
  });
});
