import { describe, expect, test } from "vitest";
import type { ChatMessage } from "../../../src/models/model.ts";
import { History } from "../../../src/session/history/conversation-history.ts";
import type { RecordedEvent } from "../../../src/session/history/events.ts";

let count = 0;

function event(type: string, data: object, agentId?: string): RecordedEvent {
  const base = { type, data: data as RecordedEvent["data"], id: `e${count++}`, timestamp: "2026-01-01T00:00:00.000Z", parentId: null };
  return agentId === undefined ? base : { ...base, agentId };
}

const user = (content: string, more: object = {}): RecordedEvent => event("user.message", { content, ...more });
const assistant = (content: string, ...calls: string[]): RecordedEvent =>
  event("assistant.message", {
    messageId: "m",
    content,
    toolRequests: calls.map((toolCallId) => ({ toolCallId, name: "t", arguments: { of: toolCallId }, type: "function" })),
  });
const result = (toolCallId: string, more: object = {}): RecordedEvent =>
  event("tool.execution_complete", { toolCallId, success: true, result: { content: `result of ${toolCallId}` }, ...more });

function projectMessages(events: Iterable<RecordedEvent>, options: { readonly agentId?: string } = {}): readonly ChatMessage[] {
  const history = new History(options);
  for (const event of events) history.add(event);
  return history.messages();
}

/** Messages in short: role, content and call ids. */
const brief = (events: readonly RecordedEvent[]): string[] =>
  projectMessages(events).map((message) => {
    const calls = message.role === "assistant" ? (message.toolCalls ?? []).map(({ id }) => id).join() : "";
    const of = message.role === "tool" ? message.toolCallId : calls;
    return `${message.role}${of && `(${of})`}: ${message.content}`;
  });

const unknownResult = "The execution of this tool, or a previous tool was interrupted.";

describe("the messages of a conversation", () => {
  test("a conversation contains messages and calls in order", () => {
    expect(brief([user("hi"), assistant("let me see", "a"), result("a"), assistant("done"), user("thanks")])).toEqual([
      "user: hi",
      "assistant(a): let me see",
      "tool(a): result of a",
      "assistant: done",
      "user: thanks",
    ]);
  });

  test("results follow the order of the calls, whenever they arrived", () => {
    expect(brief([assistant("", "a", "b", "c"), result("c"), result("a"), result("b"), assistant("ok")])).toEqual([
      "assistant(a,b,c): ",
      "tool(a): result of a",
      "tool(b): result of b",
      "tool(c): result of c",
      "assistant: ok",
    ]);
  });

  test("messages between a call and its result follow the result", () => {
    const context = user("<skill-context>", { source: "skill-x" });
    expect(brief([assistant("", "a", "b"), result("b"), context, user("hurry"), result("a")])).toEqual([
      "assistant(a,b): ",
      "tool(a): result of a",
      "tool(b): result of b",
      "user: <skill-context>",
      "user: hurry",
    ]);
  });

  test("a call without a result gets a failure before the next message", () => {
    const killed = [user("go"), assistant("", "a", "b"), result("b")];
    expect(brief(killed).slice(2)).toEqual([`tool(a): ${unknownResult}`, "tool(b): result of b"]);
    expect(brief([...killed, user("again"), assistant("hm"), result("a")])).toEqual([
      "user: go",
      "assistant(a,b): ",
      `tool(a): ${unknownResult}`,
      "tool(b): result of b",
      "user: again",
      "assistant: hm",
    ]);
  });

  test("a conversation contains what the model received, not what the user typed", () => {
    expect(brief([user("hi", { transformedContent: "<now>hi</now>" })])).toEqual(["user: <now>hi</now>"]);
  });

  test("calls without a message, empty messages, other agents and unknown events are omitted", () => {
    const events = [
      result("own"),
      assistant(""),
      event("user.message", { content: "for the sub-agent" }, "agent-1"),
      event("future.event", { content: "?" }),
      event("system.message", { role: "system", content: "You are" }),
      user("hi"),
    ];
    expect(brief(events)).toEqual(["user: hi"]);
    expect(projectMessages(events, { agentId: "agent-1" })).toEqual([{ role: "user", content: "for the sub-agent" }]);
  });

  test("a conversation grows with each event, and lists that were returned do not", () => {
    const history = new History();
    history.add(user("one"));
    const before = history.messages();
    history.add(user("two"));
    expect([before.length, history.messages().length]).toEqual([1, 2]);
  });
});

describe("calls in a conversation", () => {
  const call = (request: object, ...completions: RecordedEvent[]) => {
    const [message] = projectMessages([event("assistant.message", { content: "", toolRequests: [request] }), ...completions]);
    return message?.role === "assistant" ? message.toolCalls?.[0] : undefined;
  };

  test("a call keeps the model's original text and the endpoint's extra fields", () => {
    const request = { toolCallId: "a", name: "t", arguments: { x: 1 }, argumentsText: '{ "x" : 1 }', replay: { signature: "s" } };
    expect(call(request)).toEqual({ id: "a", name: "t", arguments: { x: 1 }, argumentsText: '{ "x" : 1 }', replay: { signature: "s" } });
    expect(call({ toolCallId: "a", name: "t", arguments: "{", argumentsText: "{", argumentsError: "no JSON" })).toMatchObject({
      argumentsText: "{",
      argumentsError: "no JSON",
    });
  });

  test("missing arguments are rewritten as JSON", () => {
    expect(call({ toolCallId: "a", name: "t", arguments: { x: 1 } })).toMatchObject({ argumentsText: '{"x":1}' });
    expect(call({ toolCallId: "a", name: "t" })).toMatchObject({ arguments: {}, argumentsText: "{}" });
  });

  test("a call shows the arguments that a hook replaced", () => {
    const request = { toolCallId: "a", name: "t", arguments: { x: 1 }, argumentsText: "{ x }", argumentsError: "bad" };
    expect(call(request, result("a", { arguments: { x: 2 } }))).toEqual({
      id: "a",
      name: "t",
      arguments: { x: 2 },
      argumentsText: '{"x":2}',
    });
  });

  test("a call with the id of an earlier one in the message is omitted, because results would be ambiguous", () => {
    expect(brief([assistant("", "a", "a"), result("a"), user("x")])).toEqual(["assistant(a): ", "tool(a): result of a", "user: x"]);
  });
});

test("images of prompts and results are included, other binaries are only mentioned", () => {
  const image = { type: "image", data: "AAAA", mimeType: "image/png" };
  const binaries = [image, { type: "resource", data: "AAAA", mimeType: "application/pdf" }];
  const part = { type: "image", data: "AAAA", mimeType: "image/png" };
  const events = [
    user("look", {
      attachments: [
        { type: "blob", data: "AAAA", mimeType: "image/png" },
        { type: "file", path: "/x" },
      ],
    }),
    assistant("", "a"),
    result("a", { result: { content: "a chart", binaryResultsForLlm: binaries } }),
  ];
  expect(projectMessages(events)).toMatchObject([
    { role: "user", content: [{ type: "text", text: "look" }, part] },
    { role: "assistant" },
    { role: "tool", content: "a chart\n[application/pdf, 3 bytes, which cannot be shown to you.]", images: [part] },
  ]);
});

test("a conversation can be made of events with arbitrary content", () => {
  const odd: unknown[] = [undefined, null, 1, "x", [], [null, 1, {}, { toolCallId: 5 }, { toolCallId: "a", name: 1 }], { content: 1 }];
  const types = ["user.message", "assistant.message", "tool.execution_complete"];
  const events = types.flatMap((type) =>
    odd.flatMap((value) => [
      event(type, { content: value, toolRequests: value, toolCallId: value, result: value, error: value, attachments: value }),
    ]),
  );
  expect(projectMessages([assistant("", "a"), ...events]).length).toBeGreaterThan(1);
  expect(projectMessages([assistant("", "a"), event("tool.execution_complete", { toolCallId: "a" })])).toMatchObject([
    {},
    { role: "tool", content: "" },
  ]);
});

test("10,000 events are converted to messages", () => {
  const events = Array.from({ length: 2500 }, (_, i) => [
    user(`q${i}`),
    assistant("", `c${i}`),
    result(`c${i}`),
    assistant(`a${i}`),
  ]).flat();
  expect(projectMessages(events)).toHaveLength(10_000);
});
