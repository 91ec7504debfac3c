import { expect, test } from "vitest";
import { bridgeScenarios } from "../../doubles/language-server/bridge-scenarios.ts";
import { changeScenarios } from "../../doubles/language-server/change-scenarios.ts";
import { doubleProgram } from "../../doubles/language-server/double-program.ts";
import { editorScenarios } from "../../doubles/language-server/editor-scenarios.ts";
import { lifeScenarios } from "../../doubles/language-server/life-scenarios.ts";

// The same table is run with the real server: test/interop/language-server.
// At once, since each has a server of its own to wait for.
for (const { name, run, expected } of [...bridgeScenarios, ...editorScenarios, ...changeScenarios, ...lifeScenarios]) {
  test.concurrent(name, async () => {
    expect(await run(doubleProgram)).toEqual(expected);
  });
}
