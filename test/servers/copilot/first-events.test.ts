import { afterEach, expect, test } from "vitest";
import { Served } from "./wire-kit.ts";

let served: Served;

afterEach(() => served?.[Symbol.asyncDispose]());

test("the client that creates a session gets its first events, those that are not recorded among them", async () => {
  served = await Served.start();
  const client = await served.connect();
  const sessionId = await client.create({ model: "m" });
  served.says("Hello.");
  await client.say(sessionId, "Hi");
  expect(client.types()).toContain("session.tools_updated");
});
