import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { createHost } from "../../../src/host/create-host.ts";
import { tempSkill } from "../../../src/testing.ts";
import { approveAll } from "../../../src/tools/tool.ts";
import { fakeChat } from "../../doubles/fake-chat.ts";

test("a resumed session knows what its model has received before", async () => {
  const skill = tempSkill({ "skill.json": '{"name":"style"}', "prompts/style.md": "Indent by two." });
  const sessionsDirectory = mkdtempSync(join(tmpdir(), "turn-resume-"));
  onTestFinished(() => {
    skill[Symbol.dispose]();
    rmSync(sessionsDirectory, { recursive: true, force: true });
  });
  const options = { skillDirectories: [skill.root], watch: false, sessionsDirectory };
  const tool = (name: string) => ({ name, handler: () => `${name} result` });
  const sources: string[] = [];
  const given = {
    onPermissionRequest: approveAll,
    hooks: { onSessionStart: ({ source }: { source: string }) => void sources.push(source) },
  };

  const first = await createHost(options);
  onTestFinished(() => first.close());
  const chat = fakeChat({ calls: [{ id: "c1", name: "old" }] }, "Done.");
  const begun = await first.createSession({ ...given, currentDateTime: false, chatModel: chat, tools: [tool("old"), tool("kept")] });
  await begun.sendAndWait("Go.");
  await first.close();

  const second = await createHost(options);
  onTestFinished(() => second.close());
  const next = fakeChat("Again.");
  const resumed = await second.resumeSession(begun.id, { ...given, currentDateTime: false, chatModel: next, tools: [tool("kept")] });
  const types: string[] = [];
  resumed.on(({ type, ephemeral }) => {
    if (ephemeral !== true) types.push(type);
  });
  await resumed.sendAndWait("And now?");

  expect(sources).toEqual(["new", "resume"]);
  // The model, the eager prompt and the system message are unchanged, so no event reports them.
  expect(types.filter((type) => !type.startsWith("hook."))).toEqual([
    "user.message",
    "assistant.turn_start",
    "assistant.message",
    "assistant.turn_end",
  ]);
  expect(next.requests[0]?.messages.slice(1).map(({ role, content }) => [role, content])).toEqual([
    ["user", "Go."],
    ["assistant", ""],
    ["tool", "old result"],
    ["assistant", "Done."],
    ["user", expect.stringMatching(/^<tools_changed_notice>\nTools no longer available: old\n[\s\S]*\n\nAnd now\?$/)],
  ]);
  expect(next.requests[0]?.messages[0]).toEqual(chat.requests[0]?.messages[0]);
});
