import fc from "fast-check";
import { expect, test } from "vitest";
import { checkExpectation } from "../../../src/formats/calls/check-expectation.ts";
import { parseStoredCalls } from "../../../src/formats/calls/stored-calls.ts";
import type { ToolResult } from "../../../src/tools/tool.ts";

const parse = (value: unknown) => parseStoredCalls(JSON.stringify(value, null, 2), "calls.json");
const codes = (value: unknown): readonly string[] => parse(value).diagnostics.map(({ code }) => code);

test("a stored call is read with its expectations, and one text of contains becomes a list", () => {
  const expectation = { ok: true, contains: "Oslo", structured: { city: "Oslo" } };
  const { calls, diagnostics } = parse({ calls: { "in Oslo": { tool: "weather", arguments: { city: "Oslo" }, expect: expectation } } });
  expect(diagnostics).toEqual([]);
  expect(calls).toEqual([
    {
      name: "in Oslo",
      tool: "weather",
      arguments: { city: "Oslo" },
      isAutomatic: false,
      expect: { ok: true, contains: ["Oslo"], structured: { city: "Oslo" } },
    },
  ]);
});

test.each([
  ["no tool", { arguments: {} }, "CALL_INVALID"],
  ["a tool that is not text", { tool: 1 }, "CALL_INVALID"],
  ["arguments that are a list", { tool: "weather", arguments: [] }, "CALL_INVALID"],
  ["an expectation that is not known", { tool: "weather", expect: { contain: "x" } }, "CALL_EXPECTATION"],
  ["an empty text to contain, which every text does", { tool: "weather", expect: { contains: "" } }, "CALL_EXPECTATION"],
  ["a pattern without a time bound", { tool: "weather", expect: { matches: "(?=a)b" } }, "CALL_EXPECTATION"],
  ["a pattern that is not one", { tool: "weather", expect: { matches: "(" } }, "CALL_EXPECTATION"],
  ["a schema with a type that does not exist", { tool: "weather", expect: { schema: { type: 5 } } }, "CALL_EXPECTATION"],
  ["a schema that refers to nothing", { tool: "weather", expect: { schema: { $ref: "#/nowhere" } } }, "CALL_EXPECTATION"],
  ["a schema whose pattern is not checked", { tool: "weather", expect: { schema: { pattern: "(?=a)b" } } }, "CALL_EXPECTATION"],
  ["a code that does not exist", { tool: "weather", expect: { code: "fine" } }, "CALL_EXPECTATION"],
  ["a list instead of an entry", [], "CALL_INVALID"],
])("an entry with %s is left out with its line, and the next one is read", (_what, entry, code) => {
  const { calls, diagnostics } = parse({ calls: { bad: entry, good: { tool: "weather" } } });
  expect(calls.map(({ name }) => name)).toEqual(["good"]);
  expect(diagnostics.map((each) => [each.severity, each.code, each.file])).toEqual([["error", code, "calls.json"]]);
  expect(diagnostics[0]?.range?.start.line).toBeGreaterThanOrEqual(3);
});

test("each call has its place in the file, and members beside the calls are reported", () => {
  const text = '{\n  "$schema": "x",\n  "call": {},\n  "calls": {\n    "a": { "tool": "t" },\n    "b": { "tool": "t" }\n  }\n}\n';
  const { positions, diagnostics } = parseStoredCalls(text, "calls.json");
  expect([...positions]).toEqual([
    ["a", { line: 5, column: 5 }],
    ["b", { line: 6, column: 5 }],
  ]);
  expect(diagnostics).toMatchObject([{ severity: "warning", code: "CALL_MEMBER_UNKNOWN", range: { start: { line: 3 } } }]);
});

test("names that reorder text, and files that are not JSON or have no calls, are refused", () => {
  expect(codes({ calls: { "a\u202eb": { tool: "weather" } } })).toEqual(["CALL_NAME"]);
  expect(parseStoredCalls('{"calls": ', "calls.json")).toMatchObject({ calls: [], diagnostics: [{ code: "JSON_SYNTAX" }] });
  expect(codes({})).toEqual(["CALLS_INVALID"]);
  expect(codes([])).toEqual(["CALLS_INVALID"]);
});

test("an unknown member of a call is a warning, and the call is read", () => {
  const { calls, diagnostics } = parse({ calls: { a: { tool: "weather", note: "mine" } } });
  expect(calls).toHaveLength(1);
  expect(diagnostics).toMatchObject([{ severity: "warning", code: "CALL_MEMBER_UNKNOWN" }]);
});

const result = (text: string, more: Partial<ToolResult> = {}): ToolResult => ({ resultType: "success", textResultForLlm: text, ...more });

test.each([
  ["ok", { ok: true }, result("x")],
  ["a failure that is expected", { ok: false, code: "denied" }, result("no", { resultType: "denied" })],
  ["text, parts and a pattern", { text: "12 C", contains: ["12", "C"], matches: "^\\d+ C$" }, result("12 C")],
  ["a part of the data", { structured: { a: { b: [1] } } }, result("{}", { structuredContent: { a: { b: [1], c: 2 }, d: 3 } })],
  ["data that is written as text", { structured: { a: 1 } }, result('{"a":1,"b":2}')],
  ["a schema", { schema: { type: "object", required: ["a"] } }, result('{"a":1}')],
] as const)("a result with what is expected passes: %s", async (_what, expectation, given) => {
  expect(await checkExpectation(expectation, given)).toEqual([]);
});

test.each([
  ["ok", { ok: true }, result("", { resultType: "failure", error: "broken" }), 'The call did not succeed: failure: "broken".'],
  [
    "a part that is in the message of a failure",
    { contains: ["Oslo"] },
    result("No Oslo.", { resultType: "failure" }),
    'The call did not succeed: failure: "No Oslo.".',
  ],
  ["a text that is too long to be matched", { matches: "a" }, result("a".repeat(1_000_001)), expect.stringContaining("at most 1000000")],
  ["code", { code: "denied" }, result("x"), "The code is success, not denied."],
  ["text", { text: "abc" }, result("abd"), 'The text differs at character 3: "abd", not "abc".'],
  ["contains", { contains: ["y"] }, result("x"), 'The text does not contain "y".'],
  ["matches", { matches: "^y" }, result("x"), 'The text does not match "^y".'],
  ["a member that is missing", { structured: { a: { b: 1 } } }, result('{"a":{}}'), "a.b is missing; expected 1."],
  ["a longer list", { structured: { a: [1] } }, result('{"a":[1,2]}'), "a has 2 elements, not 1."],
  ["another type", { structured: { a: 1 } }, result('{"a":"1"}'), 'a is "1", not 1.'],
  ["no data", { structured: {} }, result("plain"), "The result has no data: it has no structured content, and its text is not JSON."],
  [
    "a null that the schema does not allow",
    { schema: { type: "object", properties: { a: { type: "string" } } } },
    result('{"a":null}'),
    expect.stringContaining("Schema: a"),
  ],
] as const)("a result without what is expected fails with one reason: %s", async (_what, expectation, given, reason) => {
  expect(await checkExpectation(expectation, given)).toEqual([reason]);
});

test("a schema that refers to itself, and a pattern that backtracks elsewhere, end", async () => {
  const tree = { $defs: { node: { type: "object", properties: { next: { $ref: "#/$defs/node" } } } }, $ref: "#/$defs/node" };
  expect(await checkExpectation({ schema: tree }, result('{"next":{"next":{}}}'))).toEqual([]);
  expect(await checkExpectation({ schema: tree }, result('{"next":{"next":1}}'))).toHaveLength(1);
  const endless = { $ref: "#" };
  expect(await checkExpectation({ schema: endless }, result("{}"))).toHaveLength(1);
  expect(await checkExpectation({ matches: "^(a+)+$" }, result(`${"a".repeat(50_000)}b`))).toHaveLength(1);
});

/** Stored calls with members of the right names and any values. */
const anyCalls = fc.dictionary(
  fc.oneof(fc.string(), fc.constantFrom("a", "__proto__", "constructor")),
  fc.oneof(
    fc.jsonValue(),
    fc.record(
      {
        tool: fc.oneof(fc.string(), fc.jsonValue()),
        arguments: fc.oneof(fc.dictionary(fc.string(), fc.jsonValue()), fc.jsonValue()),
        automatic: fc.oneof(fc.boolean(), fc.jsonValue()),
        expect: fc.record(
          {
            ok: fc.oneof(fc.boolean(), fc.jsonValue()),
            code: fc.oneof(fc.constantFrom("success", "denied"), fc.jsonValue()),
            text: fc.oneof(fc.string(), fc.jsonValue()),
            contains: fc.oneof(fc.string(), fc.array(fc.string()), fc.jsonValue()),
            matches: fc.oneof(fc.string(), fc.constantFrom("(a+)+$", "(", "\\p{L}", "[^]")),
            structured: fc.jsonValue(),
            schema: fc.oneof(
              fc.dictionary(fc.constantFrom("type", "properties", "items", "$ref", "pattern", "allOf", "enum", "format"), fc.jsonValue()),
              fc.jsonValue(),
            ),
          },
          { requiredKeys: [] },
        ),
      },
      { requiredKeys: ["tool"] },
    ),
  ),
);

const anyResult = fc.record(
  {
    resultType: fc.constantFrom("success", "failure", "denied", "rejected", "timeout"),
    textResultForLlm: fc.oneof(fc.string(), fc.json()),
    structuredContent: fc.jsonValue(),
    error: fc.string(),
  },
  { requiredKeys: ["resultType", "textResultForLlm"] },
);

test("whatever a file says and a tool returns, the file is read, the result is compared, and nothing is thrown", async () => {
  await fc.assert(
    fc.asyncProperty(anyCalls, anyResult, async (entries, given) => {
      const { calls, diagnostics } = parseStoredCalls(JSON.stringify({ calls: entries }), "calls.json");
      expect(calls.length + diagnostics.filter(({ severity }) => severity === "error").length).toBeGreaterThanOrEqual(
        // That name is a warning of the JSON reader.
        Object.keys(JSON.parse(JSON.stringify(entries))).filter((name) => name !== "__proto__").length,
      );
      for (const each of calls) {
        const reasons = await checkExpectation(each.expect ?? {}, given as ToolResult);
        expect(reasons.every((reason) => typeof reason === "string" && reason.length < 500)).toBe(true);
      }
    }),
    { numRuns: 300, seed: 7 },
  );
});
