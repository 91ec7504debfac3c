import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { describeStrayError } from "../../src/cli/cli-error.ts";

const own = join(dirname(fileURLToPath(import.meta.url)), "../../src/session/session.ts");

function withFrames(...frames: string[]): Error {
  const error = new Error("It failed.");
  error.stack = ["Error: It failed.", ...frames.map((frame) => `    at ${frame}`)].join("\n");
  return error;
}

test("a stray error of this package or of Node.js names no file of a skill", async () => {
  const error = withFrames(`run (${own}:10:5)`, "process.processTicksAndRejections (node:internal/process/task_queues:95:5)");
  expect(await describeStrayError(error)).toMatchObject({ message: "Unhandled error: It failed.", place: undefined });
});

test("a stray error names the innermost file of a skill, or of a package if the stack has no file of a skill", async () => {
  const inPackage = "parse (/work/node_modules/zod/index.js:3:4)";
  const inSkill = "async greet (file:///work/skills/greeter/tools/greet.ts:7:8)";
  expect((await describeStrayError(withFrames(`run (${own}:1:1)`, inPackage, inSkill))).message).toBe(
    "/work/skills/greeter/tools/greet.ts:7:8 unhandled error outside of any call: It failed. A promise is probably not awaited there.",
  );
  expect((await describeStrayError(withFrames(inPackage))).place).toMatchObject({ file: "/work/node_modules/zod/index.js", line: 3 });
});
