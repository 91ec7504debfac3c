import { afterEach, describe, expect, test } from "vitest";
import { calling, type Json, Served, type TestClient, weather } from "./wire-kit.ts";

let served: Served;

afterEach(() => served?.[Symbol.asyncDispose]());

interface Begun {
  readonly client: TestClient;
  readonly sessionId: string;
  readonly send: (params: object) => Promise<Json>;
}

async function begin(): Promise<Begun> {
  served = await Served.start();
  const client = await served.connect();
  const sessionId = await client.create({ model: "m", tools: [{ ...weather, skipPermission: true }] });
  return { client, sessionId, send: (params) => client.request("session.sendMessages", { sessionId, ...params }) };
}

const said = (role: string): readonly string[] =>
  served.asked.messages.filter((message: Json) => message.role === role).map(({ content }: Json) => content);
const messages = ["One.", "Two."].map((prompt) => ({ prompt }));

describe("several messages at once", () => {
  test("are answered by one turn, each with its own id", async () => {
    const { client, send } = await begin();
    served.says("Both.");
    const { messageIds } = await send({ messages, wait: true });
    await client.event("session.idle");
    expect(client.count("session.idle")).toBe(1);
    expect([said("user"), served.model.requests.filter(({ method }) => method === "POST").length]).toEqual([["One.", "Two."], 1]);
    const events = client.events.filter(({ event }) => event.type === "user.message").map(({ event }) => event.data);
    expect(events.map(({ content, messageId }) => [content, messageId])).toEqual([
      ["One.", messageIds[0]],
      ["Two.", messageIds[1]],
    ]);
    expect(events[0]!["interactionId"]).toBe(events[1]!["interactionId"]);
  });

  test("none let the model answer what was said before, and nothing where nothing was said", async () => {
    const { client, sessionId, send } = await begin();
    expect(await send({ messages: [], wait: true })).toEqual({ messageIds: [] });
    expect((await client.event("session.error")).data["message"]).toContain("Nothing was said");
    served.says("First.", "More.");
    await client.say(sessionId, "Begin.");
    expect(await send({ messages: [], wait: true })).toEqual({ messageIds: [] });
    expect([said("user"), said("assistant")]).toEqual([["Begin."], ["First."]]);
    expect(client.count("user.message")).toBe(1);
    expect(client.events.findLast(({ event }) => event.type === "assistant.message")?.event.data["content"]).toBe("More.");
  });

  test("go into the running turn, or before what waits", async () => {
    const { client, sessionId, send } = await begin();
    let release = (): void => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    client.serve({ get_weather: () => held.then(() => "Sun.") });
    served.says(calling("get_weather", { city: "Oslo" }), "All three.", "Before.", "After.");
    await client.request("session.send", { sessionId, prompt: "Weather?" });
    await client.event("external_tool.requested");
    await client.request("session.send", { sessionId, prompt: "Last." });
    await send({ messages: [{ prompt: "Three." }, { prompt: "Four." }], prepend: true });
    await send({ messages, mode: "immediate" });
    release();
    await client.event("session.idle");
    expect(said("user")).toEqual(["Weather?", "One.", "Two.", "Three.", "Four.", "Last."]);
    expect(said("assistant").filter((content) => content !== null && content !== "")).toEqual(["All three.", "Before."]);
  });

  test.each([
    [{}, "messages must be an array"],
    [{ messages: [{ prompt: "a" }, {}] }, "prompt must be a string"],
    [{ messages: ["a"] }, "messages must be an array of objects"],
    [{ messages: [{ prompt: "a" }, { prompt: "b", attachments: [{ type: "file", path: "../x" }] }] }, "attachments[0]"],
  ])("are refused as a whole when they are %j", async (params, why) => {
    const { client, sessionId } = await begin();
    expect((await client.refusal("session.sendMessages", { sessionId, ...params })).message).toContain(why);
    expect(await client.request("session.queue.pendingItems", { sessionId })).toMatchObject({ items: [] });
    expect(client.count("user.message")).toBe(0);
  });
});
