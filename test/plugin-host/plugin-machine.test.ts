import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import type { PluginApi } from "skillhost";
import { definePlugin } from "skillhost";
import { describe, expect, test } from "vitest";
import { tempFolder } from "../skills/kit.ts";
import { hostWith } from "./plugin-kit.ts";

/** A host with a plugin, and what the plugin got of it. */
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

describe("what a plugin has of the machine", () => {
  test("programs end with the host, with all that they started", async () => {
    const { api, kit } = await withApi();
    const started = await api.startProcess(node("setInterval(() => {}, 1000)", tempFolder()));
    if (started.kind !== "spawned") throw new Error(started.message);
    await kit.host.close();
    await expect(started.process.ended).resolves.toMatchObject({ signal: "SIGTERM" });
    // Whoever starts one afterwards finds it ended.
    expect(await api.startProcess(node("setInterval(() => {}, 1000)", tempFolder()))).toMatchObject({ kind: "failed-to-start" });
  });

  test("a program that is not there is a value", async () => {
    const { api } = await withApi();
    expect(await api.startProcess({ command: "no-such-program", args: [], cwd: tempFolder() })).toMatchObject({ kind: "not-found" });
  });

  test("files are replaced as a whole and keep their mode, and fetching gives a value for whatever happens", async () => {
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

describe("what a plugin is told of sessions", () => {
  test("where they work, what they may read, as it is now, and when they close", async () => {
    const skills = tempFolder({ "s/SKILL.md": "---\nname: s\ndescription: A skill for a test.\n---\nBe.\n" });
    const [folder, other] = [tempFolder(), tempFolder()];
    const { api, kit } = await withApi({ workingDirectory: folder, sessionsDirectory: join(folder, "kept") });
    const closed: string[] = [];
    api.onSessionClosed((id) => void closed.push(id));
    api.onSessionClosed(async () => {
      throw new Error("A listener that fails keeps nobody from being told.");
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
