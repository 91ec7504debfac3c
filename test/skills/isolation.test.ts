import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type * as Skillhost from "skillhost";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { patience } from "../slowness.ts";
import { openIsolated } from "./isolation-kit.ts";
import { put, skillMd, tempFolder } from "./kit.ts";

const tools = `import { defineTool } from "skillhost";
import { writeFileSync } from "node:fs";
import { z } from "zod";
import { version } from "./_helper.ts";

interface Add { readonly a: number }

const simple = { skipPermission: true, parameters: { type: "object", properties: { n: { type: "number", default: 2 } } } } as const;
let calls = 0;

export const add = defineTool("add", {
  description: "Adds.",
  skipPermission: true,
  parameters: z.object({ a: z.number().refine((a) => a < 100, "too large"), b: z.number().default(1) }),
  handler: ({ a, b }) => ({ sum: a + b, version }),
});
export const where = defineTool("where", {
  ...simple,
  handler: (_args, { workingDirectory, sessionId, toolName, context }) => ({ workingDirectory, toolName, context, hasSession: sessionId !== "" }),
});
export const service = defineTool("service", { ...simple, handler: (_args, { services }) => String((services as any).db) });
export const count = defineTool("count", { ...simple, handler: () => ++calls });
export const nothing = defineTool("nothing", { ...simple, handler: () => undefined });
export const large = defineTool("large", { ...simple, handler: () => "x".repeat(3_000_000) });
export const nests = defineTool("nests", { ...simple, handler: ({ n }: { n: number }) => { let deep: unknown = 1; while (n-- > 0) deep = [deep]; return deep; } });
export const mcp = defineTool("mcp", { ...simple, handler: () => ({ content: [{ type: "text", text: "block" }], structuredContent: { n: 1 } }) });
export const steps = defineTool("steps", {
  ...simple,
  handler: (_args, _invocation, context) => {
    console.log("{\\"kind\\":\\"result\\",\\"id\\":1}");
    context.progress({ message: "half", progress: 1, total: 2 });
    return "whole";
  },
});
export const fails = defineTool("fails", { ...simple, handler: () => { throw new Error("it broke" satisfies string); } });
export const outer = defineTool("outer", {
  ...simple,
  handler: async (_args, _invocation, context) => {
    const inner = await context.callTool("add", { a: 1 });
    const refused = await context.callTool("guarded", {});
    return { ok: inner.ok, data: inner.json(), refused: refused.resultType };
  },
});
export const guarded = defineTool("guarded", { handler: () => "secret" });
export const asks = defineTool("asks", {
  ...simple,
  handler: async (_args, _invocation, context) => (await context.ask("userInput", { question: "Which?" })).answer,
});
export const waits = defineTool("waits", {
  ...simple,
  handler: (_args, { signal }, context) =>
    new Promise((_resolve, reject) => {
      signal.addEventListener("abort", () => reject(new Error("was cancelled")));
      context.progress({ message: "waiting" });
    }),
});
export const ignores = defineTool("ignores", {
  ...simple,
  handler: (_args, _invocation, context) => {
    context.progress({ message: "ignoring" });
    return new Promise(() => { setInterval(() => {}, 1_000); });
  },
});
export const slow = defineTool("slow", { ...simple, handler: () => new Promise((done) => setTimeout(done, 1_000, "slow")) });
export const where_from = defineTool("where_from", { ...simple, handler: () => ({ token: process.env.ISOLATION_TOKEN, declared: process.env.ISOLATION_DECLARED }) });
export const big = defineTool("big", {
  handler: () => "large args",
  permission: ({ n }: { n: number }) => (n > 1 ? { kind: "custom-tool", toolDescription: "n is " + n } : null),
  parameters: simple.parameters,
});
export const loops = defineTool("loops", { ...simple, timeout: 300, handler: () => { for (;;); } });
export const exits = defineTool("exits", { ...simple, handler: () => process.exit(7) });
export const grows = defineTool("grows", { ...simple, timeout: 60_000, handler: () => { const all = []; for (;;) all.push(new Array(100_000).fill({}).map(() => ({}))); } });
export const floods = defineTool("floods", { ...simple, handler: async (_args, _invocation, context) => { for (let n = 0; n < 100_000; n++) { context.progress({ message: "m" + n }); if (n % 1_000 === 0) await new Promise((done) => setImmediate(done)); } } });
export function dispose() { writeFileSync(new URL("../disposed.txt", import.meta.url), "disposed"); }
`;

const json = JSON.stringify({ name: "from_json", description: "JSON.", skipPermission: true, parameters: { type: "object" } });

function files(): Record<string, string> {
  return {
    "s/SKILL.md": skillMd("s"),
    "s/skill.json": JSON.stringify({
      name: "s",
      version: "1.0.0",
      description: "A skill for the test.",
      permissions: { env: ["ISOLATION_DECLARED"], tools: ["add", "guarded"], write: ["."] },
    }),
    "s/tools/all.ts": tools,
    "s/tools/_helper.ts": `export const version: number = 1;\n`,
    "s/tools/from_json.json": json,
    "s/tools/from_json.ts": `export default (args: object, { toolName }: { toolName: string }) => ({ args, toolName });\n`,
  };
}

type Tier = Skillhost.IsolationTier;

async function openHost(isolation: Tier, root = tempFolder(files()), options: Skillhost.HostOptions = {}) {
  const { host } = await openIsolated(root, { ...options, isolation });
  return { host, root, call: (name: string, args: object = {}) => host.callTool(name, args) };
}

const children = ["worker", "process"] as const;

describe.each(["off", "worker", "process"] as const)("a skill whose isolation is %s", (tier) => {
  test("defines the same tools, and calls have the same results", { timeout: patience(60_000) }, async () => {
    const { host, call, root } = await openHost(tier);
    expect(host.diagnostics.filter(({ severity }) => severity === "error")).toEqual([]);
    const add = host.tools.find(({ name }) => name === "add");
    expect(add).toMatchObject({ name: "add" });
    expect((await call("add", { a: 2 })).json()).toEqual({ sum: 3, version: 1 });
    const refused = await call("add", { a: 200 });
    expect([refused.ok, refused.text]).toEqual([false, expect.stringContaining("too large")]);
    expect((await call("add", { a: "x" })).text).toContain("Invalid arguments");
    const where = await host.callTool("where", {}, { context: { user: "u" }, workingDirectory: root });
    expect(where.json()).toEqual({ workingDirectory: root, toolName: "where", context: { user: "u" }, hasSession: true });
    expect([(await call("count")).text, (await call("count")).text]).toEqual(["1", "2"]);
    expect((await call("nothing")).resultType).toBe("failure");
    expect((await call("large")).text).toHaveLength(3_000_000);
    expect(await call("mcp")).toMatchObject({ ok: true, textResultForLlm: "block", structuredContent: { n: 1 } });
    expect((await call("from_json", { x: 1 })).json()).toEqual({ args: { x: 1 }, toolName: "from_json" });
  });

  test("returns data that is nested 1,000 levels deep, and no deeper", { timeout: patience(60_000) }, async () => {
    const { call } = await openHost(tier);
    expect((await call("nests", { n: 1_000 })).text).toBe(`${"[".repeat(1_000)}1${"]".repeat(1_000)}`);
    // The second is what the stack of a worker allows and that of a process does not.
    for (const n of [1_001, 5_000, 1_000_000]) {
      const { ok, text, error } = await call("nests", { n });
      expect([ok, text, error]).toEqual([false, expect.stringContaining("in JSON"), expect.stringContaining("more than 1000 levels")]);
    }
  });

  test("has the application's services in the process of the host, and an error that names them elsewhere", {
    timeout: patience(60_000),
  }, async () => {
    expect((await (await openHost(tier)).call("service")).text).toBe("undefined");
    const { call } = await openHost(tier, undefined, { services: { db: "the database" } as Skillhost.HostServices });
    const { text, error } = await call("service");
    if (tier === "off") expect(text).toBe("the database");
    else expect(error).toMatch(/isolated, so it does not have the application's service "db"/);
  });

  test("reports progress, calls other tools through the gates, asks, and describes its permission", {
    timeout: patience(60_000),
  }, async () => {
    const { host, call } = await openHost(tier);
    const messages: unknown[] = [];
    const onProgress = ({ message }: { message?: string }): void => void messages.push(message);
    expect((await host.callTool("steps", {}, { onProgress })).text).toBe("whole");
    expect(messages).toEqual(["half"]);
    expect((await call("outer")).json()).toEqual({ ok: true, data: { sum: 2, version: 1 }, refused: "denied" });
    const asked: unknown[] = [];
    const onPermissionRequest = (request: unknown) => {
      asked.push(request);
      return { kind: "approve-once" } as const;
    };
    expect((await host.callTool("big", { n: 1 }, { onPermissionRequest })).ok).toBe(true);
    expect(asked).toEqual([]);
    expect((await host.callTool("big", { n: 5 }, { onPermissionRequest })).ok).toBe(true);
    expect(asked).toEqual([expect.objectContaining({ toolDescription: "n is 5" })]);
    const session = await host.createSession({ onUserInputRequest: () => ({ answer: "the second", wasFreeform: true }) });
    expect((await session.callTool("asks", {})).text).toBe("the second");
    await session.disconnect();
  });

  test("cancels a call, and reports an error with its place in the source", { timeout: patience(60_000) }, async () => {
    const { host, call } = await openHost(tier);
    const abort = new AbortController();
    const cancelled = await host.callTool("waits", {}, { signal: abort.signal, onProgress: () => abort.abort(new Error("enough")) });
    expect(cancelled.ok).toBe(false);
    // A child on a busy machine may not stop the call in time: then it ends, with other calls in it, and the next call starts another one.
    await vi.waitFor(async () => expect((await call("add", { a: 1 })).ok).toBe(true), { timeout: patience(20_000) });
    const failed = await call("fails");
    expect([failed.ok, failed.error]).toEqual([false, expect.stringContaining("it broke")]);
  });

  test("a save replaces the tools, and one that does not parse keeps them", { timeout: patience(60_000) }, async () => {
    const { host, call, root } = await openHost(tier);
    put(join(root, "s/tools/_helper.ts"), "export const version: number = 2;\n");
    await host.reload();
    expect((await call("add", { a: 1 })).json()).toEqual({ sum: 2, version: 2 });
    put(join(root, "s/tools/_helper.ts"), "export const version: number = ;\n");
    await host.reload();
    const fault = host.diagnostics.find(({ code }) => code === "MODULE_SYNTAX");
    expect(fault).toMatchObject({ file: join(root, "s/tools/_helper.ts"), range: { start: { line: 1 } } });
    expect((await call("add", { a: 1 })).json()).toEqual({ sum: 2, version: 2 });
  });

  test("disposes of its modules at the end", { timeout: patience(60_000) }, async () => {
    const { host, call, root } = await openHost(tier);
    await call("count");
    await host.close();
    expect(readFileSync(join(root, "s/disposed.txt"), "utf8")).toBe("disposed");
  });
});

describe.each(children)("a skill in a %s", (tier) => {
  const misbehaviours: readonly (readonly [name: string, reason: RegExp])[] = [
    ["loops", /deadline|timed out|timeout/i],
    ["exits", /exited with code 7/],
    // Node.js may end the whole process when the heap of a thread is full, whatever limit the thread has.
    ...(tier === "process" ? [["grows", /memory/] as const] : []),
    ["floods", /more than 10000 messages/],
  ];
  test.each(misbehaviours)(
    "that misbehaves (%s) ends alone, with a reason, and the next call runs",
    { timeout: patience(90_000) },
    async (name, reason) => {
      const { call } = await openHost(tier);
      expect((await call("count")).text).toBe("1");
      const result = await call(name);
      expect([result.ok, `${result.text} ${result.error}`]).toEqual([false, expect.stringMatching(reason)]);
      await vi.waitFor(async () => expect((await call("add", { a: 1 })).ok).toBe(true), { timeout: patience(20_000) });
      // A new child, without the state of the one that ended.
      expect((await call("count")).text).toBe("1");
    },
  );

  test("a call that ignores its cancellation does not end other calls, and ends its child after them", {
    timeout: patience(60_000),
  }, async () => {
    const { host, call } = await openHost(tier);
    expect((await call("count")).text).toBe("1");
    const other = call("slow");
    const abort = new AbortController();
    const cancelled = await host.callTool("ignores", {}, { signal: abort.signal, onProgress: () => abort.abort(new Error("enough")) });
    expect(cancelled.ok).toBe(false);
    expect((await other).text).toBe("slow");
    await vi.waitFor(async () => expect((await call("count")).text).toBe("1"), { timeout: patience(20_000) });
  });

  test("a module that never finishes loading does not stop the host", { timeout: patience(90_000) }, async () => {
    const root = tempFolder({
      ...files(),
      "t/SKILL.md": skillMd("t"),
      "t/tools/loop.ts": `for (;;);\nexport default 1; // defineTool "skillhost"\n`,
    });
    const { host } = await openIsolated(root, { importTimeout: 8_000, isolation: tier });
    expect(host.diagnostics.map(({ code }) => code)).toContain("MODULE_TIMEOUT");
    expect((await host.callTool("add", { a: 1 })).ok).toBe(true);
  });
});

test("a process gets only the declared variables of the host, and nothing remains of it", { timeout: patience(60_000) }, async () => {
  vi.stubEnv("ISOLATION_TOKEN", "secret");
  vi.stubEnv("ISOLATION_DECLARED", "shown");
  onTestFinished(() => void vi.unstubAllEnvs());
  const { host, call } = await openHost("process");
  expect((await call("where_from")).json()).toEqual({ declared: "shown" });
  expect(childrenOfHost()).toBe(process.platform === "linux" ? 1 : 0);
  await host.close();
  expect(childrenOfHost()).toBe(0);
});

/** The processes with the program of children whose parent is this process. 0 where the system has no /proc. */
function childrenOfHost(): number {
  if (!existsSync("/proc/self/stat")) return 0;
  return readdirSync("/proc").filter((pid) => {
    if (!/^\d+$/.test(pid)) return false;
    try {
      const parent = /^\d+ \(.*\) \S (\d+)/s.exec(readFileSync(`/proc/${pid}/stat`, "utf8"))?.[1];
      return parent === String(process.pid) && readFileSync(`/proc/${pid}/cmdline`, "utf8").includes("child-main.js");
    } catch {
      // It ended meanwhile.
      return false;
    }
  }).length;
}
