import assert from "node:assert/strict";
import { test } from "node:test";
import { testSkill } from "skillhost/testing";

test("counts words, also of a text that looks like an option", async () => {
  const skill = await testSkill(new URL("..", import.meta.url));
  try {
    assert.equal((await skill.call("count_words", { text: "three little words" })).textResultForLlm, "3");
    assert.equal((await skill.call("count_words", { text: "--version" })).textResultForLlm, "1");
  } finally {
    await skill.close();
  }
});
