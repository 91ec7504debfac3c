import { describe, expect, test } from "vitest";
import type { ChatMessage } from "../../../src/models/model.ts";
import { createHistory } from "../../../src/session/history/conversation-history.ts";
import type { SessionEvent } from "../../../src/session/history/events.ts";

let count = 0;

function event(type: string, data: object, agentId?: string): SessionEvent {
  const base = { type, data: data as SessionEvent["data"], id: `e${count++}`, timestamp: "2026-01-01T00:00:00.000Z", parentId: null };
  return agentId === undefined ? base : { ...base, agentId };
}

const user = (content: string, more: object = {}): SessionEvent => event("user.message", { content, ...more });
const assistant = (content: string, ...calls: string[]): SessionEvent =>
  event("assistant.message", {
    messageId: "m",
    content,
    toolRequests: calls.map((toolCallId) => ({ toolCallId, name: "t", arguments: { of: toolCallId }, type: "function" })),
  });
const result = (toolCallId: string, more: object = {}): SessionEvent =>
  event("tool.execution_complete", { toolCallId, success: true, result: { content: `result of ${toolCallId}` }, ...more });

function projectMessages(events: Iterable<SessionEvent>, options: { readonly agentId?: string } = {}): readonly ChatMessage[] {
  const history = createHistory(options);
  for (const event of events) history.add(event);
  return history.messages();
}

/** Messages in short: role, content and call ids. */
const brief = (events: readonly SessionEvent[]): string[] =>
  projectMessages(events).map((message) => {
    const calls = message.role === "assistant" ? (message.toolCalls ?? []).map(({ id }) => id).join() : "";
    const of = message.role === "tool" ? message.toolCallId : calls;
    return `${message.role}${of && `(${of})`}: ${message.content}`;
  });

const unknownResult = "The execution of this tool, or a previous tool was interrupted.";

describe("a conversation", () => {
  test("is what was said and called, in order", () => {
    expect(brief([user("hi"), assistant("let me see", "a"), result("a"), assistant("done"), user("thanks")])).toEqual([
      "user: hi",
      "assistant(a): let me see",
      "tool(a): result of a",
      "assistant: done",
      "user: thanks",
    ]);
  });

  test("has results in the order of the calls, whenever they came", () => {
    expect(brief([assistant("", "a", "b", "c"), result("c"), result("a"), result("b"), assistant("ok")])).toEqual([
      "assistant(a,b,c): ",
      "tool(a): result of a",
      "tool(b): result of b",
      "tool(c): result of c",
      "assistant: ok",
    ]);
  });

  test("has what was said between call and result behind the results", () => {
    const context = user("<skill-context>", { source: "skill-x" });
    expect(brief([assistant("", "a", "b"), result("b"), context, user("hurry"), result("a")])).toEqual([
      "assistant(a,b): ",
      "tool(a): result of a",
      "tool(b): result of b",
      "user: <skill-context>",
      "user: hurry",
    ]);
  });

  test("has a failure for a call whose result never came, before what was said after it", () => {
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

  test("gives what the model was sent, not what was typed", () => {
    expect(brief([user("hi", { transformedContent: "<now>hi</now>" })])).toEqual(["user: <now>hi</now>"]);
  });

  test("leaves out calls that no message made, empty messages, other agents, and events that nobody knows", () => {
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

  test("grows with each event, and a list that was given does not", () => {
    const history = createHistory();
    history.add(user("one"));
    const before = history.messages();
    history.add(user("two"));
    expect([before.length, history.messages().length]).toEqual([1, 2]);
  });
});

describe("a call", () => {
  const call = (request: object, ...completions: SessionEvent[]) => {
    const [message] = projectMessages([event("assistant.message", { content: "", toolRequests: [request] }), ...completions]);
    return message?.role === "assistant" ? message.toolCalls?.[0] : undefined;
  };

  test("keeps the model's own words, and what the endpoint wants back", () => {
    const request = { toolCallId: "a", name: "t", arguments: { x: 1 }, argumentsText: '{ "x" : 1 }', replay: { signature: "s" } };
    expect(call(request)).toEqual({ id: "a", name: "t", arguments: { x: 1 }, argumentsText: '{ "x" : 1 }', replay: { signature: "s" } });
    expect(call({ toolCallId: "a", name: "t", arguments: "{", argumentsText: "{", argumentsError: "no JSON" })).toMatchObject({
      argumentsText: "{",
      argumentsError: "no JSON",
    });
  });

  test("has arguments written anew where none were kept", () => {
    expect(call({ toolCallId: "a", name: "t", arguments: { x: 1 } })).toMatchObject({ argumentsText: '{"x":1}' });
    expect(call({ toolCallId: "a", name: "t" })).toMatchObject({ arguments: {}, argumentsText: "{}" });
  });

  test("shows what really ran when a hook gave other arguments", () => {
    const request = { toolCallId: "a", name: "t", arguments: { x: 1 }, argumentsText: "{ x }", argumentsError: "bad" };
    expect(call(request, result("a", { arguments: { x: 2 } }))).toEqual({
      id: "a",
      name: "t",
      arguments: { x: 2 },
      argumentsText: '{"x":2}',
    });
  });

  test("of the same id as one before in the message is left out: no result could be told to be its", () => {
    expect(brief([assistant("", "a", "a"), result("a"), user("x")])).toEqual(["assistant(a): ", "tool(a): result of a", "user: x"]);
  });
});

test("images of prompts and results are shown, other binaries of results are mentioned", () => {
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

test("events with anything in them make no conversation fail", () => {
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

test("10,000 events are a conversation in no time", () => {
  const events = Array.from({ length: 2500 }, (_, i) => [
    user(`q${i}`),
    assistant("", `c${i}`),
    result(`c${i}`),
    assistant(`a${i}`),
  ]).flat();
  expect(projectMessages(events)).toHaveLength(10_000);
});
