import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { workspaceTools } from "../../../plugins/workspace-tools/plugin.ts";
import { calling, type Json, Served, type TestClient } from "./wire-kit.ts";

let served: Served;

afterEach(() => served?.[Symbol.asyncDispose]());

async function session(
  options: object,
): Promise<{ client: TestClient; sessionId: string; ask(method: string, params?: object): Promise<Json> }> {
  served = await Served.start({ host: { plugins: [workspaceTools] }, server: { allowsAll: true } });
  const client = await served.connect();
  const sessionId = await client.create({ model: "m", workingDirectory: served.folder, requestPermission: false, ...options });
  return { client, sessionId, ask: (method, params = {}) => client.request(`session.history.${method}`, { sessionId, ...params }) };
}

test("a client rewinds the conversation and the files that the built-in tools changed", async () => {
  const { client, sessionId, ask } = await session({ enableFileChangeTracking: true });
  const [a, b] = [join(served.folder, "a.txt"), join(served.folder, "b.txt")];
  writeFileSync(a, "\uFEFFone\r\ntwo\r\n");
  served.says(
    calling("edit", { path: a, old_str: "two", new_str: "2\r\n3" }),
    "Edited.",
    calling("create", { path: b, file_text: "b" }),
    "Created.",
  );
  await client.say(sessionId, "edit");
  await client.say(sessionId, "create");
  expect(readFileSync(a, "utf8")).toBe("\uFEFFone\r\n2\r\n3\r\n");
  const { fileChangeTrackingEnabled, points } = await ask("listRewindPoints");
  expect(fileChangeTrackingEnabled).toBe(true);
  expect(points).toMatchObject([
    { userMessage: "edit", canRestoreFiles: true, fileCount: 2, turnChangedFiles: true, linesAdded: 2, linesRemoved: 1 },
    { userMessage: "create", canRestoreFiles: true, fileCount: 1, turnChangedFiles: true, linesAdded: 1, linesRemoved: 0 },
  ]);
  const { eventId } = points[0];
  expect(await ask("previewRewind", { eventId })).toMatchObject({ available: true, fileCount: 2, files: [{ path: a }, { path: b }] });
  const diff = (params: object): Promise<Json> => client.request("session.workspaces.diff", { sessionId, mode: "session", ...params });
  expect(await diff({})).toMatchObject({
    requestedMode: "session",
    mode: "session",
    isFallback: false,
    changes: [
      { path: "a.txt", changeType: "modified", diff: expect.stringMatching(/^--- a\/a.txt\n\+\+\+ b\/a.txt\n@@ /) },
      { path: "b.txt", changeType: "added", diff: expect.stringContaining("\n+b") },
    ],
  });
  writeFileSync(b, "\0binary");
  writeFileSync(a, "\uFEFF one\r\n two\r\n");
  expect((await diff({ ignoreWhitespace: true })).changes).toEqual([{ path: "b.txt", changeType: "added", diff: "", isTruncated: true }]);
  writeFileSync(a, "\uFEFFone\r\n2\r\n3\r\n");
  expect((await client.refusal("session.workspaces.diff", { sessionId, mode: "branch" })).message).toContain("does not run git");
  writeFileSync(b, "by a person");
  const rewound = await ask("rewind", { eventId, mode: "conversation-and-files" });
  expect(rewound).toMatchObject({ outcome: "success", restoredFiles: [a], skippedFiles: [{ path: b, reason: "user-modified" }] });
  expect(readFileSync(a, "utf8")).toBe("\uFEFFone\r\ntwo\r\n");
  expect(readFileSync(b, "utf8")).toBe("by a person");
  expect((await ask("listRewindPoints")).points).toEqual([]);
});

test("a session that does not track files says so, and leaves them alone", async () => {
  const { client, sessionId, ask } = await session({});
  const path = join(served.folder, "a.txt");
  served.says(calling("create", { path, file_text: "a" }), "Created.");
  await client.say(sessionId, "create");
  const { points, fileChangeTrackingEnabled } = await ask("listRewindPoints");
  expect(fileChangeTrackingEnabled).toBe(false);
  expect(await client.request("session.workspaces.diff", { sessionId, mode: "session" })).toEqual({
    requestedMode: "session",
    mode: "unstaged",
    changes: [],
    isFallback: true,
    unavailableReason: "file-change-tracking-disabled",
  });
  const { eventId } = points[0];
  const reason = "file-change-tracking-disabled";
  expect(await ask("previewRewind", { eventId })).toEqual({ available: false, reason, fileCount: 0, files: [] });
  const refused = await ask("rewind", { eventId, mode: "conversation-and-files" });
  expect(refused).toEqual({ outcome: reason, restoredFiles: [], skippedFiles: [] });
  expect(await ask("rewind", { eventId, mode: "conversation" })).toMatchObject({ outcome: "success", restoredFiles: [] });
  expect(existsSync(path)).toBe(true);
});
