import { describe, expect, test } from "vitest";
import { fakeChat } from "../../doubles/fake-chat.ts";
import { createTestEnvironment, deferred, openSession, recordEvents, sourceOf } from "../session-kit.ts";

const two = {
  calls: [
    { id: "c1", name: "slow", args: { n: 1 } },
    { id: "c2", name: "quick", args: { n: 2 } },
  ],
};

describe("a turn with two parallel calls", () => {
  test("the events of a turn follow the order of the Copilot runtime", async () => {
    const chat = fakeChat(two, "Both are done.");
    const quickIsDone = deferred();
    const tools = [
      {
        name: "slow",
        handler: async () => {
          await quickIsDone.promise;
          return "slow result";
        },
      },
      {
        name: "quick",
        handler: () => {
          queueMicrotask(quickIsDone.resolve);
          return "quick result";
        },
      },
    ];
    const seen: string[] = [];
    const session = openSession(createTestEnvironment(), {
      tools,
      chatModel: chat,
      onPermissionRequest: ({ toolCallId }) => {
        seen.push(`ask ${toolCallId}`);
        return { kind: "approve-once" };
      },
      hooks: { onPreToolUse: ({ toolName }) => void seen.push(`before ${toolName}`) },
    });
    session.on(({ type, data }) => {
      if (type.startsWith("hook.") || type.startsWith("permission.")) return;
      seen.push("toolCallId" in data ? `${type} ${data.toolCallId}` : type);
    });
    const reply = await session.sendAndWait({ prompt: "Do both." });
    expect(reply).toMatchObject({ content: "Both are done.", model: "fake-model" });
    expect(seen).toEqual([
      "session.start",
      "pending_messages.modified",
      "session.tools_updated",
      "pending_messages.modified",
      "session.model_change",
      "session.skills_loaded",
      "user.message",
      "system.message",
      "assistant.turn_start",
      "session.usage_info",
      "model.call_start",
      "assistant.usage",
      "assistant.message",
      "tool.execution_start c1",
      "before slow",
      "tool.execution_start c2",
      "before quick",
      "ask c1",
      "ask c2",
      "tool.execution_complete c2",
      "tool.execution_complete c1",
      "assistant.turn_end",
      "assistant.turn_start",
      "session.usage_info",
      "model.call_start",
      "assistant.usage",
      "assistant.message",
      "assistant.turn_end",
      "assistant.idle",
      "session.idle",
    ]);
  });

  test("the model gets results in the order of its calls, whichever finished first", async () => {
    const chat = fakeChat(two, "Done.");
    const quickIsDone = deferred();
    const tools = [
      {
        name: "slow",
        handler: async () => {
          await quickIsDone.promise;
          return "slow result";
        },
      },
      {
        name: "quick",
        handler: () => {
          queueMicrotask(quickIsDone.resolve);
          return "quick result";
        },
      },
    ];
    await openSession(createTestEnvironment(), { tools, chatModel: chat }).sendAndWait({ prompt: "Do both." });
    expect(chat.requests[1]?.messages.slice(1)).toMatchObject([
      { role: "user", content: "Do both." },
      { role: "assistant", content: "", toolCalls: [{ id: "c1", name: "slow", argumentsText: '{"n":1}' }, { id: "c2" }] },
      { role: "tool", toolCallId: "c1", content: "slow result" },
      { role: "tool", toolCallId: "c2", content: "quick result" },
    ]);
  });

  test("the events of a turn contain caller, tool, place and recipient", async () => {
    const chat = fakeChat({ ...two, content: "Let me see.", reasoning: "two tools", usage: { inputTokens: 5, outputTokens: 7 } }, "Done.");
    const session = openSession(createTestEnvironment(sourceOf("mcp", "files", { name: "slow", title: "Slow one", handler: () => "s" })), {
      tools: [{ name: "quick", handler: () => "q" }],
      chatModel: chat,
    });
    const events = recordEvents(session);
    const id = await session.send({ prompt: "Do both." });
    await new Promise<void>((resolve) => void session.on("session.idle", () => resolve()));
    const dataOf = (type: string) => events.find((event) => event.type === type)?.data ?? {};
    const { interactionId } = dataOf("user.message");
    expect(dataOf("user.message")).toEqual({
      content: "Do both.",
      transformedContent: "Do both.",
      attachments: [],
      delivery: "idle",
      interactionId: expect.any(String),
      messageId: id,
      agentMode: "interactive",
    });
    expect(dataOf("assistant.turn_start")).toEqual({ turnId: "0", interactionId, model: "fake-model" });
    expect(dataOf("assistant.message")).toEqual({
      messageId: expect.any(String),
      interactionId,
      turnId: "0",
      model: "fake-model",
      content: "Let me see.",
      reasoningText: "two tools",
      outputTokens: 7,
      chunkCount: 1,
      toolRequests: [
        {
          toolCallId: "c1",
          name: "slow",
          arguments: { n: 1 },
          type: "function",
          toolTitle: "Slow one",
          mcpServerName: "files",
          mcpToolName: "slow",
        },
        { toolCallId: "c2", name: "quick", arguments: { n: 2 }, type: "function" },
      ],
    });
    expect(dataOf("assistant.usage")).toMatchObject({
      model: "fake-model",
      inputTokens: 5,
      outputTokens: 7,
      initiator: "user",
      finishReason: "tool-calls",
    });
    expect(dataOf("tool.execution_start")).toMatchObject({ turnId: "0", mcpServerName: "files" });
    expect(dataOf("session.usage_info")).toMatchObject({ tokenLimit: 128_000, currentTokens: expect.any(Number), messagesLength: 2 });
  });

  test("the parent chain skips ephemeral events, and the stored events are the history", async () => {
    const session = openSession(createTestEnvironment(), { chatModel: fakeChat("Hello.") });
    const events = recordEvents(session);
    await session.sendAndWait({ prompt: "Hi." });
    const kept = events.filter(({ ephemeral }) => ephemeral !== true);
    expect(kept.map(({ type }) => type)).toEqual([
      "session.start",
      "session.model_change",
      "user.message",
      "system.message",
      "assistant.turn_start",
      "assistant.message",
      "assistant.turn_end",
    ]);
    expect(await session.getMessages()).toEqual(kept);
    for (const [index, { parentId }] of kept.entries()) if (index > 0) expect(parentId).toBe(kept[index - 1]?.id);
  });
});

describe("streaming", () => {
  test("deltas are emitted as they arrive, with the id of their message", async () => {
    const chat = fakeChat((_request, { onDelta }) => {
      onDelta?.({ kind: "reasoning", text: "hm", receivedBytes: 10 });
      onDelta?.({ kind: "text", text: "Hel", receivedBytes: 20 });
      onDelta?.({ kind: "text", text: "lo", receivedBytes: 30 });
      return { content: "Hello", chunkCount: 3 };
    });
    const session = openSession(createTestEnvironment(), { chatModel: chat, streaming: true });
    const events = recordEvents(
      session,
      "assistant.message_start",
      "assistant.message_delta",
      "assistant.reasoning_delta",
      "assistant.streaming_delta",
    );
    const { messageId } = await session.sendAndWait({ prompt: "Hi." });
    expect(events.map(({ type, data, ephemeral }) => [type, data, ephemeral])).toEqual([
      ["assistant.streaming_delta", { totalResponseSizeBytes: 10 }, true],
      ["assistant.reasoning_delta", { reasoningId: expect.any(String), deltaContent: "hm" }, true],
      ["assistant.streaming_delta", { totalResponseSizeBytes: 20 }, true],
      ["assistant.message_start", { messageId }, true],
      ["assistant.message_delta", { messageId, deltaContent: "Hel" }, true],
      ["assistant.streaming_delta", { totalResponseSizeBytes: 30 }, true],
      ["assistant.message_delta", { messageId, deltaContent: "lo" }, true],
    ]);
    expect(chat.requests[0]?.stream).toBe(true);
  });

  test("streaming is off by default", async () => {
    const chat = fakeChat((_request, { onDelta }) => {
      expect(onDelta).toBeUndefined();
      return "Hello";
    });
    await openSession(createTestEnvironment(), { chatModel: chat }).sendAndWait({ prompt: "Hi." });
    expect(chat.requests[0]?.stream).toBe(false);
  });
});
