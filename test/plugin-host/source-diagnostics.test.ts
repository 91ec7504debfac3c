import { expect, onTestFinished, test } from "vitest";
import type { Diagnostic } from "../../src/base/diagnostic.ts";
import { toLogger } from "../../src/base/logger.ts";
import { createHost } from "../../src/host/create-host.ts";
import { definePlugin } from "../../src/plugin-host/define-plugin.ts";
import type { SourceSnapshot } from "../../src/tools/tool-source.ts";
import { tempFolder } from "../skills/kit.ts";

test("what a plugin's tool source reports is a problem of the host and of the plugin, while it lasts", async () => {
  const away: Diagnostic = { severity: "error", code: "AWAY", source: "far", message: "The servers are away." };
  let changed = (): void => {};
  let snapshot: SourceSnapshot = { tools: [], skills: [], diagnostics: [] };
  const publish = (diagnostics: readonly Diagnostic[]): void => {
    snapshot = { ...snapshot, diagnostics };
    changed();
  };
  const far = definePlugin({
    name: "far",
    version: "1.0.0",
    activate: (api) => {
      api.addToolSource({
        id: "tools",
        get snapshot() {
          return snapshot;
        },
        ready: async () => {},
        subscribe: (listener) => {
          changed = listener;
          return { [Symbol.dispose]() {} };
        },
        [Symbol.asyncDispose]: async () => {},
      });
    },
  });
  const logged: string[] = [];
  const host = await createHost({
    plugins: [far],
    skillDirectories: [],
    workingDirectory: tempFolder(),
    watch: false,
    logger: toLogger(
      () => true,
      (level, message) => void logged.push(`${level} ${message}`),
    ),
  });
  onTestFinished(() => host.close());
  const heard = new Promise<Diagnostic>((resolve) => void host.on("diagnostic", resolve));
  expect(host.diagnostics).toEqual([]);
  publish([away]);
  expect(await heard).toEqual(away);
  expect(host.diagnostics).toEqual([away]);
  expect(host.plugins[0]?.diagnostics).toEqual([away]);
  expect(logged.filter((line) => line.includes("away"))).toEqual(["error The servers are away."]);
  publish([]);
  expect(host.diagnostics).toEqual([]);
});
