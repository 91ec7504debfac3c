import { symlinkSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { silentLogger } from "../../src/base/logger.ts";
import { createModuleLoader } from "../../src/io/module-loader/create-module-loader.ts";
import { createModuleRunner } from "../../src/skills/load/stage-tool.ts";
import type { Skill } from "../../src/skills/skill.ts";
import { SkillStore } from "../../src/skills/store/skill-store.ts";
import { type Files, skillMd, tempFolder } from "./kit.ts";

describe("a skill as a session sees it", () => {
  async function loadOne(files: Files, prepare?: (folder: string) => void): Promise<Skill> {
    const folder = tempFolder(files);
    prepare?.(folder);
    const loader = createModuleLoader({ hostModules: {} });
    const store = new SkillStore({ loader, runners: [createModuleRunner(loader)], hostVersion: "1.0.0", log: silentLogger, watch: false });
    using lease = store.acquire([folder]);
    await lease.ready;
    const skill = store.snapshot.folders.get(folder)?.skill;
    if (skill === undefined) throw new Error("The skill was not loaded.");
    await store[Symbol.asyncDispose]();
    loader[Symbol.dispose]();
    return skill;
  }

  test("a skill returns its instructions with the skill's folder filled in", async () => {
    const skill = await loadOne({ "SKILL.md": skillMd("s", "Run {baseDir}/run.sh.") });
    expect(await skill.instructions()).toBe(`Run ${skill.folder}/run.sh.`);
    const bare = await loadOne({ "skill.json": '{ "name": "s" }', "prompts/a.md": "First.", "prompts/b.md": "Second." });
    expect(await bare.instructions()).toBe("First.\n\nSecond.");
    expect(bare.promptMode).toBe("eager");
    expect(skill.promptMode).toBe("on-demand");
  });

  test("a skill reads its own files and no others", async () => {
    const outside = tempFolder({ "secret.txt": "secret" });
    const skill = await loadOne({ "SKILL.md": skillMd("s"), "references/facts.md": "Facts." }, (folder) => {
      symlinkSync(join(outside, "secret.txt"), join(folder, "link.txt"));
      symlinkSync(outside, join(folder, "linked"), "dir");
      symlinkSync(join(folder, "references/facts.md"), join(folder, "inside.md"));
    });
    const read = async (path: string): Promise<string> => new TextDecoder().decode(await skill.read(path));
    expect([await read("references/facts.md"), await read("./references/../references/facts.md"), await read("inside.md")]).toEqual([
      "Facts.",
      "Facts.",
      "Facts.",
    ]);
    for (const path of [
      "../secret.txt",
      join(outside, "secret.txt"),
      "link.txt",
      "linked/secret.txt",
      "references/../../x",
      "a\0b",
      "C:\\x",
      "\\\\host\\x",
    ])
      await expect(skill.read(path), path).rejects.toThrow(expect.objectContaining({ code: "PATH_OUTSIDE" }));
    await expect(skill.read("nothing.md")).rejects.toThrow(expect.objectContaining({ code: "FILE_MISSING" }));
    await expect(skill.read("references")).rejects.toThrow(expect.objectContaining({ code: "FILE_NOT_REGULAR" }));
  });
});
