import { rmSync } from "node:fs";
import { expect, test } from "vitest";
import { silentLogger } from "../../src/base/logger.ts";
import { startHost } from "../../src/host/create-host.ts";
import { workspacePlugin } from "../../src/plugin-host/bundled.ts";
import { checkSchema } from "../../src/tools/schema/check-schema.ts";
import { emptyFolder } from "../io/temp-folder.ts";

// A host does not check them at its start.
test("the bundled tools have valid parameter schemas", async () => {
  const folder = emptyFolder();
  const host = await startHost({ workingDirectory: folder, logger: silentLogger, sessionsDirectory: folder }, [workspacePlugin]);
  try {
    const session = await host.createSession({ persist: false });
    await session.ready();
    const builtin = [...session.catalog.executables.values()].filter(({ origin }) => origin.kind === "builtin");
    const faults = builtin.flatMap(({ definition: { name, parameters, outputSchema } }) => [
      ...checkSchema(parameters ?? { type: "object" }).map(({ message }) => `${name}: ${message}`),
      ...(outputSchema === undefined ? [] : checkSchema(outputSchema, { of: "output" }).map(({ message }) => `${name}: ${message}`)),
    ]);
    expect(builtin.length).toBeGreaterThan(5);
    expect(faults).toEqual([]);
  } finally {
    await host.close();
    rmSync(folder, { recursive: true, force: true });
  }
});
