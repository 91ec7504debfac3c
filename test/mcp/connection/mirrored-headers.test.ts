import { expect, test } from "vitest";
import { faultOfMirrors, mirroredHeaders } from "../../../src/mcp/connection/mirrored-headers.ts";

const mirror = (header: unknown, type: unknown = "string") => ({ type, "x-mcp-header": header });
const object = (properties: object) => ({ type: "object", properties });

test("annotated arguments go into headers, at any depth, in the specification's encoding", () => {
  const schema = object({
    a: mirror("A"),
    n: mirror("N", "integer"),
    b: mirror("B", "boolean"),
    in: object({ c: mirror("C") }),
    free: { type: "string" },
  });
  const headers = mirroredHeaders(schema, { a: "x y", n: 3, b: false, in: { c: " padded" }, free: "no" });
  expect(headers).toEqual({ "Mcp-Param-A": "x y", "Mcp-Param-N": "3", "Mcp-Param-B": "false", "Mcp-Param-C": "=?base64?IHBhZGRlZA==?=" });
});

test.each([
  ["line\nbreak", "=?base64?bGluZQpicmVhaw==?="],
  ["", "=?base64??="],
  ["=?base64?eA==?=", "=?base64?PT9iYXNlNjQ/ZUE9PT89?="],
  ["Zürich", "=?base64?WsO8cmljaA==?="],
])("the text %j becomes %s", (value, expected) => {
  expect(mirroredHeaders(object({ a: mirror("A") }), { a: value })).toEqual({ "Mcp-Param-A": expected });
});

test("an argument that is absent, null or of another kind is left out", () => {
  const schema = object({ a: mirror("A"), n: mirror("N", "integer") });
  for (const args of [{}, { a: null }, { a: { b: 1 }, n: 2 ** 60 }, { a: ["x"], n: Number.NaN }])
    expect(mirroredHeaders(schema, args)).toEqual({});
  expect(mirroredHeaders(object({ a: { type: "string" } }), { a: "x" })).toBeUndefined();
  expect(mirroredHeaders("no schema", {})).toBeUndefined();
});

test.each([
  [{ "x-mcp-header": "A", type: "string" }, "property"],
  [object({ a: mirror("") }), "valid header name"],
  [object({ a: mirror(7) }), "valid header name"],
  [object({ a: mirror("no good") }), "valid header name"],
  [object({ a: mirror("A", "number") }), "type"],
  [object({ a: mirror("A", ["string"]) }), "type"],
  [object({ a: mirror("A"), b: mirror("a") }), "two arguments"],
  [object({ a: { type: "array", items: mirror("A") } }), "property"],
  [{ ...object({}), $defs: { d: object({ a: mirror("A") }) } }, "property"],
  [{ oneOf: [object({ a: mirror("A") })] }, "property"],
])("a schema with a wrong annotation has a fault: %j", (schema, text) => {
  expect(faultOfMirrors(schema)).toContain(text);
  expect(mirroredHeaders(schema, { a: "x" })).toBeUndefined();
});

test("a schema without annotations, however odd, has no fault", () => {
  let deep: unknown = { "x-mcp-header": "A" };
  for (let depth = 0; depth < 5000; depth++) deep = { not: deep };
  for (const schema of [undefined, null, 7, object({ "x-mcp-header": { type: "string" } }), deep])
    expect(faultOfMirrors(schema)).toBeUndefined();
});
