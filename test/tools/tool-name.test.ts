import fc from "fast-check";
import { expect, test } from "vitest";
import { checkToolName, nearestToolName } from "../../src/tools/tool.ts";

test.each(["lint", "a", "get_weather", "x-1", "A".repeat(64), "-", "_"])("a tool name that models can call: %j", (name) => {
  expect(checkToolName(name)).toEqual({ ok: true });
  expect(nearestToolName(name)).toBe(name);
});

test.each<[unknown, string]>([
  ["my.tool", "my_tool"],
  ["my tool!", "my_tool"],
  ["server/tool", "server_tool"],
  ["café", "cafe"],
  ["Größe", "Gro_e"],
  ["工具", "tool"],
  ["", "tool"],
  ["a\nb", "a_b"],
  ["lint\n", "lint"],
  ["A".repeat(65), "A".repeat(64)],
  ["__proto__.x", "__proto___x"],
  [undefined, "tool"],
  [7, "tool"],
])("the invalid tool name %j is refused with the nearest valid name", (name, nearest) => {
  const check = checkToolName(name);
  expect(check).toEqual({ ok: false, nearest, message: expect.stringContaining(`Name it "${nearest}".`) });
});

test("the nearest valid name of any text can be called by models", () => {
  fc.assert(fc.property(fc.string({ unit: "binary", maxLength: 100 }), (name) => checkToolName(nearestToolName(name)).ok));
});

test("a message does not repeat overlong names", () => {
  const check = checkToolName("é".repeat(100_000));
  expect(check.ok ? "" : check.message.length).toBeLessThan(400);
});
