import { expect, test } from "vitest";
import { createLogger } from "../../src/base/logger.ts";
import { type ToolUnit, UnitRetirement } from "../../src/skills/load/stage-tool.ts";

function unit(retired: Promise<readonly Error[]>, abandon: () => Promise<readonly Error[]> = async () => []): ToolUnit {
  return {
    key: "tools/x.ts",
    state: "",
    tools: [],
    prompts: [],
    resources: [],
    resourceTemplates: [],
    resourceLists: [],
    diagnostics: [],
    uses: [],
    files: new Set(),
    retire: () => retired,
    abandon,
  };
}

const logged = () => {
  const lines: string[] = [];
  return { lines, log: createLogger({ level: "debug", write: (line) => lines.push((JSON.parse(line) as { message: string }).message) }) };
};

test("retirement waits for retired generations and reports disposers that failed", async () => {
  const { lines, log } = logged();
  const retirement = new UnitRetirement(log);
  retirement.retire([unit(Promise.resolve([new Error("bad disposer")]))]);
  await retirement.ended(10_000);
  expect(lines).toEqual(["A disposer of a replaced tool failed."]);
});

test("a call that never ends is abandoned after the grace period, and its tool's resources are closed", async () => {
  const { lines, log } = logged();
  const retirement = new UnitRetirement(log);
  let isClosed = false;
  const abandon = async (): Promise<readonly Error[]> => {
    isClosed = true;
    return [];
  };
  retirement.retire([unit(new Promise(() => {}), abandon)]);
  await retirement.ended(1);
  expect({ isClosed, lines }).toEqual({ isClosed: true, lines: ["A call of this tool is still running and was abandoned."] });
});
