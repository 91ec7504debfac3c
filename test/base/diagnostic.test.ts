import { expect, test } from "vitest";
import { formatDiagnostic, positionAt } from "../../src/base/diagnostic.ts";

test.each([
  [0, 1, 1],
  [3, 1, 4],
  [4, 2, 1],
  [6, 3, 1],
  [99, 3, 3],
])("offset %i of a three-line text is line %i column %i", (offset, line, column) => {
  expect(positionAt("abc\nd\nef", offset)).toEqual({ line, column });
});

test("prints the form that terminals and editors make clickable", () => {
  const fault = { severity: "error", code: "TOOL_JSON_SYNTAX", message: "Remove the comma." } as const;
  expect(formatDiagnostic({ ...fault, file: "/a/b.json", range: { start: { line: 3, column: 7 } } })).toBe(
    "/a/b.json:3:7 error TOOL_JSON_SYNTAX Remove the comma.",
  );
  expect(formatDiagnostic(fault)).toBe("error TOOL_JSON_SYNTAX Remove the comma.");
});
