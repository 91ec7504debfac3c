import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { type Json, Served, type TestClient } from "./wire-kit.ts";

let served: Served;

afterEach(() => served?.[Symbol.asyncDispose]());

const manifest = (version: string): string => JSON.stringify({ name: "tune", version, description: "Tunes." });
const files = {
  "src/tune/plugin.json": manifest("1.0.0"),
  "src/tune/skills/sing/SKILL.md": "---\nname: sing\ndescription: Sings.\n---\nSing.\n",
  "src/plain/readme.md": "Nothing of a plugin.",
  "market/marketplace.json": JSON.stringify({
    name: "fair",
    owner: { name: "us" },
    plugins: [
      { name: "drum", source: "./drum", description: "Drums." },
      { name: "far", source: { source: "github", repo: "acme/far" } },
      { name: "piccolo", source: "./piccolo", version: "0.2.0", description: "Whistles." },
    ],
  }),
  "market/piccolo/skills/whistle/SKILL.md": "---\nname: whistle\ndescription: Whistles.\n---\nWhistle.\n",
  "market/drum/plugin.json": JSON.stringify({ name: "drum", version: "3.0.0" }),
  "market/drum/skills/beat/SKILL.md": "---\nname: beat\ndescription: Beats.\n---\nBeat.\n",
};

async function connected(): Promise<TestClient> {
  served = await Served.start({ files });
  return served.connect();
}

async function skillsOfNewSession(client: TestClient): Promise<readonly string[]> {
  const sessionId = await client.create({ model: "m" });
  return (await client.request("session.skills.list", { sessionId })).skills.map(({ name }: Json) => name);
}

describe("plugins that a client installs", () => {
  test("from a folder are in every session made after that, until they are switched off or gone", async () => {
    const client = await connected();
    const source = join(served.folder, "src/tune");
    const { plugin, skillsInstalled } = await client.request("plugins.install", { source });
    expect(plugin).toEqual({ name: "tune", marketplace: "", version: "1.0.0", enabled: true, directSourceId: expect.any(String) });
    expect(skillsInstalled).toBe(1);
    expect(await skillsOfNewSession(client)).toEqual(["sing"]);
    await client.request("plugins.disable", { names: ["tune"] });
    expect(await skillsOfNewSession(client)).toEqual([]);
    await client.request("plugins.enable", { names: ["tune"] });
    expect((await client.request("plugins.list")).plugins).toMatchObject([{ name: "tune", enabled: true }]);
    await client.request("plugins.uninstall", { name: "tune", directSourceId: plugin.directSourceId });
    expect(await skillsOfNewSession(client)).toEqual([]);
    expect(existsSync(source)).toBe(true);
  });

  test("installed plugins are copies, which an update replaces and another process finds", async () => {
    const client = await connected();
    await client.request("plugins.install", { source: "src/tune", workingDirectory: served.folder });
    served.write("src/tune/plugin.json", manifest("1.1.0"));
    expect((await client.request("plugins.list")).plugins).toMatchObject([{ version: "1.0.0" }]);
    expect(await client.request("plugins.update", { name: "tune" })).toEqual({
      previousVersion: "1.0.0",
      newVersion: "1.1.0",
      skillsInstalled: 1,
    });
    const { results } = await client.request("plugins.updateAll");
    expect(results).toMatchObject([{ name: "tune", marketplace: "", success: true, newVersion: "1.1.0" }]);
    const { PluginLibrary } = await import("../../../src/servers/copilot/plugins/plugin-library.ts");
    const { pluginLibraryDirectory: directory, pluginDataDirectory: dataDirectory, log } = served.server.options;
    expect(new PluginLibrary({ directory, dataDirectory, log }).plugins).toMatchObject([{ name: "tune", version: "1.1.0", enabled: true }]);
  });

  test("reach an open session when it reloads them", async () => {
    served = await Served.start({ files });
    const client = await served.connect();
    await client.request("plugins.install", { source: join(served.folder, "src/tune") });
    const sessionId = await client.create({ model: "m", skillDirectories: [join(served.folder, "own")] });
    const names = async (): Promise<readonly string[]> =>
      (await client.request("session.skills.list", { sessionId })).skills.map(({ name }: Json) => name).sort();
    expect(await names()).toEqual(["sing"]);
    await client.request("plugins.disable", { names: ["tune"] });
    await client.request("plugins.install", { source: join(served.folder, "market/drum") });
    expect(await names()).toEqual(["sing"]);
    expect(await client.request("session.plugins.reload", { sessionId })).toBe(null);
    expect(await names()).toEqual(["beat"]);
    expect((await client.request("session.plugins.list", { sessionId })).plugins).toMatchObject([{ name: "drum" }]);
    served.write("own/keep/SKILL.md", "---\nname: keep\ndescription: Keeps.\n---\nKeep.\n");
    await expect.poll(names).toEqual(["beat", "keep"]);
  });

  test("have hooks that are listed, and run in a session that reloads them", async () => {
    const hook = (text: string): string =>
      JSON.stringify({ version: 1, hooks: { userPromptSubmitted: [{ type: "command", bash: `echo ${text} >> ran.txt` }] } });
    served = await Served.start({
      files: {
        ...files,
        "src/hooked/plugin.json": JSON.stringify({ name: "hooked", hooks: "hooks.json" }),
        "src/hooked/hooks.json": hook("one"),
      },
    });
    const client = await served.connect();
    const install = (): Promise<Json> => client.request("plugins.install", { source: join(served.folder, "src/hooked") });
    await install();
    const sessionId = await client.create({ model: "m" });
    const { hooks } = await client.request("hooks.discover");
    expect(hooks).toEqual([{ id: expect.any(String), hookType: "userPromptSubmitted", origin: "plugin", source: "hooked", enabled: true }]);
    const [inProject] = (await client.request("hooks.discover", { projectPaths: [served.folder] })).hooks;
    expect(inProject).toMatchObject({ projectPath: served.folder, source: "hooked" });
    expect(inProject.id).not.toBe(hooks[0].id);
    expect(await client.request("hooks.discover", { excludeHostHooks: true })).toEqual({ hooks: [], warnings: [], errors: [] });
    const ran = async (): Promise<readonly string[]> => {
      served.says("Done.");
      await client.say(sessionId, "Go.");
      return readFileSync(join(served.folder, "ran.txt"), "utf8").trim().split("\n");
    };
    expect(await ran()).toEqual(["one"]);
    served.write("src/hooked/hooks.json", hook("two"));
    await install();
    await client.request("session.plugins.reload", { sessionId, reloadHooks: false });
    expect(await ran()).toEqual(["one", "one"]);
    await client.request("session.plugins.reload", { sessionId });
    expect(await ran()).toEqual(["one", "one", "two"]);
  });

  test("from a marketplace need no manifest of their own: what the list says of them counts", async () => {
    const client = await connected();
    await client.request("plugins.marketplaces.add", { source: join(served.folder, "market") });
    const { plugin, skillsInstalled } = await client.request("plugins.install", { source: "piccolo@fair" });
    expect([plugin, skillsInstalled]).toEqual([{ name: "piccolo", marketplace: "fair", version: "0.2.0", enabled: true }, 1]);
    expect(await skillsOfNewSession(client)).toEqual(["whistle"]);
    expect(await client.request("plugins.update", { name: "piccolo" })).toMatchObject({ previousVersion: "0.2.0", newVersion: "0.2.0" });
    expect(existsSync(join(served.folder, "market/piccolo/plugin.json"))).toBe(false);
    // Without a list, a folder that has no manifest is not a plugin.
    const { message } = await client.refusal("plugins.install", { source: join(served.folder, "market/piccolo") });
    expect(message).toContain("no manifest");
  });

  describe("from a marketplace whose entry defines them", () => {
    const skill = (name: string): string => `---\nname: ${name}\ndescription: Plays.\n---\nPlay.\n`;
    const named = { name: "named", version: "1.0.0", skills: "./own" };
    const orchestra = {
      "hall/.claude-plugin/marketplace.json": JSON.stringify({
        name: "hall",
        owner: { name: "us" },
        plugins: [
          { name: "strings", source: "./", strict: false, version: "2.0.0", skills: ["./box/violin"] },
          { name: "brass", source: "./", strict: false, skills: ["./box/horn"], agents: ["./leaders/first.md"] },
          { name: "named", source: "./named", skills: ["./more"] },
          { name: "clash", source: "./named", strict: false, skills: ["./more"] },
        ],
      }),
      "hall/box/violin/SKILL.md": skill("violin"),
      "hall/box/horn/SKILL.md": skill("horn"),
      "hall/skills/usual/SKILL.md": skill("usual"),
      "hall/leaders/first.md": "---\nname: first\ndescription: Leads.\n---\nLead.\n",
      "hall/named/.claude-plugin/plugin.json": JSON.stringify(named),
      "hall/named/own/flute/SKILL.md": skill("flute"),
      "hall/named/more/oboe/SKILL.md": skill("oboe"),
    };

    async function atHall(): Promise<TestClient> {
      served = await Served.start({ files: orchestra });
      const client = await served.connect();
      await client.request("plugins.marketplaces.add", { source: join(served.folder, "hall") });
      return client;
    }

    test("have the parts that the entry names and no others, also in one folder with other plugins", async () => {
      const client = await atHall();
      const strings = await client.request("plugins.install", { source: "strings@hall" });
      expect(strings).toMatchObject({ plugin: { name: "strings", marketplace: "hall", version: "2.0.0" }, skillsInstalled: 1 });
      expect(await skillsOfNewSession(client)).toEqual(["violin"]);
      await client.request("plugins.install", { source: "brass@hall" });
      const sessionId = await client.create({ model: "m" });
      expect((await client.request("session.skills.list", { sessionId })).skills.map(({ name }: Json) => name).sort()).toEqual([
        "horn",
        "violin",
      ]);
      const { agents } = await client.request("session.agent.list", { sessionId });
      expect(agents.map(({ name }: Json) => name)).toContain("first");
      await client.request("plugins.uninstall", { name: "brass" });
      expect(await skillsOfNewSession(client)).toEqual(["violin"]);
    });

    test("keep them when they are updated, and by a server that starts later", async () => {
      const client = await atHall();
      await client.request("plugins.install", { source: "strings@hall" });
      served.write("hall/box/cello/SKILL.md", skill("cello"));
      served.write(
        "hall/.claude-plugin/marketplace.json",
        JSON.stringify({ name: "hall", plugins: [{ name: "strings", source: "./", strict: false, skills: ["./box/cello"] }] }),
      );
      expect(await skillsOfNewSession(client)).toEqual(["violin"]);
      await client.request("plugins.update", { name: "strings" });
      expect(await skillsOfNewSession(client)).toEqual(["cello"]);
      const { PluginLibrary } = await import("../../../src/servers/copilot/plugins/plugin-library.ts");
      const { pluginLibraryDirectory: directory, pluginDataDirectory: dataDirectory, log } = served.server.options;
      const [kept] = new PluginLibrary({ directory, dataDirectory, log }).plugins;
      expect(kept?.entry).toMatchObject({ isOwnFolder: true, text: expect.stringContaining("./box/cello") });
    });

    test("have those of their manifest as well, unless the entry claims to be the whole definition", async () => {
      const client = await atHall();
      await client.request("plugins.install", { source: "named@hall" });
      expect([...(await skillsOfNewSession(client))].sort()).toEqual(["flute", "oboe"]);
      const { message } = await client.refusal("plugins.install", { source: "clash@hall" });
      expect(message).toContain('"strict": false');
    });
  });

  test("are all written down, when many marketplaces come at once", async () => {
    const client = await connected();
    const names = Array.from({ length: 20 }, (_value, index) => `fair-${index}`);
    for (const name of names) served.write(`${name}/marketplace.json`, JSON.stringify({ name, owner: { name: "us" }, plugins: [] }));
    await Promise.all(names.map((name) => client.request("plugins.marketplaces.add", { source: join(served.folder, name) })));
    const { PluginLibrary } = await import("../../../src/servers/copilot/plugins/plugin-library.ts");
    const { pluginLibraryDirectory: directory, pluginDataDirectory: dataDirectory, log } = served.server.options;
    const kept = new PluginLibrary({ directory, dataDirectory, log }).marketplaces.all;
    expect(kept.map(({ name }) => name).sort()).toEqual([...names].sort());
  });

  test("from a marketplace go with it", async () => {
    const client = await connected();
    expect(await client.request("plugins.marketplaces.add", { source: join(served.folder, "market") })).toEqual({ name: "fair" });
    const { marketplaces } = await client.request("plugins.marketplaces.list");
    expect(marketplaces).toEqual([{ name: "fair", source: `Local: ${join(served.folder, "market")}` }]);
    expect((await client.request("plugins.marketplaces.browse", { name: "fair" })).plugins).toEqual([
      { name: "drum", description: "Drums." },
      { name: "far" },
      { name: "piccolo", description: "Whistles." },
    ]);
    const { plugin } = await client.request("plugins.install", { source: "drum@fair" });
    expect(plugin).toEqual({ name: "drum", marketplace: "fair", version: "3.0.0", enabled: true });
    expect(await skillsOfNewSession(client)).toEqual(["beat"]);
    expect(await client.request("plugins.marketplaces.refresh", {})).toEqual({ results: [{ name: "fair", success: true }] });
    expect(await client.request("plugins.marketplaces.remove", { name: "fair" })).toEqual({ removed: false, dependentPlugins: ["drum"] });
    expect(await client.request("plugins.marketplaces.remove", { name: "fair", force: true })).toEqual({ removed: true });
    expect((await client.request("plugins.list")).plugins).toEqual([]);
  });

  test.each([
    ["what lies in a repository", { source: "acme/far" }, "Clone the repository"],
    ["what is not there", { source: "./nowhere" }, "does not exist"],
    ["a folder that is not a plugin", { source: "src/plain" }, "cannot be installed"],
    ["a marketplace that was not added", { source: "drum@fair" }, 'Marketplace "fair" does not exist'],
  ])("are refused for %s, and nothing is left behind", async (_what, params, message) => {
    const client = await connected();
    const refusal = await client.refusal("plugins.install", { ...params, workingDirectory: served.folder });
    expect(refusal.message).toContain(message);
    expect((await client.request("plugins.list")).plugins).toEqual([]);
  });

  test("plugins outside their marketplace and plugins that are not installed are refused", async () => {
    const client = await connected();
    await client.request("plugins.marketplaces.add", { source: join(served.folder, "market") });
    expect((await client.refusal("plugins.install", { source: "far@fair" })).message).toContain("in another repository");
    expect((await client.refusal("plugins.install", { source: "flute@fair" })).message).toContain("does not list this plugin");
    expect((await client.refusal("plugins.uninstall", { name: "flute" })).message).toContain("is not installed");
    expect((await client.refusal("plugins.marketplaces.add", { source: join(served.folder, "src") })).message).toContain(
      "No marketplace found",
    );
  });
});
