import { definePlugin, type Plugin } from "skillhost";
import { describe, expect, test } from "vitest";
import { found, hostWith } from "./plugin-kit.ts";

/** Creates plugins with requirements and records the order of their activation. */
function kit() {
  const order: string[] = [];
  const make = (name: string, version: string | undefined, requires: Record<string, string> = {}, fails?: string): Plugin =>
    definePlugin({
      name,
      version,
      requires,
      activate() {
        order.push(name);
        if (fails !== undefined) throw new Error(fails);
      },
    });
  return { order, make };
}

describe("a plugin that requires others", () => {
  test("a plugin is activated after the plugins that it requires, in whatever order they are named, and disposed of before them", async () => {
    const { order, make } = kit();
    const ended: string[] = [];
    const makeEnding = (name: string, version: string, requires: Record<string, string>): Plugin =>
      definePlugin({
        name,
        version,
        requires,
        activate(api) {
          order.push(name);
          api.onDispose(() => void ended.push(name));
        },
      });
    const top = makeEnding("top", "1.0.0", { middle: "^2.0.0" });
    const base = makeEnding("base", "1.4.0", {});
    const { host } = await hostWith([top, make("other", "1.0.0"), make("middle", "2.0.1", { base: "^1.2.0" }), base]);
    expect(order).toEqual(["base", "middle", "top", "other"]);
    expect(host.plugins.map(({ name, state }) => `${name} ${state}`)).toEqual([
      "top active",
      "other active",
      "middle active",
      "base active",
    ]);
    expect(host.plugins[0]!.requires).toEqual({ middle: "^2.0.0" });
    await host.close();
    expect(ended).toEqual(["top", "base"]);
  });

  test.each([
    ["1.4.0", "^2.0.0", 'requires "base" ^2.0.0, but version 1.4.0 is installed.'],
    [undefined, "^1.0.0", "it does not declare a version"],
    ["one", "^1.0.0", 'its version "one" is not a valid semantic version'],
    ["1.0.0", "newest", '"newest" is not a valid semver range'],
  ])("a plugin is refused with the version and the range that do not match: %s, %s", async (version, range, words) => {
    const { order, make } = kit();
    const { host } = await hostWith([make("top", "1.0.0", { base: range }), make("base", version)]);
    expect(order).toEqual(["base"]);
    expect(found(host, "PLUGIN_REQUIRES")).toMatchObject([{ severity: "error", source: "top", message: expect.stringContaining(words) }]);
    expect(host.plugins.map(({ state }) => state)).toEqual(["failed", "active"]);
  });

  test.each([
    [undefined, "*"],
    ["2.0.0-beta.1", "^2.0.0-alpha"],
    ["v1.2.3", "1.x"],
  ])("version %s satisfies %s", async (version, range) => {
    const { make } = kit();
    const { host } = await hostWith([make("top", "1.0.0", { base: range }), make("base", version)]);
    expect(host.diagnostics).toEqual([]);
  });

  test("the error for a missing plugin names what to add, by its specifier if it is part of skillhost", async () => {
    const { order, make } = kit();
    const { host } = await hostWith([make("a", "1.0.0", { nowhere: "^1.0.0" }), make("b", "1.0.0", { "workspace-tools": "^1.0.0" })]);
    const messages = found(host, "PLUGIN_REQUIRES").map(({ message }) => message);
    expect(messages[0]).toContain('requires "nowhere" ^1.0.0, but no plugin has that name');
    expect(messages[1]).toContain('Add "skillhost/plugins/workspace-tools" to the plugins of the host.');
    expect(order).toEqual([]);
  });

  test("the error quotes why a required plugin was not activated, up to a limit", async () => {
    const { order, make } = kit();
    const plugins = [
      make("top", "1.0.0", { middle: "*" }),
      make("middle", "1.0.0", { base: "*" }),
      make("base", "1.0.0", {}, "No key is set."),
    ];
    const { host } = await hostWith(plugins);
    expect(order).toEqual(["base"]);
    const [top, middle] = found(host, "PLUGIN_REQUIRES");
    expect(middle!.message).toContain('requires "base" *, which failed: Plugin "base" was not activated');
    for (const { message } of [top!, middle!]) expect(message).toContain("No key is set.");
  });

  test("the error quotes that a required plugin could not be loaded, by its specifier", async () => {
    const { make } = kit();
    const { host } = await hostWith([make("top", "1.0.0", { base: "*" }), "./base.ts"]);
    expect(found(host, "PLUGIN_REQUIRES")[0]!.message).toContain('No plugin found at "./base.ts"');
  });

  test("plugins that require each other are refused with the cycle, and the others work", async () => {
    const { order, make } = kit();
    const plugins = [make("a", "1.0.0", { b: "*" }), make("b", "1.0.0", { c: "*" }), make("c", "1.0.0", { a: "*" }), make("d", "1.0.0")];
    const { host } = await hostWith([...plugins, make("self", "1.0.0", { self: "*" })]);
    expect(order).toEqual(["d"]);
    expect(
      found(host, "PLUGIN_REQUIRES").map(({ source, message }) => `${source}: ${/in a cycle: (.*)\. Remove/.exec(message)?.[1]}`),
    ).toEqual(["a: a → b → c → a", "b: a → b → c → a", "c: a → b → c → a", "self: self → self"]);
  });

  test("the names and ranges of required plugins must be strings", () => {
    expect(() => definePlugin({ name: "a", requires: { b: 1 } as never, activate() {} })).toThrow('requires["b"] must be a semver range');
    expect(() => definePlugin({ name: "a", engines: [] as never, activate() {} })).toThrow("engines must be an object");
  });
});

test("a plugin that requires another version of skillhost is refused with both versions", async () => {
  const plugin = definePlugin({ name: "old", engines: { skillhost: "<0.0.1" }, activate() {} });
  const { host } = await hostWith([plugin]);
  expect(found(host, "PLUGIN_ENGINE")).toMatchObject([
    { source: "old", message: expect.stringContaining(`requires skillhost <0.0.1, but this is skillhost ${host.version}`) },
  ]);
});
