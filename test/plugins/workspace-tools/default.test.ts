import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { definePlugin } from "skillhost";
import { describe, expect, onTestFinished, test } from "vitest";
import { silentLogger } from "../../../src/base/logger.ts";
import { createHost, startHost } from "../../../src/host/create-host.ts";
import type { Host } from "../../../src/host/host.ts";
import type { HostOptions } from "../../../src/host/host-options.ts";
import { workspacePlugin } from "../../../src/plugin-host/bundled.ts";
import { approveAll } from "../../../src/tools/tool.ts";
import { tempFolder } from "../../skills/kit.ts";

async function hostIn(options: HostOptions = {}, latePlugins?: readonly string[]): Promise<Host> {
  const workingDirectory = tempFolder({ "a.txt": "a" });
  const all = { skillDirectories: [], watch: false, logger: silentLogger, workingDirectory, ...options };
  const host = await (latePlugins === undefined ? createHost(all) : startHost(all, latePlugins));
  onTestFinished(() => host.close());
  return host;
}

const namesIn = async (host: Host, options: object = {}): Promise<readonly string[]> => {
  const session = await host.createSession({ persist: false, onPermissionRequest: approveAll, ...options });
  return session.listTools().map(({ name }) => name);
};

test("a host without configured plugins has no tools for files, commands or web pages", async () => {
  const host = await hostIn();
  expect(await namesIn(host)).toEqual([]);
  expect(await namesIn(host, { availableTools: ["builtin:*"] })).toEqual([]);
  expect(host.plugins).toEqual([]);
});

describe("a host with late plugins and no others", () => {
  const late = (): Promise<Host> => hostIn({}, [workspacePlugin]);

  test("has the workspace tools in its first session, and starts without waiting for them", async () => {
    const host = await late();
    expect(host.plugins).toEqual([]);
    expect(await namesIn(host)).toContain("view");
    expect(host.plugins).toMatchObject([{ name: "workspace-tools", isBundled: true, state: "active", diagnostics: [] }]);
    const session = await host.createSession({ persist: false, onPermissionRequest: approveAll });
    expect((await session.callTool("view", { path: "a.txt" })).textResultForLlm).toBe("1. a");
  });

  test("lets sessions select them like all built-in tools", async () => {
    const host = await late();
    expect(await namesIn(host, { availableTools: [] })).toEqual([]);
    expect(await namesIn(host, { availableTools: ["builtin:view", "grep"] })).toEqual(["grep", "view"]);
    const without = await namesIn(host, { excludedTools: ["builtin:bash"] });
    expect([without.includes("bash"), without.includes("read_bash")]).toEqual([false, true]);
  });

  test("lets a skill or a program replace one only with an explicit override", async () => {
    const host = await late();
    const mine = { name: "view", handler: () => "mine", skipPermission: true };
    await expect(host.createSession({ persist: false, tools: [mine] })).rejects.toThrow(/overridesBuiltInTool/);
    const session = await host.createSession({ persist: false, tools: [{ ...mine, overridesBuiltInTool: true }] });
    expect((await session.callTool("view")).textResultForLlm).toBe("mine");
  });

  test("closes at once, even while they are being loaded", async () => {
    const host = await late();
    const opening = host.createSession({ persist: false }).catch((error: Error) => error);
    await host.close();
    await opening;
    expect(host.plugins.every(({ state }) => state !== "active")).toBe(true);
  });
});

test.each<[plugins: HostOptions["plugins"], expected: string[]]>([
  [[], []],
  [[definePlugin({ name: "own", activate: (api) => api.addTools({ name: "own", handler: () => 1 }) })], ["own"]],
])("a host that names plugins has those and no others", async (plugins, expected) => {
  expect(await namesIn(await hostIn({ plugins }))).toEqual(expected);
  expect(await namesIn(await hostIn({ plugins }, [workspacePlugin]))).toEqual(expected);
});

test("the plugin imports only the public API of the package", () => {
  const root = fileURLToPath(new URL("../../../plugins", import.meta.url));
  const files = readdirSync(root, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".ts"));
  const imports = files.flatMap((file) => {
    const text = readFileSync(join(root, file), "utf8");
    return Array.from(text.matchAll(/(?:from|import)\s*\(?\s*"([^"]+)"/g), ([, specifier = ""]) => ({ file, specifier }));
  });
  expect(imports.length).toBeGreaterThan(50);
  // Its own files, Node.js, the public API and dependencies; no import leaves the folder of the plugin.
  const foreign = imports.filter(({ file, specifier }) => {
    if (!specifier.startsWith(".")) return specifier.startsWith("skillhost/") || specifier.includes("/src/");
    const up = specifier.split("/").filter((name) => name === "..").length;
    return up > file.split(/[\\/]/).length - 2;
  });
  expect(foreign).toEqual([]);
});
