import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { InspectorOptions } from "../../../src/host/inspection.ts";
import { type ScriptedMessage, scriptedModel } from "../../../src/models/scripted-model.ts";
import type { Session } from "../../../src/session/session.ts";
import { approveAll, type ToolContext } from "../../../src/tools/tool.ts";
import { createGate } from "../../doubles/scripted-model.ts";
import { emptyFolder } from "../../io/temp-folder.ts";
import { type InspectedHost, openInspected, sendRequest } from "./inspector-kit.ts";

const secret = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGH";

interface Stage extends InspectedHost {
  readonly session: Session;
  /** Opened when the tool `wait` may end. */
  readonly gate: ReturnType<typeof createGate>;
}

/** A stored session that a program has opened, with a tool that writes files as those of the workspace do, and one that waits. */
async function stage(messages: readonly ScriptedMessage[], options: InspectorOptions = {}): Promise<Stage> {
  const inspected = await openInspected({}, { sessionsDirectory: emptyFolder() }, options);
  const gate = createGate();
  const session = await inspected.host.createSession({
    sessionId: "talk",
    chatModel: scriptedModel(...messages),
    onPermissionRequest: approveAll,
    fileChangeTracking: true,
    tools: [
      {
        name: "write",
        handler: ({ file, text }: { readonly file: string; readonly text: string }, _: unknown, context: ToolContext) => {
          const before = existsSync(file) ? readFileSync(file) : null;
          writeFileSync(file, text);
          context.fileChanged(file, text, { before });
          return "written";
        },
      },
      { name: "wait", handler: () => gate.opened.then(() => "waited") },
    ],
  });
  return { ...inspected, session, gate };
}

const write = (file: string, text: string): ScriptedMessage => ({ calls: [{ name: "write", args: { file, text } }] });

test("a reader takes back a message with all that followed it, and the files that tools changed since", async () => {
  const folder = emptyFolder();
  const [mine, theirs] = [join(folder, "mine.txt"), join(folder, "theirs.txt")];
  const messages = ["One.", write(mine, "new\n"), write(theirs, "new\n"), "Two.", "Three.", "Fourth."];
  const { session, request, read } = await stage(messages);
  const reader = read();
  await reader.next("snapshot");
  for (const file of [mine, theirs]) writeFileSync(file, "old\n");
  for (const prompt of ["First.", `Write with ${secret}.`, "Third."]) await session.sendAndWait(prompt);
  const { points, ...rest } = await request("session.listRewindPoints", { sessionId: "talk" });
  expect(rest).toEqual({ total: 3, tracksFiles: true });
  expect(points.map(({ number, prompt }) => [number, prompt])).toEqual([
    [1, "First."],
    [2, expect.stringMatching(/^Write with (?!sk-)/)],
    [3, "Third."],
  ]);
  const { eventId } = points[1]!;
  expect(await request("session.previewRewind", { sessionId: "talk", eventId })).toEqual({
    files: [mine, theirs].map((path) => ({ path, changeType: "modified", linesAdded: 1, linesRemoved: 1 })),
    fileCount: 2,
  });
  writeFileSync(theirs, "by a person\n");

  expect(await request("session.rewind", { sessionId: "talk", eventId, restoreFiles: true })).toEqual({
    outcome: "success",
    eventsRemoved: expect.any(Number),
    restoredFiles: [mine],
    skippedFiles: [{ path: theirs, reason: "user-modified" }],
  });
  expect([mine, theirs].map((file) => readFileSync(file, "utf8"))).toEqual(["old\n", "by a person\n"]);
  const announced = await reader.next("event", ({ event }) => event.type === "session.snapshot_rewind");
  expect(announced).toMatchObject({ sessionId: "talk", event: { data: { upToEventId: eventId } } });
  await session.sendAndWait("Again.");
  const said = session.history.messages().filter(({ role }) => role === "user");
  expect(said.map(({ content }) => content)).toEqual([expect.stringContaining("First."), expect.stringContaining("Again.")]);
  await expect(request("session.rewind", { sessionId: "talk", eventId })).rejects.toThrow("EVENT_UNKNOWN");
});

test("nothing is taken back while a turn runs, and a copy can be made meanwhile", async () => {
  const { session, request, read, host, gate } = await stage(["One.", { calls: [{ name: "wait" }] }, "Two."]);
  const reader = read();
  await reader.next("snapshot");
  await session.sendAndWait("First.");
  const running = session.sendAndWait("Second.");
  await reader.next("event", ({ event }) => event.type === "tool.execution_start");
  const { points } = await request("session.listRewindPoints", { sessionId: "talk" });
  expect(points.map(({ prompt }) => prompt)).toEqual(["First.", "Second."]);
  const { eventId } = points[1]!;
  await expect(request("session.rewind", { sessionId: "talk", eventId })).rejects.toThrow("SESSION_BUSY");
  const whole = await request("session.fork", { sessionId: "talk" });
  const before = await request("session.fork", { sessionId: "talk", toEventId: eventId });
  gate.open();
  await running;
  const stored = new Map((await host.listSessions()).map((each) => [each.sessionId, each.forkedFrom]));
  expect([stored.get(whole.sessionId), stored.get(before.sessionId)]).toEqual(["talk", "talk"]);
  await using copy = await host.resumeSession(before.sessionId, { chatModel: scriptedModel("Other.") });
  expect((await copy.conversation.rewindPoints()).map(({ prompt }) => prompt)).toEqual(["First."]);
  // A session that has ended is copied from where it is stored.
  await session.disconnect();
  const { sessionId } = await request("session.fork", { sessionId: "talk" });
  await using ended = await host.resumeSession(sessionId, { chatModel: scriptedModel() });
  expect((await ended.conversation.rewindPoints()).map(({ prompt }) => prompt)).toEqual(["First.", "Second."]);
});

test("the summaries of a conversation are listed, and read with secrets replaced", async () => {
  const { session, request, inspector } = await stage([]);
  const asked = { sessionId: "talk" };
  expect(await request("session.listCheckpoints", asked)).toEqual({ checkpoints: [], total: 0 });
  const { path } = await session.workspace.addCheckpoint(`About ${secret}`, `The key is ${secret}.`);
  await session.workspace.addCheckpoint("Long", "x".repeat(50_000));
  const { checkpoints, total } = await request("session.listCheckpoints", asked);
  expect([checkpoints.map(({ number }) => number), total, JSON.stringify(checkpoints).includes(secret)]).toEqual([[1, 2], 2, false]);
  const { text } = await request("session.readCheckpoint", { ...asked, number: 1 });
  expect([text, String(text).includes(secret)]).toEqual([expect.stringContaining("The key is "), false]);
  const long = await request("session.readCheckpoint", { ...asked, number: 2 });
  const { id } = (long.text as { readonly $blob: { readonly id: string } }).$blob;
  const blob = await fetch(`http://127.0.0.1:${inspector.port}/blob/${id}`, { headers: { Authorization: `Bearer ${inspector.token}` } });
  expect(await blob.text()).toBe("x".repeat(50_000));
  rmSync(path);
  for (const number of [1, 3, 1.5]) {
    await expect(request("session.readCheckpoint", { ...asked, number })).rejects.toThrow("CHECKPOINT_UNKNOWN");
  }
});

test("of many messages, the last 200 are listed, with their numbers among all", async () => {
  const { session, request, read } = await stage(["All read."]);
  const reader = read();
  await reader.next("snapshot");
  session.conversation.sendAll(Array.from({ length: 250 }, (_, n) => ({ prompt: n === 249 ? "y".repeat(100_000) : `Message ${n + 1}` })));
  await reader.next("event", ({ event }) => event.type === "session.idle");
  const { points, total } = await request("session.listRewindPoints", { sessionId: "talk" });
  expect([total, points.length, points[0]?.number, points[0]?.prompt]).toEqual([250, 200, 51, "Message 51"]);
  expect(points.at(-1)).toMatchObject({ number: 250, prompt: "y".repeat(300) });
});

test("a session of the inspector itself can restore files", async () => {
  const { request } = await openInspected({});
  const { sessionId } = await request("session.create", { script: [] });
  expect(await request("session.listRewindPoints", { sessionId })).toEqual({ points: [], total: 0, tracksFiles: true });
});

test("a host that stores no sessions takes back, and says why it cannot copy", async () => {
  const { host, request } = await openInspected({});
  const session = await host.createSession({ chatModel: scriptedModel("One.", "Two.") });
  for (const prompt of ["First.", "Second."]) await session.sendAndWait(prompt);
  const asked = { sessionId: session.id };
  const { points, tracksFiles } = await request("session.listRewindPoints", asked);
  const { eventId } = points[1]!;
  expect(tracksFiles).toBe(false);
  expect(await request("session.previewRewind", { ...asked, eventId })).toEqual({ files: [], fileCount: 0 });
  await expect(request("session.rewind", { ...asked, eventId, restoreFiles: true })).rejects.toThrow("FILES_NOT_TRACKED");
  expect(await request("session.rewind", { ...asked, eventId })).toMatchObject({ outcome: "success", restoredFiles: [] });
  expect((await request("session.listRewindPoints", asked)).total).toBe(1);
  await expect(request("session.fork", asked)).rejects.toThrow("SESSION_STORE");
});

test("a read-only inspector shows the history, and neither takes back nor copies", async () => {
  const { session, request, host } = await stage(["One."], { readOnly: true });
  await session.sendAndWait("First.");
  const { points } = await request("session.listRewindPoints", { sessionId: "talk" });
  const { eventId } = points[0]!;
  expect(await request("session.previewRewind", { sessionId: "talk", eventId })).toEqual({ files: [], fileCount: 0 });
  expect(await request("session.listCheckpoints", { sessionId: "talk" })).toEqual({ checkpoints: [], total: 0 });
  await expect(request("session.rewind", { sessionId: "talk", eventId })).rejects.toThrow("INSPECTOR_READ_ONLY");
  await expect(request("session.fork", { sessionId: "talk" })).rejects.toThrow("INSPECTOR_READ_ONLY");
  expect([(await session.conversation.rewindPoints()).length, (await host.listSessions()).length]).toEqual([1, 1]);
});

test("requests without the token, and with what is not a history, change nothing and say why", async () => {
  const { session, inspector, host } = await stage(["One."]);
  await session.sendAndWait("First.");
  const [point] = await session.conversation.rewindPoints();
  const taking = { method: "session.rewind", params: { sessionId: "talk", eventId: point!.eventId } };
  expect((await sendRequest(inspector, taking, { Authorization: "Bearer wrong" })).status).toBe(401);
  const [first] = await session.getMessages();
  const cases: readonly (readonly [string, object, string])[] = [
    ["session.rewind", { sessionId: "talk" }, "INSPECTOR_PARAMS"],
    ["session.rewind", { sessionId: "talk", eventId: 5 }, "INSPECTOR_PARAMS"],
    ["session.rewind", { sessionId: "talk", eventId: point!.eventId, restoreFiles: "yes" }, "INSPECTOR_PARAMS"],
    ["session.rewind", { sessionId: "talk", eventId: point!.eventId, mode: "conversation" }, "INSPECTOR_PARAMS"],
    ["session.rewind", { sessionId: "talk", eventId: "x".repeat(100_000) }, "EVENT_UNKNOWN"],
    ["session.rewind", { sessionId: "talk", eventId: first!.id }, "EVENT_UNKNOWN"],
    ["session.rewind", { sessionId: "none", eventId: point!.eventId }, "SESSION_NOT_FOUND"],
    ["session.previewRewind", { sessionId: "talk", eventId: "none" }, "EVENT_UNKNOWN"],
    ["session.listRewindPoints", { sessionId: "../talk" }, "SESSION_NOT_FOUND"],
    ["session.readCheckpoint", { sessionId: "talk", number: "1" }, "INSPECTOR_PARAMS"],
    ["session.readCheckpoint", { sessionId: "talk", number: 0 }, "INSPECTOR_PARAMS"],
    ["session.fork", {}, "INSPECTOR_PARAMS"],
    ["session.fork", { sessionId: "../talk" }, "SESSION_NOT_FOUND"],
    ["session.fork", { sessionId: "talk", toEventId: "none" }, "EVENT_UNKNOWN"],
    ["session.fork", { sessionId: "talk", toEventId: [] }, "INSPECTOR_PARAMS"],
  ];
  for (const [method, params, code] of cases) {
    const response = await sendRequest(inspector, { method, params });
    const { error } = (await response.json()) as { readonly error?: { readonly code: string; readonly message: string } };
    expect([method, params, response.status, error?.code]).toEqual([method, params, 400, code]);
    expect(error!.message.length).toBeLessThan(1_000);
  }
  expect([(await session.conversation.rewindPoints()).length, (await host.listSessions()).length]).toEqual([1, 1]);
});
