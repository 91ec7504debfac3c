import { rmSync } from "node:fs";
import { join } from "node:path";
import { definePlugin, defineTool } from "skillhost";
import { describe, expect, onTestFinished, test } from "vitest";
import { put, skillMd, tempFolder } from "../skills/kit.ts";
import { found, hostWith, pluginsChanged } from "./plugin-kit.ts";

/** A record of the actions of a test's plugins, shared by all their generations. */
interface Record_ {
  readonly said: string[];
  readonly waiting: (() => void)[];
}

let tests = 0;

function recorder(): { readonly key: string; readonly record: Record_ } {
  const key = `pluginReload${++tests}`;
  const record: Record_ = { said: [], waiting: [] };
  Object.assign(globalThis, { [key]: record });
  onTestFinished(() => void delete (globalThis as Record<string, unknown>)[key]);
  return { key, record };
}

/** The source of a plugin named `live`, with a tool `version` that returns its generation. */
function source(key: string, version: string, { head = "", body = "", more = "" } = {}): string {
  return `import { definePlugin } from "skillhost";
${head}
const record = globalThis.${key};
export default definePlugin({
  name: "live",
  version: ${JSON.stringify(version)},
  ${more}
  async activate(api) {
    record.said.push("activate ${version}");
    api.onDispose(() => { record.said.push("dispose ${version}"); });
    api.addTools({ name: "version", description: "For a test.", handler: () => ${JSON.stringify(version)} });
    ${body}
  },
});
`;
}

async function open(
  files: Readonly<Record<string, string>>,
  plugins: readonly (string | ReturnType<typeof definePlugin>)[] = ["./live.ts"],
) {
  const workingDirectory = tempFolder(files);
  const kit = await hostWith(plugins, { workingDirectory, watch: true });
  const says = async (tool = "version"): Promise<string> => (await kit.call(tool)).textResultForLlm;
  const save = (text: string, file = "live.ts"): void => put(join(workingDirectory, file), text);
  return { ...kit, workingDirectory, says, save, live: () => kit.host.plugins.find(({ name }) => name === "live") };
}

describe("a plugin that is named by its file", () => {
  test("a saved plugin is replaced: sessions use its new tools and hooks, and the old one ends", async () => {
    const { key, record } = recorder();
    const hook = (word: string) => ({ body: `api.addHooks({ onPostToolUse: () => ({ modifiedResult: "${word}" }) });` });
    const { host, says, save, live, session } = await open({ "live.ts": source(key, "1.0.0") });
    const advertised: string[] = [];
    session.on("session.tools_updated", () => void advertised.push("updated"));
    expect(await says()).toBe("1.0.0");
    const change = await pluginsChanged(host, () => save(source(key, "2.0.0", hook("hooked"))));
    expect(change).toEqual({
      added: [],
      updated: [
        {
          name: "live",
          specifier: "./live.ts",
          version: "2.0.0",
          tools: { added: [], updated: ["version"], removed: [] },
          durationMs: expect.any(Number),
        },
      ],
      failed: [],
      files: [expect.stringContaining("live.ts")],
    });
    expect(await says()).toBe("hooked");
    expect(live()).toMatchObject({ version: "2.0.0", state: "active", generation: 2, stale: false, diagnostics: [] });
    const more = await pluginsChanged(host, () =>
      save(source(key, "3.0.0", { body: `api.addTools({ name: "more", description: "More.", handler: () => "more" });` })),
    );
    expect(more.updated[0]!.tools).toEqual({ added: ["more"], updated: ["version"], removed: [] });
    expect([await says(), await says("more"), advertised.length > 0]).toEqual(["3.0.0", "more", true]);
    expect(record.said).toEqual(["activate 1.0.0", "activate 2.0.0", "dispose 1.0.0", "activate 3.0.0", "dispose 2.0.0"]);
  });

  test("a plugin is replaced when a file that it imports changes, and not when it is touched", async () => {
    const { key, record } = recorder();
    const text = (word: string): string => `export const word: string = ${JSON.stringify(word)};\n`;
    const importing = {
      head: `import { word } from "./lib/word.ts";`,
      body: `api.addTools({ name: "word", description: "A word.", handler: () => word });`,
    };
    const { host, says, save } = await open({ "live.ts": source(key, "1.0.0", importing), "lib/word.ts": text("one") });
    const change = await pluginsChanged(host, () => {
      save(source(key, "1.0.0", importing));
      save(text("two"), "lib/word.ts");
    });
    expect([change.files.map((file) => file.split("/").at(-1)), await says("word")]).toEqual([["word.ts"], "two"]);
    expect(record.said.filter((said) => said.startsWith("activate"))).toHaveLength(2);
  });

  test.each([
    ["does not parse", (key: string) => `${source(key, "2.0.0")} }`, "live.ts"],
    [
      "throws while it is activated",
      (key: string) => source(key, "2.0.0", { body: `throw new Error("No key is set.");` }),
      "No key is set.",
    ],
    [
      "never ends its activation",
      (key: string) => source(key, "2.0.0", { body: "await new Promise(() => {});" }),
      "longer than 0.3 seconds",
    ],
    ["no longer exports a plugin", () => "export const nothing = 1;\n", "exports no plugin"],
    [
      "needs another skillhost",
      (key: string) => source(key, "2.0.0", { more: `engines: { skillhost: ">=99" },` }),
      "requires skillhost >=99",
    ],
    [
      "has a schema that its configuration does not meet",
      (key: string) => source(key, "2.0.0", { more: `configSchema: { type: "object", required: ["key"] },` }),
      "key",
    ],
    [
      "requires a missing plugin",
      (key: string) => source(key, "2.0.0", { more: `requires: { nowhere: "*" },` }),
      "no plugin has that name",
    ],
  ])(
    "a saved file that %s keeps the last working version active and is reported, and the fixed file replaces it",
    async (_how, broken, words) => {
      const { key, record } = recorder();
      const workingDirectory = tempFolder({ "live.ts": source(key, "1.0.0") });
      const { host, call } = await hostWith(["./live.ts"], { workingDirectory, watch: true, activationTimeout: 300 });
      const save = (text: string): void => put(join(workingDirectory, "live.ts"), text);
      const change = await pluginsChanged(host, () => save(broken(key)));
      expect(change.failed).toMatchObject([{ name: "live", specifier: "./live.ts", lastGoodServes: true }]);
      expect(change.failed[0]!.diagnostics.map(({ message }) => message).join()).toContain(words);
      expect(host.plugins).toMatchObject([{ name: "live", version: "1.0.0", state: "active", stale: true, generation: 1 }]);
      expect(host.diagnostics.filter(({ severity }) => severity === "error")).toHaveLength(1);
      expect((await call("version")).textResultForLlm).toBe("1.0.0");
      expect(record.said).not.toContain("dispose 1.0.0");
      const fixed = await pluginsChanged(host, () => save(source(key, "3.0.0")));
      expect(fixed.updated).toMatchObject([{ version: "3.0.0" }]);
      expect([(await call("version")).textResultForLlm, host.diagnostics]).toEqual(["3.0.0", []]);
      expect(record.said).toContain("dispose 1.0.0");
    },
  );

  test("a plugin that was broken or missing at the start is activated when it is fixed, and so are plugins that require it", async () => {
    const { key } = recorder();
    const needy = definePlugin({
      name: "needy",
      requires: { live: "^2.0.0" },
      activate: (api) => api.addTools(defineTool("needy", { description: "Needs.", handler: () => "here" })),
    });
    const { host, says, save } = await open({}, [needy, "./live.ts"]);
    expect(host.plugins.map(({ state }) => state)).toEqual(["failed", "failed"]);
    const wrong = await pluginsChanged(
      host,
      () => save(source(key, "1.0.0")),
      ({ failed }) => failed.length > 0,
    );
    expect(wrong.failed[0]!.diagnostics[0]!.message).toContain('requires "live" ^2.0.0, but version 1.0.0 is installed.');
    const alive = await pluginsChanged(
      host,
      () => save(source(key, "2.5.0")),
      ({ added }) => added.some(({ name }) => name === "needy"),
    );
    expect(alive.added[0]!.tools.added).toEqual(["needy"]);
    expect([await says("needy"), await says(), host.diagnostics]).toEqual(["here", "2.5.0", []]);
  });

  test("a plugin is not replaced by a version that an active plugin does not accept", async () => {
    const { key } = recorder();
    const needy = definePlugin({ name: "needy", requires: { live: "^1.0.0" }, activate() {} });
    const { host, says, save } = await open({ "live.ts": source(key, "1.0.0") }, ["./live.ts", needy]);
    const change = await pluginsChanged(host, () => save(source(key, "2.0.0")));
    expect(change.failed[0]!.diagnostics[0]).toMatchObject({
      code: "PLUGIN_REQUIRES",
      message: 'Plugin "live" was not replaced: plugin "needy" requires "live" ^1.0.0, but version 2.0.0 is installed.',
    });
    const named = await pluginsChanged(host, () => save(source(key, "1.1.0").replace(`name: "live"`, `name: "alive"`)));
    expect(named.failed[0]!.diagnostics[0]!.message).toContain('its name is "alive" now');
    const circular = await pluginsChanged(host, () => save(source(key, "1.1.0", { more: `requires: { needy: "*" },` })));
    expect(circular.failed[0]!.diagnostics[0]!.message).toContain("live → needy → live");
    expect(await says()).toBe("1.0.0");
  });

  test("a replaced plugin ends only after the calls that run on it", async () => {
    const { key, record } = recorder();
    const slow = {
      body: `api.addTools({ name: "slow", description: "Waits.", handler: () => new Promise((resolve) => record.waiting.push(() => resolve("from 1"))) });`,
    };
    const { host, call, save, says } = await open({ "live.ts": source(key, "1.0.0", slow) });
    const running = call("slow");
    await expect.poll(() => record.waiting.length).toBe(1);
    await pluginsChanged(host, () => save(source(key, "2.0.0")));
    expect([await says(), record.said.includes("dispose 1.0.0")]).toEqual(["2.0.0", false]);
    record.waiting[0]!();
    expect((await running).textResultForLlm).toBe("from 1");
    await expect.poll(() => record.said).toContain("dispose 1.0.0");
  });

  test("a plugin that throws in dispose is reported, and its other resources are disposed of", async () => {
    const { key, record } = recorder();
    const { host, says, save, live } = await open({
      "live.ts": source(key, "1.0.0", { body: `api.onDispose(() => { throw new Error("It will not end."); });` }),
    });
    await pluginsChanged(host, () => save(source(key, "2.0.0")));
    await expect
      .poll(() => live()?.diagnostics)
      .toMatchObject([{ code: "PLUGIN_DISPOSE", message: expect.stringContaining("It will not end.") }]);
    expect([await says(), record.said]).toEqual(["2.0.0", ["activate 1.0.0", "activate 2.0.0", "dispose 1.0.0"]]);
  });

  test("a plugin whose file was removed keeps running, and restoring the file clears the diagnostic", async () => {
    const { key } = recorder();
    const { host, says, save, workingDirectory } = await open({ "live.ts": source(key, "1.0.0") });
    const gone = await pluginsChanged(host, () => rmSync(join(workingDirectory, "live.ts")));
    expect([gone.failed[0]!.lastGoodServes, await says(), found(host, "PLUGIN_NOT_FOUND")]).toEqual([true, "1.0.0", [expect.anything()]]);
    await pluginsChanged(host, () => save(source(key, "1.0.0")));
    expect([await says(), host.diagnostics]).toEqual(["1.0.0", []]);
  });

  test("a plugin that is saved during its activation is activated in its last version", async () => {
    const { key, record } = recorder();
    const hangs = { body: "await new Promise(() => {});" };
    const { host, says, save } = await open({ "live.ts": source(key, "1.0.0") });
    const change = await pluginsChanged(host, () => {
      save(source(key, "2.0.0", hangs));
      void expect
        .poll(() => record.said)
        .toContain("activate 2.0.0")
        .then(() => save(source(key, "3.0.0")));
    });
    expect([change.updated[0]!.version, await says(), host.diagnostics]).toEqual(["3.0.0", "3.0.0", []]);
    expect(record.said).toContain("dispose 2.0.0");
  });
});

describe("other contributions of a replaced plugin", () => {
  test("skill directories, commands, agents and model providers are replaced", async () => {
    const { key } = recorder();
    const brings = (word: string): { body: string } => ({
      body: `
        api.addSkillDirectory(${JSON.stringify(join("FOLDER", word))});
        api.addCommand({ name: "say", handler: () => "${word}" });
        api.addAgent({ name: "${word}", prompt: "Be ${word}." });`,
    });
    const folder = tempFolder({ "one/s1/SKILL.md": skillMd("s1"), "two/s2/SKILL.md": skillMd("s2") });
    const text = (version: string, word: string): string => source(key, version, brings(word)).replace("FOLDER", folder);
    const { host, session, save } = await open({ "live.ts": text("1.0.0", "one") });
    const state = async () => [
      host.skills.map(({ name }) => name),
      session.listSkills().map(({ name }) => name),
      await session.runCommand("say"),
      session.config.agents.custom.map(({ name }) => name),
    ];
    expect(await state()).toEqual([["s1"], ["s1"], "one", ["one"]]);
    await pluginsChanged(host, () => save(text("2.0.0", "two")));
    expect(await state()).toEqual([["s2"], ["s2"], "two", ["two"]]);
  });

  test("a replaced runner creates the tools of its skills again before the old one ends", async () => {
    const { key, record } = recorder();
    const runs = (word: string): { body: string } => ({
      body: `api.addToolRunner({ extensions: [".tale"], load: async (file, { skill, generation }) => ({
        tools: [api.createTool({ name: "tale", description: "Returns the word.", handler: () => "${word}" }, { ofSkill: { name: skill.name, file }, generation: "${word}" })],
        files: new Set([file]), diagnostics: [] }) });`,
    });
    const workingDirectory = tempFolder({
      "live.ts": source(key, "1.0.0", runs("one")),
      "skills/s/SKILL.md": skillMd("s"),
      "skills/s/tools/tale.tale": "x",
    });
    const { host, call } = await hostWith(["./live.ts"], {
      workingDirectory,
      watch: true,
      skillDirectories: [join(workingDirectory, "skills")],
    });
    expect((await call("tale")).textResultForLlm).toBe("one");
    await pluginsChanged(host, () => put(join(workingDirectory, "live.ts"), source(key, "2.0.0", runs("two"))));
    expect((await call("tale")).textResultForLlm).toBe("two");
    await expect.poll(() => record.said).toContain("dispose 1.0.0");
  });
});

test("a host that does not watch checks plugins on reload, and retries failed ones", async () => {
  const { key, record } = recorder();
  const workingDirectory = tempFolder({
    "live.ts": source(key, "1.0.0", { body: `if (!record.said.includes("ready")) throw new Error("Not yet.");` }),
  });
  const { host, call } = await hostWith(["./live.ts"], { workingDirectory });
  expect(host.plugins[0]!.state).toBe("failed");
  record.said.push("ready");
  await host.reload();
  expect((await call("version")).textResultForLlm).toBe("1.0.0");
  put(join(workingDirectory, "live.ts"), source(key, "2.0.0"));
  await host.reload();
  await host.reload();
  expect([(await call("version")).textResultForLlm, host.plugins[0]!.generation]).toEqual(["2.0.0", 2]);
});

test("sessions that begin at the same time share one activation", async () => {
  let runs = 0;
  const { host } = await hostWith([
    definePlugin({
      name: "once",
      async activate() {
        runs++;
        await new Promise(setImmediate);
      },
    }),
  ]);
  const sessions = await Promise.all(Array.from({ length: 5 }, () => host.createSession({ persist: false })));
  expect([runs, sessions.length]).toEqual([1, 5]);
});

test("a host that closes during a replacement does not wait for it, and leaves nothing of it behind", async () => {
  const { key, record } = recorder();
  const hangs = { body: "await new Promise(() => {});" };
  const { host, save } = await open({ "live.ts": source(key, "1.0.0") });
  await host.idle();
  save(source(key, "2.0.0", hangs));
  await expect.poll(() => record.said).toContain("activate 2.0.0");
  await host.close();
  expect(record.said).toEqual(["activate 1.0.0", "activate 2.0.0", "dispose 2.0.0", "dispose 1.0.0"]);
});
