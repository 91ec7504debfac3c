import { describe, expect, test } from "vitest";
import type { ModelToolCall } from "../../src/models/model.ts";
import { parseArguments } from "../../src/models/tool-call-assembly.ts";
import { sse } from "../doubles/scripted-model.ts";
import { ask, hello, listen, modelSaying } from "./models-kit.ts";

type Fragment = readonly [more: { index?: unknown; id?: unknown }, name?: unknown, text?: unknown];

const entry = ([more, name, text]: Fragment): object => ({ ...more, type: "function", function: { name, arguments: text } });

/** Assembles calls from chunks, each a list of fragments. */
async function assemble(chunks: readonly (readonly Fragment[])[]): Promise<readonly ModelToolCall[]> {
  const pieces = chunks.map((fragments) => sse({ choices: [{ index: 0, delta: { tool_calls: fragments.map(entry) } }] }));
  const { reply, deltas } = await listen(modelSaying([...pieces, sse("[DONE]")]));
  for (const { id, argumentsText } of reply?.toolCalls ?? []) {
    const emitted = deltas.map((delta) => (delta.kind === "tool-input" && delta.toolCallId === id ? delta.input : "")).join("");
    expect(emitted).toBe(argumentsText);
  }
  return reply?.toolCalls ?? [];
}

const two = [
  ["read", { path: "a" }],
  ["read", { path: "b" }],
];

describe("two calls of one tool stay two calls", () => {
  test.each<[string, readonly (readonly Fragment[])[]]>([
    [
      "with one id, at two places, and a place with nothing more",
      [
        [[{ index: 0, id: "x" }, "read", ""]],
        [[{ index: 0 }, undefined, '{"path":"a"}']],
        [[{ index: 1, id: "x" }, "read", ""]],
        [[{ index: 1 }, undefined, '{"path":"b"}']],
        [[{ index: 2, id: "x" }, "read", ""]],
      ],
    ],
    [
      "by the protocol",
      [
        [[{ index: 0, id: "x" }, "read", ""]],
        [[{ index: 0 }, undefined, '{"path":']],
        [[{ index: 0 }, null, '"a"}']],
        [[{ index: 1, id: "y" }, "read", '{"path":"b"']],
        [[{ index: 1 }, undefined, "}"]],
      ],
    ],
    [
      "interleaved",
      [
        [
          [{ index: 0, id: "x" }, "read", '{"path"'],
          [{ index: 1, id: "y" }, "read", '{"path"'],
        ],
        [[{ index: 0 }, undefined, ':"a"}']],
        [[{ index: 1 }, undefined, ':"b"}']],
      ],
    ],
    [
      "with id and name repeated in every fragment",
      [
        [[{ index: 0, id: "x" }, "read", '{"path":']],
        [[{ index: 0, id: "x" }, "read", '"a"}']],
        [[{ index: 1, id: "y" }, "read", '{"path":']],
        [[{ index: 1, id: "y" }, "read", '"b"}']],
      ],
    ],
    [
      "with the name repeated, without ids",
      [[[{ index: 0 }, "read", '{"path":']], [[{ index: 0 }, "read", '"a"}']], [[{ index: 1 }, "read", '{"path":"b"}']]],
    ],
    [
      "without indexes, distinguished by id",
      [
        [[{ id: "x" }, "read", '{"path":']],
        [[{ id: "x" }, undefined, '"a"}']],
        [[{ id: "y" }, "read", '{"path":']],
        [[{}, undefined, '"b"}']],
      ],
    ],
    ["without indexes or ids", [[[{}, "read", '{"path":']], [[{}, undefined, '"a"}']], [[{}, "read", '{"path":"b"}']]]],
    [
      "all with index 0 and an id of their own",
      [[[{ index: 0, id: "x" }, "read", '{"path":"a"}']], [[{ index: 0, id: "y" }, "read", '{"path":"b"}']]],
    ],
    [
      "all with index 0, ids only at their heads",
      [
        [[{ index: 0, id: "x" }, "read", ""]],
        [[{ index: 0, id: "" }, null, '{"path":"a"}']],
        [[{ index: 0, id: "y" }, "read", ""]],
        [[{ index: 0, id: "" }, null, '{"path":"b"}']],
      ],
    ],
    ["all with index 0, whole, without ids", [[[{ index: 0 }, "read", '{"path":"a"}']], [[{ index: 0 }, "read", '{"path":"b"}']]]],
    [
      "whole, in one list without indexes and ids",
      [
        [
          [{}, "read", '{"path":"a"}'],
          [{}, "read", '{"path":"b"}'],
        ],
      ],
    ],
    [
      "whole, with arguments that are objects",
      [
        [
          [{ index: 0, id: "x" }, "read", { path: "a" }],
          [{ index: 1, id: "y" }, "read", { path: "b" }],
        ],
      ],
    ],
    [
      "with a new id in every fragment",
      [
        [[{ index: 0, id: "x" }, "read", '{"path":']],
        [[{ index: 0, id: "z" }, undefined, '"a"}']],
        [[{ index: 1, id: "y" }, "read", '{"path":"b"']],
        [[{ index: 1, id: "v" }, undefined, "}"]],
      ],
    ],
    [
      "with the id after the name",
      [
        [[{ index: 0 }, "read", ""]],
        [[{ index: 0, id: "x" }, undefined, '{"path":"a"}']],
        [[{ index: 1 }, "read", ""]],
        [[{ index: 1, id: "y" }, undefined, '{"path":"b"}']],
      ],
    ],
    [
      "with the name after the id",
      [
        [[{ index: 0, id: "x" }]],
        [[{ index: 0 }, "read", '{"path":"a"}']],
        [[{ index: 1, id: "y" }, undefined, '{"path":']],
        [[{ index: 1 }, "read", '"b"}']],
      ],
    ],
    ["with one id for both", [[[{ index: 0, id: "x" }, "read", '{"path":"a"}']], [[{ index: 1, id: "x" }, "read", '{"path":"b"}']]]],
    [
      "the head of the second under the first's index, its tail under its own",
      [
        [[{ index: 0, id: "x" }, "read", '{"path":"a"}']],
        [[{ index: 0, id: "y" }, "read", '{"path":']],
        [[{ index: 1 }, undefined, '"b"}']],
      ],
    ],
    [
      "one of them under several indexes",
      [
        [[{ index: 0, id: "x" }, "read", '{"path":']],
        [[{ index: 1, id: "x" }, undefined, '"a"}']],
        [[{ index: 2, id: "y" }, "read", '{"path":"b"}']],
      ],
    ],
    [
      "sent whole once more at the end",
      [
        [[{ index: 0, id: "x" }, "read", '{"path":']],
        [[{ index: 0 }, undefined, '"a"}']],
        [[{ index: 1, id: "y" }, "read", '{"path":"b"}']],
        [
          [{ index: 0, id: "x" }, "read", '{"path":"a"}'],
          [{ index: 1, id: "y" }, "read", '{"path":"b"}'],
        ],
      ],
    ],
    [
      "beginning at index 7, with ids that are numbers",
      [[[{ index: 7, id: 1 }, "read", '{"path":"a"}']], [[{ index: 9, id: 2 }, "read", '{"path":"b"}']]],
    ],
    [
      "with a name in pieces",
      [
        [[{ index: 0, id: "x" }, "re", ""]],
        [[{ index: 0 }, "ad", ""]],
        [[{ index: 0 }, "", '{"path":"a"}']],
        [[{ index: 1, id: "y" }, "re"]],
        [[{ index: 1, id: "y" }, "read", '{"path":"b"}']],
      ],
    ],
    [
      "among invalid entries",
      [
        [[{ index: 0, id: "x" }, "read", '{"path":"a"}']],
        [[{ index: 3, id: "e" }, "", "  "]],
        [[{ index: 1, id: "y" }, "read", '{"path":"b"}']],
      ],
    ],
  ])("%s", async (_how, chunks) => {
    const calls = await assemble(chunks);
    expect(calls.map(({ name, arguments: given }) => [name, given])).toEqual(two);
    expect(new Set(calls.map(({ id }) => id)).size).toBe(2);
  });
});

test("calls without arguments, indexes and ids are distinguished by position in the list or by name", async () => {
  const inOneList = await assemble([
    [
      [{}, "time", ""],
      [{}, "time"],
    ],
  ]);
  expect(inOneList.map(({ name, arguments: given }) => [name, given])).toEqual([
    ["time", {}],
    ["time", {}],
  ]);
  const byName = await assemble([[[{}, "time", ""]], [[{}, "date", ""]]]);
  expect(byName.map(({ name }) => name)).toEqual(["time", "date"]);
});

test("calls of two tools without arguments and ids are two calls", async () => {
  const calls = await assemble([[[{ index: 0 }, "time", "{}"]], [[{ index: 0 }, "date", "{}"]]]);
  expect(calls.map(({ name }) => name)).toEqual(["time", "date"]);
});

test("usable ids stay unchanged, and missing, repeated and unusable ones are replaced", async () => {
  const long = `call_${"x".repeat(2_000)}`;
  const given = ["functions.read:0", long, "functions.read:0", "", undefined, "a\u0000b", "x".repeat(20_000)];
  const calls = await assemble([given.map((id, index) => [{ index, id }, `f${index}`, "{}"])]);
  const ids = calls.map(({ id }) => id);
  expect(ids.slice(0, 2)).toEqual(["functions.read:0", long]);
  for (const id of ids.slice(2)) expect(id).toMatch(/^call_[0-9a-f]{24}$/);
  expect(new Set(ids).size).toBe(given.length);
});

test("an id of an earlier message of the conversation is replaced", async () => {
  const text = JSON.stringify({ choices: [{ message: { tool_calls: [entry([{ id: "call_0" }, "f", "{}"])] }, finish_reason: "stop" }] });
  const earlier = { id: "call_0", name: "f", arguments: {}, argumentsText: "{}" };
  const messages = [...hello.messages, { role: "assistant", content: "", toolCalls: [earlier] } as const];
  const reply = await ask(modelSaying([text]), { messages });
  expect(reply.toolCalls[0]?.id).toMatch(/^call_[0-9a-f]{24}$/);
});

test("a call keeps the id with which its input was emitted", async () => {
  const [call] = await assemble([[[{ index: 0 }, "f", '{"a":']], [[{ index: 0, id: "late" }, undefined, "1}"]]]);
  expect(call).toMatchObject({ arguments: { a: 1 }, id: expect.stringMatching(/^call_/) });
});

test.each<[string, unknown]>([
  ["", {}],
  ["  \n", {}],
  ["null", {}],
  ["{}", {}],
  ['{"a":{"b":[1,2,null]}}', { a: { b: [1, 2, null] } }],
  [JSON.stringify('{"a":1}'), { a: 1 }],
])("the arguments of a tool call are read: %j", (text, expected) => {
  expect(parseArguments(text)).toEqual({ arguments: expected });
});

test.each([
  ['{"a":', "The JSON of the arguments is incomplete."],
  ['{"a":"}', "The JSON of the arguments is incomplete."],
  ['{"a":1}{"b":2}', "The arguments are not valid JSON."],
  ["{'a':1}", "The arguments are not valid JSON."],
  ["path=a", "The arguments are not valid JSON."],
  ["}", "The arguments are not valid JSON."],
  ["[1]", "The arguments are not a JSON object."],
  ["5", "The arguments are not a JSON object."],
  ['"text"', "The arguments are not a JSON object."],
  [`{"a":${"[".repeat(150)}${"]".repeat(150)}}`, /^The arguments are not valid: a\.0\.0.* is nested too deeply/],
])("invalid arguments are kept as text with the reason: %j", (text, why) => {
  const { arguments: given, argumentsError } = parseArguments(text);
  expect(given).toBe(text);
  expect(argumentsError).toMatch(why);
});

test("arguments cannot reach a prototype, and cannot be changed", () => {
  const { arguments: given } = parseArguments('{"__proto__":{"admin":true},"constructor":{"prototype":{}},"a":{"__proto__":{"b":1}}}');
  expect(Object.keys(given as object)).toEqual(["constructor", "a"]);
  expect((given as { admin?: boolean }).admin).toBeUndefined();
  expect(Object.isFrozen(given)).toBe(true);
  expect(Object.isFrozen((given as { a: object }).a)).toBe(true);
});

test("arguments with a million levels do not overflow the stack", () => {
  expect(parseArguments(`{"a":${"[".repeat(1_000_000)}`).argumentsError).toBe("The JSON of the arguments is incomplete.");
  expect(parseArguments(`{"a":${"[".repeat(1_000_000)}${"]".repeat(1_000_000)}}`).argumentsError).toMatch(
    /nested too deeply|not valid JSON/,
  );
});

test("arguments that arrive as too deeply nested objects are an error, and such a signature is dropped", async () => {
  const deep = `${"[".repeat(5_000)}${"]".repeat(5_000)}`;
  const call = `{"id":"a","function":{"name":"f","arguments":{"x":${deep}}},"extra_content":{"y":${deep}}}`;
  const reply = await ask(modelSaying([`{"choices":[{"message":{"tool_calls":[${call}]},"finish_reason":"stop"}]}`]));
  const argumentsText = "(unreadable: is nested too deeply, or contains itself)";
  expect(reply.toolCalls).toEqual([
    { id: "a", name: "f", arguments: argumentsText, argumentsText, argumentsError: "The arguments are not valid JSON." },
  ]);
});
