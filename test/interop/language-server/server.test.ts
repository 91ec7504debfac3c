import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { answerScenarios } from "../../doubles/language-server/answer-scenarios.ts";
import { bridgeScenarios } from "../../doubles/language-server/bridge-scenarios.ts";
import { changeScenarios } from "../../doubles/language-server/change-scenarios.ts";
import { doubleProgram } from "../../doubles/language-server/double-program.ts";
import { editorScenarios } from "../../doubles/language-server/editor-scenarios.ts";
import { lifeScenarios } from "../../doubles/language-server/life-scenarios.ts";
import { registrationScenarios } from "../../doubles/language-server/protocol-scenarios.ts";
import { RawClient } from "../../doubles/language-server/raw-client.ts";
import { turnScenarios } from "../../doubles/language-server/turn-scenarios.ts";
import { findRealServer } from "./real-server.ts";

const { path = "", reason } = findRealServer();
const title = "GitHub's language server and its double agree";

// .ci/allowed-skips.json lists this title with the reason.
test.skipIf(path === "")(title, async () => {
  const versions = await Promise.all([path, doubleProgram].map((server) => versionOf(server)));
  expect(versions).toEqual(["1.539.0", "1.539.0"]);
});

if (path === "") process.stderr.write(`skipped: ${reason}\n`);
else describe(title, () => agree());

function agree(): void {
  let clients: readonly RawClient[] = [];
  beforeAll(async () => {
    clients = await Promise.all([path, doubleProgram].map((server) => RawClient.start(server)));
  });
  afterAll(async () => {
    await Promise.all(clients.map((client) => client[Symbol.asyncDispose]()));
  });

  // The server's behaviour, driven by raw messages.
  for (const { name, run, expected } of [...registrationScenarios, ...answerScenarios, ...turnScenarios]) {
    test(name, async () => {
      for (const client of clients) client.reset();
      const [ofReal, ofDouble] = [await run(clients[0]!), await run(clients[1]!)];
      expect(ofDouble).toEqual(ofReal);
      expect(ofReal).toEqual(expected);
    });
  }

  // The bridge's behaviour with the server.
  for (const { name, run, expected } of [...bridgeScenarios, ...editorScenarios, ...changeScenarios, ...lifeScenarios]) {
    test(name, async () => {
      const [ofReal, ofDouble] = [await run(path), await run(doubleProgram)];
      expect(ofDouble).toEqual(ofReal);
      expect(ofReal).toEqual(expected);
    });
  }
}

async function versionOf(server: string): Promise<string> {
  await using client = await RawClient.start(server);
  return client.version;
}
