import { describe, expect, test } from "vitest";
import type { ModelRequest } from "../../../src/models/model.ts";
import { fakeChat } from "../../doubles/fake-chat.ts";
import { createTestEnvironment, openSession, recordEvents, sourceOf } from "../session-kit.ts";

const call = (name: string, args: unknown = {}) => ({ calls: [{ name, args }] });
// Excludes the built-in tools.
const bare = { excludedTools: ["builtin:*"] };
const tool = (name: string, text = `${name} result`) => ({ name, handler: () => text });
const namesOf = (request: ModelRequest | undefined) => request?.tools?.map(({ name }) => name);
const resultsOf = (request: ModelRequest | undefined) =>
  (request?.messages ?? []).flatMap((message) => (message.role === "tool" ? [message.content] : []));

describe("the end of a turn", () => {
  test("a turn ends with an answer without calls", async () => {
    const chat = fakeChat(call("a"), call("a"), "Done.");
    const reply = await openSession(createTestEnvironment(), { tools: [tool("a")], chatModel: chat }).sendAndWait("Go.");
    expect([reply.content, chat.requests.length]).toEqual(["Done.", 3]);
  });

  test("a turn ends when a terminal tool succeeds, after all results of its message", async () => {
    const chat = fakeChat({ content: "Handing over.", calls: [{ name: "finish" }, { name: "a" }] }, "never");
    const session = openSession(createTestEnvironment(), { tools: [{ ...tool("finish"), isTerminal: true }, tool("a")], chatModel: chat });
    const completed = recordEvents(session, "tool.execution_complete");
    expect((await session.sendAndWait("Go.")).content).toBe("Handing over.");
    expect([chat.requests.length, completed.length]).toEqual([1, 2]);
  });

  test("a turn continues after a failed terminal tool, and the model gets the failure", async () => {
    const failing = { name: "finish", isTerminal: true, handler: () => ({ resultType: "failure", textResultForLlm: "Not yet." }) };
    const chat = fakeChat(call("finish"), "I see.");
    expect((await openSession(createTestEnvironment(), { tools: [failing], chatModel: chat }).sendAndWait("Go.")).content).toBe("I see.");
    expect(resultsOf(chat.requests[1])).toEqual(["Not yet."]);
  });

  test("a turn ends with a rejected call, and the model gets the rejection in the next turn", async () => {
    const chat = fakeChat({ content: "May I?", ...call("a") }, "Understood.");
    const session = openSession(createTestEnvironment(), {
      tools: [tool("a")],
      chatModel: chat,
      onPermissionRequest: () => ({ kind: "reject" }),
    });
    expect((await session.sendAndWait("Go.")).content).toBe("May I?");
    expect(chat.requests).toHaveLength(1);
    await session.sendAndWait("And now?");
    expect(resultsOf(chat.requests[1])).toEqual(["The user rejected this tool call."]);
  });

  test("a turn continues after a rejection that gives the model feedback", async () => {
    const chat = fakeChat(call("a"), "Then I use grep.");
    const session = openSession(createTestEnvironment(), {
      tools: [tool("a")],
      chatModel: chat,
      onPermissionRequest: () => ({ kind: "reject", feedback: "Use grep." }),
    });
    expect((await session.sendAndWait("Go.")).content).toBe("Then I use grep.");
    expect(resultsOf(chat.requests[1])).toEqual(["The user rejected this tool call. User feedback: Use grep."]);
  });

  test("a turn continues after a denied call", async () => {
    const chat = fakeChat(call("a"), "Then not.");
    const session = openSession(createTestEnvironment(), { tools: [tool("a")], chatModel: chat, onPermissionRequest: undefined });
    expect((await session.sendAndWait("Go.")).content).toBe("Then not.");
    expect(resultsOf(chat.requests[1])).toEqual(["Permission denied and could not request permission from user"]);
  });

  test("a turn ends at the limit if the model never stops calling, and the next message works", async () => {
    const chat = fakeChat(call("a"));
    const session = openSession(createTestEnvironment(), { tools: [tool("a")], chatModel: chat, maxIterations: 5 });
    const infos = recordEvents(session, "session.info");
    await session.sendAndWait("Go.");
    expect(chat.requests).toHaveLength(5);
    expect(infos.map(({ data }) => data["infoType"])).toEqual(["iteration_limit"]);
    await session.sendAndWait("Continue.");
    expect(chat.requests).toHaveLength(10);
  });
});

describe("invalid output of the model", () => {
  test("a call of a missing tool is a failure that lists the available ones", async () => {
    const chat = fakeChat(call("report_intent"), "Sorry.");
    await openSession(createTestEnvironment(), { tools: [tool("a"), tool("b")], chatModel: chat, ...bare }).sendAndWait("Go.");
    expect(resultsOf(chat.requests[1])).toEqual(["Tool 'report_intent' does not exist. Available tools that can be called are a, b."]);
  });

  test("arguments that are not valid JSON are a failure, and the original text is sent back", async () => {
    const error = { text: '{"path": "a', message: "The JSON of the arguments is incomplete." };
    const chat = fakeChat({ calls: [{ id: "c1", name: "a", error }] }, "Sorry.");
    let ran = 0;
    const session = openSession(createTestEnvironment(), { tools: [{ name: "a", handler: () => ++ran }], chatModel: chat });
    const events = recordEvents(session, "tool.execution_start", "tool.execution_complete");
    await session.sendAndWait("Go.");
    expect(ran).toBe(0);
    expect(resultsOf(chat.requests[1])).toEqual(["Invalid arguments for tool 'a': The JSON of the arguments is incomplete."]);
    expect(chat.requests[1]?.messages[2]).toMatchObject({ toolCalls: [{ argumentsText: error.text, argumentsError: error.message }] });
    expect(events.map(({ type, data }) => [type, data["success"]])).toEqual([
      ["tool.execution_start", undefined],
      ["tool.execution_complete", false],
    ]);
  });

  test("a hook that rewrites invalid arguments fixes them, and the model sees what ran", async () => {
    const chat = fakeChat({ calls: [{ name: "a", error: { text: "{", message: "broken" } }] }, "Good.");
    const session = openSession(createTestEnvironment(), {
      tools: [{ name: "a", parameters: { type: "object", properties: { n: { type: "number" } } }, handler: (args: unknown) => args }],
      chatModel: chat,
      hooks: { onPreToolUse: () => ({ modifiedArgs: { n: 1 } }) },
    });
    await session.sendAndWait("Go.");
    expect(resultsOf(chat.requests[1])).toEqual(['{"n":1}']);
    const assistant = chat.requests[1]?.messages[2];
    expect(assistant).toMatchObject({ toolCalls: [{ arguments: { n: 1 }, argumentsText: '{"n":1}' }] });
    expect(JSON.stringify(assistant)).not.toContain("broken");
  });

  test("two calls with the same id are kept apart", async () => {
    const same = {
      calls: [
        { id: "same", name: "a" },
        { id: "same", name: "b" },
      ],
    };
    const chat = fakeChat(same, "Done.");
    await openSession(createTestEnvironment(), { tools: [tool("a"), tool("b")], chatModel: chat }).sendAndWait("Go.");
    expect(resultsOf(chat.requests[1])).toEqual(["a result", "b result"]);
    const ids = chat.requests[1]?.messages.flatMap((message) => (message.role === "tool" ? [message.toolCallId] : []));
    expect(new Set(ids).size).toBe(2);
  });

  test("an answer of ten megabytes is accepted", async () => {
    const content = "x".repeat(10 * 1024 * 1024);
    const session = openSession(createTestEnvironment(), { chatModel: fakeChat(content) });
    expect((await session.sendAndWait("Go.")).content).toHaveLength(content.length);
  });

  test("an empty answer ends the turn and is not sent back", async () => {
    const chat = fakeChat("", "Hello.");
    const session = openSession(createTestEnvironment(), { chatModel: chat });
    expect((await session.sendAndWait("One.")).content).toBe("");
    await session.sendAndWait("Two.");
    expect(chat.requests[1]?.messages.slice(1)).toEqual([
      { role: "user", content: "One." },
      { role: "user", content: "Two." },
    ]);
  });
});

describe("tools that change during a turn", () => {
  test("changed tools are part of the next request of the turn", async () => {
    const environment = createTestEnvironment(sourceOf("skill", "s", tool("first")));
    const swap = {
      name: "swap",
      handler: () => {
        environment.publish(sourceOf("skill", "s", tool("second")));
        return "swapped";
      },
    };
    const chat = fakeChat(call("swap"), call("second"), "Done.");
    await openSession(environment, { tools: [swap], chatModel: chat, ...bare }).sendAndWait("Go.");
    expect(chat.requests.map(namesOf)).toEqual([
      ["first", "swap"],
      ["second", "swap"],
      ["second", "swap"],
    ]);
    expect(resultsOf(chat.requests[2])).toEqual(["swapped", "second result"]);
  });

  test("changed pushed tools are part of the next request of the turn", async () => {
    const chat = fakeChat(call("learn"), call("learnt"), "Done.");
    const learn = {
      name: "learn",
      handler: () => {
        void session.setTools([learn, tool("learnt")]);
        return "learnt it";
      },
    };
    const session = openSession(createTestEnvironment(), { tools: [learn], chatModel: chat });
    await session.sendAndWait("Go.");
    expect(resultsOf(chat.requests[2])).toEqual(["learnt it", "learnt result"]);
  });

  test("tools stay unchanged if they cannot be assembled, and an event gives the reason", async () => {
    const environment = createTestEnvironment(sourceOf("skill", "s", tool("a")));
    const breaks = {
      name: "break",
      handler: () => {
        environment.failWith(new Error("no room"));
        environment.publish();
        return "broken";
      },
    };
    const chat = fakeChat(call("break"), call("a"), "Done.");
    const session = openSession(environment, { tools: [breaks], chatModel: chat });
    const infos = recordEvents(session, "session.info");
    expect((await session.sendAndWait("Go.")).content).toBe("Done.");
    expect(resultsOf(chat.requests[2])).toEqual(["broken", "a result"]);
    expect(infos.map(({ data }) => data["infoType"])).toEqual(["tool_refresh"]);
  });

  test("the next message reports removed tools once, also when they were removed during a turn", async () => {
    const environment = createTestEnvironment(sourceOf("skill", "s", tool("x"), tool("y")));
    const drop = {
      name: "drop",
      handler: () => {
        environment.publish();
        return "dropped";
      },
    };
    const chat = fakeChat(call("drop"), "Done.", "Second.", "Third.");
    const session = openSession(environment, { tools: [drop], chatModel: chat });
    await session.sendAndWait("One.");
    await session.sendAndWait("Two.");
    await session.sendAndWait("Three.");
    const said = chat.requests.at(-1)?.messages.flatMap((message) => (message.role === "user" ? [message.content] : []));
    expect(said).toEqual([
      "One.",
      "<tools_changed_notice>\nTools no longer available: x, y\n\nImportant: Do not attempt to call tools that are no longer available unless you've been notified that they're available again.\n</tools_changed_notice>\n\nTwo.",
      "Three.",
    ]);
  });

  test("a call of a removed tool gets a message that says so", async () => {
    const environment = createTestEnvironment(sourceOf("skill", "s", tool("x")));
    const drop = {
      name: "drop",
      handler: () => {
        environment.publish();
        return "dropped";
      },
    };
    const chat = fakeChat(call("drop"), call("x"), "Done.");
    await openSession(environment, { tools: [drop], chatModel: chat, ...bare }).sendAndWait("Go.");
    expect(resultsOf(chat.requests[2])).toEqual([
      "dropped",
      "Tool 'x' is no longer available. Available tools that can be called are drop.",
    ]);
  });
});

test("sending without a model fails with advice", async () => {
  const session = openSession(createTestEnvironment(), { model: "gpt-x" });
  await expect(session.send("Hello.")).rejects.toMatchObject({
    code: "MODEL_MISSING",
    message: expect.stringContaining("provider is missing"),
  });
  await expect(openSession().sendAndWait("Hello.")).rejects.toMatchObject({ code: "MODEL_MISSING" });
});

test("the model can change during the session", async () => {
  const [first, second] = [fakeChat("One."), { ...fakeChat("Two."), id: "other-model" }];
  const session = openSession(createTestEnvironment(), { chatModel: first });
  const changes = recordEvents(session, "session.model_change");
  await session.sendAndWait("Hello.");
  await session.update({ chatModel: second });
  expect((await session.sendAndWait("Hello.")).content).toBe("Two.");
  expect(changes.map(({ data }) => data)).toEqual([{ newModel: "fake-model" }, { newModel: "other-model", previousModel: "fake-model" }]);
});

test.each<[string, object]>([
  ["provider", { provider: { baseUrl: "ftp://x" } }],
  ["chatModel", { chatModel: {} }],
  ["systemMessage.mode", { systemMessage: { mode: "shout", content: "" } }],
  ["systemMessage.sections.tone.action", { systemMessage: { mode: "customize", sections: { tone: { action: "sing" } } } }],
  ["maxIterations", { maxIterations: 0 }],
  ["maxTokens", { skillListing: { maxTokens: "many" } }],
  ["vision", { modelCapabilities: { supports: { vision: "yes" } } }],
])("invalid options are refused by name: %s", (name, options) => {
  expect(() => openSession(createTestEnvironment(), options)).toThrow(name === "provider" ? "baseUrl" : name);
});

test("an invalid message is refused by name", async () => {
  const session = openSession(createTestEnvironment(), { chatModel: fakeChat("") });
  for (const [message, name] of [
    [{}, "prompt"],
    [{ prompt: 1 }, "prompt"],
    [{ prompt: "x", mode: "later" }, "mode"],
    [{ prompt: "x", requestHeaders: { a: 1 } }, "requestHeaders"],
    [{ prompt: "x", promt: "y" }, "promt"],
  ] as const) {
    await expect(session.send(message as never)).rejects.toThrow(name);
  }
});
