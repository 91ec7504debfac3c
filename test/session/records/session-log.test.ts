import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { silentLogger } from "../../../src/base/logger.ts";
import { type AppendLog, createMemoryLog, openFileLog } from "../../../src/io/log/append-log.ts";
import type { RecordedEvent } from "../../../src/session/history/events.ts";
import { createSessionLog, openSessionLog } from "../../../src/session/history/session-log.ts";
import { createSession, type Session } from "../../../src/session/session.ts";
import type { SessionOptions } from "../../../src/session/session-config.ts";
import { approveAll } from "../../../src/tools/tool.ts";
import {
  answerData,
  createTestEnvironment,
  openSession,
  recordEvents,
  recordingLogger,
  settleMicrotasks,
  sourceOf,
  withThen,
} from "../session-kit.ts";

/** A log that outlives a process: it can be opened any number of times. */
function survivingStore(): AppendLog {
  const log = createMemoryLog();
  return { ...log, close: async () => {} };
}

function begin(store: AppendLog, options: SessionOptions = {}, environment = createTestEnvironment()): Session {
  return createSession({ onPermissionRequest: approveAll, ...options }, environment, createSessionLog(environment.log, store));
}

/** Resumes as a new process would with these options. */
async function goOn(store: AppendLog, options: SessionOptions = {}, environment = createTestEnvironment()): Promise<Session> {
  const log = await openSessionLog("session-1", environment.log, store);
  return createSession({ ...log.resumed?.options, onPermissionRequest: approveAll, ...options }, environment, log);
}

const eventsIn = async (store: AppendLog): Promise<readonly RecordedEvent[]> => (await store.read()).records as unknown as RecordedEvent[];
const typesIn = async (store: AppendLog): Promise<string[]> => (await eventsIn(store)).map(({ type }) => type);
const isChain = (events: readonly RecordedEvent[]): boolean => events.every(({ parentId }, i) => parentId === (events[i - 1]?.id ?? null));

const echo = { name: "echo", handler: ({ text }: { text?: string }) => `said ${text}` };

describe("a session with a log", () => {
  test("a session logs its identity and its stored events in one chain", async () => {
    const store = survivingStore();
    const session = begin(store, { tools: [echo], model: "m1" });
    const emitted = recordEvents(session);
    await session.callTool("echo", { text: "hi" });
    session.events.append("session.idle", {});
    await session.disconnect();
    const events = await eventsIn(store);
    expect(events.map(({ type }) => type)).toEqual([
      "session.start",
      "tool.execution_start",
      ...permission,
      "tool.execution_complete",
      "session.shutdown",
    ]);
    expect(events[0]!.data).toMatchObject({ sessionId: "session-1", version: 1, producer: "skillhost", selectedModel: "m1" });
    expect(isChain(events)).toBe(true);
    expect(events.slice(1)).toEqual(emitted.filter(({ ephemeral }) => !ephemeral));
    expect(emitted.some(({ type }) => type === "session.idle")).toBe(true);
  });

  test("a session returns its events in the order of the log, a listener's own event after the one that caused it", async () => {
    const session = begin(survivingStore(), { tools: [echo] });
    session.on("tool.execution_start", () => session.events.append("session.info", { infoType: "x", message: "y" }));
    await session.callTool("echo");
    const types = (await session.getMessages()).map(({ type }) => type);
    expect(types.slice(0, 3)).toEqual(["session.start", "tool.execution_start", "session.info"]);
    expect(isChain(await session.getMessages())).toBe(true);
    await session.disconnect();
    await expect(session.getMessages()).rejects.toMatchObject({ code: "SESSION_CLOSED" });
  });

  test("the log alone does not rebuild the tools", async () => {
    const environment = createTestEnvironment(sourceOf("skill", "s", echo));
    const session = begin(survivingStore(), {}, environment);
    await session.ready();
    const before = environment.assemblies;
    environment.publish(sourceOf("skill", "s"));
    await settleMicrotasks();
    expect(environment.assemblies).toBe(before);
    await session.disconnect();
  });

  test("an event that is too long is recorded in part", async () => {
    const store = createMemoryLog({ maxLineBytes: 5_000 });
    const lines: Parameters<typeof recordingLogger>[0] = [];
    const environment = { ...createTestEnvironment(), log: recordingLogger(lines) };
    const session = begin(
      { ...store, close: async () => {} },
      { tools: [{ name: "long", handler: () => "x".repeat(20_000) }] },
      environment,
    );
    expect((await session.callTool("long")).textResultForLlm).toHaveLength(20_000);
    await session.disconnect();
    const events = await eventsIn(store);
    expect(events.find(({ type }) => type === "tool.execution_complete")?.data).toEqual({
      toolCallId: expect.any(String),
      success: true,
      cut: true,
    });
    expect(isChain(events)).toBe(true);
    expect(lines.some(({ level, message }) => level === "warning" && message.includes("tool.execution_complete"))).toBe(true);
  });

  test("a session continues when its log fails and reports the failure", async () => {
    const lines: Parameters<typeof recordingLogger>[0] = [];
    const environment = { ...createTestEnvironment(), log: recordingLogger(lines) };
    const broken: AppendLog = {
      append() {
        throw new Error("planted");
      },
      read: async () => ({ records: [], diagnostics: [] }),
      flush: () => Promise.reject(new Error("planted")),
      close: () => Promise.reject(new Error("planted")),
    };
    const session = begin(broken, { tools: [echo] }, environment);
    expect(await session.callTool("echo", { text: "hi" })).toMatchObject({ resultType: "success" });
    await expect(session.flush()).rejects.toThrow("planted");
    await session.disconnect();
    expect(lines.map(({ message }) => message)).toContain("The end of a session's log could not be written.");
  });

  test("options are recorded only when they change", async () => {
    const store = survivingStore();
    const session = begin(store, { availableTools: ["a"] });
    await session.update({ availableTools: ["a"], onPermissionRequest: () => ({ kind: "reject" }) });
    expect(await typesIn(store)).toEqual(["session.start"]);
    await session.update({ availableTools: undefined, model: "m2" });
    expect((await eventsIn(store))[1]).toMatchObject({ type: "session.options_changed", data: { options: { model: "m2" } } });
    expect((await eventsIn(store))[1]!.data["options"]).not.toHaveProperty("availableTools");
    await session.disconnect();
  });
});

const permission = ["permission.requested", "permission.completed"];

describe("a session without a log", () => {
  test("a session without a log builds no events until it has a conversation, which it keeps in memory", async () => {
    const session = openSession();
    expect(session.events.wants("tool.execution_start")).toBe(false);
    expect(await session.getMessages()).toEqual([]);
    expect(session.history.messages()).toEqual([]);
    session.events.append("user.message", { content: "hi" });
    expect(session.history.messages()).toEqual([{ role: "user", content: "hi" }]);
    expect((await session.getMessages()).map(({ type }) => type)).toEqual(["session.start", "user.message"]);
  });
});

describe("a resumed session", () => {
  test("a resumed session has the conversation and continues the chain", async () => {
    const store = survivingStore();
    const first = begin(store);
    first.events.append("user.message", { content: "hi" });
    first.events.append("assistant.message", answerData("hello"));
    await first.disconnect();
    const second = await goOn(store);
    second.events.append("user.message", { content: "and now?" });
    expect(second.history.messages().map(({ content }) => content)).toEqual(["hi", "hello", "and now?"]);
    const events = await second.getMessages();
    expect(isChain(events)).toBe(true);
    expect(events.find(({ type }) => type === "session.resume")?.data).toMatchObject({ eventCount: 4, sessionWasActive: false });
    await second.disconnect();
  });

  test("a resumed session has the recorded options without functions and secrets", async () => {
    const store = survivingStore();
    const options: SessionOptions = {
      model: "m1",
      availableTools: ["builtin:*", "echo"],
      excludedTools: ["x"],
      toolFilterPrecedence: "available",
      disabledSkills: ["noisy"],
      skillDirectories: ["more"],
      toolTimeout: 5,
      hookTimeout: 6,
      permissions: { deny: ["shell(rm:*)"] },
      largeOutput: { maxSizeBytes: 10, outputDir: "out" },
      waitForAttachments: true,
      hooks: { onPreToolUse: () => undefined },
    };
    const first = begin(store, { ...options, tools: [echo] });
    await first.disconnect();
    const { hooks: _hooks, ...kept } = options;
    const folder = first.config.workingDirectory;
    const recorded = (await eventsIn(store))[0]!.data["options"];
    expect(recorded).toEqual({
      ...kept,
      skillDirectories: [`${folder}/more`.replaceAll("/", folder.includes("\\") ? "\\" : "/")],
      largeOutput: { maxSizeBytes: 10, outputDir: expect.stringMatching(/out$/) },
      workingDirectory: folder,
    });
    const second = await goOn(store, {}, createTestEnvironment());
    expect(second.config.view.key).toBe(first.config.view.key);
    expect(second.config.workingDirectory).toBe(folder);
    await second.disconnect();
    const third = await goOn(store, { model: "m2" });
    expect(third.config.view).toMatchObject({ model: "m2", availableTools: options.availableTools });
    await third.disconnect();
    expect((await goOn(store)).config.view.model).toBe("m2");
  });

  test("a resumed session has agents without servers, system messages without functions, and no provider", async () => {
    const store = survivingStore();
    const customAgents = [{ name: "reviewer", tools: ["echo"], mcpServers: { db: { command: "x", env: { TOKEN: "s3cret" } } } }];
    const sections = { tone: { action: "append" as const, content: "Be kind." }, other: { action: (text: string) => text } };
    const first = begin(store, {
      customAgents,
      agent: "reviewer",
      systemMessage: { mode: "customize", sections },
      provider: { type: "openai", baseUrl: "http://localhost:1/v1", apiKey: "s3cret" },
    });
    await first.disconnect();
    const second = await goOn(store);
    expect(second.config.options).toMatchObject({ agent: "reviewer", customAgents: [{ name: "reviewer", tools: ["echo"] }] });
    expect(second.config.options.systemMessage).toEqual({ mode: "customize", sections: { tone: sections.tone } });
    expect(JSON.stringify(await second.getMessages())).not.toContain("s3cret");
    await second.disconnect();
  });

  test("a log that was cut anywhere after its first line can be resumed with all events before the cut", async () => {
    const path = join(createTestEnvironment().folder, "events.jsonl");
    const first = begin(openFileLog(path), { tools: [echo] });
    await first.callTool("echo", { text: "ü\u2028" });
    await first.disconnect();
    const bytes = readFileSync(path);
    const whole = (await openFileLog(path).read()).records;
    for (let cut = bytes.indexOf("\n") + 1; cut < bytes.length; cut += 13) {
      writeFileSync(path, bytes.subarray(0, cut));
      const second = await goOn(openFileLog(path, { sync: "never" }));
      const events = await second.getMessages();
      const complete = bytes.subarray(0, cut).toString("latin1").split("\n").length - 1;
      expect(events.slice(0, complete)).toEqual(whole.slice(0, complete));
      expect(isChain(events)).toBe(true);
      await second.disconnect();
    }
  });

  test("resuming settles calls, questions, hooks and turns that a killed process left open", async () => {
    const store = survivingStore();
    const never = new Promise(() => {});
    const tools = [
      { name: "hangs", handler: () => never },
      { name: "remote", skipPermission: true },
      { name: "asks", handler: () => "asked" },
    ];
    const killed = begin(store, {
      tools,
      waitForAttachments: true,
      onPermissionRequest: (request) => (request.toolName === "asks" ? withThen({ value: () => {} }) : { kind: "approve-once" }),
      hooks: { onPreToolUse: ({ toolName }) => (toolName === "hooked" ? never : undefined) },
    });
    killed.events.append("assistant.turn_start", { turnId: "0", interactionId: "i", model: "m" });
    const calls = ["hangs", "remote", "asks", "hooked"].map((name) => ({
      toolCallId: name,
      name,
      arguments: {},
      type: "function" as const,
    }));
    const late = { toolCallId: "late", name: "late", arguments: {}, type: "function" as const };
    killed.events.append("assistant.message", answerData("", { toolRequests: [...calls, late] }));
    for (const { toolCallId, name } of calls) void killed.callTool(name, {}, { toolCallId });
    await settleMicrotasks();
    const before = (await eventsIn(store)).length;

    const second = await goOn(store);
    const settled = (await second.getMessages()).slice(before);
    expect(settled[0]!.type).toBe("session.resume");
    const ends = settled
      .slice(1)
      .map(({ type, data }) =>
        [type, ...["toolCallId", "hookType", "turnId"].flatMap((id) => (data as Record<string, unknown>)[id] ?? []).slice(0, 1)].join(" "),
      );
    expect(ends.sort()).toEqual([
      "assistant.turn_end 0",
      "external_tool.completed",
      "hook.end preToolUse",
      "permission.completed asks",
      "tool.execution_complete asks",
      "tool.execution_complete hangs",
      "tool.execution_complete hooked",
      "tool.execution_complete remote",
    ]);
    const text = "The execution of this tool, or a previous tool was interrupted.";
    expect(settled.find(({ data }) => "toolCallId" in data && data.toolCallId === "hangs")?.data).toMatchObject({
      success: false,
      result: { content: text },
      error: { message: text, code: "failure" },
    });
    expect(second.history.messages()).toHaveLength(6);
    expect(second.history.messages().slice(1)).toEqual(
      ["hangs", "remote", "asks", "hooked", "late"].map((toolCallId) => ({ role: "tool", toolCallId, content: text })),
    );
    await second.disconnect();
    const third = await goOn(store);
    const types = (await third.getMessages()).slice(-1).map(({ type }) => type);
    expect(types).toEqual(["session.resume"]);
    await third.disconnect();
    await killed.disconnect();
  });

  test("a log without the tool filters cannot be resumed, so that no filter is lost", async () => {
    const store = survivingStore();
    store.append({ type: "user.message", id: "1", timestamp: "", parentId: null, data: { content: "hi" } });
    await expect(openSessionLog("session-1", silentLogger, store)).rejects.toMatchObject({ code: "SESSION_LOG_DAMAGED" });
  });

  test("a log of a newer version cannot be resumed", async () => {
    const store = survivingStore();
    store.append({ type: "session.start", id: "1", timestamp: "", parentId: null, data: { version: 2, options: {} } });
    await expect(openSessionLog("session-1", silentLogger, store)).rejects.toMatchObject({ code: "SESSION_LOG_NEWER" });
  });

  test("invalid records are skipped, and unknown events are kept", async () => {
    const store = survivingStore();
    await begin(store).disconnect();
    for (const record of [{}, { type: 1 }, { type: "x", id: "1" }, { type: "x", id: "1", timestamp: "", data: [] }]) store.append(record);
    store.append({ type: "future.event", id: "f", timestamp: "", parentId: null, data: { __proto__: null, x: 1 }, extra: true });
    const second = await goOn(store);
    const types = (await second.getMessages()).map(({ type }) => type);
    expect(types).toEqual(["session.start", "session.shutdown", "future.event", "session.resume"]);
    expect((await second.getMessages()).at(-1)?.parentId).toBe("f");
    await second.disconnect();
  });
});
