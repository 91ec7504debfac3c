import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { matchSnapshot, modelText, scriptedModel, tempSkill, testSkill } from "skillhost/testing";
import { expect, onTestFinished, test, vi } from "vitest";

const files = {
  "SKILL.md": "---\nname: rates\ndescription: Converts money.\nmetadata:\n  x: y\n---\nRound down.\n",
  "tools/convert.json": JSON.stringify({
    name: "convert",
    description: "Converts euros.",
    parameters: { type: "object", properties: { euros: { type: "number" } }, required: ["euros"] },
    handler: { command: "true" },
  }),
};

test("a scripted model calls tools and keeps what it was sent", async () => {
  using temp = tempSkill({
    "skill.json": '{ "name": "x" }',
    "tools/x.mjs": 'export default { name: "add", description: "Adds.", handler: ({ a }) => `It is ${a + 1}.` };',
  });
  await using skill = await testSkill(temp.folder);
  const model = scriptedModel({ text: "A moment.", calls: [{ name: "add", args: { a: 1 } }] }, "It was 2.");
  const session = await skill.host.createSession({ chatModel: model, onPermissionRequest: () => ({ kind: "approve-once" }) });
  const reply = await session.sendAndWait("What is 1 + 1?");
  expect(reply.content).toBe("It was 2.");
  expect(model.requests).toHaveLength(2);
  expect(model.requests[1]?.messages.at(-1)).toMatchObject({ role: "tool", content: "It is 2." });
  await expect(session.sendAndWait("And?")).rejects.toThrow("asked 3 times, but has only 2 messages");
});

test("the text for a model has the instructions and tools of the skill, and nothing of the machine", async () => {
  using temp = tempSkill(files, { name: "rates" });
  await using skill = await testSkill(temp.folder);
  const text = await modelText(skill);
  expect(text).not.toContain(temp.root);
  expect(text).toMatch(
    /^# Instructions\n\n.*rates.*Converts money\..*\n\n# Tools\n\n\/\*\* Converts euros\. \*\/\nconvert\(args: \{ euros: number \}\): unknown;\n$/s,
  );
  expect(await modelText(skill)).toBe(text);
});

test("a snapshot is written once, compared afterwards, and replaced only on request", async () => {
  const place = mkdtempSync(join(tmpdir(), "skillhost-snapshots-"));
  onTestFinished(() => {
    vi.unstubAllEnvs();
    rmSync(place, { recursive: true });
  });
  const file = join(place, "rates.snapshot.md");
  vi.stubEnv("CI", "true");
  await expect(matchSnapshot(file, "a\nb\nc\n")).rejects.toMatchObject({ code: "SNAPSHOT_MISSING" });
  vi.stubEnv("CI", "");
  await matchSnapshot(file, "a\nb\nc\n");
  await matchSnapshot(file, "a\nb\nc\n");
  writeFileSync(file, "a\r\nb\r\nc\r\n");
  await matchSnapshot(file, "a\nb\nc\n");
  await expect(matchSnapshot(file, "a\nB\nc\n")).rejects.toMatchObject({
    code: "SNAPSHOT_MISMATCH",
    message: expect.stringContaining("differs:\nline 2:\n- b\n+ B\nIf the new text is right, update it: skillhost test --update-snapshots"),
  });
  vi.stubEnv("SKILLHOST_SNAPSHOTS", "update");
  await matchSnapshot(file, "a\nB\nc\n");
  expect(readFileSync(file, "utf8")).toBe("a\nB\nc\n");
});
