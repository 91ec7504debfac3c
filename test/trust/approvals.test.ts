import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import type { Diagnostic } from "../../src/base/diagnostic.ts";
import {
  type Approval,
  type ApprovalScope,
  type ApprovalStore,
  createFileApprovals,
  createMemoryApprovals,
} from "../../src/trust/approvals.ts";
import { digestOf } from "../../src/trust/folder-digests.ts";

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

function tempFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "approvals-test-"));
  folders.push(folder);
  return folder;
}

const key = { kind: "package", id: "left-pad", digest: digestOf("1.0.0") };
const here: ApprovalScope = { kind: "location", id: "/work/here" };
const there: ApprovalScope = { kind: "location", id: "/work/there" };
const user: ApprovalScope = { kind: "user" };
const approved = (change: Partial<Approval> = {}): Approval => ({ ...key, scope: user, approvedAt: "2026-11-02T10:00:00.000Z", ...change });

const stores: [string, () => ApprovalStore][] = [
  ["in memory", createMemoryApprovals],
  ["in files", () => createFileApprovals({ directory: join(tempFolder(), "not", "yet", "there") })],
];

describe.each(stores)("approvals %s", (_name, open) => {
  test("nothing is approved to begin with", async () => {
    const store = open();
    expect(await store.has(key, [here, user])).toBe(false);
    expect(await store.list()).toEqual([]);
    expect(await store.forget({})).toBe(0);
  });

  test("an approval is for exactly its subject, content and place", async () => {
    const store = open();
    await store.remember(approved({ scope: here }));
    expect(await store.has(key, [here])).toBe(true);
    expect(await store.has(key, [there, here])).toBe(true);
    expect(await store.has(key, [there, user])).toBe(false);
    expect(await store.has(key, [{ kind: "session", id: "/work/here" }])).toBe(false);
    expect(await store.has(key, [])).toBe(false);
    for (const change of [{ kind: "mcp" }, { id: "right-pad" }, { digest: digestOf("1.0.1") }]) {
      expect(await store.has({ ...key, ...change }, [here])).toBe(false);
    }
  });

  test("no part of an approval can be written so that it reads like another approval", async () => {
    const store = open();
    await store.remember(approved({ kind: 'a","b', id: "c" }));
    expect(await store.has({ ...key, kind: "a", id: 'b","c' }, [user])).toBe(false);
    await store.remember(approved({ kind: "__proto__", id: "constructor" }));
    expect(await store.has({ ...key, kind: "__proto__", id: "constructor" }, [user])).toBe(true);
    expect(await store.has({ ...key, kind: "__proto__", id: "toString" }, [user])).toBe(false);
  });

  test("a repeated approval replaces its detail, which later versions are compared with", async () => {
    const store = open();
    await store.remember(approved({ detail: { version: 1 } }));
    await store.remember(approved({ detail: { version: 2 }, approvedAt: "2026-11-03T10:00:00.000Z" }));
    expect(await store.list()).toEqual([approved({ detail: { version: 2 }, approvedAt: "2026-11-03T10:00:00.000Z" })]);
  });

  test("approvals are listed by any of their parts, oldest first, and taken back the same way", async () => {
    const store = open();
    const second = approved({ digest: digestOf("2.0.0"), approvedAt: "2026-11-03T10:00:00.000Z" });
    await store.remember(second);
    await store.remember(approved());
    await store.remember(approved({ id: "other", scope: here }));
    expect(await store.list({ id: "left-pad" })).toEqual([approved(), second]);
    expect(await store.list({ scope: here })).toEqual([approved({ id: "other", scope: here })]);
    expect(await store.list({ kind: "mcp" })).toEqual([]);
    expect(await store.forget({ id: "left-pad", digest: second.digest })).toBe(1);
    expect(await store.has(second, [user])).toBe(false);
    expect(await store.has(key, [user])).toBe(true);
    expect(await store.forget({})).toBe(2);
    expect(await store.list()).toEqual([]);
  });

  test.each<[string, unknown]>([
    ["no subject", { ...approved(), id: "" }],
    ["a digest of another form", { ...approved(), digest: "abc" }],
    ["no scope", { ...approved(), scope: undefined }],
    ["a location without a name", { ...approved(), scope: { kind: "location" } }],
    ["no time", { ...approved(), approvedAt: "yesterday" }],
    ["nothing", null],
  ])("a record with %s is not an approval", async (_what, value) => {
    await expect(open().remember(value as Approval)).rejects.toMatchObject({ code: "APPROVAL_INVALID" });
  });
});

describe("approvals in files", () => {
  test("approvals in files outlive the program, and other programs that share the folder see them", async () => {
    const directory = tempFolder();
    const [one, other] = [createFileApprovals({ directory }), createFileApprovals({ directory })];
    expect(other.has(key, [user])).toBe(false);
    await one.remember(approved());
    expect(one.has(key, [user])).toBe(true);
    await expect.poll(() => other.has(key, [user])).toBe(true);
    await other.forget(key);
    expect(other.has(key, [user])).toBe(false);
    await expect.poll(() => one.has(key, [user])).toBe(false);
    await one.remember(approved());
    expect(createFileApprovals({ directory }).has(key, [user])).toBe(true);
  });

  test("programs that add and remove approvals concurrently lose none of each other's", async () => {
    const directory = tempFolder();
    const programs = Array.from({ length: 4 }, () => createFileApprovals({ directory }));
    await programs[0]!.remember(approved({ id: "old" }));
    await Promise.all([
      ...programs.flatMap((store, program) =>
        Array.from({ length: 10 }, (_, n) => store.remember(approved({ id: `${program}-${n}`, detail: { program } }))),
      ),
      ...programs.map((store) => store.remember(approved({ id: "shared" }))),
      programs[1]!.forget({ id: "old" }),
    ]);
    const ids = (await programs[3]!.list()).map(({ id }) => id);
    expect(ids).toHaveLength(41);
    expect(new Set(ids).size).toBe(41);
    expect(ids).not.toContain("old");
  });

  test.each<[string, (text: string) => string]>([
    ["cut off", (text) => text.slice(0, text.length / 2)],
    ["empty", () => ""],
    ["no approval", () => '{"kind":"package"}'],
    ["an approval under another's name", (text) => text.replace("left-pad", "evil-pad")],
    ["another version that was put in its place", (text) => text.replace(key.digest, digestOf("6.6.6"))],
    ["too long", (text) => text + " ".repeat(2 ** 21)],
  ])("a file that is %s approves nothing, is reported once and is kept", async (_what, damage) => {
    const directory = tempFolder();
    const diagnostics: Diagnostic[] = [];
    const store = createFileApprovals({ directory, onDiagnostic: (diagnostic) => diagnostics.push(diagnostic) });
    await store.remember(approved());
    await store.remember(approved({ id: "sound" }));
    const name = readdirSync(directory).find((file) => readFileSync(join(directory, file), "utf8").includes("left-pad"))!;
    const damaged = damage(readFileSync(join(directory, name), "utf8"));
    writeFileSync(join(directory, name), damaged);

    expect(store.has(key, [user])).toBe(false);
    expect(store.has(key, [user])).toBe(false);
    expect((await store.list()).map(({ id }) => id)).toEqual(["sound"]);
    expect(diagnostics).toEqual([
      expect.objectContaining({ code: "APPROVAL_UNREADABLE", severity: "warning", file: join(directory, name) }),
    ]);
    expect(await store.forget({})).toBe(1);
    expect(readFileSync(join(directory, name), "utf8")).toBe(damaged);

    await store.remember(approved());
    expect(store.has(key, [user])).toBe(true);
    const texts = readdirSync(directory).map((file) => readFileSync(join(directory, file), "utf8"));
    expect(texts).toContain(damaged);
  });

  test("a path that is not a folder approves nothing, and adding an approval fails with the reason", async () => {
    const directory = join(tempFolder(), "file");
    writeFileSync(directory, "not a folder");
    const store = createFileApprovals({ directory });
    expect(store.has(key, [user])).toBe(false);
    await expect(store.remember(approved())).rejects.toMatchObject({ code: "EEXIST" });
    expect(readFileSync(directory, "utf8")).toBe("not a folder");
  });

  test.skipIf(process.platform === "win32")("other users can neither read nor add approvals", async () => {
    const directory = join(tempFolder(), "mine");
    await createFileApprovals({ directory }).remember(approved());
    expect(statSync(directory).mode & 0o077).toBe(0);
    for (const name of readdirSync(directory)) expect(statSync(join(directory, name)).mode & 0o077).toBe(0);
  });

  test("a detail that is too long to keep is refused", async () => {
    const store = createFileApprovals({ directory: tempFolder() });
    await expect(store.remember(approved({ detail: "x".repeat(2 ** 21) }))).rejects.toMatchObject({ code: "APPROVAL_INVALID" });
  });
});
