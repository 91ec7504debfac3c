import { createHost } from "skillhost";
import { expect, test } from "vitest";
import { silentLogger } from "../../src/base/logger.ts";
import { emptyFolder } from "../io/temp-folder.ts";
import { skillMd, tempFolder } from "../skills/kit.ts";

const module = `import { defineTool } from "skillhost";
export const open = defineTool("open", { handler: () => ({ ok: 1 }) });
export const free = defineTool("free", { skipPermission: true, handler: ({ size = 1 }, { context, workingDirectory, signal }, { progress }) => {
  progress({ message: "half" });
  if (size === 0) return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  return JSON.stringify([context, workingDirectory, "x".repeat(size).length]);
} });
`;

async function openHost() {
  const root = tempFolder({ "s/SKILL.md": skillMd("s"), "s/tools/all.ts": module });
  return createHost({
    skillDirectories: [root],
    watch: false,
    logger: silentLogger,
    trust: { folders: true },
    sessionsDirectory: emptyFolder(),
  });
}

test("host.callTool calls one tool through the gates, and leaves no session behind", async () => {
  await using host = await openHost();
  const denied = await host.callTool("open");
  expect([denied.ok, denied.resultType]).toEqual([false, "denied"]);
  expect((await host.callTool("open", {}, { allow: ["open"] })).json()).toEqual({ ok: 1 });
  expect((await host.callTool("open", {}, { onPermissionRequest: () => ({ kind: "approve-once" }) })).ok).toBe(true);
  expect((await host.callTool("nothing")).text).toContain("does not exist");
  expect(await host.listSessions()).toEqual([]);
});

test("host.callTool passes the context and the working directory, reports progress, and gives long results whole", async () => {
  await using host = await openHost();
  const messages: unknown[] = [];
  const folder = emptyFolder();
  const called = await host.callTool(
    "free",
    { size: 200_000 },
    { context: { user: "u1" }, workingDirectory: folder, onProgress: ({ message }) => messages.push(message) },
  );
  expect(called.json()).toEqual([{ user: "u1" }, folder, 200_000]);
  expect(messages).toEqual(["half"]);
});

test("a signal cancels the call, and one that has fired already prevents it", async () => {
  await using host = await openHost();
  const abort = new AbortController();
  const calling = host.callTool("free", { size: 0 }, { signal: abort.signal, onProgress: () => abort.abort(new Error("enough")) });
  expect((await calling).ok).toBe(false);
  await expect(host.callTool("free", {}, { signal: abort.signal })).rejects.toThrow("enough");
});

test.each([
  [{ allowed: [] }, /allowed/],
  [{ allow: "open" }, /allow/],
  [{ signal: {} }, /signal must be an AbortSignal/],
  [{ context: 1 }, /context must be an object/],
])("the option %j is refused by its name", async (options, message) => {
  await using host = await openHost();
  await expect(host.callTool("free", {}, options as never)).rejects.toMatchObject({
    code: "HOST_CALL",
    message: expect.stringMatching(message),
  });
});

test("host.callTool of a closed host is refused", async () => {
  const host = await openHost();
  await host.close();
  await expect(host.callTool("free")).rejects.toMatchObject({ code: "HOST_CLOSED" });
});
