import assert from "node:assert/strict";
import { test } from "node:test";
import { testSkill } from "skillhost/testing";

const folder = new URL("..", import.meta.url);

test("returns the current time", async () => {
  const skill = await testSkill(folder);
  try {
    const before = Date.now();
    const { textResultForLlm } = await skill.call("get_time");
    assert.ok(Date.parse(textResultForLlm) >= before);
    assert.ok(Date.parse(textResultForLlm) <= Date.now());
  } finally {
    await skill.close();
  }
});
