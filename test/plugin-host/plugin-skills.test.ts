import { rmSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { definePlugin } from "../../src/plugin-host/define-plugin.ts";
import type { PluginApi } from "../../src/plugin-host/plugin-api.ts";
import { put, skillMd, tempFolder } from "../skills/kit.ts";
import { hostWith } from "./plugin-kit.ts";

const tool = (answer: string): string => `import { defineTool } from "skillhost";
export default defineTool("answer", { description: "Answers.", parameters: { type: "object" }, skipPermission: true, handler: () => "${answer}" });
`;

function writingPlugin(folder: string): { readonly plugin: ReturnType<typeof definePlugin>; readonly api: () => PluginApi } {
  let given: PluginApi | undefined;
  const plugin = definePlugin({
    name: "writer",
    version: "1.0.0",
    activate(api) {
      given = api;
      api.addSkillDirectory(folder);
    },
  });
  return { plugin, api: () => given! };
}

test("a plugin loads the skills that it writes, and learns what became of them", async () => {
  const folder = tempFolder();
  const { plugin, api } = writingPlugin(folder);
  const { call } = await hostWith([plugin]);
  const place = join(folder, "far");
  expect(api().skillIn(place)).toBeUndefined();
  put(join(place, "SKILL.md"), skillMd("far"));
  put(join(place, "tools/answer.ts"), tool("one"));
  await api().reloadSkills();
  expect(api().skillIn(place)).toMatchObject({ name: "far", state: "active", stale: false, diagnostics: [] });
  expect((await call("answer")).text).toBe("one");
  put(join(place, "tools/answer.ts"), "export default (;\n");
  await api().reloadSkills();
  expect(api().skillIn(place)).toMatchObject({ state: "active", stale: true, diagnostics: [{ severity: "error" }] });
  expect((await call("answer")).text).toBe("one");
  rmSync(place, { recursive: true });
  await api().reloadSkills();
  expect(api().skillIn(place)).toBeUndefined();
});

test("a load waits for the first one of the host, is refused during the activation, and ends with the plugin", async () => {
  const folder = tempFolder();
  put(join(folder, "far/SKILL.md"), skillMd("far"));
  const { plugin, api } = writingPlugin(folder);
  let refused: unknown;
  let early: Promise<unknown> | undefined;
  const eager = definePlugin({
    name: "eager",
    version: "1.0.0",
    async activate(its) {
      refused = await its.reloadSkills().catch((error: unknown) => error);
      early = new Promise((resolve) => setImmediate(resolve)).then(async () => {
        await its.reloadSkills();
        return its.skillIn(join(folder, "far"))?.state;
      });
    },
  });
  const kit = await hostWith([plugin, eager]);
  expect(refused).toMatchObject({ code: "PLUGIN_ACTIVATING", message: expect.stringContaining('"eager"') });
  expect(await early).toBe("active");
  await kit.close();
  await expect(api().reloadSkills()).rejects.toBe(api().signal.reason);
});
