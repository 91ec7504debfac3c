import { expect, test } from "vitest";
import type { StoredCall } from "../../src/formats/calls/stored-calls.ts";
import { keptResult, resultDifference } from "../../src/host/stored-calls/run-difference.ts";
import type { SkillCall } from "../../src/host/stored-calls/skill-calls.ts";
import { type StoredCallRun, StoredCallRunner } from "../../src/host/stored-calls/stored-call-runner.ts";
import { createTestHost, tempSkill } from "../../src/testing.ts";

const { signal } = new AbortController();
const tool = (name: string, answer: string, isReadOnly = true): string => `export default {
  name: ${JSON.stringify(name)},
  description: "Answers.",
  parameters: { type: "object", properties: {} },
  annotations: { readOnlyHint: ${isReadOnly} },
  handler: ${answer},
};
`;
const call = (name: string, more: Partial<StoredCall> = {}): SkillCall => ({
  skill: "pair",
  call: { name, tool: name, arguments: {}, isAutomatic: false, ...more },
});

function twoTools() {
  return tempSkill(
    {
      "SKILL.md": "---\nname: pair\ndescription: Two tools.\n---\n",
      "tools/one.mjs": tool("one", '() => "first\\nline"'),
      "tools/two.mjs": tool("two", '() => "second"'),
      "tools/write.mjs": tool("write", '() => "written"', false),
    },
    { name: "pair" },
  );
}

async function runAll(runner: StoredCallRunner, calls: readonly SkillCall[]): Promise<readonly StoredCallRun[]> {
  const runs: StoredCallRun[] = [];
  expect(await runner.runChanged(calls, signal, (run) => runs.push(run))).toBe(true);
  return runs;
}

const outcomes = (runs: readonly StoredCallRun[]) => runs.map((run) => [run.call.name, run.outcome]);

test("after a save only the call of the saved tool is made again, with the difference of its result", async () => {
  using skill = twoTools();
  await using kit = await createTestHost({ skillDirectories: [skill.root], watch: false });
  const runner = new StoredCallRunner(kit.session);
  const calls = [call("one"), call("two", { expect: { text: "second" } })];
  expect(outcomes(await runAll(runner, calls))).toEqual([
    ["one", "first"],
    ["two", "passed"],
  ]);
  expect(await runAll(runner, calls)).toEqual([]);
  skill.write("tools/one.mjs", tool("one", '() => "other\\nline"').replace("Answers.", "Answers differently."));
  await kit.host.reload();
  const again = await runAll(runner, calls);
  expect(again.map(({ call: { name } }) => name)).toEqual(["one"]);
  const one = again.find((run) => run.call.name === "one");
  expect(one).toMatchObject({ outcome: "changed", diff: ["-first", "+other", " line"], isSignatureChanged: true });
  expect(one?.schemaDiff.join("\n")).toContain("Answers differently.");
  expect(one?.previousDurationMs).toBeGreaterThanOrEqual(0);
});

test("a save of a module that the tool imports makes its call again, and one of another skill does not", async () => {
  using skill = twoTools();
  skill.write("tools/one.mjs", `import { answer } from "../lib/answer.mjs";\n${tool("one", "() => answer")}`);
  skill.write("lib/answer.mjs", 'export const answer = "first";');
  using _other = tempSkill(
    { "SKILL.md": "---\nname: other\ndescription: Another skill.\n---\n", "tools/three.mjs": tool("three", '() => "third"') },
    { name: "other", root: skill.root },
  );
  await using kit = await createTestHost({ skillDirectories: [skill.root], watch: false });
  const runner = new StoredCallRunner(kit.session);
  const three: SkillCall = { ...call("three"), skill: "other" };
  expect(outcomes(await runAll(runner, [call("one"), three]))).toEqual([
    ["one", "first"],
    ["three", "first"],
  ]);
  skill.write("lib/answer.mjs", 'export const answer = "second";');
  await kit.host.reload();
  expect(await runAll(runner, [call("one"), three])).toMatchObject([{ skill: "pair", outcome: "changed", diff: ["-first", "+second"] }]);
});

test("calls of the same name in two skills are different calls, and none calls the tool of another skill", async () => {
  using skill = twoTools();
  using _other = tempSkill(
    { "SKILL.md": "---\nname: other\ndescription: Another skill.\n---\n", "tools/one.mjs": tool("one", '() => "of the other"') },
    { name: "other", root: skill.root },
  );
  await using kit = await createTestHost({ skillDirectories: [skill.root], watch: false });
  const runner = new StoredCallRunner(kit.session);
  const entries = kit.host.skills.flatMap(({ name }) => ({ ...call("one"), skill: name }));
  const runs = await runAll(runner, entries);
  expect(runs.map(({ skill: name, outcome, result }) => [name, outcome, result?.textResultForLlm])).toEqual([
    ["other", "failed", undefined],
    ["pair", "first", "first\nline"],
  ]);
  expect(await runAll(runner, entries)).toEqual([]);
});

test("a tool that writes is called only where the user has marked the call or wants this run, and what is not permitted is not run", async () => {
  using skill = twoTools();
  const session = { onPermissionRequest: () => ({ kind: "reject" as const }) };
  await using kit = await createTestHost({ skillDirectories: [skill.root], watch: false, session });
  const runner = new StoredCallRunner(kit.session);
  const [skipped] = await runAll(runner, [call("write", { expect: { ok: true } })]);
  expect(skipped).toMatchObject({ outcome: "skipped", reasons: [expect.stringContaining("does not claim to read only")] });
  const [marked] = await runAll(runner, [call("write", { isAutomatic: true, expect: { ok: true } })]);
  expect(marked).toMatchObject({ outcome: "failed", result: { resultType: "rejected" } });
  expect(await runner.run(call("write", { expect: { code: "rejected" } }), signal)).toMatchObject({ outcome: "passed" });
});

test("a call whose tool does not exist fails and says so, also when its expectation changes it is made again", async () => {
  using skill = twoTools();
  await using kit = await createTestHost({ skillDirectories: [skill.root], watch: false });
  const runner = new StoredCallRunner(kit.session);
  expect(await runAll(runner, [call("gone")])).toMatchObject([{ outcome: "failed", reasons: ['Tool "gone" does not exist.'] }]);
  expect(await runAll(runner, [call("gone")])).toEqual([]);
  expect(outcomes(await runAll(runner, [call("two")]))).toEqual([["two", "first"]]);
  expect(outcomes(await runAll(runner, [call("two", { expect: { text: "third" } })]))).toEqual([["two", "failed"]]);
});

/** A tool whose first call waits until it is cancelled or released. */
const gate = `async (_args, { signal }) => {
  const { storedCall } = globalThis;
  if (storedCall === undefined) return "done";
  storedCall.count++;
  await new Promise((resolve) => { signal.addEventListener("abort", resolve); storedCall.release = resolve; storedCall.started(); });
  return "released";
}`;

interface Gate {
  count: number;
  started(): void;
  release?(): void;
}

function openGate(): { readonly started: Promise<void>; readonly state: Gate; [Symbol.dispose](): void } {
  const place = globalThis as { storedCall?: Gate };
  const state: Gate = { count: 0, started: () => {} };
  const started = new Promise<void>((resolve) => {
    state.started = resolve;
  });
  place.storedCall = state;
  return { started, state, [Symbol.dispose]: () => delete place.storedCall };
}

test("a newer run cancels a call whose tool has changed, and it is made again", async () => {
  using skill = twoTools();
  skill.write("tools/one.mjs", tool("one", gate));
  await using kit = await createTestHost({ skillDirectories: [skill.root], watch: false });
  const runner = new StoredCallRunner(kit.session);
  const older: StoredCallRun[] = [];
  using opened = openGate();
  const first = runner.runChanged([call("one"), call("two")], signal, (run) => older.push(run));
  await opened.started;
  skill.write("tools/one.mjs", tool("one", '() => "new"'));
  await kit.host.reload();
  const runs = await runAll(runner, [call("one"), call("two")]);
  expect(runs.map((run) => [run.call.name, run.outcome, run.result?.textResultForLlm])).toEqual([
    ["one", "first", "new"],
    ["two", "first", "second"],
  ]);
  expect(await first).toBe(false);
  expect(older).toEqual([]);
});

test("a newer run leaves a call alone that is being made and has not changed, and makes the rest", async () => {
  using skill = twoTools();
  skill.write("tools/one.mjs", tool("one", gate));
  await using kit = await createTestHost({ skillDirectories: [skill.root], watch: false });
  const runner = new StoredCallRunner(kit.session);
  const older: StoredCallRun[] = [];
  using opened = openGate();
  const first = runner.runChanged([call("one"), call("two")], signal, (run) => older.push(run));
  await opened.started;
  skill.write("tools/two.mjs", tool("two", '() => "new"'));
  await kit.host.reload();
  const newer = runAll(runner, [call("one"), call("two")]);
  opened.state.release?.();
  expect(outcomes(await newer)).toEqual([["two", "first"]]);
  expect(await first).toBe(false);
  expect(older.map((run) => run.result?.textResultForLlm)).toEqual(["released"]);
  expect(opened.state.count).toBe(1);
});

test("a call that was removed is cancelled, and a run ends with its signal while it waits", async () => {
  using skill = twoTools();
  skill.write("tools/one.mjs", tool("one", gate));
  await using kit = await createTestHost({ skillDirectories: [skill.root], watch: false });
  const runner = new StoredCallRunner(kit.session);
  using opened = openGate();
  const first = runner.runChanged([call("one")], signal, () => {});
  await opened.started;
  const stop = new AbortController();
  const waiting = runner.runChanged([call("one")], stop.signal, () => {});
  stop.abort(new Error("stopped"));
  expect(await waiting).toBe(false);
  expect(await runAll(runner, [])).toEqual([]);
  expect(await first).toBe(false);
});

const difference = (before: string, after: string): readonly string[] => {
  const [old, current] = [before, after].map((textResultForLlm) => keptResult({ resultType: "success", textResultForLlm }));
  return resultDifference(old!, current!);
};

test("the difference of long texts is short, and linear in their size", () => {
  expect(difference("a", "a")).toEqual([]);
  expect(difference("a\nb\nc\nd", "a\nb\nx\nd")).toEqual([" a", " b", "-c", "+x", " d"]);
  const lines = difference("x\n".repeat(200_000), `${"y".repeat(1_000)}\n`.repeat(20_000));
  expect(lines.length).toBeLessThan(210);
  expect(Math.max(...lines.map((line) => line.length))).toBeLessThan(400);
});

test("of a text of 50 MB the beginning is kept, and a difference after it is still found", () => {
  const long = "x".repeat(50_000_000);
  expect(JSON.stringify(keptResult({ resultType: "success", textResultForLlm: long })).length).toBeLessThan(1_100_000);
  expect(difference(long, `${long}`)).toEqual([]);
  expect(difference(long, `${long}y`)).toEqual(["-… 50000000 characters", "+… 50000001 characters, which differ after the first 1000000"]);
});
