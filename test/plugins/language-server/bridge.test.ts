import { expect, test } from "vitest";
import { bridgeScenarios } from "../../doubles/language-server/bridge-scenarios.ts";
import { changeScenarios } from "../../doubles/language-server/change-scenarios.ts";
import { doubleProgram } from "../../doubles/language-server/double-program.ts";
import { editorScenarios } from "../../doubles/language-server/editor-scenarios.ts";
import { lifeScenarios } from "../../doubles/language-server/life-scenarios.ts";

// test/interop/language-server runs the same table with the real server.
// Concurrently, since each waits for its own server.
for (const { name, run, expected } of [...bridgeScenarios, ...editorScenarios, ...changeScenarios, ...lifeScenarios]) {
  test.concurrent(name, async () => {
    expect(await run(doubleProgram)).toEqual(expected);
  });
}
