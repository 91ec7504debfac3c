import { definePlugin } from "skillhost";
import { expect, onTestFinished, test } from "vitest";
import { silentLogger } from "../../src/base/logger.ts";
import { createModuleLoader } from "../../src/io/module-loader/create-module-loader.ts";
import { PluginHost } from "../../src/plugin-host/plugin-host.ts";
import { tempFolder } from "../skills/kit.ts";

const specifier = "skillhost/plugins/late";

function withLate(importModule: (specifier: string) => Promise<Readonly<Record<string, unknown>>>): PluginHost {
  const early = definePlugin({ name: "early", activate: (api) => api.addTools({ name: "one", description: "One.", handler: () => 1 }) });
  const loader = createModuleLoader({ hostModules: {} });
  const place = { workingDirectory: tempFolder(), loader, log: silentLogger };
  const host = new PluginHost({ ...place, plugins: [early], latePlugins: [specifier], importModule });
  onTestFinished(async () => {
    await host.close();
    loader[Symbol.dispose]();
  });
  return host;
}

const names = ({ sources }: PluginHost): readonly string[] =>
  sources.flatMap(({ tools }) => tools.map(({ definition }) => definition.name));
const late = definePlugin({ name: "late", activate: (api) => api.addTools({ name: "two", handler: () => 2 }) });

test("a late plugin is imported on first use only, and reported once", async () => {
  let imports = 0;
  const host = withLate(async () => {
    imports++;
    return { late };
  });
  await host.start();
  expect([imports, names(host)]).toEqual([0, ["one"]]);
  let notifications = 0;
  host.subscribe(() => void notifications++);
  await Promise.all([host.ready(), host.startLate(), host.ready()]);
  expect([imports, notifications, names(host)]).toEqual([1, 1, ["one", "two"]]);
  expect(host.plugins).toMatchObject([{ name: "early" }, { name: "late", isBundled: true, state: "active" }]);
});

test("a late plugin that cannot be loaded is reported by a diagnostic, and the others work", async () => {
  const host = withLate(async () => {
    throw new Error("Broken.");
  });
  await host.ready();
  expect(host.diagnostics).toMatchObject([{ code: "PLUGIN_ACTIVATION", source: specifier, message: expect.stringContaining("Broken.") }]);
  expect(names(host)).toEqual(["one"]);
});

test("a host that closes while a late plugin loads waits for it, and leaves nothing of it behind", async () => {
  const ended: string[] = [];
  let isActive = (): void => {};
  const activating = new Promise<void>((resolve) => {
    isActive = resolve;
  });
  const slow = definePlugin({
    name: "slow",
    async activate(api) {
      api.onDispose(() => void ended.push("slow"));
      isActive();
      await new Promise((resolve) => setImmediate(resolve));
    },
  });
  const host = withLate(async () => ({ slow }));
  const ready = host.ready();
  await activating;
  await host.close();
  await ready;
  expect(ended).toEqual(["slow"]);
});
