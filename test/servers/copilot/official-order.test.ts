import { afterEach, describe, expect, test } from "vitest";
import { chatStreamAnswer } from "../../doubles/scripted-model.ts";
import { calling, Served } from "./wire-kit.ts";

let served: Served;
afterEach(() => served[Symbol.asyncDispose]());

describe("events as the official runtime of SDK 1.0.14 sends them", () => {
  test("reasoning is emitted as a whole after its message, with the id of its pieces", async () => {
    served = await Served.start();
    const client = await served.connect();
    const sessionId = await client.create({ model: "m", streaming: true });
    served.model.answer(chatStreamAnswer({ reasoning: "Hm, yes.", content: "Yes." }));
    await client.say(sessionId, "Really?");
    const types = client.events.map(({ event }) => event.type);
    const { reasoningId } = (await client.event("assistant.reasoning_delta")).data;
    const { data, ephemeral } = await client.event("assistant.reasoning");
    expect(data).toEqual({ reasoningId, content: "Hm, yes." });
    expect(ephemeral).toBe(true);
    expect(types.indexOf("assistant.reasoning")).toBe(types.indexOf("assistant.message") + 1);
  });

  test("a reply without reasoning has none", async () => {
    served = await Served.start();
    const client = await served.connect();
    const sessionId = await client.create({ model: "m" });
    served.says("Yes.");
    await client.say(sessionId, "Really?");
    expect(client.count("assistant.reasoning")).toBe(0);
  });

  test("the usage of a reply with calls names the reason as the endpoint does", async () => {
    served = await Served.start();
    const client = await served.connect();
    client.serve({ look: () => "Found." });
    const tool = { name: "look", description: "Looks.", parameters: { type: "object", properties: {} } };
    const sessionId = await client.create({ model: "m", tools: [tool] });
    served.says(calling("look"), "Done.");
    await client.say(sessionId, "Look.");
    const reasons = client.events.flatMap(({ event }) => (event.type === "assistant.usage" ? [event.data["finishReason"]] : []));
    expect(reasons).toEqual(["tool_calls", "stop"]);
  });

  test("a session that is resumed in the middle of its conversation keeps its title", async () => {
    served = await Served.start();
    const client = await served.connect();
    const sessionId = await client.create({ model: "m" });
    served.says("One.", "Two.");
    await client.say(sessionId, "First?");
    await client.request("session.destroy", { sessionId });
    await client.request("session.resume", { sessionId, model: "m" });
    await client.say(sessionId, "Second?");
    const titles = client.events.flatMap(({ event }) => (event.type === "session.title_changed" ? [event.data["title"]] : []));
    expect(titles).toEqual(["First?"]);
  });

  test("what a hook adds for the model is not a message of the user for clients, live or stored", async () => {
    served = await Served.start();
    const client = await served.connect();
    client.answers("hooks.invoke", ({ hookType }) =>
      hookType === "sessionStart" ? { output: { additionalContext: "It is Monday." } } : {},
    );
    const sessionId = await client.create({ model: "m", hooks: true });
    served.says("Hello.");
    await client.say(sessionId, "Hi.");
    const shown = client.events.flatMap(({ event }) => (event.type === "user.message" ? [event.data["content"]] : []));
    expect(shown).toEqual(["Hi."]);
    const { events } = await client.request("session.getMessages", { sessionId });
    expect(events.filter(({ type }: { type: string }) => type === "user.message")).toHaveLength(1);
    expect(JSON.stringify(served.asked.messages)).toContain("It is Monday.");
  });
});
