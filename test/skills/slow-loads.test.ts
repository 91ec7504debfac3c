import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { silentLogger } from "../../src/base/logger.ts";
import { createModuleLoader } from "../../src/io/module-loader/create-module-loader.ts";
import { createModuleRunner } from "../../src/skills/load/stage-tool.ts";
import type { ToolRunner } from "../../src/skills/load/tool-runner.ts";
import { SkillStore } from "../../src/skills/store/skill-store.ts";
import { patience } from "../slowness.ts";
import { put, skillMd, tempFolder } from "./kit.ts";

const source = (answer: string): string => `export default { name: "a", description: "For a test.", handler: () => ${answer} };\n`;

function throwOutOfFiles(): never {
  throw Object.assign(new Error("EMFILE: too many open files, planted"), { code: "EMFILE" });
}

test("a skill that takes long to load is loaded after the system had no free files", { timeout: patience(20_000) }, async () => {
  const folder = join(tempFolder({ "slow/SKILL.md": skillMd("slow"), "slow/tools/a.mjs": source("1") }), "slow");
  const loader = createModuleLoader({ hostModules: {} });
  const inProcess = createModuleRunner(loader);
  let isOutOfFiles = false;
  let loads = 0;
  const runner: ToolRunner = {
    extensions: inProcess.extensions,
    // Longer than the time after which a failure that may have passed is checked, as a child process can take to start.
    async load(...given) {
      loads++;
      await new Promise((resolve) => setTimeout(resolve, 600));
      const loaded = await inProcess.load(...given);
      return isOutOfFiles ? Object.defineProperty({ ...loaded }, "tools", { get: throwOutOfFiles }) : loaded;
    },
  };
  const store = new SkillStore({ loader, runners: [runner], hostVersion: "1.0.0", log: silentLogger, watch: true });
  onTestFinished(async () => {
    await store[Symbol.asyncDispose]();
    loader[Symbol.dispose]();
  });
  using lease = store.acquire([folder]);
  await lease.ready;
  isOutOfFiles = true;
  put(join(folder, "tools/a.mjs"), source("2"));
  await store.reload();
  const diagnostics = () => store.snapshot.folders.get(folder)?.diagnostics.map(({ code }) => code);
  expect(diagnostics()).toEqual(["SKILL_LOAD_FAILED"]);
  isOutOfFiles = false;
  loads = 0;
  put(join(folder, "tools/a.mjs"), source("3"));
  await store.reload();
  expect(diagnostics()).toEqual([]);
  // The save, and what the watcher reports of it.
  expect(loads).toBeLessThanOrEqual(3);
});
