import fc from "fast-check";
import { expect, test } from "vitest";
import { editJson } from "../../src/formats/text/edit-json.ts";
import { parseJson } from "../../src/formats/text/json-document.ts";

const entry = { command: "node", args: ["a", "b"] };
const parsed = (text: string): unknown => parseJson(text, { comments: true }).document?.value;

test.each([
  ["comments and a trailing comma", '// mine\n{\n  "a": 1, // one\n  "servers": {\n    "x": { "command": "y" }, /* last */\n  },\n}\n'],
  ["tabs and CRLF", '{\r\n\t"servers": {\r\n\t\t"x": {}\r\n\t}\r\n}\r\n'],
  ["four spaces and no final newline", '{\n    "servers": {\n        "x": {}\n    },\n    "z": [1, 2]\n}'],
  ["one line", '{"servers":{"x":{}},"z":1}'],
  ["a byte order mark", '\uFEFF{\n  "servers": {\n    "x": {}\n  }\n}\n'],
])("an entry added to and removed from a file with %s leaves it as it was", (_what, text) => {
  const added = editJson(text, ["servers", "mine"], entry);
  expect(parsed(added)).toEqual({
    ...(parsed(text) as object),
    servers: { ...(parsed(text) as { servers: object }).servers, mine: entry },
  });
  expect(editJson(added, ["servers", "mine"], undefined)).toBe(text);
});

test("an empty text becomes an object with the entry, indented by two spaces", () => {
  const text =
    '{\n  "servers": {\n    "mine": {\n      "command": "node",\n      "args": [\n        "a",\n        "b"\n      ]\n    }\n  }\n}\n';
  expect(editJson("", ["servers", "mine"], entry)).toBe(text);
});

test("a text is appended to a list, and removed from it", () => {
  const text = '{ "permissions": { "allow": ["one"] } }';
  const added = editJson(text, ["permissions", "allow", 1], "two");
  expect(parsed(added)).toEqual({ permissions: { allow: ["one", "two"] } });
  expect(parsed(editJson(added, ["permissions", "allow", 1], undefined))).toEqual(parsed(text));
});

test.each([[0], [1], [2]])("element %i is removed from lists with comments", (index) => {
  const text = '{\n  "a": [\n    "one", // the first\n    "two",\n    "three", // the last\n  ],\n}\n';
  const wanted = ["one", "two", "three"].filter((_text, at) => at !== index);
  expect(parsed(editJson(text, ["a", index], undefined))).toEqual({ a: wanted });
});

test("any member can be added to any object without a change to the others", () => {
  const json = fc.dictionary(fc.string(), fc.jsonValue(), { maxKeys: 5 }).filter((value) => !Object.hasOwn(value, "__proto__"));
  fc.assert(
    fc.property(
      json,
      fc.string().filter((key) => key !== "__proto__"),
      fc.constantFrom(0, 2, 4, "\t"),
      (value, key, indent) => {
        const text = JSON.stringify(value, null, indent);
        const before = JSON.parse(text) as object;
        expect(JSON.parse(editJson(text, [key], entry))).toEqual({ ...before, [key]: entry });
      },
    ),
  );
});
