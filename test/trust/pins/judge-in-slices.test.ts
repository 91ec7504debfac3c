import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { type ApprovalStore, createFileApprovals } from "../../../src/trust/approvals.ts";
import { Pins } from "../../../src/trust/pins/pins.ts";

/** A store that counts how many approvals are looked up in one turn of the event loop, at most. */
function countLookUps(store: ApprovalStore): { readonly store: ApprovalStore; most(): number } {
  let [inTurn, most] = [0, 0];
  const has: ApprovalStore["has"] = (key, scopes) => {
    if (inTurn === 0) setImmediate(() => (inTurn = 0));
    inTurn++;
    most = Math.max(most, inTurn);
    return store.has(key, scopes);
  };
  const counting: ApprovalStore = {
    has,
    remember: (approval) => store.remember(approval),
    forget: (query) => store.forget(query),
    list: (query) => store.list(query),
  };
  return { store: counting, most: () => most };
}

const subjects = Array.from({ length: 3_000 }, (_, index) => {
  const content = { name: `tool-${index}` };
  return { kind: "mcp-tool", owner: "server", name: content.name, digest: `sha256:${index}`, content };
});

test.each(["first-use", "require"] as const)("thousands of new definitions are looked up in slices: %s", async (policy) => {
  const folder = mkdtempSync(join(tmpdir(), "pins-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const directory = join(folder, "approvals");
  const { store, most } = countLookUps(createFileApprovals({ directory }));
  const pins = new Pins({ approvals: store, policy, onError: (error) => expect.unreachable(String(error)) });
  const verdicts = await pins.judge("server", subjects);
  await pins.kept();
  expect(verdicts).toHaveLength(subjects.length);
  expect(most()).toBeGreaterThan(1);
  expect(most()).toBeLessThanOrEqual(1_000);
});
