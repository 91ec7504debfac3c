import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Diagnostic } from "../../src/base/diagnostic.ts";
import type { ToolResult } from "../../src/tools/tool.ts";
import {
  callToolResult,
  failureResult,
  type NormalizeOptions,
  normalizeResult,
  resultOfThrow,
  successResult,
} from "../../src/tools/tool-result.ts";
import { rounds } from "../rounds.ts";

const success = (text: string, more: Partial<ToolResult> = {}): ToolResult => ({ resultType: "success", textResultForLlm: text, ...more });
const failure = (text: string, more: Partial<ToolResult> = {}): ToolResult => ({ resultType: "failure", textResultForLlm: text, ...more });

const cyclic: Record<string, unknown> = {};
cyclic["self"] = cyclic;
const notJson = "Tool returned a result that cannot be represented in JSON.";
const unreadable = "Tool returned a result that cannot be read.";
const logged = expect.any(String);
const png = "iVBORw0KGgo=";

const cases: readonly [title: string, raw: unknown, expected: ToolResult][] = [
  ["a string", "done", success("done")],
  ["the empty string", "", success("")],
  ["an object", { a: [1, null] }, success('{"a":[1,null]}')],
  ["an array", [1, "x"], success('[1,"x"]')],
  ["a number", 0, success("0")],
  ["a boolean", false, success("false")],
  ["null", null, failure("Tool returned no result")],
  ["undefined", undefined, failure("Tool returned no result")],
  ["a Date", new Date(0), success('"1970-01-01T00:00:00.000Z"')],
  [
    "an error that was returned",
    new Error("db at 10.0.0.5"),
    failure("Invoking this tool produced an error. Detailed information is not available.", { error: "db at 10.0.0.5" }),
  ],

  ["a BigInt", 1n, failure(notJson, { error: logged })],
  ["a BigInt inside", { n: 1n }, failure(notJson, { error: logged })],
  ["a cycle", cyclic, failure(notJson, { error: logged })],
  ["a function", () => 1, failure(notJson, { error: "The tool returned a function." })],
  ["a symbol", Symbol("x"), failure(notJson, { error: "The tool returned a symbol." })],
  ["a number that JSON has not", Number.NaN, failure(notJson, { error: "The tool returned NaN." })],
  [
    "a toJSON that throws",
    {
      toJSON() {
        throw new Error("secret");
      },
    },
    failure(notJson, { error: "secret" }),
  ],
  [
    "a getter that throws",
    {
      get textResultForLlm(): string {
        throw new Error("secret");
      },
    },
    failure(unreadable, { error: "secret" }),
  ],
  [
    "a proxy that throws",
    new Proxy(
      {},
      {
        get() {
          throw new Error("secret");
        },
      },
    ),
    failure(unreadable, { error: "secret" }),
  ],

  ["a tool result object", { textResultForLlm: "hi" }, success("hi")],
  ["a tool result object with an empty text", { textResultForLlm: "" }, success("")],
  ["a rejected result", { textResultForLlm: "no", resultType: "rejected" }, { resultType: "rejected", textResultForLlm: "no" }],
  ["a denied result", { textResultForLlm: "no", resultType: "denied" }, { resultType: "denied", textResultForLlm: "no" }],
  ["a timeout", { textResultForLlm: "late", resultType: "timeout" }, { resultType: "timeout", textResultForLlm: "late" }],
  [
    "all fields of a result",
    {
      textResultForLlm: "Service unavailable",
      resultType: "failure",
      error: "503",
      sessionLog: "tried twice",
      toolTelemetry: { tries: 2 },
      toolReferences: [{ name: "a" }],
      binaryResultsForLlm: [{ data: png, mimeType: "image/png", type: "image", description: "a dot" }],
      contents: [{ type: "text", text: "x" }],
      structuredContent: { a: 1 },
      meta: { k: "v" },
    },
    failure("Service unavailable", {
      error: "503",
      sessionLog: "tried twice",
      toolTelemetry: { tries: 2 },
      toolReferences: [{ name: "a" }],
      binaryResultsForLlm: [{ data: png, mimeType: "image/png", type: "image", description: "a dot" }],
      contents: [{ type: "text", text: "x" }],
      structuredContent: { a: 1 },
      meta: { k: "v" },
    }),
  ],
  [
    "null fields of a result",
    { textResultForLlm: "hi", resultType: null, error: null, binaryResultsForLlm: null, toolTelemetry: null },
    success("hi"),
  ],
  ["an unknown result type", { textResultForLlm: "hi", resultType: "ok" }, failure("hi", { sessionLog: expect.stringContaining('"ok"') })],
  ["an error that is not a string", { textResultForLlm: "hi", error: new Error("why") }, success("hi", { error: "why" })],
  ["an error that is data", { textResultForLlm: "hi", error: { code: 1 } }, success("hi", { error: '{"code":1}' })],
  [
    "telemetry that is not an object",
    { textResultForLlm: "hi", toolTelemetry: 7 },
    success("hi", { sessionLog: expect.stringContaining("toolTelemetry") }),
  ],
  [
    "telemetry that JSON cannot hold",
    { textResultForLlm: "hi", sessionLog: "log", toolTelemetry: { n: 1n } },
    success("hi", { sessionLog: "log\ntoolTelemetry.n is a BigInt, which JSON does not support; toolTelemetry was removed." }),
  ],
  [
    "bad base64",
    {
      textResultForLlm: "hi",
      binaryResultsForLlm: [
        { data: "no base64!", mimeType: "image/png", type: "image" },
        { data: png, mimeType: "image/png", type: "image" },
      ],
    },
    success("hi", {
      binaryResultsForLlm: [{ data: png, mimeType: "image/png", type: "image" }],
      sessionLog: expect.stringContaining("not base64"),
    }),
  ],
  [
    "base64 with line breaks, the URL alphabet and no padding",
    { textResultForLlm: "hi", binaryResultsForLlm: [{ data: "ab-_\nab", mimeType: "text/plain" }] },
    success("hi", {
      binaryResultsForLlm: [{ data: "ab+/ab==", mimeType: "text/plain", type: "resource" }],
    }),
  ],
  [
    "binaries without a media type",
    { textResultForLlm: "hi", binaryResultsForLlm: [{ data: png }, null, 1] },
    success("hi", { sessionLog: expect.stringMatching(/media type.*\n.*not an object/) }),
  ],
  [
    "binaries that are not a list",
    { textResultForLlm: "hi", binaryResultsForLlm: png },
    success("hi", { sessionLog: expect.stringContaining("not an array") }),
  ],
  ["a text that is not a string", { textResultForLlm: 5 }, success('{"textResultForLlm":5}')],

  [
    "an MCP result with texts",
    {
      content: [
        { type: "text", text: "a" },
        { type: "text", text: "b" },
      ],
    },
    success("a\nb", {
      contents: [
        { type: "text", text: "a" },
        { type: "text", text: "b" },
      ],
    }),
  ],
  [
    "an MCP result with an image and a sound",
    {
      content: [
        { type: "image", data: png, mimeType: "image/png" },
        { type: "audio", data: "AAAA", mimeType: "audio/wav" },
      ],
    },
    success("", {
      contents: [
        { type: "image", data: png, mimeType: "image/png" },
        { type: "audio", data: "AAAA", mimeType: "audio/wav" },
      ],
      binaryResultsForLlm: [
        { data: png, mimeType: "image/png", type: "image" },
        { data: "AAAA", mimeType: "audio/wav", type: "resource" },
      ],
    }),
  ],
  [
    "an MCP result with an empty image",
    { content: [{ type: "image", data: "", mimeType: "image/png" }] },
    success("", { contents: [{ type: "image", data: "", mimeType: "image/png" }] }),
  ],
  [
    "an MCP result with embedded resources",
    {
      content: [
        { type: "resource", resource: { uri: "file:///a", text: "A" } },
        { type: "resource", resource: { uri: "file:///b", blob: "AAAA" } },
      ],
    },
    success("A", {
      contents: [
        { type: "resource", resource: { uri: "file:///a", text: "A" } },
        { type: "resource", resource: { uri: "file:///b", blob: "AAAA" } },
      ],
      binaryResultsForLlm: [{ data: "AAAA", mimeType: "application/octet-stream", type: "resource", description: "file:///b" }],
    }),
  ],
  [
    "an MCP result with a link",
    { content: [{ type: "resource_link", uri: "https://x.org/a", name: "a", description: "all of it" }] },
    success("a <https://x.org/a>: all of it", {
      contents: [{ type: "resource_link", uri: "https://x.org/a", name: "a", description: "all of it" }],
    }),
  ],
  [
    "an MCP result with only structured content",
    { content: [], structuredContent: { n: 1 } },
    success('{"n":1}', { contents: [], structuredContent: { n: 1 } }),
  ],
  [
    "an MCP result with text and structured content",
    { content: [{ type: "text", text: "one" }], structuredContent: { n: 1 }, _meta: { k: 1 } },
    success("one", {
      contents: [{ type: "text", text: "one" }],
      structuredContent: { n: 1 },
      meta: { k: 1 },
    }),
  ],
  [
    "an MCP error",
    { content: [{ type: "text", text: "bad" }], isError: true },
    failure("bad", { contents: [{ type: "text", text: "bad" }] }),
  ],
  ["an MCP error without a text", { content: [], isError: true }, failure("Tool reported an error without details.", { contents: [] })],
  [
    "an MCP result with an unknown block beside a text",
    {
      content: [
        { type: "hologram", x: 1 },
        { type: "text", text: "a" },
      ],
    },
    success("a", {
      contents: [
        { type: "hologram", x: 1 },
        { type: "text", text: "a" },
      ],
    }),
  ],
  ["an empty MCP result", { content: [] }, success("", { contents: [] })],
  ["data with a content that is not MCP's", { content: ["a"] }, success('{"content":["a"]}')],
  ["data with an empty content among other things", { content: [], title: "x" }, success('{"content":[],"title":"x"}')],
  ["data with typed content that is not MCP's", { content: [{ type: "paragraph" }] }, success('{"content":[{"type":"paragraph"}]}')],
  ["text parts, from a handler", [{ type: "text", value: "a" }], success('[{"type":"text","value":"a"}]')],
  ["an outcome, from a handler", { result: "error", message: "m" }, success('{"result":"error","message":"m"}')],
];

const executeCases: typeof cases = [
  [
    "text parts",
    [
      { type: "text", value: "a" },
      { type: "text", value: "b" },
    ],
    success("a\nb"),
  ],
  ["no parts", [], success("")],
  ["a list that is not of parts", [{ type: "text", value: 1 }], success('[{"type":"text","value":1}]')],
  ["a success with a message", { result: "success", message: "Saved." }, success("Saved.")],
  ["a success without one", { result: "success" }, success("success")],
  ["a success with more in it", { result: "success", path: "a" }, success('{"result":"success","path":"a"}')],
  ["an error with a message", { result: "error", message: "No such file." }, failure("No such file.")],
  ["an error without one", { result: "error" }, failure("Tool reported an error without details.")],
  ["another outcome", { result: "maybe" }, success('{"result":"maybe"}')],
  ["a string", "x", success("x")],
  ["nothing", undefined, failure("Tool returned no result")],
];

test.each(cases)("a handler's %s is converted to its result", (_, raw, expected) => {
  expect(normalizeResult(raw)).toEqual(expected);
  expect(normalizeResult(raw, { form: "wire" })).toEqual(expected);
});

test.each(executeCases)("an execute module's %s is converted to its result", (_, raw, expected) => {
  expect(normalizeResult(raw, { form: "execute" })).toEqual(expected);
});

test.each([...cases, ...executeCases])("a result made from %s does not change when it is normalized again", (_, raw) => {
  const once = normalizeResult(raw, { form: "execute" });
  expect(normalizeResult(once)).toEqual(once);
});

test("parts that were omitted from a result are reported as diagnostics", () => {
  const diagnostics: Diagnostic[] = [];
  const raw = { textResultForLlm: "hi", resultType: "ok", binaryResultsForLlm: [{ data: "?", mimeType: "image/png" }], toolTelemetry: [] };
  normalizeResult(raw, { onDiagnostic: (diagnostic) => diagnostics.push(diagnostic) });
  expect(diagnostics.map(({ severity, code }) => `${severity} ${code}`)).toEqual([
    "warning RESULT_TYPE_UNKNOWN",
    "warning RESULT_BINARY_INVALID",
    "warning RESULT_FIELD_INVALID",
  ]);
});

test("a result is deeply immutable", () => {
  const telemetry = { tries: 1 };
  const result = normalizeResult({ textResultForLlm: "hi", toolTelemetry: telemetry });
  telemetry.tries = 2;
  expect(result.toolTelemetry).toEqual({ tries: 1 });
});

test("an MCP result without content is empty", () => {
  expect(callToolResult({})).toEqual(success(""));
  expect(callToolResult({ structuredContent: [1], isError: false })).toEqual(success("[1]", { structuredContent: [1] }));
});

describe("the text of a thrown value", () => {
  test.each<[unknown, string]>([
    [new Error("postgres://admin:secret@10.0.0.5"), "postgres://admin:secret@10.0.0.5"],
    ["a string", "a string"],
    [undefined, "A value that is not an Error was thrown: undefined"],
    [Object.create(null), "A value that cannot be shown was thrown."],
  ])("a thrown value is logged and never shown to the model (%#)", (thrown, message) => {
    expect(resultOfThrow(thrown)).toEqual(
      failure("Invoking this tool produced an error. Detailed information is not available.", { error: message }),
    );
  });
});

test("tool results can be created by hand", () => {
  expect(successResult("x")).toEqual(success("x"));
  expect(failureResult("late", { resultType: "timeout", error: "120 s" })).toEqual({
    resultType: "timeout",
    textResultForLlm: "late",
    error: "120 s",
  });
});

test("every result can be sent as JSON and contains no error text for the model", () => {
  const forms: readonly NormalizeOptions["form"][] = ["handler", "execute", "wire"];
  const hostile = fc.record(
    {
      textResultForLlm: fc.anything(),
      resultType: fc.anything(),
      binaryResultsForLlm: fc.anything({ withBigInt: true }),
      content: fc.array(
        fc.record({
          type: fc.constantFrom("text", "image", "resource", 1),
          text: fc.anything(),
          data: fc.anything(),
          resource: fc.anything(),
        }),
      ),
      toolTelemetry: fc.anything({ withBigInt: true, withMap: true, withNullPrototype: true }),
      error: fc.anything({ withBigInt: true }),
      result: fc.anything(),
    },
    { requiredKeys: [] },
  );
  fc.assert(
    fc.property(
      fc.oneof(hostile, fc.anything({ withBigInt: true, withMap: true, withNullPrototype: true })),
      fc.constantFrom(...forms),
      (raw, form) => {
        const result = normalizeResult(raw, form === undefined ? {} : { form });
        expect(typeof result.textResultForLlm).toBe("string");
        expect(["success", "failure", "rejected", "denied", "timeout"]).toContain(result.resultType);
        expect(JSON.parse(JSON.stringify(result))).toBeTypeOf("object");
      },
    ),
    { numRuns: rounds(400, 2_000) },
  );
});
