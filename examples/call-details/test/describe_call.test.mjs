import assert from "node:assert/strict";
import { test } from "node:test";
import { testSkill } from "skillhost/testing";

const folder = new URL("..", import.meta.url);

test("returns the ids of the session and the call", async () => {
  const skill = await testSkill(folder);
  try {
    const result = await skill.session.callTool("describe_call", {}, { toolCallId: "call-1" });
    assert.deepEqual(JSON.parse(result.textResultForLlm), {
      sessionId: skill.session.id,
      toolCallId: "call-1",
      toolName: "describe_call",
      cancelled: false,
    });
  } finally {
    await skill.close();
  }
});
