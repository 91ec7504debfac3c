import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { testSkill } from "skillhost/testing";

test("reads a setting, and lists the settings if the name is wrong", async () => {
  const workingDirectory = await mkdtemp(join(tmpdir(), "settings-"));
  await writeFile(join(workingDirectory, "settings.json"), '{ "theme": "dark" }');
  const skill = await testSkill(new URL("..", import.meta.url), { workingDirectory });
  try {
    assert.equal((await skill.call("read_setting", { name: "theme" })).textResultForLlm, '{"name":"theme","value":"dark"}');
    const unknown = await skill.call("read_setting", { name: "color" });
    assert.equal(unknown.resultType, "failure");
    assert.match(unknown.textResultForLlm, /Available settings: theme/);
  } finally {
    await skill.close();
    await rm(workingDirectory, { recursive: true });
  }
});
