import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import type { PluginApi } from "skillhost";
import { definePlugin } from "skillhost";
import { describe, expect, test } from "vitest";
import { tempFolder } from "../skills/kit.ts";
import { hostWith } from "./plugin-kit.ts";

/** A host with a plugin, and the API that the plugin received. */
async function withApi(
  options: Parameters<typeof hostWith>[1] = {},
): Promise<{ api: PluginApi; kit: Awaited<ReturnType<typeof hostWith>> }> {
  let api: PluginApi | undefined;
  const plugin = definePlugin({
    name: "probe",
    activate: (given) => {
      api = given;
    },
  });
  const kit = await hostWith([plugin], options);
  return { api: api!, kit };
}

const node = (code: string, cwd: string) => ({ command: process.execPath, args: ["-e", code], cwd, environment: {} });

describe("a plugin's access to the machine", () => {
  test("programs and their children end with the host", async () => {
    const { api, kit } = await withApi();
    const started = await api.startProcess(node("setInterval(() => {}, 1000)", tempFolder()));
    if (started.kind !== "spawned") throw new Error(started.message);
    await kit.host.close();
    await expect(started.process.ended).resolves.toMatchObject({ signal: "SIGTERM" });
    // A program that is started after closing has already ended.
    expect(await api.startProcess(node("setInterval(() => {}, 1000)", tempFolder()))).toMatchObject({ kind: "failed-to-start" });
  });

  test("starting an unknown program returns an error as a value", async () => {
    const { api } = await withApi();
    expect(await api.startProcess({ command: "no-such-program", args: [], cwd: tempFolder() })).toMatchObject({ kind: "not-found" });
  });

  test("files are replaced atomically and keep their mode, and fetching returns every failure as a value", async () => {
    const { api } = await withApi();
    const file = join(tempFolder({ "a.txt": "old" }), "a.txt");
    const { mode } = statSync(file);
    await api.writeFile(file, "new");
    expect([readFileSync(file, "utf8"), statSync(file).mode]).toEqual(["new", mode]);
    const signal = new AbortController().signal;
    expect(await api.fetch({ url: "ftp://x", method: "GET", signal, maxBytes: 10 })).toMatchObject({
      kind: "failed",
      reason: "invalid-url",
    });
  });
});

describe("a plugin's view of sessions", () => {
  test("a plugin can read a session's current folders and is notified when it closes", async () => {
    const skills = tempFolder({ "s/SKILL.md": "---\nname: s\ndescription: A skill for a test.\n---\nBe.\n" });
    const [folder, other] = [tempFolder(), tempFolder()];
    const { api, kit } = await withApi({ workingDirectory: folder, sessionsDirectory: join(folder, "kept") });
    const closed: string[] = [];
    api.onSessionClosed((id) => void closed.push(id));
    api.onSessionClosed(async () => {
      throw new Error("A listener that fails does not prevent others from being called.");
    });
    const session = await kit.host.createSession({ persist: false, additionalDirectories: ["sub", other] });
    expect(api.session(session.id)).toEqual({
      id: session.id,
      workingDirectory: folder,
      additionalDirectories: [join(folder, "sub"), other],
      readableDirectories: [join(folder, "kept", session.id, "outputs")],
    });
    await session.update({ additionalDirectories: [], skillDirectories: [skills], largeOutput: { outputDir: other } });
    await session.ready();
    expect(api.session(session.id)).toMatchObject({ additionalDirectories: [], readableDirectories: [other, join(skills, "s")] });
    await session.disconnect();
    expect([api.session(session.id), closed]).toEqual([undefined, [session.id]]);
    expect(api.session("never")).toBeUndefined();
  });
});
