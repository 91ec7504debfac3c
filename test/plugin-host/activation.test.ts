import { defineTool } from "skillhost";
import { describe, expect, test } from "vitest";
import { definePlugin, isPlugin } from "../../src/plugin-host/define-plugin.ts";
import type { PluginApi } from "../../src/plugin-host/plugin-api.ts";
import { found, hostWith, sourceOfTools } from "./plugin-kit.ts";

const hello = defineTool("hello", { description: "Greets.", handler: () => "Hello." });
const plugin = (name: string, activate: (api: PluginApi) => void | Promise<void> = (api) => api.addTools(hello)) =>
  definePlugin({ name, activate });

describe("definePlugin", () => {
  test.each([
    [undefined, "takes an object"],
    [{ name: "a/b", activate() {} }, "name must be"],
    [{ name: "a", version: 1, activate() {} }, 'Plugin "a": version'],
    [{ name: "a" }, 'Plugin "a": activate'],
  ])("definePlugin refuses %j", (options, words) => {
    expect(() => definePlugin(options as never)).toThrow(words);
    expect(() => definePlugin(options as never)).toThrow(expect.objectContaining({ code: "PLUGIN_INVALID" }));
  });

  test("definePlugin runs no code, and marks what it returns", () => {
    let runs = 0;
    const made = plugin("a", () => void runs++);
    expect([isPlugin(made), isPlugin({ ...made, name: "b" }), isPlugin({ name: "a", activate() {} }), isPlugin(null), runs]).toEqual([
      true,
      true,
      false,
      false,
      0,
    ]);
  });

  test("definePlugin keeps the object as this of its activate", async () => {
    const options = {
      name: "own",
      greeting: "Hi.",
      activate(api: PluginApi) {
        api.addTools({ name: "hi", handler: () => this.greeting });
      },
    };
    const { call } = await hostWith([definePlugin(options)]);
    expect((await call("hi")).textResultForLlm).toBe("Hi.");
  });
});

describe("activation of plugins", () => {
  test("plugins are activated in order, and the tools of each reach sessions", async () => {
    const order: string[] = [];
    const { host, call, session } = await hostWith([
      plugin("first", async (api) => {
        await Promise.resolve();
        order.push("first");
        api.addTools([hello]);
      }),
      definePlugin({ name: "second", version: "1.2.3", activate: () => void order.push("second") }),
    ]);
    expect(order).toEqual(["first", "second"]);
    expect((await call("hello")).textResultForLlm).toBe("Hello.");
    expect(session.catalog.executables.get("hello")?.origin).toEqual({
      kind: "plugin",
      source: "first",
      nativeName: "hello",
      owner: "first",
    });
    expect(host.plugins).toMatchObject([
      { name: "first", state: "active", isBundled: false, tools: ["hello"], diagnostics: [] },
      { name: "second", version: "1.2.3", state: "active", tools: [] },
    ]);
  });

  test.each([
    [
      "throws",
      () => {
        throw new Error("No key is set.");
      },
      "No key is set.",
    ],
    ["rejects", () => Promise.reject(new Error("No key is set.")), "No key is set."],
    ["never settles", () => new Promise<void>(() => {}), "longer than 0.05 seconds"],
  ])("an activation that %s leaves nothing of the plugin, and the other plugins work", async (_how, fail, words) => {
    const source = sourceOfTools("s");
    const ended: string[] = [];
    let signal: AbortSignal | undefined;
    const bad = plugin("bad", (api) => {
      signal = api.signal;
      api.addTools({ ...hello, name: "half" });
      api.addToolSource(source);
      api.addHooks({ onPreToolUse: () => ({ permissionDecision: "deny" }) });
      api.addCommand({ name: "half", handler() {} });
      api.onDispose(() => void ended.push("1"));
      api.onDispose(() => void ended.push("2"));
      return fail() as Promise<void>;
    });
    const { host, call, session } = await hostWith([bad, plugin("good")], { activationTimeout: 50 });
    expect(found(host, "PLUGIN_ACTIVATION")).toMatchObject([{ severity: "error", source: "bad", message: expect.stringContaining(words) }]);
    expect(host.plugins).toMatchObject([
      { name: "bad", state: "failed", tools: [], commands: [], hooks: [] },
      { name: "good", state: "active" },
    ]);
    expect([ended, signal?.aborted, source.ended]).toEqual([["2", "1"], true, 1]);
    expect((await call("hello")).textResultForLlm).toBe("Hello.");
    expect(session.catalog.executables.has("half")).toBe(false);
  });

  test("a second plugin with the same name is refused", async () => {
    let runs = 0;
    const { host, call } = await hostWith([plugin("same"), plugin("same", () => void runs++)]);
    expect(found(host, "PLUGIN_NAME_TAKEN")).toMatchObject([{ source: "same", message: expect.stringContaining("Rename or remove one") }]);
    expect(host.plugins.map(({ state }) => state)).toEqual(["active", "failed"]);
    expect([runs, (await call("hello")).textResultForLlm]).toEqual([0, "Hello."]);
  });

  test("no contribution can be added after activation, even by an activation that settles too late", async () => {
    let kept: PluginApi | undefined;
    let late: (() => void) | undefined;
    const slow = plugin("slow", async (api) => {
      await new Promise<void>((resolve) => {
        late = resolve;
      });
      kept = api;
    });
    const keeps = plugin("done", (api) => {
      kept = api;
    });
    const { host } = await hostWith([slow, keeps], { activationTimeout: 50 });
    expect(() => kept!.addTools(hello)).toThrow(expect.objectContaining({ code: "PLUGIN_NOT_ACTIVATING" }));
    late!();
    await Promise.resolve();
    expect(kept!.name).toBe("slow");
    let ended = 0;
    kept!.onDispose(() => void ended++);
    expect(() => kept!.addTools(hello)).toThrow("tool source");
    expect([ended, host.plugins[0]!.tools]).toEqual([1, []]);
  });
});

describe("closing the host", () => {
  test("plugins and their resources are disposed of in reverse order, even if one throws", async () => {
    const ended: string[] = [];
    const make = (name: string) =>
      plugin(name, (api) => {
        for (const step of ["1", "2"]) api.onDispose(async () => void ended.push(`${name}${step}`));
        if (name === "b") api.onDispose(() => Promise.reject(new Error("It will not end.")));
      });
    const { host } = await hostWith([make("a"), make("b"), make("c")]);
    await host.close();
    expect(ended).toEqual(["c2", "c1", "b2", "b1", "a2", "a1"]);
    expect(host.plugins.map(({ state }) => state)).toEqual(["disposed", "disposed", "disposed"]);
    expect(found(host, "PLUGIN_DISPOSE")).toMatchObject([{ source: "b", message: expect.stringContaining("It will not end.") }]);
  });

  test("closing the host does not wait forever for a plugin that hangs", async () => {
    let ended = 0;
    const ends = plugin("ends", (api) => api.onDispose(() => void ended++));
    const hangs = plugin("hangs", (api) => api.onDispose(() => new Promise(() => {})));
    const { host } = await hostWith([ends, hangs], { activationTimeout: 50 });
    await host.close();
    expect(ended).toBe(1);
    expect(found(host, "PLUGIN_DISPOSE")).toMatchObject([
      { source: "hangs", message: expect.stringContaining("did not finish its disposal") },
    ]);
  });
});
