import { afterAll, beforeAll, expect, test } from "vitest";
import { answerScenarios } from "../../doubles/language-server/answer-scenarios.ts";
import { doubleProgram } from "../../doubles/language-server/double-program.ts";
import { registrationScenarios } from "../../doubles/language-server/protocol-scenarios.ts";
import { RawClient } from "../../doubles/language-server/raw-client.ts";
import { turnScenarios } from "../../doubles/language-server/turn-scenarios.ts";

let client: RawClient;

beforeAll(async () => {
  client = await RawClient.start(doubleProgram);
});
afterAll(() => client[Symbol.asyncDispose]());

// test/interop/language-server runs the same table with the real server.
for (const { name, run, expected } of [...registrationScenarios, ...answerScenarios, ...turnScenarios]) {
  test(`the double: ${name}`, async () => {
    client.reset();
    expect(await run(client)).toEqual(expected);
  });
}
