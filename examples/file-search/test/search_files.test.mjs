import assert from "node:assert/strict";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { testSkill } from "skillhost/testing";

const folder = new URL("..", import.meta.url);

test("finds files below the working directory, and none above it", async () => {
  const skill = await testSkill(folder, { workingDirectory: fileURLToPath(folder) });
  try {
    assert.equal((await skill.call("search_files", { pattern: "tools/*.ts" })).textResultForLlm, "tools/search_files.ts");
    const outside = await skill.call("search_files", { pattern: "../*" });
    assert.equal(outside.resultType, "failure");
  } finally {
    await skill.close();
  }
});
