import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { testSkill } from "skillhost/testing";

test("a notification that was sent is listed", async () => {
  const workingDirectory = await mkdtemp(join(tmpdir(), "notifications-"));
  const skill = await testSkill(new URL("..", import.meta.url), { workingDirectory });
  try {
    assert.equal((await skill.call("list_notifications")).textResultForLlm, "No notifications sent yet.");
    await skill.call("send_notification", { userId: 123, message: "Hello" });
    const listed = JSON.parse((await skill.call("list_notifications")).textResultForLlm);
    assert.equal(listed.message, "Hello");
  } finally {
    await skill.close();
    await rm(workingDirectory, { recursive: true });
  }
});

test("asks for permission before it sends", async () => {
  const asked = [];
  const onPermissionRequest = (request) => {
    asked.push(request.intention);
    return { kind: "reject" };
  };
  const skill = await testSkill(new URL("..", import.meta.url), { session: { onPermissionRequest } });
  try {
    const result = await skill.call("send_notification", { userId: 123, message: "Hello" });
    assert.equal(result.resultType, "rejected");
    assert.deepEqual(asked, ["Notify user 123: Hello"]);
  } finally {
    await skill.close();
  }
});
