import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { silentLogger } from "../../src/base/logger.ts";
import { createHost } from "../../src/host/create-host.ts";
import type { Host } from "../../src/host/host.ts";
import type { HostOptions } from "../../src/host/host-options.ts";
import type { RecordedEvent } from "../../src/session/history/events.ts";
import type { Session } from "../../src/session/session.ts";
import { approveAll } from "../../src/tools/tool.ts";
import { compileSources } from "../compiled-sources.ts";
import { emptyFolder } from "../io/temp-folder.ts";
import { patience } from "../slowness.ts";

const compiled = compileSources("test/host/session-child.ts");
const echo = { name: "echo", handler: ({ text }: { text?: string }) => `said ${text}` };
const given = { tools: [echo], onPermissionRequest: approveAll };

async function hostIn(folder: string, options: HostOptions = {}): Promise<Host> {
  const host = await createHost({
    skillDirectories: [],
    plugins: [],
    watch: false,
    logger: silentLogger,
    workingDirectory: folder,
    sessionsDirectory: join(folder, "sessions"),
    ...options,
  });
  onTestFinished(() => host.close());
  return host;
}

const recorded = (session: Session): Promise<readonly RecordedEvent[]> => session.getMessages();

const callsIn = (events: readonly RecordedEvent[]): string[] =>
  events.filter(({ type }) => type === "tool.execution_complete").map(({ data }) => String(data["toolCallId"]));

const isChained = (events: readonly RecordedEvent[]): boolean =>
  events.every(({ parentId }, index) => parentId === (events[index - 1]?.id ?? null));

describe("a fork", () => {
  test("continues with the history and the options of a session, which continues unchanged", async () => {
    const folder = emptyFolder();
    const host = await hostIn(folder);
    const source = await host.createSession({ ...given, model: "m1", excludedTools: ["other"] });
    await source.callTool("echo", { text: "a" }, { toolCallId: "a" });
    const before = await source.getMessages();
    const forkId = await host.forkSession(source.id);
    expect(forkId).not.toBe(source.id);
    expect(await source.getMessages()).toEqual(before);

    const fork = await host.resumeSession(forkId, given);
    expect(fork.config.view.model).toBe("m1");
    expect(fork.config.options.excludedTools).toEqual(["other"]);
    await fork.callTool("echo", { text: "b" }, { toolCallId: "b" });
    await source.callTool("echo", { text: "c" }, { toolCallId: "c" });
    const events = await fork.getMessages();
    expect(callsIn(events)).toEqual(["a", "b"]);
    expect(callsIn(await source.getMessages())).toEqual(["a", "c"]);
    expect(isChained(events)).toBe(true);
    expect(events[0]).toMatchObject({
      type: "session.start",
      data: { sessionId: forkId, forkedFrom: { sessionId: source.id, eventId: before.at(-1)?.id } },
    });
    const infos = new Map((await host.listSessions()).map((info) => [info.sessionId, info]));
    expect(infos.get(forkId)).toMatchObject({ forkedFrom: source.id, isOpen: true });
    expect(infos.get(source.id)).not.toHaveProperty("forkedFrom");
  });

  test("ends before the event that is named, with the options that the session has now", async () => {
    const host = await hostIn(emptyFolder());
    const source = await host.createSession({ ...given, sessionId: "source" });
    await source.callTool("echo", {}, { toolCallId: "first" });
    await source.callTool("echo", {}, { toolCallId: "second" });
    const cut = (await recorded(source)).find(({ data }) => data["toolCallId"] === "second");
    // A filter that came later must not be lost by going back.
    await source.update({ excludedTools: ["echo"] });
    await source.disconnect();
    const forkId = await host.forkSession("source", { toEventId: cut!.id, sessionId: "fork" });
    expect(forkId).toBe("fork");
    const fork = await host.resumeSession("fork", given);
    expect(callsIn(await fork.getMessages())).toEqual(["first"]);
    expect(fork.tools.map(({ name }) => name)).not.toContain("echo");
  });

  test("has copies of the workspace files, but neither links nor large results nor the lock", async () => {
    const folder = emptyFolder();
    const host = await hostIn(folder);
    await host.createSession({ ...given, sessionId: "source" });
    const place = join(folder, "sessions", "source");
    mkdirSync(join(place, "files", "deep"), { recursive: true });
    mkdirSync(join(place, "outputs"));
    writeFileSync(join(place, "files", "deep", "a.txt"), "kept");
    writeFileSync(join(place, "plan.md"), "# Plan");
    writeFileSync(join(place, "outputs", "large.txt"), "large");
    writeFileSync(join(folder, "secret"), "secret");
    symlinkSync(join(folder, "secret"), join(place, "files", "link"));
    await host.forkSession("source", { sessionId: "fork" });
    const copy = join(folder, "sessions", "fork");
    expect(readdirSync(copy).sort()).toEqual(["events.jsonl", "files", "plan.md"]);
    expect(readdirSync(join(copy, "files"))).toEqual(["deep"]);
    writeFileSync(join(copy, "plan.md"), "# Other plan");
    expect(readFileSync(join(place, "plan.md"), "utf8")).toBe("# Plan");
    expect(readdirSync(join(folder, "sessions")).sort()).toEqual(["fork", "source"]);
  });

  test("of a fork names its own parent, and what was taken back stays away", async () => {
    const host = await hostIn(emptyFolder());
    const source = await host.createSession({ ...given, sessionId: "a" });
    await source.callTool("echo", {}, { toolCallId: "first" });
    await source.callTool("echo", {}, { toolCallId: "second" });
    const second = (await recorded(source)).find(({ data }) => data["toolCallId"] === "second")!;
    await source.conversation.rewind(second.id);
    await host.forkSession("a", { sessionId: "b" });
    await host.forkSession("b", { sessionId: "c" });
    const fork = await host.resumeSession("c", given);
    expect(callsIn(await fork.getMessages())).toEqual(["first"]);
    const parents = (await host.listSessions()).map(({ sessionId, forkedFrom }) => [sessionId, forkedFrom]);
    expect(Object.fromEntries(parents)).toEqual({ a: undefined, b: "a", c: "b" });
    await expect(host.forkSession("a", { toEventId: second.id })).rejects.toMatchObject({ code: "EVENT_UNKNOWN" });
  });

  test("is refused with the reason, and leaves nothing behind", async () => {
    const folder = emptyFolder();
    const host = await hostIn(folder);
    const source = await host.createSession({ ...given, sessionId: "source" });
    const [start] = await source.getMessages();
    const refusals: readonly (readonly [string, object, string])[] = [
      ["missing", {}, "SESSION_NOT_FOUND"],
      ["../source", {}, "SESSION_NOT_FOUND"],
      ["source", { toEventId: "nothing" }, "EVENT_UNKNOWN"],
      ["source", { toEventId: start!.id }, "EVENT_UNKNOWN"],
      ["source", { toEventId: 7 }, "SESSION_OPTIONS"],
      ["source", { sessionId: "../outside" }, "SESSION_OPTIONS"],
      ["source", { sessionId: "source" }, "SESSION_EXISTS"],
    ];
    for (const [id, options, code] of refusals)
      await expect(host.forkSession(id, options), `${id} ${JSON.stringify(options)}`).rejects.toMatchObject({ code });
    await host.forkSession("source", { sessionId: "taken" });
    await expect(host.forkSession("source", { sessionId: "taken" })).rejects.toMatchObject({ code: "SESSION_EXISTS" });
    expect(readdirSync(join(folder, "sessions")).sort()).toEqual(["source", "taken"]);
    expect(existsSync(join(folder, "outside"))).toBe(false);
  });

  test("made many times at once under one id exists once", async () => {
    const folder = emptyFolder();
    const [host, other] = await Promise.all([hostIn(folder), hostIn(folder)]);
    await host.createSession({ ...given, sessionId: "source" });
    const forks = await Promise.allSettled([host, other, host, other].map((one) => one.forkSession("source", { sessionId: "fork" })));
    expect(forks.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    for (const fork of forks) if (fork.status === "rejected") expect(fork.reason).toMatchObject({ code: "SESSION_EXISTS" });
    expect(readdirSync(join(folder, "sessions")).sort()).toEqual(["fork", "source"]);
  });

  test("needs a host that stores sessions, and keeps what only the host remembers", async () => {
    const folder = emptyFolder();
    const storing = await hostIn(folder);
    const chatModel = { id: "own", address: "none", complete: () => Promise.reject(new Error("not called")) };
    const source = await storing.createSession({ ...given, chatModel, persist: false });
    const fork = await storing.resumeSession(await storing.forkSession(source.id), given);
    expect(fork.config.options.chatModel).toBe(chatModel);

    const host = await createHost({ skillDirectories: [], watch: false, logger: silentLogger, workingDirectory: folder });
    onTestFinished(() => host.close());
    const { id } = await host.createSession(given);
    await expect(host.forkSession(id)).rejects.toMatchObject({
      code: "SESSION_STORE",
      message: expect.stringContaining("sessionsDirectory"),
    });
  });
});

test("forks of a session that another process is writing are prefixes of it that can be resumed", {
  timeout: patience(60_000),
}, async () => {
  const folder = emptyFolder();
  const child: ChildProcess = spawn(process.execPath, [compiled("test/host/session-child.ts"), folder, "s", "begin"], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  await new Promise((resolve) => child.stdout?.once("data", resolve));
  const host = await hostIn(folder, { sessionsDirectory: folder });
  const ids: string[] = [];
  for (let n = 0; n < 8; n++) ids.push(await host.forkSession("s"));
  child.kill("SIGKILL");
  await new Promise((resolve) => child.once("close", resolve));
  const all = await host.exportSession("s");
  const lines = all.trim().split("\n").slice(1);
  for (const id of ids) {
    const copied = (await host.exportSession(id)).trim().split("\n").slice(1);
    expect(copied.length).toBeGreaterThan(0);
    expect(copied).toEqual(lines.slice(0, copied.length));
    const fork = await host.resumeSession(id, given);
    const events = await recorded(fork);
    expect(isChained(events)).toBe(true);
    const started = events.filter(({ type }) => type === "tool.execution_start").map(({ data }) => String(data["toolCallId"]));
    expect(callsIn(events).sort()).toEqual(started.sort());
    expect(fork.config.options.excludedTools).toEqual(["hidden"]);
  }
});
