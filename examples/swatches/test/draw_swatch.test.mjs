import assert from "node:assert/strict";
import { test } from "node:test";
import { testSkill } from "skillhost/testing";

const folder = new URL("..", import.meta.url);

test("draws a PNG image", async () => {
  const skill = await testSkill(folder);
  try {
    const { binaryResultsForLlm } = await skill.call("draw_swatch", { colour: "#3366cc", size: 5 });
    const image = Buffer.from(binaryResultsForLlm[0].data, "base64");
    assert.equal(image.subarray(1, 4).toString(), "PNG");
    assert.equal(image.readUInt32BE(16), 5);
  } finally {
    await skill.close();
  }
});

test("refuses a colour by name", async () => {
  const skill = await testSkill(folder);
  try {
    assert.equal((await skill.call("draw_swatch", { colour: "blue" })).resultType, "failure");
  } finally {
    await skill.close();
  }
});
