import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import { testSkill } from "skillhost/testing";

// A service of the test answers instead of the real one, so that the test needs no network.
const service = createServer((request, response) => {
  if (!request.url.startsWith("/Oslo?")) return void response.writeHead(404).end();
  response.end(JSON.stringify({ current_condition: [{ temp_C: "4", temp_F: "39", weatherDesc: [{ value: "Light rain" }] }] }));
});
let skill;

before(async () => {
  await new Promise((resolve) => service.listen(0, "127.0.0.1", resolve));
  process.env.WEATHER_URL = `http://127.0.0.1:${service.address().port}`;
  skill = await testSkill(new URL("..", import.meta.url));
});

after(async () => {
  await skill.close();
  service.close();
});

test("returns the temperature in the unit asked for", async () => {
  const { textResultForLlm } = await skill.call("get_weather", { city: "Oslo", unit: "fahrenheit" });
  assert.deepEqual(JSON.parse(textResultForLlm), { city: "Oslo", temperature: 39, unit: "fahrenheit", sky: "Light rain" });
});

test("says that a city was not found", async () => {
  const result = await skill.call("get_weather", { city: "Nowhere" });
  assert.equal(result.resultType, "failure");
  assert.match(result.textResultForLlm, /Nowhere/);
});
