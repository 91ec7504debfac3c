import { describe, expect, test } from "vitest";
import { fakeChat } from "../../doubles/fake-chat.ts";
import { createTestEnvironment, deferred, nextEvent, openSession, recordEvents, settleMicrotasks } from "../session-kit.ts";

const never = () => new Promise<never>(() => {});
const call = { calls: [{ id: "c1", name: "a" }] };
const aborted = { code: "TURN_ABORTED" };

describe("aborting a turn", () => {
  test("aborting during the model request fires its signal and does not wait for the model", async () => {
    let signal: AbortSignal | undefined;
    const chat = fakeChat((_request, options) => {
      signal = options.signal;
      return never();
    });
    const session = openSession(createTestEnvironment(), { chatModel: chat });
    const events = recordEvents(
      session,
      "abort",
      "assistant.turn_end",
      "assistant.message",
      "assistant.idle",
      "session.idle",
      "session.error",
    );
    const reply = session.sendAndWait("Go.");
    const outcome = expect(reply).rejects.toMatchObject(aborted);
    await chat.request(0);
    await session.abort();
    await outcome;
    expect(signal?.aborted).toBe(true);
    expect(events.map(({ type, data }) => [type, data])).toEqual([
      ["abort", { reason: "user_initiated" }],
      ["assistant.turn_end", { turnId: "0", model: "fake-model" }],
      ["assistant.idle", { aborted: true }],
      ["session.idle", { aborted: true }],
    ]);
  });

  test("output of the model after an abort is not emitted", async () => {
    const answer = deferred<string>();
    let late = () => {};
    const chat = fakeChat((_request, { onDelta }) => {
      late = () => onDelta?.({ kind: "text", text: "late", receivedBytes: 1 });
      return answer.promise;
    }, "Second.");
    const session = openSession(createTestEnvironment(), { chatModel: chat, streaming: true });
    const events = recordEvents(session, "assistant.message", "assistant.message_delta", "assistant.usage");
    await session.send("Go.");
    await chat.request(0);
    await session.abort();
    late();
    answer.resolve("late");
    await settleMicrotasks();
    expect(events).toEqual([]);
    expect((await session.sendAndWait("Again.")).content).toBe("Second.");
  });

  test("aborting during calls fires their signals and gives the next request a result for each", async () => {
    const signals: AbortSignal[] = [];
    const begun = deferred();
    const hangs = (name: string) => ({
      name,
      handler: (_args: unknown, { signal }: { signal: AbortSignal }) => {
        signals.push(signal);
        if (signals.length === 2) begun.resolve();
        return never();
      },
    });
    const chat = fakeChat(
      {
        calls: [
          { id: "c1", name: "a" },
          { id: "c2", name: "b" },
        ],
      },
      "Again.",
    );
    const session = openSession(createTestEnvironment(), { tools: [hangs("a"), hangs("b")], chatModel: chat });
    const completed = recordEvents(session, "tool.execution_complete");
    await session.send("Go.");
    await begun.promise;
    await session.abort();
    expect(signals.map((signal) => signal.aborted)).toEqual([true, true]);
    expect(completed.map(({ data }) => [data["toolCallId"], data["success"]])).toEqual([
      ["c1", false],
      ["c2", false],
    ]);
    await session.sendAndWait("And now?");
    expect(chat.requests[1]?.messages.filter(({ role }) => role === "tool")).toMatchObject([
      { toolCallId: "c1", content: "The execution of this tool, or a previous tool was interrupted." },
      { toolCallId: "c2" },
    ]);
  });

  test("aborting during a permission request withdraws it, and the tool never runs", async () => {
    let ran = 0;
    const asked = deferred();
    const chat = fakeChat(call, "Again.");
    const session = openSession(createTestEnvironment(), {
      tools: [{ name: "a", handler: () => ++ran }],
      chatModel: chat,
      onPermissionRequest: () => {
        asked.resolve();
        return never();
      },
    });
    await session.send("Go.");
    await asked.promise;
    await session.abort();
    expect([ran, session.asks.pending]).toEqual([0, []]);
    expect((await session.sendAndWait("And now?")).content).toBe("Again.");
  });

  test("aborting during a hook prevents the call that it checks", async () => {
    let ran = 0;
    const seen = deferred();
    const session = openSession(createTestEnvironment(), {
      tools: [{ name: "a", handler: () => ++ran }],
      chatModel: fakeChat(call, "Again."),
      hooks: {
        onPreToolUse: () => {
          seen.resolve();
          return never();
        },
      },
    });
    await session.send("Go.");
    await seen.promise;
    await session.abort();
    expect(ran).toBe(0);
  });

  test("aborting during a prompt's hook keeps the prompt out of the conversation", async () => {
    const seen = deferred();
    let hangs = true;
    const chat = fakeChat("Hello.");
    const session = openSession(createTestEnvironment(), {
      chatModel: chat,
      hooks: {
        onUserPromptSubmitted: () => {
          seen.resolve();
          return hangs ? never() : undefined;
        },
      },
    });
    const said = session.sendAndWait("First.");
    const outcome = expect(said).rejects.toMatchObject(aborted);
    await seen.promise;
    await session.abort();
    await outcome;
    hangs = false;
    await session.sendAndWait("Second.");
    expect(chat.requests[0]?.messages.filter(({ role }) => role === "user")).toEqual([{ role: "user", content: "Second." }]);
  });

  test("aborting drops queued messages and does nothing when idle", async () => {
    const chat = fakeChat(never, "Hello.");
    const session = openSession(createTestEnvironment(), { chatModel: chat });
    const events = recordEvents(session, "abort");
    await session.abort();
    const first = expect(session.sendAndWait("One.")).rejects.toMatchObject(aborted);
    const second = expect(session.sendAndWait("Two.")).rejects.toMatchObject(aborted);
    await chat.request(0);
    await session.abort();
    await Promise.all([first, second]);
    expect([events.length, chat.requests.length]).toEqual([1, 1]);
  });

  test("a tool that aborts its own turn ends the turn but not the session", async () => {
    const chat = fakeChat(call, "Again.");
    const stop = { name: "a", handler: () => session.abort().then(() => "stopped") };
    const session = openSession(createTestEnvironment(), { tools: [stop], chatModel: chat });
    await expect(session.sendAndWait("Go.")).rejects.toMatchObject(aborted);
    expect((await session.sendAndWait("And now?")).content).toBe("Again.");
  });

  test("a hook that aborts on session idle does not deadlock", async () => {
    const session = openSession(createTestEnvironment(), {
      chatModel: fakeChat("Hello."),
      hooks: { onSessionEnd: () => session.abort() },
    });
    expect((await session.sendAndWait("Go.")).content).toBe("Hello.");
  });
});

describe("ending a session", () => {
  test("ending a session during a turn rejects pending sends and stops the turn", async () => {
    const chat = fakeChat(never);
    const session = openSession(createTestEnvironment(), { chatModel: chat });
    const events = recordEvents(session);
    const first = expect(session.sendAndWait("One.")).rejects.toMatchObject({ code: "SESSION_CLOSED" });
    const second = expect(session.sendAndWait("Two.")).rejects.toMatchObject({ code: "SESSION_CLOSED" });
    await chat.request(0);
    await session.disconnect();
    await Promise.all([first, second]);
    expect(events.at(-1)?.type).toBe("session.shutdown");
    await expect(session.send("Three.")).rejects.toMatchObject({ code: "SESSION_CLOSED" });
    expect(chat.requests).toHaveLength(1);
  });

  test("ending a session during a call settles the call first", async () => {
    const begun = deferred();
    const session = openSession(createTestEnvironment(), {
      tools: [
        {
          name: "a",
          handler: () => {
            begun.resolve();
            return never();
          },
        },
      ],
      chatModel: fakeChat(call),
    });
    const completed = nextEvent(session, "tool.execution_complete");
    await session.send("Go.");
    await begun.promise;
    await session.disconnect();
    expect((await completed).data["success"]).toBe(false);
  });
});
