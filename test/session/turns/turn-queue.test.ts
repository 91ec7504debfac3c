import { describe, expect, test } from "vitest";
import type { ModelRequest } from "../../../src/models/model.ts";
import { fakeChat } from "../../doubles/fake-chat.ts";
import { createTestEnvironment, deferred, nextEvent, openSession, recordEvents } from "../session-kit.ts";

const userTexts = (request: ModelRequest | undefined) =>
  (request?.messages ?? []).flatMap((message) => (message.role === "user" ? [message.content] : []));

describe("messages that come while a turn runs", () => {
  test("have their turns one after the other, in order, and then the session is idle, once", async () => {
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

  test("with mode immediate are in the next request of the running turn, behind its results", async () => {
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

  test("with mode immediate go on with a turn that would have been over", async () => {
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

  test("with mode immediate and nothing running are ordinary messages", async () => {
    const session = openSession(createTestEnvironment(), { chatModel: fakeChat("Hello.") });
    const said = nextEvent(session, "user.message");
    expect((await session.sendAndWait({ prompt: "Hi.", mode: "immediate" })).content).toBe("Hello.");
    expect((await said).data["delivery"]).toBe("idle");
  });

  test("with mode immediate in a turn that a terminal tool ends have a turn of their own", async () => {
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

  test("from a listener to the end of a turn are answered too", async () => {
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
  test("gives up after its timeout, and the turn goes on", async () => {
    const gate = deferred<string>();
    const chat = fakeChat(() => gate.promise);
    const session = openSession(createTestEnvironment(), { chatModel: chat });
    const answered = nextEvent(session, "assistant.message");
    await expect(session.sendAndWait("Go.", { timeout: 1 })).rejects.toMatchObject({ code: "SEND_TIMEOUT" });
    gate.resolve("Late.");
    expect((await answered).data["content"]).toBe("Late.");
  });

  test("settles after the session has come to rest", async () => {
    const session = openSession(createTestEnvironment(), { chatModel: fakeChat("Hello.") });
    const events = recordEvents(session, "session.idle");
    await session.sendAndWait("Go.");
    expect(events).toHaveLength(1);
  });
});

describe("hooks around a turn", () => {
  test("see and change the prompt, add context, and are told of start and end", async () => {
    const told: string[] = [];
    const chat = fakeChat("Hello.");
    const session = openSession(createTestEnvironment(), {
      chatModel: chat,
      hooks: {
        onUserPromptSubmitted: ({ prompt }) => {
          told.push(`submitted ${prompt}`);
          return { modifiedPrompt: "Hi!", additionalContext: "It is Monday." };
        },
        onUserPromptTransformed: ({ transformedPrompt }) => ({ modifiedTransformedPrompt: `${transformedPrompt}\n\nBe kind.` }),
        onSessionStart: ({ source, initialPrompt }) => {
          told.push(`start ${source} ${initialPrompt}`);
          return { additionalContext: "You are in Oslo." };
        },
        onAgentStop: ({ stop_hook_active }) => void told.push(`stop ${stop_hook_active}`),
        onSessionEnd: ({ reason }) => void told.push(`end ${reason}`),
      },
    });
    const events = recordEvents(session, "user.message");
    await session.sendAndWait("hi");
    await session.sendAndWait("hi");
    expect(told).toEqual(["submitted hi", "start new Hi!", "stop false", "end complete", "submitted hi", "stop false", "end complete"]);
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

  test("keep the agent at work until they let it stop", async () => {
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

  test("that block for ever are stopped by the limit", async () => {
    const chat = fakeChat("Never enough.");
    const session = openSession(createTestEnvironment(), {
      chatModel: chat,
      maxIterations: 4,
      hooks: { onAgentStop: () => ({ decision: "block", reason: "More." }) },
    });
    expect((await session.sendAndWait("Go.")).content).toBe("Never enough.");
    expect(chat.requests).toHaveLength(4);
  });

  test("around calls may add what the model reads after the results", async () => {
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
