import assert from "node:assert/strict";
import { test } from "node:test";
import { testSkill } from "skillhost/testing";

const folder = new URL("..", import.meta.url);

test("the id that a search returns is the id to get a user by", async () => {
  const skill = await testSkill(folder);
  try {
    const { textResultForLlm } = await skill.call("query_users", { search: "ada" });
    const id = Number(textResultForLlm.split(":")[0]);
    const user = JSON.parse((await skill.call("get_user", { id })).textResultForLlm);
    assert.equal(user.name, "Ada Lovelace");
  } finally {
    await skill.close();
  }
});
