import { spawn } from "node:child_process";
import { text } from "node:stream/consumers";
import { pathToFileURL } from "node:url";
import { describe, expect, test } from "vitest";
import { compileSources } from "../compiled-sources.ts";
import { tree } from "./module-trees.ts";

const child = compileSources("test/io/debugger-child.ts")("test/io/debugger-child.ts");

/** The position at which a breakpoint on a line of the source stops. */
async function stopAt(file: string, line: number): Promise<unknown> {
  const { stdout, stderr } = spawn(process.execPath, ["--inspect=127.0.0.1:0", child, file, String(line)]);
  const [position, complaints] = await Promise.all([text(stdout), text(stderr)]);
  expect(complaints).not.toContain("Error");
  return JSON.parse(position);
}

describe("a breakpoint in a debugger stops at the line of the source", () => {
  const types = "interface A {\n  readonly a: 1;\n}\n\ntype B =\n  | 1\n  | 2;\n\n";
  test.each([
    ["tool.ts", `${types}export default () => {\n  const list: B[] = [1, 2];\n  return list.length;\n};\n`],
    ["tool.cts", `${types}module.exports = () => {\n  const list: B[] = [1, 2];\n  return list.length;\n};\n`],
    ["tool.mjs", `${"\n".repeat(8)}export default () => {\n  const list = [1, 2];\n  return list.length;\n};\n`],
  ])("a breakpoint stops at the line of %s", async (name, source) => {
    const at = tree({ [name]: source });
    expect(await stopAt(at(name), 10)).toEqual({ source: pathToFileURL(at(name)).href, line: 10 });
  });
});
