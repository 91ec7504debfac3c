import { appendFileSync, readFileSync, statSync } from "node:fs";
import { expect, onTestFinished, test } from "vitest";
import { logApproval, readApprovalLog, runningProgram, withApprovalLog } from "../../src/trust/approval-log.ts";
import { createMemoryApprovals } from "../../src/trust/approvals.ts";
import { digestOf } from "../../src/trust/folder-digests.ts";
import { type Workplace, workplace } from "../cli/run-cli.ts";

function folder(): Workplace {
  const place = workplace({});
  onTestFinished(() => place[Symbol.dispose]());
  return place;
}

const digest = digestOf("content");
const approval = (kind: string, id: string) =>
  ({ kind, id, digest, scope: { kind: "location", id: "/work" }, approvedAt: "2026-01-01T00:00:00Z", detail: { secret: "x" } }) as const;

test("a store logs approvals and revocations, without their content, and no first uses", async () => {
  const file = folder().at("deep/approvals.jsonl");
  const store = withApprovalLog(createMemoryApprovals(), file, "my program");
  await store.remember(approval("tool", "lint"));
  await store.remember(approval("mcp-seen", "server/tool"));
  expect(await store.forget({ kind: "tool" })).toBe(1);
  expect((await store.list()).map(({ kind }) => kind)).toEqual(["mcp-seen"]);
  const { records, diagnostics } = readApprovalLog(file);
  expect(diagnostics).toEqual([]);
  expect(records.map(({ action, kind, id, by, digest: of, scope }) => ({ action, kind, id, by, of, scope }))).toEqual(
    ["approved", "revoked"].map((action) => ({
      action,
      kind: "tool",
      id: "lint",
      by: "my program",
      of: digest,
      scope: { kind: "location", id: "/work" },
    })),
  );
  expect(readFileSync(file, "utf8")).not.toContain("secret");
  if (process.platform !== "win32") expect(statSync(file).mode & 0o777).toBe(0o600);
});

test("what cannot be logged is not stored", async () => {
  const place = folder();
  place.write("in-the-way", "");
  const inner = createMemoryApprovals();
  const store = withApprovalLog(inner, place.at("in-the-way/approvals.jsonl"));
  await expect(store.remember(approval("tool", "lint"))).rejects.toMatchObject({ code: "APPROVAL_LOG" });
  expect(await inner.list()).toEqual([]);
});

test("lines that are not records are reported by their number, and a name with line breaks stays one line", () => {
  const file = folder().at("approvals.jsonl");
  logApproval({ action: "approved", kind: "package", id: "a\n{}\u2028b", by: "x" }, file);
  appendFileSync(file, 'nonsense\n{"time":"2026-01-01T00:00:00Z"}\n\n[]\n');
  logApproval({ action: "revoked", kind: "package", id: "x".repeat(10_000), by: "x" }, file);
  const { records, diagnostics } = readApprovalLog(file);
  expect(records.map(({ id }) => id.length)).toEqual(["a\n{}\u2028b".length, 4_096]);
  expect(diagnostics.map(({ code, range }) => `${code} ${range?.start.line}`)).toEqual([
    "APPROVAL_LOG_LINE 2",
    "APPROVAL_LOG_LINE 3",
    "APPROVAL_LOG_LINE 5",
  ]);
});

test.each([
  [["node", "/usr/bin/skillhost", "run", "my private prompt"], "skillhost run"],
  [["node", "/usr/bin/skillhost", "trust", "add", "/secret"], "skillhost trust add"],
  [["node", "/x/dist/cli/bin.js", "My secret"], "skillhost"],
  [["node", "/srv/server.js", "--token", "secret"], "server.js"],
  [["node"], "program"],
])("the program %j is named %s, without its arguments", (argv, name) => {
  expect(runningProgram(argv)).toBe(name);
});
