import { existsSync } from "node:fs";
import { afterEach, describe, expect, test } from "vitest";
import { calling, Served, weather } from "./wire-kit.ts";

let served: Served;

afterEach(() => served?.[Symbol.asyncDispose]());

describe("sessions", () => {
  test("begin, are listed, and end with an event before the answer", async () => {
    served = await Served.start();
    const client = await served.connect();
    const created = await client.request("session.create", {
      sessionId: "one",
      requestPermission: true,
      unknownOption: { of: "a later version" },
    });
    expect(created).toMatchObject({ sessionId: "one", capabilities: { ui: { elicitation: false } } });
    expect(created.workspacePath).toContain("one");
    const start = await client.event("session.start");
    expect(start).toMatchObject({ parentId: null, data: { sessionId: "one", producer: "skillhost", context: { cwd: served.folder } } });
    expect(start.data).not.toHaveProperty("options");
    expect(client.lifecycle[0]).toMatchObject({ type: "session.created", sessionId: "one" });
    const { sessions } = await client.request("session.list", {});
    expect(sessions).toMatchObject([{ sessionId: "one", isRemote: false, context: { cwd: served.folder } }]);
    expect((await client.request("session.list", { filter: { cwd: "/elsewhere" } })).sessions).toEqual([]);
    expect(await client.request("session.getMetadata", { sessionId: "one" })).toMatchObject({ session: { sessionId: "one" } });
    expect(await client.request("session.getMetadata", { sessionId: "two" })).toEqual({});
    expect(await client.request("session.getLastId")).toEqual({ sessionId: "one" });
    expect(await client.request("session.destroy", { sessionId: "one" })).toEqual({ success: true });
    expect(client.types().at(-1)).toBe("session.shutdown");
    expect(await client.request("session.destroy", { sessionId: "one" })).toEqual({ success: true });
    expect((await client.refusal("session.send", { sessionId: "one", prompt: "x" })).message).toContain(
      "Session not found for sessionId: one",
    );
  });

  test("that end while a client that joined is being sent what came before send all of it before the answer", async () => {
    served = await Served.start();
    const client = await served.connect();
    const sessionId = await client.create();
    for (const letter of "abc") await client.request("session.log", { sessionId, message: letter.repeat(1_000_000) });
    const other = await served.connect();
    await other.request("session.resume", { sessionId });
    await other.request("runtime.shutdown");
    const types = other.events.map(({ event }) => event.type);
    expect([types[0], types.at(-1)]).toEqual(["session.resume", "session.shutdown"]);
  });

  test("an id that is in use or not valid is refused", async () => {
    served = await Served.start();
    const client = await served.connect();
    await client.create({ sessionId: "one" });
    expect((await client.refusal("session.create", { sessionId: "one" })).message).toContain("one");
    expect((await client.refusal("session.create", { sessionId: "../../etc" })).message).toContain("sessionId");
    expect((await client.refusal("session.create", { sessionId: 7 })).code).toBe(-32602);
    expect((await client.refusal("session.create", { availableTools: ["*"] })).message).toContain("availableTools");
    expect((await client.refusal("session.resume", { sessionId: "missing" })).message).toContain("missing");
  });

  test("a turn emits its events in order, and the recorded ones form a chain", async () => {
    served = await Served.start();
    const client = await served.connect();
    client.serve({ get_weather: ({ city }) => `Sunny in ${city}.` });
    const sessionId = await client.create({ tools: [weather], model: "test-model" });
    served.says(calling("get_weather", { city: "Oslo" }), "It is sunny.");
    await client.say(sessionId, "How is the weather?");
    const kept = client.events.map(({ event }) => event).filter(({ ephemeral }) => ephemeral !== true);
    expect(kept.map(({ type }) => type)).toEqual([
      "session.start",
      "user.message",
      "system.message",
      "assistant.turn_start",
      "assistant.message",
      "tool.execution_start",
      "permission.requested",
      "permission.completed",
      "external_tool.requested",
      "external_tool.completed",
      "tool.execution_complete",
      "assistant.turn_end",
      "assistant.turn_start",
      "assistant.message",
      "assistant.turn_end",
    ]);
    expect(kept.map(({ parentId }) => parentId)).toEqual([null, ...kept.slice(0, -1).map(({ id }) => id)]);
    const { events } = await client.request("session.getMessages", { sessionId });
    expect(events.map(({ id }: { id: string }) => id)).toEqual(kept.map(({ id }) => id));
    expect(served.asked.messages.at(-1)).toMatchObject({ role: "tool", tool_call_id: "call-1", content: "Sunny in Oslo." });
    expect(served.asked.model).toBe("test-model");
    expect(client.lifecycle.some(({ type }) => type === "session.updated")).toBe(true);
  });

  test("options that changed meanwhile leave no gap in the chain", async () => {
    served = await Served.start();
    const client = await served.connect();
    const sessionId = await client.create();
    await client.request("session.options.update", { sessionId, excludedTools: ["nothing"] });
    await client.request("session.log", { sessionId, message: "After the change." });
    const { events } = await client.request("session.getMessages", { sessionId });
    expect(events.map(({ type }: { type: string }) => type)).not.toContain("session.options_changed");
    const ids = new Set(events.map(({ id }: { id: string }) => id));
    expect(events.every(({ parentId }: { parentId: string | null }) => parentId === null || ids.has(parentId))).toBe(true);
    const info = await client.event("session.info", ({ data }) => data["message"] === "After the change.");
    expect(ids.has(info.parentId!)).toBe(true);
  });

  test("a session without a model takes the usual one of the endpoint when it is first asked", async () => {
    served = await Served.start();
    served.model.answer({
      headers: { "content-type": "application/json" },
      steps: ['{"data":[{"id":"other"},{"id":"claude-sonnet-4.5"}]}'],
    });
    served.says("Hello.");
    const client = await served.connect();
    const sessionId = await client.create();
    expect(served.model.requests).toEqual([]);
    await client.say(sessionId, "Hi");
    expect(served.asked.model).toBe("claude-sonnet-4.5");
    expect((await client.event("session.model_change")).data).toEqual({ newModel: "claude-sonnet-4.5" });
  });

  test("abort ends a turn that waits for the model", async () => {
    served = await Served.start();
    served.model.answer({ steps: ["silence"] });
    const client = await served.connect();
    const sessionId = await client.create({ model: "m" });
    await client.request("session.send", { sessionId, prompt: "Hi" });
    await served.model.request(0);
    expect(await client.request("session.metadata.isProcessing", { sessionId })).toEqual({ processing: true });
    expect(await client.request("session.abort", { sessionId })).toEqual({ success: true });
    expect((await client.event("session.idle")).data).toEqual({ aborted: true });
    expect(await client.request("session.metadata.isProcessing", { sessionId })).toEqual({ processing: false });
  });

  test("a failure of the model is an event, and the session continues", async () => {
    served = await Served.start();
    served.model.answer({ status: 400, headers: { "content-type": "application/json" }, steps: ['{"error":{"message":"no such thing"}}'] });
    const client = await served.connect();
    const sessionId = await client.create({ model: "m" });
    await client.say(sessionId, "Hi");
    expect((await client.event("session.error")).data["message"]).toContain("no such thing");
    served.says("Better.");
    await client.say(sessionId, "Again");
    expect((await client.event("assistant.message")).data["content"]).toBe("Better.");
  });

  test("is resumed with its history after its end, by another client", async () => {
    served = await Served.start();
    const first = await served.connect();
    const sessionId = await first.create({ model: "m" });
    served.says("I will.");
    await first.say(sessionId, "Remember 42.");
    await first.request("session.detach", { sessionId });
    const second = await served.connect();
    expect(await second.request("session.resume", { sessionId, requestPermission: true })).toMatchObject({ sessionId, openCanvases: [] });
    expect((await second.event("session.resume")).data).not.toHaveProperty("options");
    expect(second.types()).not.toContain("user.message");
    served.says("It was 42.");
    await second.say(sessionId, "What was it?");
    const said = served.asked.messages.map(({ role, content }: { role: string; content: string }) => `${role}: ${content}`).slice(1);
    expect(said).toEqual(["user: Remember 42.", "assistant: I will.", expect.stringContaining("user: What was it?")]);
    expect(first.count("assistant.message")).toBe(1);
  });

  test("is deleted with all that is kept of it", async () => {
    served = await Served.start();
    const client = await served.connect();
    const { sessionId, workspacePath } = await client.request("session.create", {});
    await client.request("session.plan.update", { sessionId, content: "# Plan" });
    expect(existsSync(workspacePath)).toBe(true);
    expect(await client.request("session.delete", { sessionId })).toEqual({ success: true });
    expect(existsSync(workspacePath)).toBe(false);
    expect(client.lifecycle.at(-1)).toMatchObject({ type: "session.deleted", sessionId });
    expect(await client.request("session.delete", { sessionId })).toMatchObject({
      success: false,
      error: expect.stringContaining(sessionId),
    });
  });
});

describe("several clients in one session", () => {
  test("hear the same, and each answers for its own tools", async () => {
    served = await Served.start();
    const [one, two] = [await served.connect(), await served.connect()];
    one.serve({ get_weather: () => "Rain." });
    two.answers("unused", () => {});
    const sessionId = await one.create({ model: "m", tools: [weather] });
    await two.request("session.resume", {
      sessionId,
      requestPermission: false,
      tools: [{ name: "get_time", description: "Returns the time." }],
    });
    served.says(calling("get_time"), "Noon.");
    const done = one.say(sessionId, "What time is it?");
    const { data } = await two.event("external_tool.requested");
    const answer = { sessionId, requestId: data["requestId"], result: "12:00" };
    expect(await one.request("session.tools.handlePendingToolCall", answer)).toEqual({ success: false });
    expect(await two.request("session.tools.handlePendingToolCall", answer)).toEqual({ success: true });
    expect(await two.request("session.tools.handlePendingToolCall", answer)).toEqual({ success: false });
    await done;
    expect(served.asked.messages.at(-1).content).toBe("12:00");
    expect(served.asked.tools.map(({ function: { name } }: { function: { name: string } }) => name)).toEqual(
      expect.arrayContaining(["get_weather", "get_time"]),
    );
    await two.event("session.idle");
    expect(two.types().filter((type) => type === "assistant.message")).toHaveLength(2);
  });

  test("a tool with the name of another client's different tool is refused, and its client does not join", async () => {
    served = await Served.start();
    const [one, two] = [await served.connect(), await served.connect()];
    const sessionId = await one.create({ tools: [weather] });
    const { message } = await two.refusal("session.resume", { sessionId, tools: [{ ...weather, description: "Another." }] });
    expect(message).toContain("get_weather");
    await one.request("session.log", { sessionId, message: "Still here." });
    await one.event("session.info", ({ data }) => data["message"] === "Still here.");
    expect(two.events.filter(({ event }) => event.data["message"] === "Still here.")).toEqual([]);
    await two.request("session.resume", { sessionId, tools: [weather] });
  });

  test("the first answer to a permission counts", async () => {
    served = await Served.start();
    const [one, two] = [await served.connect(), await served.connect()];
    const sessionId = await one.create({ model: "m", tools: [weather] });
    await two.request("session.resume", { sessionId, requestPermission: true });
    served.says(calling("get_weather", { city: "Oslo" }), "Denied then.");
    const done = one.say(sessionId, "Weather?");
    const { data } = await two.event("permission.requested");
    const reject = { sessionId, requestId: data["requestId"], result: { kind: "reject", feedback: "Not now." } };
    const approve = { ...reject, result: { kind: "approve-once" } };
    expect(await two.request("session.permissions.handlePendingPermissionRequest", reject)).toEqual({ success: true });
    expect(await one.request("session.permissions.handlePendingPermissionRequest", approve)).toEqual({ success: false });
    await done;
    expect((await one.event("permission.completed")).data["result"]).toEqual({
      kind: "denied-interactively-by-user",
      feedback: "Not now.",
    });
  });

  test("a client that joins during a permission request receives it and can answer", async () => {
    served = await Served.start();
    const [one, two] = [await served.connect(), await served.connect()];
    one.answers("unused", () => {});
    const sessionId = await one.create({ model: "m", tools: [{ ...weather, name: "look" }], requestPermission: false });
    served.says(calling("look", { city: "Oslo" }), "Done.");
    await one.request("session.send", { sessionId, prompt: "Weather?" });
    const asked = await one.event("permission.requested");
    await two.request("session.resume", { sessionId });
    const again = await two.event("permission.requested");
    expect(again.id).toBe(asked.id);
    const requestId = again.data["requestId"];
    const result = { kind: "user-not-available" };
    expect(await two.request("session.permissions.handlePendingPermissionRequest", { sessionId, requestId, result })).toEqual({
      success: true,
    });
    await one.event("session.idle");
    expect(served.asked.messages.at(-1).content).toBe("Permission denied and could not request permission from user");
  });

  test("a client that goes takes its tools along, settles its calls, and the others stay", async () => {
    served = await Served.start();
    const [one, two] = [await served.connect(), await served.connect()];
    one.serve();
    const sessionId = await one.create({ model: "m", tools: [weather] });
    await two.request("session.resume", { sessionId, tools: [{ name: "slow", description: "Takes its time.", skipPermission: true }] });
    served.says(calling("slow"), "It was too slow.");
    const done = one.say(sessionId, "Use slow.");
    await two.event("external_tool.requested");
    two.drop();
    await done;
    const { data } = await one.event("tool.execution_complete");
    expect(data["success"]).toBe(false);
    served.says("Only the weather is left.");
    await one.say(sessionId, "And now?");
    const names = served.asked.tools.map(({ function: { name } }: { function: { name: string } }) => name);
    expect(names).toContain("get_weather");
    expect(names).not.toContain("slow");
    expect(served.asked.messages.at(-1).content).toContain("<tools_changed_notice>\nTools no longer available: slow");
  });

  test("one that leaves does not end the session of the others", async () => {
    served = await Served.start();
    const [one, two] = [await served.connect(), await served.connect()];
    const sessionId = await one.create({ model: "m" });
    await two.request("session.resume", { sessionId });
    await one.request("session.destroy", { sessionId });
    served.says("Still here.");
    await two.say(sessionId, "Hello?");
    expect(one.types()).not.toContain("assistant.message");
    await two.request("session.destroy", { sessionId });
    expect(two.types().at(-1)).toBe("session.shutdown");
  });

  test("a session without clients waits for one to return, and ends when none does", async () => {
    served = await Served.start({ server: { orphanTimeout: 30 } });
    const [one, two] = [await served.connect(), await served.connect()];
    const sessionId = await one.create({ model: "m" });
    const other = await two.create({ model: "m" });
    const session = served.server.sessions.get(sessionId)!;
    one.drop();
    await expect.poll(() => served.server.sessions.has(sessionId)).toBe(false);
    expect(session.session.isOpen).toBe(false);
    expect(served.server.sessions.has(other)).toBe(true);
    await two.request("session.resume", { sessionId });
  });
});

describe("what happens in time", () => {
  test("a session in which nothing happens is ended where that is wanted, and can be resumed", async () => {
    served = await Served.start({ server: { idleTimeout: 40 } });
    const client = await served.connect();
    const sessionId = await client.create({ model: "m" });
    await client.event("session.shutdown");
    expect((await client.refusal("session.send", { sessionId, prompt: "x" })).message).toContain("Session not found");
    expect(await client.request("session.resume", { sessionId })).toMatchObject({ sessionId });
  });

  test("a client that never answers delays no other client", async () => {
    served = await Served.start();
    const [silent, other] = [await served.connect(), await served.connect()];
    const waiting = await silent.create({ model: "m", tools: [weather] });
    served.says(calling("get_weather", { city: "Oslo" }));
    await silent.request("session.send", { sessionId: waiting, prompt: "Go" });
    await silent.event("permission.requested");
    const sessionId = await other.create({ model: "m" });
    served.says("Hello.");
    await other.say(sessionId, "Hi");
    expect(await silent.request("session.abort", { sessionId: waiting })).toEqual({ success: true });
    expect((await silent.event("permission.completed")).data["result"]).toMatchObject({ kind: "cancelled" });
  });

  test("a client that goes while its session is made leaves none behind", async () => {
    served = await Served.start({ server: { orphanTimeout: 10 } });
    const [gone, other] = [await served.connect(), await served.connect()];
    gone.request("session.create", { sessionId: "lost" }).catch(() => {});
    await other.request("ping");
    gone.drop();
    await other.create({ sessionId: "found" });
    await expect.poll(() => [...served.server.sessions.keys()]).toEqual(["found"]);
  });
});

describe("a slow reader", () => {
  test("of ten thousand events gets all that matter, and no more memory than that", async () => {
    served = await Served.start();
    const client = await served.connect();
    const sessionId = await client.create();
    await client.event("session.start");
    const { session } = served.server.sessions.get(sessionId)!;
    for (let count = 0; count < 10_000; count++) session.events.append("session.info", { infoType: "count", message: String(count) });
    const last = await client.event("session.info", ({ data }) => data["message"] === "9999");
    expect(last.type).toBe("session.info");
    const counts = client.events
      .filter(({ event }) => event.data["infoType"] === "count")
      .map(({ event }) => Number(event.data["message"]));
    expect(counts).toEqual(Array.from({ length: 10_000 }, (_value, index) => index));
  });

  test("that is far behind is spared what is only news of the moment", async () => {
    served = await Served.start();
    const sent: string[] = [];
    const { PassThrough } = await import("node:stream");
    const toServer = new PassThrough();
    const { wire } = served.server.accept({
      input: toServer,
      output: { write: (text) => void sent.push(text), pendingBytes: 10 * 1024 * 1024 },
    });
    const frame = (body: object): string => {
      const text = JSON.stringify({ jsonrpc: "2.0", ...body });
      return `Content-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`;
    };
    toServer.write(
      frame({ id: 1, method: "connect", params: {} }) + frame({ id: 2, method: "session.create", params: { sessionId: "slow" } }),
    );
    await expect.poll(() => sent.join("").includes('"session.start"')).toBe(true);
    const { session } = served.server.sessions.get("slow")!;
    session.events.append("assistant.message_delta", { messageId: "m", deltaContent: "piece" });
    session.events.append("session.info", { infoType: "test", message: "kept" });
    await expect.poll(() => sent.join("").includes('"kept"')).toBe(true);
    expect(sent.join("")).not.toContain("piece");
    wire.close();
  });
});
