import { join } from "node:path";
import { definePlugin } from "skillhost";
import { describe, expect, expectTypeOf, test } from "vitest";
import { z } from "zod";
import { configSchema } from "../../plugins/workspace-tools/config.ts";
import { tempFolder } from "../skills/kit.ts";
import { found, hostWith } from "./plugin-kit.ts";

const schema = {
  type: "object",
  properties: { sides: { type: "integer", minimum: 2, default: 6 }, label: { type: "string" } },
  required: ["label"],
  additionalProperties: false,
};

/** A plugin that records its configuration. */
function dice(configSchema?: Record<string, unknown>) {
  const seen: unknown[] = [];
  const plugin = definePlugin({ name: "dice", ...(configSchema && { configSchema }), activate: (api) => void seen.push(api.config) });
  return { plugin, seen };
}

describe("a plugin's configuration", () => {
  test("a configuration is checked by its schema, gets defaults, and cannot be changed by the plugin", async () => {
    const { plugin, seen } = dice(schema);
    const config = { label: "red" };
    const { host } = await hostWith([{ use: plugin, config }]);
    expect(seen).toEqual([{ label: "red", sides: 6 }]);
    expect([Object.isFrozen(seen[0]), config]).toEqual([true, { label: "red" }]);
    expect(host.plugins).toMatchObject([{ name: "dice", state: "active", generation: 1, stale: false }]);
  });

  test.each([
    [{}, 'requires property "label"|is required'],
    [{ label: "red", sides: 1 }, "sides"],
    [{ label: "red", colour: 1 }, "colour"],
    ["red", "must be an object|object"],
    [{ label: 7 }, "label"],
  ])("an invalid configuration (%j) prevents the plugin from running, and the message names the field", async (config, words) => {
    const { plugin, seen } = dice(schema);
    const { host } = await hostWith([{ use: plugin, config }]);
    const [problem] = found(host, "PLUGIN_CONFIG");
    expect(problem).toMatchObject({ severity: "error", source: "dice" });
    expect(problem!.message).toMatch(new RegExp(words));
    expect([seen, host.plugins[0]!.state]).toEqual([[], "failed"]);
  });

  test("a schema of a library may describe a configuration, and its output becomes the configuration and its type", async () => {
    const seen: Date[] = [];
    const plugin = definePlugin({
      name: "since",
      configSchema: z.object({ since: z.string().transform((text) => new Date(text)), times: z.number().default(3) }),
      activate({ config }) {
        expectTypeOf(config.since).toEqualTypeOf<Date>();
        expectTypeOf(config.times).toEqualTypeOf<number>();
        seen.push(config.since);
        expect(config.times).toBe(3);
      },
    });
    await hostWith([{ use: plugin, config: { since: "2026-01-02" } }]);
    expect(seen).toEqual([new Date("2026-01-02")]);
    const { host } = await hostWith([{ use: plugin, config: { since: 1 } }]);
    expect(found(host, "PLUGIN_CONFIG")[0]!.message).toContain("since");
  });

  test("a configuration of a plugin without a schema is passed unchanged, and is empty when omitted", async () => {
    const { plugin, seen } = dice();
    await hostWith([{ use: plugin, config: { any: ["thing"] } }]);
    await hostWith([plugin]);
    expect(seen).toEqual([{ any: ["thing"] }, {}]);
  });

  test("a configuration is refused when it contains functions or has an invalid schema", async () => {
    const { plugin, seen } = dice();
    const { host } = await hostWith([{ use: plugin, config: { run: () => 1 } }]);
    expect(found(host, "PLUGIN_CONFIG")[0]!.message).toContain("run");
    const faulty = dice({ type: "object", properties: { a: { $ref: "#/$defs/none" } } });
    const other = await hostWith([{ use: faulty.plugin, config: {} }]);
    expect(found(other.host, "PLUGIN_CONFIG")[0]!.message).toContain("#/$defs/none");
    expect([...seen, ...faulty.seen]).toEqual([]);
  });

  test("a configuration cannot set __proto__", async () => {
    const { plugin, seen } = dice();
    await hostWith([{ use: plugin, config: JSON.parse('{ "__proto__": { "polluted": true }, "a": 1 }') }]);
    expect([seen, (seen[0] as Record<string, unknown>)["polluted"]]).toEqual([[{ a: 1 }], undefined]);
  });
});

describe("the manifest of a plugin", () => {
  // Evaluating the module would make the test fail.
  const ran = (name: string): string => `globalThis.ranPlugins = [...(globalThis.ranPlugins ?? []), ${JSON.stringify(name)}];\n`;
  const source = (name: string, more = ""): string =>
    `import { definePlugin } from "skillhost";\n${ran(name)}export default definePlugin({ name: ${JSON.stringify(name)}, ${more} activate(api) { globalThis.pluginConfig = api.config; } });\n`;
  const runs = (name: string): boolean => ((globalThis as { ranPlugins?: string[] }).ranPlugins ?? []).includes(name);
  const given = (): unknown => (globalThis as { pluginConfig?: unknown }).pluginConfig;

  test("a configuration is checked by the manifest beside the module, with defaults, before the module runs", async () => {
    const workingDirectory = tempFolder({ "p/own.ts": source("own"), "p/own.plugin.json": JSON.stringify({ configSchema: schema }) });
    const bad = await hostWith([{ use: "./p/own.ts", config: { sides: 0 } }], { workingDirectory });
    expect(found(bad.host, "PLUGIN_CONFIG")[0]!.message).toMatch(/label|sides/);
    expect(runs("own")).toBe(false);
    await hostWith([{ use: "./p/own.ts", config: { label: "x" } }], { workingDirectory });
    expect([runs("own"), given()]).toEqual([true, { label: "x", sides: 6 }]);
  });

  test("a manifest in a folder's package.json names the module and the range of skillhost that it requires", async () => {
    const manifest = (engine: string) =>
      JSON.stringify({ version: "2.1.0", skillhost: { plugin: { main: "lib/main.mjs", name: "boxed", engines: { skillhost: engine } } } });
    const workingDirectory = tempFolder({
      "old/package.json": manifest(">=99"),
      "old/lib/main.mjs": source("boxed-old"),
      "new/package.json": manifest("*"),
      "new/lib/main.mjs": source("boxed"),
    });
    const old = await hostWith(["./old"], { workingDirectory });
    const [problem] = found(old.host, "PLUGIN_ENGINE");
    expect(problem).toMatchObject({
      source: "boxed",
      message: expect.stringContaining(`requires skillhost >=99, but this is skillhost ${old.host.version}`),
    });
    expect([runs("boxed-old"), runs("boxed")]).toEqual([false, false]);
    const { host } = await hostWith(["./new"], { workingDirectory });
    expect(host.plugins).toMatchObject([{ name: "boxed", version: "2.1.0", state: "active", specifier: "./new" }]);
  });

  test.each([
    ["{ configSchema: 1 }", /own\.plugin\.json:1:\d+/],
    ['{ "configSchema": 1 }', /own\.plugin\.json:1:\d+.*must be an object/s],
    ['{ "requires": { "x": 1 } }', /"x" in "requires" must be a string/],
    ['{ "name": "other" }', /has the name "other", but its code has "own"/],
    ["[]", /must be an object/],
  ])("an invalid manifest (%s) prevents activation, and the message names the position", async (text, words) => {
    const workingDirectory = tempFolder({ "own.mjs": source("own"), "own.plugin.json": text });
    const { host } = await hostWith(["./own.mjs"], { workingDirectory });
    expect(host.plugins[0]!.state).toBe("failed");
    expect(host.plugins[0]!.diagnostics.map(({ message }) => message).join()).toMatch(words);
  });

  test("a manifest that names a missing module is reported with the folder", async () => {
    const workingDirectory = tempFolder({ "p/package.json": JSON.stringify({ skillhost: { plugin: { main: "gone.js" } } }) });
    const { host } = await hostWith(["./p"], { workingDirectory });
    expect(found(host, "PLUGIN_NOT_FOUND")[0]!.message).toContain(join(workingDirectory, "p"));
  });
});

test("the workspace tools can be configured, and invalid values are reported", async () => {
  const workingDirectory = tempFolder();
  const elsewhere = tempFolder({ "far.txt": "Far away.\n" });
  const use = "skillhost/plugins/workspace-tools";
  const config = { shell: false, web: false, roots: [elsewhere] };
  const kit = await hostWith([{ use, config }], { workingDirectory });
  const names = kit.session.listTools().map(({ name }) => name);
  expect(names).toEqual(expect.arrayContaining(["view", "grep"]));
  expect(names.filter((name) => name.includes("bash") || name === "web_fetch")).toEqual([]);
  expect((await kit.call("view", { path: join(elsewhere, "far.txt") })).textResultForLlm).toContain("Far away.");
  const { host } = await hostWith([{ use, config: { presentation: "paper" } }], { workingDirectory });
  expect(found(host, "PLUGIN_CONFIG")[0]!.message).toContain("presentation");
  const settings = ["presentation", "roots", "shell", "web", "environment", "privateHosts", "confinement"];
  expect(Object.keys(configSchema["properties"] as object)).toEqual(settings);
});
