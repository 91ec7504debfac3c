import { spawnSync } from "node:child_process";
import { join } from "node:path";
import type { HostOptions } from "skillhost";
import { onTestFinished } from "vitest";
import { createHost } from "../../../src/host/create-host.ts";
import type { Host } from "../../../src/host/host.ts";
import type { Session } from "../../../src/session/session.ts";
import { type Files, put, putAll, skillMd, tempFolder } from "../../skills/kit.ts";

/** Why the tests of this plugin cannot run here. Undefined: they can. */
export const noPython: string | undefined = runs("pass") ? undefined : "there is no python3";
export const hasPydantic: boolean = runs("import pydantic");

function runs(code: string): boolean {
  return spawnSync("python3", ["-c", code], { stdio: "ignore" }).status === 0;
}

export interface PythonSkill {
  readonly host: Host;
  readonly session: Session;
  readonly folder: string;
  readonly changed: readonly { readonly path: string; readonly content: string }[];
  put(path: string, text: string): void;
  text(tool: string, args?: object): Promise<string>;
}

export interface PythonSkillOptions {
  readonly config?: object;
  readonly watch?: boolean;
  readonly trust?: HostOptions["trust"];
  readonly logger?: HostOptions["logger"];
  /** Runs before the host reads the skill. */
  prepare?(folder: string): void | Promise<void>;
}

/** A host with the plugin and one skill, `py`, of these files. */
export async function openPythonSkill(
  files: Files,
  { config = {}, watch = false, trust, logger, prepare }: PythonSkillOptions = {},
): Promise<PythonSkill> {
  const root = tempFolder();
  const folder = join(root, "py");
  putAll(folder, { "SKILL.md": skillMd("py"), ...files });
  await prepare?.(folder);
  const host = await createHost({
    plugins: [{ use: "skillhost/plugins/python-tools", config }],
    skillDirectories: [root],
    workingDirectory: root,
    watch,
    ...(trust && { trust }),
    ...(logger && { logger }),
  });
  onTestFinished(() => host.close());
  const session = await host.createSession({ persist: false, onPermissionRequest: () => ({ kind: "approve-once" }) });
  const changed: { path: string; content: string }[] = [];
  session.onFileChanged(({ path, content }) => void changed.push({ path, content }));
  return {
    host,
    session,
    folder,
    changed,
    put: (path, text) => put(join(folder, path), text),
    text: async (tool, args = {}) => (await session.callTool(tool, args)).textResultForLlm,
  };
}
