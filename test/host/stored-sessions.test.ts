import { existsSync, readdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { silentLogger } from "../../src/base/logger.ts";
import { createHost } from "../../src/host/create-host.ts";
import type { Host } from "../../src/host/host.ts";
import type { HostOptions } from "../../src/host/host-options.ts";
import type { SessionOptions } from "../../src/session/session-config.ts";
import { approveAll } from "../../src/tools/tool.ts";
import { tempFolder } from "../skills/kit.ts";

let home: string;

beforeEach(() => {
  home = tempFolder({});
  vi.stubEnv("SKILLHOST_HOME", join(home, "skillhost"));
});
afterEach(() => void vi.unstubAllEnvs());

async function hostIn(options: HostOptions = {}): Promise<Host> {
  const host = await createHost({ skillDirectories: [], watch: false, logger: silentLogger, workingDirectory: home, ...options });
  onTestFinished(() => host.close());
  return host;
}

const report: SessionOptions = {
  onPermissionRequest: approveAll,
  tools: [{ name: "report", handler: () => "word ".repeat(40_000) }],
};

test("a host without sessionsDirectory stores no conversation, neither in the user's home nor elsewhere", async () => {
  const host = await hostIn();
  const session = await host.createSession(report);
  await session.callTool("report");
  await session.flush();
  expect(await host.listSessions()).toMatchObject([{ sessionId: session.id, isOpen: true }]);
  await session.disconnect();
  expect(await host.listSessions()).toEqual([]);
  expect(existsSync(join(home, "skillhost/sessions"))).toBe(false);
  expect(host.diagnostics).toEqual([]);
  const advice = 'To store them, set a directory: createHost({ sessionsDirectory: "./sessions" }).';
  for (const use of [() => host.resumeSession(session.id), () => host.exportSession(session.id), () => host.deleteSession(session.id)])
    await expect(use()).rejects.toMatchObject({ code: "SESSION_NOT_FOUND", message: expect.stringContaining(advice) });
});

test("a session that must be stored is refused by a host that stores none", async () => {
  const host = await hostIn();
  await expect(host.createSession({ persist: true })).rejects.toMatchObject({
    code: "SESSION_STORE",
    message: expect.stringContaining("sessionsDirectory"),
  });
  expect(await host.listSessions()).toEqual([]);
});

test("large results of sessions that are not stored are in a temporary folder until the host is closed", async () => {
  const host = await hostIn();
  const session = await host.createSession(report);
  const before = readdirSync(tmpdir());
  const { textResultForLlm } = await session.callTool("report");
  const [name] = readdirSync(tmpdir()).filter((entry) => !before.includes(entry));
  const folder = join(tmpdir(), name!);
  expect(textResultForLlm).toContain(join(folder, session.id, "outputs"));
  expect(readdirSync(join(folder, session.id, "outputs"))).toHaveLength(1);
  await host.close();
  expect(existsSync(folder)).toBe(false);
});

test("a host stores its sessions in sessionsDirectory, except those with persist: false", async () => {
  const host = await hostIn({ sessionsDirectory: "kept" });
  const { id } = await host.createSession(report);
  const other = await host.createSession({ persist: false });
  expect(readdirSync(join(home, "kept"))).toEqual([id]);
  await other.disconnect();
  await (await host.resumeSession(id)).disconnect();
  await host.close();
  const next = await hostIn({ sessionsDirectory: "kept" });
  expect((await next.resumeSession(id)).id).toBe(id);
});
