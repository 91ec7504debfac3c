import { describe, expect, test } from "vitest";
import { isEphemeral, type RecordedEvent, SessionEvents } from "../../../src/session/history/events.ts";
import { type LogLine, recordingLogger, sessionWith, settleMicrotasks } from "../session-kit.ts";

const door = (lines: LogLine[] = [], lastEventId: string | null = null) => new SessionEvents(recordingLogger(lines), lastEventId);
// Tests of the chain need no more than a number in the data.
const numbered = (n: number) => ({ n }) as never;
const recordInto = (events: RecordedEvent[]) => (event: RecordedEvent) => void events.push(event);

test("each stored event names the previous stored one as its parent", () => {
  const events = door();
  const seen: RecordedEvent[] = [];
  events.addSink(recordInto(seen));
  events.append("tool.execution_start", numbered(1));
  events.append("tool.execution_progress", numbered(2));
  events.append("session.tools_updated", numbered(3));
  events.append("tool.execution_complete", numbered(4), "agent-7");
  const [start, progress, updated, complete] = seen as [RecordedEvent, RecordedEvent, RecordedEvent, RecordedEvent];
  expect(start).toMatchObject({ type: "tool.execution_start", data: { n: 1 }, parentId: null });
  expect(start).not.toHaveProperty("ephemeral");
  expect(start).not.toHaveProperty("agentId");
  expect(progress).toMatchObject({ ephemeral: true, parentId: start.id });
  expect(updated).toMatchObject({ ephemeral: true, parentId: start.id });
  expect(complete).toMatchObject({ parentId: start.id, agentId: "agent-7" });
  expect(new Set(seen.map(({ id }) => id)).size).toBe(4);
  expect(new Date(start.timestamp).toISOString()).toBe(start.timestamp);
});

test("a resumed session continues the chain of events", () => {
  const events = door([], "last-id");
  const seen: RecordedEvent[] = [];
  events.addSink(recordInto(seen));
  events.append("session.info", { infoType: "test", message: "x" });
  expect(seen[0]?.parentId).toBe("last-id");
});

test("without a listener for a type, no event of it is built", () => {
  const events = door();
  const seen: RecordedEvent[] = [];
  events.addSink(recordInto(seen), "session.info");
  expect(events.wants("session.info")).toBe(true);
  expect(events.wants("tool.execution_start")).toBe(false);
  const data = numbered(1);
  events.append("tool.execution_start", data);
  expect(Object.isFrozen(data)).toBe(false);
  events.append("session.info", { infoType: "test", message: "x" });
  expect(seen.map(({ type, parentId }) => [type, parentId])).toEqual([["session.info", null]]);
});

test("events and their data are frozen", () => {
  const events = door();
  const seen: RecordedEvent[] = [];
  events.addSink(recordInto(seen));
  events.append("session.info", { infoType: "test", message: "x" });
  expect(Object.isFrozen(seen[0])).toBe(true);
  expect(Object.isFrozen(seen[0]?.data)).toBe(true);
});

test("a sink that throws or rejects is logged, and the others still receive the event", async () => {
  const lines: LogLine[] = [];
  const events = door(lines);
  const seen: RecordedEvent[] = [];
  events.addSink(() => {
    throw new Error("sync");
  });
  events.addSink((async () => {
    throw new Error("async");
  }) as () => void);
  events.addSink(recordInto(seen));
  events.append("session.info", { infoType: "test", message: "x" });
  await settleMicrotasks();
  expect(seen).toHaveLength(1);
  expect(lines.map(({ level, data }) => [level, (data["error"] as Error).message])).toEqual([
    ["error", "sync"],
    ["error", "async"],
  ]);
});

test("an event that a sink appends follows the current one for all sinks", () => {
  const events = door();
  const first: string[] = [];
  const second: string[] = [];
  events.addSink(({ type }) => {
    first.push(type);
    if (type === "abort") events.append("session.idle", {});
  });
  events.addSink(({ type }) => void second.push(type));
  events.append("abort", { reason: "test" });
  expect(first).toEqual(["abort", "session.idle"]);
  expect(second).toEqual(["abort", "session.idle"]);
});

test("sinks can be added and removed at any time, even during an event", () => {
  const events = door();
  const heard: string[] = [];
  const sink = ({ type }: RecordedEvent): void => void heard.push(type);
  const one = events.addSink(sink);
  const two = events.addSink(sink, "abort");
  events.append("abort", { reason: "test" });
  one[Symbol.dispose]();
  events.append("abort", { reason: "test" });
  two[Symbol.dispose]();
  two[Symbol.dispose]();
  events.append("abort", { reason: "test" });
  expect(heard).toEqual(["abort", "abort", "abort"]);
  expect(events.wants("abort")).toBe(false);

  const leaving = events.addSink(() => {
    leaving[Symbol.dispose]();
    events.addSink(sink);
  });
  events.append("assistant.idle", {});
  expect(heard).not.toContain("assistant.idle");
  events.append("session.idle", {});
  expect(heard.filter((type) => type === "session.idle")).toHaveLength(1);
});

describe("stored and ephemeral events", () => {
  test.each([
    ["session.tools_updated", true],
    ["tool.execution_progress", true],
    ["tool.execution_partial_result", true],
    ["assistant.message_delta", true],
    ["session.idle", true],
    ["user_input.requested", true],
    ["elicitation.completed", true],
    ["session.skills_loaded", true],
    ["mcp.tools.list_changed", true],
    ["model.call_start", true],
    ["tool.execution_start", false],
    ["tool.execution_complete", false],
    ["external_tool.requested", false],
    ["permission.requested", false],
    ["hook.start", false],
    ["session.info", false],
    ["session.shutdown", false],
    ["session.workspace_file_changed", false],
    ["skill.invoked", false],
    ["something.nobody_knows", false],
    ["__proto__", false],
  ])("the event %s is ephemeral: %s", (type, expected) => {
    expect(isEphemeral(type)).toBe(expected);
  });
});

test("session.on listens to one type or to all and is ended by call or disposal", async () => {
  const session = sessionWith([{ name: "a", handler: () => "x" }]);
  const all: string[] = [];
  const some: string[] = [];
  const endAll = session.on(({ type }) => void all.push(type));
  const endSome = session.on("tool.execution_start", ({ type }) => void some.push(type));
  await session.callTool("a", {});
  endAll();
  endSome[Symbol.dispose]();
  await session.callTool("a", {});
  expect(some).toEqual(["tool.execution_start"]);
  expect(all.filter((type) => type.startsWith("tool."))).toEqual(["tool.execution_start", "tool.execution_complete"]);
});

test("session.on types the data of an event by its name, and names that no event has do not compile", async () => {
  const session = sessionWith([{ name: "a", handler: () => "x" }]);
  const heard: string[] = [];
  session.on("tool.execution_complete", ({ type, data: { success, result } }) => void heard.push(`${type} ${success} ${result.content}`));
  session.on((event) => {
    if (event.type === "tool.execution_start") heard.push(`${event.type} ${event.data.toolName}`);
  });
  await session.callTool("a", {});
  expect(heard).toEqual(["tool.execution_start a", "tool.execution_complete true x"]);
  // @ts-expect-error The name of this event is misspelled.
  session.on("tool.execution_completed", () => {});
  // @ts-expect-error The data of this event has no such field.
  session.on("session.idle", ({ data }) => data.toolCallId);
  // @ts-expect-error An event is emitted with all its data.
  session.events.append("tool.execution_progress", { toolCallId: "1" });
});
