import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { silentLogger } from "../../src/base/logger.ts";
import { createModuleLoader } from "../../src/io/module-loader/create-module-loader.ts";
import { createScope } from "../../src/io/scope.ts";
import { importBundled } from "../../src/plugin-host/bundled.ts";
import { definePlugin } from "../../src/plugin-host/define-plugin.ts";
import { findPlugin } from "../../src/plugin-host/locate-plugin.ts";
import { PluginHost } from "../../src/plugin-host/plugin-host.ts";
import { tempFolder } from "../skills/kit.ts";
import { found, hostWith } from "./plugin-kit.ts";

const source = (name: string, text: string) => `import { definePlugin } from "skillhost";
const text: string = ${JSON.stringify(text)};
export default definePlugin({ name: ${JSON.stringify(name)}, activate: (api) => api.addTools({ name: "t", handler: () => text }) });
`;
// A package that was built against another copy of skillhost has only the mark of a plugin.
const packaged = `export const plugin = { name: "packaged", activate: (api) => api.addTools({ name: "t", handler: () => "packaged" }), [Symbol.for("skillhost.plugin")]: true };\n`;

describe("a plugin that is named by its module", () => {
  test.each([["./plugins/local.ts"], ["./plugins/local"]])(
    "a plugin is loaded from a file of the working directory: %s",
    async (specifier) => {
      const workingDirectory = tempFolder({ "plugins/local.ts": source("local", "from a file") });
      const { host, call } = await hostWith([specifier], { workingDirectory });
      expect(host.plugins).toMatchObject([{ name: "local", specifier, state: "active", isBundled: false }]);
      expect((await call("t")).textResultForLlm).toBe("from a file");
    },
  );

  test("a plugin is loaded from an absolute path", async () => {
    const { call } = await hostWith([join(tempFolder({ "p.mts": source("local", "from afar") }), "p.mts")]);
    expect((await call("t")).textResultForLlm).toBe("from afar");
  });

  test("a plugin is loaded from a package of the working directory, by its exports and by a named export", async () => {
    const manifest = JSON.stringify({ name: "@some/plugin", type: "module", exports: { "./main": { import: "./lib/main.js" } } });
    const workingDirectory = tempFolder({
      "node_modules/@some/plugin/package.json": manifest,
      "node_modules/@some/plugin/lib/main.js": packaged,
    });
    const { host, call } = await hostWith(["@some/plugin/main"], { workingDirectory });
    expect(host.plugins).toMatchObject([{ name: "packaged", state: "active" }]);
    expect((await call("t")).textResultForLlm).toBe("packaged");
  });

  test.each([
    ["./missing.ts", "PLUGIN_NOT_FOUND", "No plugin found at"],
    ["not-installed", "PLUGIN_NOT_FOUND", "npm install"],
    ["node:fs", "PLUGIN_NOT_FOUND", "a Node.js module"],
    ["./empty.ts", "PLUGIN_INVALID", "exports no plugin"],
    ["./two.ts", "PLUGIN_INVALID", "exports 2 plugins"],
    ["./throws.ts", "PLUGIN_ACTIVATION", "No key is set."],
    ["./hangs.ts", "PLUGIN_ACTIVATION", "longer than 0.5 seconds"],
  ])("a plugin that cannot be loaded (%s) is reported with %s, and the others work", async (specifier, code, words) => {
    const workingDirectory = tempFolder({
      "empty.ts": "export const nothing = 1;\n",
      "two.ts": packaged.replace("plugin =", "a =") + packaged.replace("plugin =", "b ="),
      "throws.ts": `throw new Error("No key is set.");\n`,
      "hangs.ts": "await new Promise(() => {});\nexport {};\n",
    });
    const good = definePlugin({ name: "good", activate() {} });
    const { host } = await hostWith([specifier, good], { workingDirectory, activationTimeout: 500 });
    expect(found(host, code)).toMatchObject([{ severity: "error", source: specifier, message: expect.stringContaining(words) }]);
    expect(host.plugins).toMatchObject([
      { name: specifier, state: "failed" },
      { name: "good", state: "active" },
    ]);
  });

  test("an option that is neither a plugin nor a specifier is refused by position", async () => {
    await expect(hostWith([{ name: "x", activate() {} } as never])).rejects.toThrow("plugins[0] must be a plugin made with definePlugin");
  });
});

describe("a plugin that is part of skillhost", () => {
  const bundled = definePlugin({
    name: "notes",
    activate: (api) => api.addTools({ name: "t", description: "For a test.", handler: () => "built in" }),
  });
  const importModule = async (specifier: string) => {
    if (specifier === "skillhost/plugins/notes") return { default: bundled };
    const missing = `Package subpath './plugins/${specifier.split("/").at(-1)}' is not defined by "exports"`;
    throw Object.assign(new Error(missing), { code: "ERR_PACKAGE_PATH_NOT_EXPORTED" });
  };

  test("a bundled plugin is imported by the package's own name, and its tools are built-in ones", async () => {
    const loader = createModuleLoader({ hostModules: {} });
    const plugins = ["skillhost/plugins/notes", "skillhost/plugins/other"];
    await using host = new PluginHost({ plugins, workingDirectory: tempFolder(), loader, log: silentLogger, importModule });
    await host.start();
    expect(host.plugins).toMatchObject([
      { name: "notes", isBundled: true, state: "active" },
      { name: "skillhost/plugins/other", isBundled: true, state: "failed" },
    ]);
    expect(host.sources).toMatchObject([{ kind: "builtin", id: "notes", tools: [{ origin: { kind: "builtin", source: "notes" } }] }]);
    expect(host.diagnostics).toMatchObject([{ code: "PLUGIN_NOT_FOUND", message: expect.stringContaining('no bundled plugin "other"') }]);
  });

  test("a bundled plugin is resolved in the package itself by default", async () => {
    await expect(importBundled("skillhost/plugins/there-is-none")).rejects.toThrow();
  });

  test("a bundled plugin with a missing dependency fails with its own message", async () => {
    const importModule = () => Promise.reject(Object.assign(new Error("Cannot find package 'left-pad'"), { code: "ERR_MODULE_NOT_FOUND" }));
    const options = {
      workingDirectory: tempFolder(),
      loader: createModuleLoader({ hostModules: {} }),
      importModule,
      log: silentLogger,
      onDiagnostic() {},
    };
    const located = { kind: "bundled", path: "skillhost/plugins/notes", manifest: undefined } as const;
    await expect(findPlugin(located.path, located, options, createScope())).rejects.toThrow("left-pad");
  });
});
