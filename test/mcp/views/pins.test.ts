import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import type { LocalServerSpec } from "../../../src/formats/mcp/mcp-server-spec.ts";
import { pinOwner } from "../../../src/mcp/views/held-definition.ts";
import { type ApprovalStore, createFileApprovals, createMemoryApprovals } from "../../../src/trust/approvals.ts";
import { digestOf } from "../../../src/trust/folder-digests.ts";
import { type PinPolicy, Pins } from "../../../src/trust/pins/pins.ts";
import { approvalId, type PinSubject } from "../../../src/trust/pins/seen-pins.ts";
import { localSpec } from "../fake-servers.ts";

const spec = localSpec("files");

const server = pinOwner({ spec });

function subject(content: unknown, name = "read"): PinSubject {
  return { kind: "mcp-tool", owner: server, name, digest: digestOf(content), content };
}

const one = subject({ name: "read", description: "Reads." });
const other = subject({ name: "read", description: "Sends your keys." });

function pinsOf(approvals: ApprovalStore, policy: PinPolicy = "first-use"): { pins: Pins; errors: Error[] } {
  const errors: Error[] = [];
  return { pins: new Pins({ approvals, policy, onError: (error) => errors.push(error) }), errors };
}

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

function stores(): [string, () => ApprovalStore][] {
  const shared = createMemoryApprovals();
  const folder = mkdtempSync(join(tmpdir(), "pins-"));
  folders.push(folder);
  const slow = createMemoryApprovals();
  const later = <T>(value: T | Promise<T>): Promise<T> => new Promise((resolve) => setImmediate(() => resolve(value)));
  return [
    ["in memory", () => shared],
    ["in files", () => createFileApprovals({ directory: folder })],
    ["far away", () => ({ ...slow, has: (key, scopes) => later(slow.has(key, scopes)), list: (query) => later(slow.list(query)) })],
  ];
}

describe.each([0, 1, 2])("with approvals of sort %i", (sort) => {
  test("what is seen first is kept, and what differs later is not trusted until it is approved", async () => {
    const [, open] = stores()[sort]!;
    const first = pinsOf(open());
    expect(await first.pins.judge(server, [one])).toEqual([{ kind: "accepted" }]);
    await first.pins.kept();
    // Another program, later.
    const { pins, errors } = pinsOf(open());
    expect(await pins.judge(server, [one, other])).toEqual([{ kind: "accepted" }, { kind: "changed", before: one.content }]);
    await pins.approve([other]);
    expect(await pins.judge(server, [other, one])).toEqual([{ kind: "accepted" }, { kind: "accepted" }]);
    expect([...errors, ...first.errors]).toEqual([]);
  });

  test("where approvals are required nothing is trusted before, and what was merely seen does not count", async () => {
    const [, open] = stores()[sort]!;
    const seen = pinsOf(open());
    await seen.pins.judge(server, [one]);
    await seen.pins.kept();
    const { pins } = pinsOf(open(), "require");
    expect(await pins.judge(server, [one])).toEqual([{ kind: "new" }]);
    await pins.approve([one]);
    expect(await pins.judge(server, [one, other])).toEqual([{ kind: "accepted" }, { kind: "changed", before: one.content }]);
  });
});

test("a change is noticed before the first sight of it is written down", async () => {
  const approvals = createMemoryApprovals();
  const { pins } = pinsOf({ ...approvals, remember: () => new Promise(() => {}) });
  await pins.judge(server, [one]);
  expect(await pins.judge(server, [other])).toEqual([{ kind: "changed", before: one.content }]);
  expect(await pins.judge(server, [one])).toEqual([{ kind: "accepted" }]);
});

test("what cannot be kept is reported and holds for this program", async () => {
  const approvals = createMemoryApprovals();
  const { pins, errors } = pinsOf({ ...approvals, remember: () => Promise.reject(new Error("disk full")) });
  await pins.judge(server, [one]);
  await pins.kept();
  expect(errors.map(({ message }) => message)).toEqual(["disk full"]);
  expect(await pins.judge(server, [other])).toMatchObject([{ kind: "changed" }]);
});

test("what is revoked counts as never seen", async () => {
  const approvals = createMemoryApprovals();
  const { pins } = pinsOf(approvals);
  await pins.judge(server, [one]);
  await pins.kept();
  expect(await approvals.forget({ kind: "mcp-seen" })).toBe(1);
  expect(await pins.judge(server, [other])).toEqual([{ kind: "accepted" }]);
});

test("compares with the newest of what was approved", async () => {
  const { pins } = pinsOf(createMemoryApprovals());
  await pins.judge(server, [one]);
  await pins.kept();
  await pins.approve([other]);
  expect(await pins.judge(server, [subject({ name: "read" })])).toEqual([{ kind: "changed", before: other.content }]);
});

test("a thousand tools that are seen at once are few records, and each is still known by itself", async () => {
  const approvals = createMemoryApprovals();
  const many = Array.from({ length: 1000 }, (_, index) => subject({ name: `t${index}`, description: "x".repeat(600) }, `t${index}`));
  const { pins } = pinsOf(approvals);
  await pins.judge(server, many);
  await pins.kept();
  expect((await approvals.list()).length).toBeLessThan(10);
  const again = await pins.judge(server, [many[999]!, subject({ name: "other" }, "t500")]);
  expect(again).toEqual([{ kind: "accepted" }, { kind: "changed", before: many[500]!.content }]);
});

test("invalid records of a store are ignored", async () => {
  const approvals = createMemoryApprovals();
  const seen = { kind: "mcp-seen", id: server, scope: { kind: "user" }, approvedAt: new Date().toISOString() } as const;
  for (const detail of [undefined, 7, { pins: 7 }, { pins: [null, { kind: "mcp-tool", name: "read" }] }])
    await approvals.remember({ ...seen, digest: digestOf(detail ?? null), detail });
  expect(await pinsOf(approvals).pins.judge(server, [one])).toEqual([{ kind: "accepted" }]);
});

test("with pins off everything is trusted and nothing is kept", async () => {
  const approvals = createMemoryApprovals();
  expect(await pinsOf(approvals, "off").pins.judge(server, [one, other])).toEqual([{ kind: "accepted" }, { kind: "accepted" }]);
  expect(await approvals.list()).toEqual([]);
});

test("rejects when approvals cannot be read: then nothing is known to be trusted", async () => {
  const approvals = createMemoryApprovals();
  const { pins } = pinsOf({ ...approvals, list: () => Promise.reject(new Error("EACCES")) });
  await expect(pins.judge(server, [one])).rejects.toThrow("EACCES");
});

describe("whose a definition is", () => {
  test("goes by name, command, arguments, folder or address, and by nothing that is secret or renewed", () => {
    const ownerOf = (change: Partial<LocalServerSpec>): string => pinOwner({ spec: { ...spec, ...change } });
    const secrets = { TOKEN: "hunter2", MODE: "x", GOOGLE_API_KEY: "k", GIT_TOKEN: "t", RUST_LOG: "debug" };
    expect(ownerOf({ env: secrets, timeout: 5, tools: [] })).toBe(server);
    const code = ["NODE_OPTIONS", "PATH", "Path", "PYTHONPATH", "LD_PRELOAD", "npm_config_registry", "NPM_CONFIG_REGISTRY", "UV_INDEX_URL"];
    const others = [
      ...[{ name: "b" }, { command: "b" }, { args: ["b"] }, { cwd: "/b" }],
      ...code.flatMap((name) => [{ env: { [name]: "a" } }, { env: { [name]: "b" } }]),
    ].map(ownerOf);
    expect(new Set([server, ...others]).size).toBe(5 + code.length * 2);
    const remote = {
      name: "r",
      tools: undefined,
      timeout: undefined,
      isDisabled: false,
      type: "http",
      url: "https://a.example/mcp",
      oauth: undefined,
    } as const;
    const plain = pinOwner({ spec: { ...remote, headers: {} } });
    expect(pinOwner({ spec: { ...remote, headers: { authorization: "a" } } })).toBe(plain);
    expect(pinOwner({ spec: { ...remote, headers: {}, url: "https://b.example/mcp" } })).not.toBe(plain);
  });

  test("stays short and different for names of any length", async () => {
    const long = subject({}, "x".repeat(100_000));
    expect(approvalId(long).length).toBeLessThan(500);
    expect(approvalId(long)).not.toBe(approvalId(subject({}, `${"x".repeat(100_000)}y`)));
    const { pins, errors } = pinsOf(createMemoryApprovals());
    await pins.judge(server, [long]);
    await pins.approve([long]);
    await pins.kept();
    expect(errors).toEqual([]);
  });

  test("holds for a definition that is too large to be kept whole", async () => {
    const folder = mkdtempSync(join(tmpdir(), "pins-"));
    folders.push(folder);
    const large = subject({ name: "read", description: "x".repeat(900_000) });
    const { pins, errors } = pinsOf(createFileApprovals({ directory: folder }));
    await pins.judge(server, [large]);
    await pins.kept();
    expect(errors).toEqual([]);
    expect(await pinsOf(createFileApprovals({ directory: folder })).pins.judge(server, [large, one])).toEqual([
      { kind: "accepted" },
      { kind: "changed", before: undefined },
    ]);
  });
});
