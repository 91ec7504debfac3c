import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type * as Skillhost from "skillhost";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { silentLogger } from "../../src/base/logger.ts";
import { patience } from "../slowness.ts";
import { createHost } from "./isolation-kit.ts";
import { putAll, skillMd } from "./kit.ts";

/** What a call of a tool that misbehaves may come to. */
const failure = /./;
const ended = /ended before it answered|message that does not belong|did not stop/;
const late = /deadline|timed out|timeout|did not stop/i;

type Row = readonly [name: string, code: string, outcome: RegExp | string, only?: "process"];

// What modules do that is not asked of them. Endless loops, floods, too much memory, native crashes and forged messages are in
// isolation.test.ts and isolation-survival.test.ts, and escapes in escapes.test.ts.
const rows: readonly Row[] = [
  ["exits in a timer", "setTimeout(() => process.exit(3)); return forever();", ended],
  ["exits past the handlers", "(process as any).reallyExit(3);", ended],
  ["kills its process", "process.kill(process.pid, 'SIGKILL'); return forever();", ended, "process"],
  ["rejects without a handler", "Promise.reject(new Error('stray')); return forever();", ended],
  ["throws in a timer", "setTimeout(() => { throw new Error('stray'); }); return forever();", ended],
  ["never empties its microtasks", "const again = (): void => void Promise.resolve().then(again); again(); return forever();", late],
  ["never empties its ticks", "const again = (): void => process.nextTick(again); again(); return forever();", late],
  ["blocks its thread", "Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);", late],
  ["never settles", "return forever();", late],
  ["overflows the stack", "const deeper = (): number => 1 + deeper(); return deeper();", failure],
  ["throws undefined", "throw undefined;", failure],
  ["returns what refers to itself", "const circle: any = {}; circle.circle = circle; return circle;", failure],
  ["returns a bigint", "return { n: 1n };", failure],
  ["returns a getter that throws", "return { get n() { throw new Error('no'); } };", failure],
  ["returns a toJSON that throws", "return { toJSON() { throw new Error('no'); } };", failure],
  ["returns a revoked proxy", "const { proxy, revoke } = Proxy.revocable({}, {}); revoke(); return proxy;", failure],
  ["returns values nested a million deep", "let deep: any = 1; for (let n = 0; n < 1_000_000; n++) deep = [deep]; return deep;", failure],
  ["settles twice", "return { then(done: any, fail: any) { done('first'); fail(new Error('second')); done('third'); } };", "first"],
  ["freezes and changes its arguments", "given.x = 'other'; Object.freeze(given); return 'done';", "done"],
  ["replaces JSON.parse", "JSON.parse = () => ({}); return 'done';", "done"],
  ["replaces Array.prototype.map", "Array.prototype.map = () => []; return 'done';", "done"],
  [
    "replaces Promise.prototype.then",
    "setImmediate(() => { Promise.prototype.then = () => new Promise(() => {}); }); return 'done';",
    "done",
  ],
  ["replaces fetch", "globalThis.fetch = (async () => 'replaced') as any; return 'done';", "done"],
  ["freezes Object.prototype", "Object.freeze(Object.prototype); return 'done';", "done"],
  // The code of the child around it stumbles over it.
  ["adds to Object.prototype", "(Object.prototype as any).polluted = true; return 'done';", failure],
  ["empties process.env", "for (const name of Object.keys(process.env)) delete process.env[name]; return 'done';", "done"],
  ["changes the working directory", "process.chdir('/'); return 'done';", "done", "process"],
  ["removes all listeners", "process.removeAllListeners(); process.stdin.removeAllListeners(); return 'done';", "done"],
  ["ends its standard streams", "process.stdout.destroy(); process.stderr.destroy(); return 'done';", "done"],
];

const tools = `import { defineTool } from "skillhost";
const forever = () => new Promise<never>(() => {});
const acts: Record<string, (given: any) => unknown> = {
${rows.map(([name, code]) => `  ${JSON.stringify(name)}: (given) => { ${code} },`).join("\n")}
};
const parameters = { type: "object", properties: { x: { type: "string" } } } as const;
const simple = { description: "For a test.", skipPermission: true, parameters } as const;
const handler = (given: any) => acts[given.x]!(given);
export const misbehaves = defineTool("misbehaves", { ...simple, timeout: ${patience(30_000)}, handler } as any);
export const lingers = defineTool("lingers", { ...simple, timeout: 300, handler } as any);
export const behaves = defineTool("behaves", { ...simple, timeout: ${patience(2_000)}, handler: ({ x }: any) => x } as any);
`;
const calm = `import { defineTool } from "skillhost";
let calls = 0;
export const counts = defineTool("counts", { description: "Counts.", skipPermission: true, handler: () => String(++calls) } as any);
`;

/** What the host shares with code that it runs itself. */
const shared = () => ({
  parse: JSON.parse,
  map: Array.prototype.map,
  thenOf: Promise.prototype.then,
  fetch: globalThis.fetch,
  isFrozen: Object.isFrozen(Object.prototype),
  isPolluted: "polluted" in Object.prototype,
  path: process.env["PATH"],
  directory: process.cwd(),
  listeners: process.eventNames().map((name) => [name, process.listenerCount(name)]),
});

describe.each(["worker", "process"] as const)("code in a %s that", (tier) => {
  let host: Skillhost.Host;
  let root: string;
  let calls = 0;
  let before: ReturnType<typeof shared>;

  beforeAll(async () => {
    root = mkdtempSync(join(tmpdir(), "misbehaviours-"));
    putAll(root, {
      "skills/s/SKILL.md": skillMd("s"),
      "skills/s/tools/all.ts": tools,
      "skills/calm/SKILL.md": skillMd("calm"),
      "skills/calm/tools/counts.ts": calm,
    });
    const sessionsDirectory = join(root, "sessions");
    const options = { watch: false, logger: silentLogger, trust: { folders: true }, sessionsDirectory, isolation: tier } as const;
    host = await createHost({ skillDirectories: [join(root, "skills")], ...options });
    await host.callTool("behaves", { x: "first" });
    before = shared();
  }, patience(60_000));
  afterAll(async () => {
    await host.close();
    rmSync(root, { recursive: true, force: true });
  });

  test.each(rows.filter(([, , , only]) => only === undefined || only === tier))(
    "%s has its own outcome, and nothing else of the host changes",
    { timeout: patience(60_000) },
    async (name, _code, outcome) => {
      const { ok, text, error } = await host.callTool(outcome === late ? "lingers" : "misbehaves", { x: name });
      if (typeof outcome === "string") expect([ok, text]).toEqual([true, outcome]);
      else expect([ok, `${text} ${error}`]).toEqual([false, expect.stringMatching(outcome as RegExp)]);
      expect(shared()).toEqual(before);
      // Never restarted.
      expect((await host.callTool("counts", {})).text).toBe(String(++calls));
      // What code did to its own child costs at most the next call of its skill.
      const again = async () => (await host.callTool("behaves", { x: name })).text;
      await expect.poll(again, { timeout: patience(20_000), interval: 5 }).toBe(name);
    },
  );
});
