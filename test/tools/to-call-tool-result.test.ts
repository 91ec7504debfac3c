import fc from "fast-check";
import { expect, test } from "vitest";
import type { ToolResult } from "../../src/tools/tool.ts";
import { callToolResult, toCallToolResult } from "../../src/tools/tool-result.ts";

const base64 = fc.uint8Array({ minLength: 1, maxLength: 9 }).map((bytes) => Buffer.from(bytes).toString("base64"));
const meta = fc.dictionary(fc.constantFrom("a.example/x", "b.example/y"), fc.jsonValue({ maxDepth: 2 }));
const annotations = fc.record({
  audience: fc.constant(["user"]),
  priority: fc.double({ min: 0, max: 1, noNaN: true, noDefaultInfinity: true }),
});

const block = fc.oneof(
  fc.record({ type: fc.constant("text"), text: fc.string(), annotations, _meta: meta }, { requiredKeys: ["type", "text"] }),
  fc.record(
    { type: fc.constant("image"), data: base64, mimeType: fc.constant("image/png"), _meta: meta },
    { requiredKeys: ["type", "data", "mimeType"] },
  ),
  fc.record({ type: fc.constant("audio"), data: base64, mimeType: fc.constant("audio/wav") }),
  fc.record(
    { type: fc.constant("resource_link"), uri: fc.webUrl(), name: fc.string(), description: fc.string() },
    { requiredKeys: ["type", "uri", "name"] },
  ),
  fc.record({
    type: fc.constant("resource"),
    resource: fc.oneof(
      fc.record({ uri: fc.webUrl(), text: fc.string() }),
      fc.record({ uri: fc.webUrl(), blob: base64, mimeType: fc.constant("application/pdf") }),
    ),
  }),
);

test("a result that came from a server is sent unchanged", () => {
  const result = fc.record(
    {
      content: fc.array(block, { maxLength: 4 }),
      structuredContent: fc.oneof(fc.dictionary(fc.string(), fc.jsonValue()), fc.array(fc.jsonValue()), fc.integer()),
      isError: fc.constant(true),
      _meta: meta,
    },
    { requiredKeys: ["content"] },
  );
  fc.assert(
    fc.property(result, (given) => {
      // `__proto__` keys are omitted on purpose, and -0 is 0 in JSON.
      fc.pre(!JSON.stringify(given).includes("__proto__"));
      const came = JSON.parse(JSON.stringify(given));
      expect(JSON.parse(JSON.stringify(toCallToolResult(callToolResult(came))))).toEqual(came);
    }),
    { seed: 7, numRuns: 500 },
  );
});

test("text becomes a text block, and fields for the log are not sent", () => {
  const result: ToolResult = {
    resultType: "success",
    textResultForLlm: "Done.",
    error: "secret",
    sessionLog: "secret",
    toolTelemetry: { secret: 1 },
    toolReferences: ["secret"],
  };
  expect(toCallToolResult(result)).toEqual({ content: [{ type: "text", text: "Done." }] });
  expect(toCallToolResult({ resultType: "success", textResultForLlm: "" })).toEqual({ content: [{ type: "text", text: "" }] });
});

test.each(["failure", "rejected", "denied", "timeout"] as const)("a result of type %s is an error", (resultType) => {
  const wire = toCallToolResult({ resultType, textResultForLlm: "No." });
  expect(wire).toEqual({ content: [{ type: "text", text: "No." }], isError: true });
});

test("binary results become images, audio and embedded resources with a URI", () => {
  const binary = (mimeType: string, description?: string) => ({
    data: "AAAA",
    mimeType,
    type: mimeType.startsWith("image/") ? "image" : "resource",
    ...(description !== undefined && { description }),
  });
  const binaryResultsForLlm = [
    binary("image/png"),
    binary("audio/wav"),
    binary("application/pdf", "file:///a.pdf"),
    binary("application/pdf", "no address"),
  ];
  expect(toCallToolResult({ resultType: "success", textResultForLlm: "", binaryResultsForLlm }).content).toEqual([
    { type: "image", data: "AAAA", mimeType: "image/png" },
    { type: "audio", data: "AAAA", mimeType: "audio/wav" },
    { type: "resource", resource: { uri: "file:///a.pdf", mimeType: "application/pdf", blob: "AAAA" } },
    { type: "resource", resource: { uri: "attachment:///4", mimeType: "application/pdf", blob: "AAAA" } },
  ]);
});

test("JSON becomes structured content if the tool has an output schema", () => {
  const json: ToolResult = { resultType: "success", textResultForLlm: '{"metres":3}' };
  expect(toCallToolResult(json)).not.toHaveProperty("structuredContent");
  expect(toCallToolResult(json, { hasOutputSchema: true })).toMatchObject({
    structuredContent: { metres: 3 },
    content: [{ text: '{"metres":3}' }],
  });
  expect(toCallToolResult({ ...json, textResultForLlm: "no JSON" }, { hasOutputSchema: true })).not.toHaveProperty("structuredContent");
  expect(toCallToolResult({ ...json, resultType: "failure" }, { hasOutputSchema: true })).not.toHaveProperty("structuredContent");
});

test("what a hook removed from a result is not sent in another field", () => {
  const came = callToolResult({
    content: [
      { type: "text", text: "the password is hunter2" },
      { type: "image", data: "AAAA", mimeType: "image/png" },
    ],
    structuredContent: { password: "hunter2" },
  });
  expect(toCallToolResult({ ...came, textResultForLlm: "[redacted]" })).toEqual({
    content: [
      { type: "text", text: "[redacted]" },
      { type: "image", data: "AAAA", mimeType: "image/png" },
    ],
  });
  const { binaryResultsForLlm: _removed, ...withoutImage } = came;
  expect(JSON.stringify(toCallToolResult(withoutImage).content)).not.toContain("AAAA");
});

test("a block that lacks required fields of the protocol is not sent", () => {
  for (const block of [{ type: "image", data: "AAAA" }, { type: "resource", resource: { uri: "file:///a" } }, { type: "other" }]) {
    const wire = toCallToolResult(callToolResult({ content: [{ type: "text", text: "Seen." }, block] }));
    expect(wire).toEqual({ content: [{ type: "text", text: "Seen." }] });
  }
});
