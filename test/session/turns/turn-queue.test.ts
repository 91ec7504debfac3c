import { describe, expect, test } from "vitest";
import type { ModelRequest } from "../../../src/models/model.ts";
import { fakeChat } from "../../doubles/fake-chat.ts";
import { createTestEnvironment, deferred, nextEvent, openSession, recordEvents } from "../session-kit.ts";

const userTexts = (request: ModelRequest | undefined) =>
  (request?.messages ?? []).flatMap((message) => (message.role === "user" ? [message.content] : []));

describe("messages that arrive during a turn", () => {
  test("queued messages have their turns in order, and the session becomes idle once", async () => {
    const gate = deferred<string>();
    const chat = fakeChat(() => gate.promise, "Two.", "Three.");
    const session = openSession(createTestEnvironment(), { chatModel: chat });
    const events = recordEvents(session, "user.message", "session.idle", "assistant.message");
    const replies = ["one", "two", "three"].map((prompt) => session.sendAndWait({ prompt }));
    await chat.request(0);
    gate.resolve("One.");
    expect((await Promise.all(replies)).map(({ content }) => content)).toEqual(["One.", "Two.", "Three."]);
    expect(events.map(({ type, data }) => [type, data["delivery"] ?? data["content"]])).toEqual([
      ["user.message", "idle"],
      ["assistant.message", "One."],
      ["user.message", "queued"],
      ["assistant.message", "Two."],
      ["user.message", "queued"],
      ["assistant.message", "Three."],
      ["session.idle", undefined],
    ]);
  });

  test("a message with mode immediate is part of the running turn's next request, after its results", async () => {
    const chat = fakeChat({ calls: [{ id: "c1", name: "a" }] }, "Short.");
    const steer = {
      name: "a",
      handler: () => {
        steered = session.sendAndWait({ prompt: "Be short.", mode: "immediate" });
        return "a result";
      },
    };
    let steered: Promise<unknown> | undefined;
    const session = openSession(createTestEnvironment(), { tools: [steer], chatModel: chat });
    const events = recordEvents(session, "user.message");
    const reply = await session.sendAndWait("Go.");
    expect(await steered).toEqual(reply);
    expect(chat.requests).toHaveLength(2);
    expect(chat.requests[1]?.messages.map(({ role }) => role)).toEqual(["system", "user", "assistant", "tool", "user"]);
    expect(events.map(({ data }) => data["delivery"])).toEqual(["idle", "steering"]);
  });

  test("a message with mode immediate extends a turn that would have ended", async () => {
    const gate = deferred<string>();
    const chat = fakeChat(() => gate.promise, "More.");
    const session = openSession(createTestEnvironment(), { chatModel: chat });
    const first = session.sendAndWait("Go.");
    await chat.request(0);
    const second = session.sendAndWait({ prompt: "And more.", mode: "immediate" });
    gate.resolve("First.");
    expect([(await first).content, (await second).content]).toEqual(["More.", "More."]);
    expect(userTexts(chat.requests[1])).toEqual(["Go.", "And more."]);
  });

  test("a message with mode immediate is an ordinary message when the session is idle", async () => {
    const session = openSession(createTestEnvironment(), { chatModel: fakeChat("Hello.") });
    const said = nextEvent(session, "user.message");
    expect((await session.sendAndWait({ prompt: "Hi.", mode: "immediate" })).content).toBe("Hello.");
    expect((await said).data["delivery"]).toBe("idle");
  });

  test("a message with mode immediate gets its own turn if a terminal tool ends the current one", async () => {
    const chat = fakeChat({ calls: [{ name: "finish" }] }, "Hello.");
    const finish = {
      name: "finish",
      isTerminal: true,
      handler: () => {
        void session.send({ prompt: "Wait!", mode: "immediate" });
        return "finished";
      },
    };
    const session = openSession(createTestEnvironment(), { tools: [finish], chatModel: chat });
    const idle = nextEvent(session, "session.idle");
    await session.send("Go.");
    await idle;
    expect(userTexts(chat.requests[1])).toEqual(["Go.", "Wait!"]);
  });

  test("a message that a listener sends at the end of a turn is answered", async () => {
    const chat = fakeChat("One.", "Two.");
    const session = openSession(createTestEnvironment(), { chatModel: chat });
    const second = deferred<unknown>();
    const end = session.on("session.idle", () => {
      end();
      session.sendAndWait("Again.").then(second.resolve, second.reject);
    });
    await session.send("Go.");
    expect(await second.promise).toMatchObject({ content: "Two." });
  });
});

describe("sendAndWait", () => {
  test("sendAndWait rejects after its timeout while the turn continues", async () => {
    const gate = deferred<string>();
    const chat = fakeChat(() => gate.promise);
    const session = openSession(createTestEnvironment(), { chatModel: chat });
    const answered = nextEvent(session, "assistant.message");
    await expect(session.sendAndWait("Go.", { timeout: 1 })).rejects.toMatchObject({ code: "SEND_TIMEOUT" });
    gate.resolve("Late.");
    expect((await answered).data["content"]).toBe("Late.");
  });

  test("sendAndWait settles after the session is idle", async () => {
    const session = openSession(createTestEnvironment(), { chatModel: fakeChat("Hello.") });
    const events = recordEvents(session, "session.idle");
    await session.sendAndWait("Go.");
    expect(events).toHaveLength(1);
  });
});

describe("hooks around a turn", () => {
  test("hooks see and change the prompt, add context and receive start and end", async () => {
    const hookCalls: string[] = [];
    const chat = fakeChat("Hello.");
    const session = openSession(createTestEnvironment(), {
      chatModel: chat,
      hooks: {
        onUserPromptSubmitted: ({ prompt }) => {
          hookCalls.push(`submitted ${prompt}`);
          return { modifiedPrompt: "Hi!", additionalContext: "It is Monday." };
        },
        onUserPromptTransformed: ({ transformedPrompt }) => ({ modifiedTransformedPrompt: `${transformedPrompt}\n\nBe kind.` }),
        onSessionStart: ({ source, initialPrompt }) => {
          hookCalls.push(`start ${source} ${initialPrompt}`);
          return { additionalContext: "You are in Oslo." };
        },
        onAgentStop: ({ stop_hook_active }) => void hookCalls.push(`stop ${stop_hook_active}`),
        onSessionEnd: ({ reason }) => void hookCalls.push(`end ${reason}`),
      },
    });
    const events = recordEvents(session, "user.message");
    await session.sendAndWait("hi");
    await session.sendAndWait("hi");
    expect(hookCalls).toEqual(["submitted hi", "start new hi", "stop false", "end complete", "submitted hi", "stop false", "end complete"]);
    expect(userTexts(chat.requests[0])).toEqual([
      "You are in Oslo.",
      "Hi!\n\n<system_reminder>\nIt is Monday.\n</system_reminder>\n\nBe kind.",
    ]);
    expect(events.map(({ data }) => [data["content"], data["source"]])).toEqual([
      ["You are in Oslo.", "hook"],
      ["Hi!", undefined],
      ["Hi!", undefined],
    ]);
  });

  test("a stop hook keeps the agent working until it allows the stop", async () => {
    const chat = fakeChat("Half.", "Whole.");
    const session = openSession(createTestEnvironment(), {
      chatModel: chat,
      hooks: {
        onAgentStop: ({ stop_hook_active }) => (stop_hook_active ? undefined : { decision: "block", reason: "The rest is missing." }),
      },
    });
    expect((await session.sendAndWait("Go.")).content).toBe("Whole.");
    expect(userTexts(chat.requests[1])).toEqual(["Go.", "The rest is missing."]);
  });

  test("a stop hook that always blocks is limited", async () => {
    const chat = fakeChat("Never enough.");
    const session = openSession(createTestEnvironment(), {
      chatModel: chat,
      maxIterations: 4,
      hooks: { onAgentStop: () => ({ decision: "block", reason: "More." }) },
    });
    expect((await session.sendAndWait("Go.")).content).toBe("Never enough.");
    expect(chat.requests).toHaveLength(4);
  });

  test("hooks around calls may add text after the results", async () => {
    const chat = fakeChat({ calls: [{ id: "c1", name: "a" }] }, "Done.");
    const session = openSession(createTestEnvironment(), {
      tools: [
        {
          name: "a",
          handler: () => {
            throw new Error("no");
          },
        },
      ],
      chatModel: chat,
      hooks: { onPostToolUseFailure: () => ({ additionalContext: "Try b." }) },
    });
    await session.sendAndWait("Go.");
    expect(chat.requests[1]?.messages.slice(3)).toEqual([
      expect.objectContaining({ role: "tool" }),
      { role: "user", content: 'Tool "a" failed. Additional guidance from postToolUseFailure hooks:\nTry b.' },
    ]);
  });
});
