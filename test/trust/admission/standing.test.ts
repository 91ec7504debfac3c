import { symlinkSync } from "node:fs";
import { join } from "node:path";
import { createTestHost } from "skillhost/testing";
import { afterEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { openKit, poll, put, skillMd, tempFolder, toolSource } from "../../skills/kit.ts";
import { patience } from "../../slowness.ts";
import { greeterFiles, makeKey, requireOf, resign, signedGreeter } from "../signatures/signing-kit.ts";

const alice = makeKey();

afterEach(() => {
  vi.unstubAllEnvs();
  delete (globalThis as { swap?: unknown }).swap;
});

test("a path that must be signed is not excused by what it leads to", async () => {
  const home = tempFolder({
    "skills/stranger/SKILL.md": skillMd("stranger"),
    "skills/stranger/tools/evil.ts": toolSource("evil", '"evil"'),
  });
  const root = tempFolder({ "skills/README.md": "" });
  vi.stubEnv("SKILLHOST_HOME", home);
  symlinkSync(join(home, "skills/stranger"), join(root, "skills/stranger"), "junction");
  const trust = { policy: { project: "require", user: "off" }, directory: tempFolder() } as const;
  const kit = await openKit([join(root, "skills")], { watch: false, trust });
  expect([kit.session.listTools(), kit.skill("stranger").diagnostics[0]?.code]).toEqual([[], "TRUST_UNSIGNED"]);
  const own = await openKit([join(home, "skills")], { watch: false, trust });
  expect(await own.says("evil")).toBe("evil");
});

test("a skill stops serving when its signature expires, without a change of its files", async () => {
  const { root, folder } = await signedGreeter(alice);
  const signed = await openKit([root], { watch: false, trust: requireOf(alice) });
  const tools = new Map(signed.session.listTools().map(({ name, signature }) => [name, signature]));
  await resign(folder, alice, { tools, expires: new Date(Date.now() + patience(3_000)) });
  const kit = await createTestHost({ skillDirectories: [root], watch: false, trust: requireOf(alice) });
  onTestFinished(() => kit.close());
  await poll("the signature expires", () => kit.session.listTools().length === 0);
  expect(kit.host.skills).toMatchObject([{ state: "refused", diagnostics: [{ code: "TRUST_EXPIRED" }] }]);
});

describe("a plugin in the folder of a skill whose signature is required", () => {
  const plugin = `import { definePlugin } from "skillhost";
    import "./_first.ts";
    import { name } from "./_name.ts";
    export default definePlugin({ name, activate() {} });`;
  const files = {
    ...greeterFiles(),
    "plugin.ts": plugin,
    "_first.ts": "globalThis.swap?.();",
    "_name.ts": 'export const name = "good";',
  };
  const open = (root: string) =>
    createTestHost({
      workingDirectory: root,
      plugins: ["./greeter/plugin.ts"],
      skillDirectories: [],
      watch: false,
      trust: requireOf(alice),
    });

  test("runs from the checked files", async () => {
    const { root, folder } = await signedGreeter(alice, files);
    Object.assign(globalThis, { swap: () => put(join(folder, "_name.ts"), 'export const name = "evil";') });
    await using kit = await open(root);
    expect(kit.host.plugins.map(({ name, state }) => [name, state])).toEqual([["good", "active"]]);
  });

  test.each([
    ["has changed", (folder: string) => put(join(folder, "_name.ts"), 'export const name = "evil";'), "TRUST_FILE_CHANGED"],
    ["is not signed", (folder: string) => put(join(folder, "skill.sig.json"), ""), "TRUST_SIGNATURE_DAMAGED"],
  ])("does not run when the skill %s", async (_, change, code) => {
    const { root, folder } = await signedGreeter(alice, files);
    change(folder);
    await using kit = await open(root);
    expect(kit.host.plugins.filter(({ state }) => state === "active")).toEqual([]);
    expect(kit.host.diagnostics).toMatchObject([{ code: "PLUGIN_UNTRUSTED", message: expect.stringContaining(code) }]);
  });
});
