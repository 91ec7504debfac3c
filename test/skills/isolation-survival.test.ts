import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { ChildListener } from "../../src/skills/isolation/child-transport.ts";
import { SkillChannel } from "../../src/skills/isolation/skill-channel.ts";
import { patience } from "../slowness.ts";
import { hasSystemSandbox, openIsolated } from "./isolation-kit.ts";
import { putAll, skillMd, tempFolder } from "./kit.ts";

// What ends a child, and what stays untouched meanwhile: a call of another skill that is in flight.
const hostile = `import { defineTool } from "skillhost";
import { spawn } from "node:child_process";
import { writeSync } from "node:fs";
const simple = { description: "For a test.", skipPermission: true } as const;
const tool = (name: string, handler: () => unknown, more: object = {}) => defineTool(name, { ...simple, ...more, handler } as any);
export const ok = tool("ok", () => "ok");
export const aborts = tool("aborts", () => process.abort());
export const crashes = tool("crashes", () => { process.kill(process.pid, "SIGSEGV"); return new Promise(() => {}); });
export const large = tool("large", () => "x".repeat(80 * 1024 * 1024));
export const gigabyte = tool("gigabyte", () => { const block = Buffer.alloc(1 << 20, 120); for (let n = 0; n < 1_024; n++) writeAll(block); return new Promise(() => {}); }, { timeout: 120_000 });
export const forges = tool("forges", () => { writeAll(Buffer.from('\\n{"kind":"result","id":4000000,"value":"forged"}\\n')); return new Promise(() => {}); });
export const noise = tool("noise", () => { writeAll(Buffer.from("\\nnot a frame\\n")); return new Promise(() => {}); });
const says = (frame: (id: number) => string) => () => { for (let id = 1; id < 9; id++) writeAll(Buffer.from(frame(id) + "\\n")); return new Promise(() => {}); };
export const changes = tool("changes", says((id) => (id === 1 ? '{"kind":"changed","id":1,"listener":{"toString":1}}' : "noise")));
export const works = tool("works", says((id) => (id === 1 ? '{"kind":"settled","id":1,"work":{"toString":1}}' : "noise")));
export const kinds = tool("kinds", says((id) => '{"kind":{"toString":1},"id":' + id + '}'));
export const moves = tool("moves", says((id) => '{"kind":"error","id":' + id + ',"error":{"message":"moved","code":"MODULE_THREW","position":{"line":{"toString":1},"column":[]}}}'));
export const settles = tool("settles", () => { const line = Buffer.from('{"kind":"settled","id":1,"work":77}\\n'.repeat(1_000)); for (let n = 0; n < 200; n++) writeAll(line); return new Promise(() => {}); });
export const forks = tool("forks", () => { for (let n = 0; n < 200; n++) spawn("sleep", ["98765"], { detached: true, stdio: "ignore" }).unref(); for (;;); }, { timeout: 3_000 });
function writeAll(bytes: Buffer) { for (let at = 0; at < bytes.length; ) try { at += writeSync(1, bytes, at); } catch (error: any) { if (error.code !== "EAGAIN") throw error; } }
`;
const beside = `import { defineTool } from "skillhost";
let open = () => {};
export const waits = defineTool("waits", { description: "Waits.", skipPermission: true, timeout: 600_000, handler: () => new Promise((done) => { open = () => done("untouched"); }) } as any);
export const opens = defineTool("opens", { description: "Opens.", skipPermission: true, handler: () => { open(); return ""; } } as any);
`;

async function openHostile() {
  const root = tempFolder();
  const skill = (name: string, source: string) => ({
    [`${name}/SKILL.md`]: skillMd(name),
    [`${name}/skill.json`]: JSON.stringify({ name, version: "1.0.0", description: "For a test.", permissions: { programs: ["sleep"] } }),
    [`${name}/tools/all.ts`]: source,
  });
  putAll(root, { ...skill("hostile", hostile), ...skill("beside", beside) });
  return openIsolated(join(root), { isolation: "process" });
}

const sleeping = (): number =>
  spawnSync("pgrep", ["-fc", "^sleep 98765$"], { encoding: "utf8" }).stdout.trim().length === 0
    ? 0
    : Number(spawnSync("pgrep", ["-fc", "^sleep 98765$"], { encoding: "utf8" }).stdout);

describe.skipIf(!hasSystemSandbox)("a process of a skill", () => {
  test.each([
    ["aborts", /ended before it answered: it was ended by SIGABRT|exited with code 134/],
    ["crashes", /ended before it answered: it (?:was ended by SIGSEGV|exited with code 139)/],
    ["gigabyte", /it sent a message that is too long/],
    ["forges", /does not belong to any call/],
    ["noise", /does not belong to any call/],
    // Objects that cannot be converted to texts or numbers.
    ["changes", /does not belong to any call/],
    ["works", /does not belong to any call/],
    ["kinds", /a message of an unknown form/],
    ["moves", /moved/],
    ["settles", /too many messages for calls that have ended/],
  ])("that %s ends alone, with the reason, and the next call runs", { timeout: patience(120_000) }, async (name, reason) => {
    const { host, text } = await openHostile();
    const waiting = text("waits");
    expect(await text("ok")).toBe("ok");
    const before = process.memoryUsage().rss;
    const { ok, error } = await host.callTool(name, {});
    expect([ok, error]).toEqual([false, expect.stringMatching(reason)]);
    // A message is refused at 64 MB, not when all of it is there.
    expect(process.memoryUsage().rss - before).toBeLessThan(400 * 1024 * 1024);
    await expect.poll(() => text("ok"), { timeout: patience(30_000) }).toBe("ok");
    await text("opens");
    expect(await waiting).toBe("untouched");
  });

  test("says that a result is too large to be sent, and continues", { timeout: patience(120_000) }, async () => {
    const { host, text } = await openHostile();
    const { ok, error } = await host.callTool("large", {});
    expect([ok, error]).toEqual([false, expect.stringContaining("larger than 64 MB")]);
    expect(await text("ok")).toBe("ok");
  });

  test("that starts many programs takes them with it", { timeout: patience(120_000) }, async () => {
    const { host, text } = await openHostile();
    const { ok } = await host.callTool("forks", {});
    expect(ok).toBe(false);
    await expect.poll(sleeping, { timeout: patience(30_000) }).toBe(0);
    await expect.poll(() => text("ok"), { timeout: patience(30_000) }).toBe("ok");
    await host.close();
    expect(sleeping()).toBe(0);
  });
});

describe("the channel to a child", () => {
  /** A child that is played by the test. */
  async function openChannel() {
    const sent: Record<string, unknown>[] = [];
    let child: ChildListener | undefined;
    const start = async (_place: unknown, listener: ChildListener) => {
      child = listener;
      return {
        send: (text: string) => void sent.push(JSON.parse(text)),
        kill: async () => listener.ended("it was ended"),
        suits: () => true,
      };
    };
    const channel = await SkillChannel.open(start, { folder: "/", environment: [] });
    return { channel, sent, says: (frame: object) => child!.received(JSON.stringify(frame)) };
  }

  test("takes the end of background work only from the call that began it", async () => {
    const { channel, says } = await openChannel();
    const work: Promise<unknown>[] = [];
    const context = { background: (promise: Promise<unknown>) => void work.push(promise) } as never;
    const calls = [channel.request("call", {}, { context }), channel.request("call", {}, { context })];
    says({ kind: "background", id: 1, work: 5 });
    let isOver = false;
    void work[0]!.then(() => {
      isOver = true;
    });
    says({ kind: "settled", id: 2, work: 5 });
    await new Promise(setImmediate);
    expect(isOver).toBe(false);
    says({ kind: "settled", id: 1, work: 5 });
    await work[0];
    for (const id of [1, 2]) says({ kind: "result", id, value: `of ${id}` });
    expect(await Promise.all(calls)).toEqual(["of 1", "of 2"]);
  });

  test("two calls may have work of the same number, and neither ends the other's", async () => {
    const { channel, says } = await openChannel();
    const work: Promise<unknown>[] = [];
    const context = { background: (promise: Promise<unknown>) => void work.push(promise) } as never;
    const calls = [channel.request("call", {}, { context }), channel.request("call", {}, { context })];
    for (const id of [1, 2]) says({ kind: "background", id, work: 1 });
    expect(work).toHaveLength(2);
    for (const id of [1, 2]) says({ kind: "settled", id, work: 1 });
    await Promise.all(work);
    for (const id of [1, 2]) says({ kind: "result", id, value: id });
    expect(await Promise.all(calls)).toEqual([1, 2]);
  });
});
