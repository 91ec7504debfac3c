import { afterEach, describe, expect, test } from "vitest";
import { chatStreamAnswer } from "../../doubles/scripted-model.ts";
import { socketEvents } from "../../doubles/scripted-socket.ts";
import { calling, type Json, Served, type TestClient, weather } from "./wire-kit.ts";

let served: Served;

afterEach(() => served?.[Symbol.asyncDispose]());

async function session(options: object = {}): Promise<{ readonly client: TestClient; readonly sessionId: string }> {
  served = await Served.start();
  const client = await served.connect();
  return { client, sessionId: await client.create({ model: "m", ...options }) };
}

/** Has the model call the weather tool once, whose client answers as given. */
async function called(
  answer: object,
): Promise<{ readonly client: TestClient; readonly complete: Json; readonly text: string | undefined }> {
  const { client, sessionId } = await session({ tools: [{ ...weather, skipPermission: true }] });
  served.says(calling("get_weather", { city: "Oslo" }), "Thank you.");
  const done = client.say(sessionId, "Weather?");
  const { data } = await client.event("external_tool.requested");
  await client.request("session.tools.handlePendingToolCall", { sessionId, requestId: data["requestId"], ...answer });
  await done;
  const complete = (await client.event("tool.execution_complete")).data;
  const last = served.asked.messages.at(-1);
  return { client, complete, text: last.role === "tool" ? last.content : undefined };
}

describe("calls of a client's tools", () => {
  test("the events of a turn contain everything that the client needs", async () => {
    const { client } = await called({ result: "Sun." });
    const { data } = await client.event("external_tool.requested");
    expect(data).toEqual({
      requestId: expect.any(String),
      sessionId: expect.any(String),
      toolCallId: "call-1",
      toolName: "get_weather",
      arguments: { city: "Oslo" },
      workingDirectory: served.folder,
    });
  });

  test.each([
    ["a text", { result: "Sun." }, "Sun.", { success: true }],
    ["an empty text", { result: "" }, "", { success: true }],
    ["null", { result: null }, "", { success: true }],
    [
      "a result",
      { result: { textResultForLlm: "Sun.", resultType: "success", toolTelemetry: { a: 1 } } },
      "Sun.",
      { success: true, toolTelemetry: { a: 1 } },
    ],
    [
      "a failure",
      { result: { textResultForLlm: "Service unavailable", resultType: "failure", error: "ECONNREFUSED" } },
      "Service unavailable",
      { success: false, error: { message: "ECONNREFUSED", code: "failure" } },
    ],
    [
      "a denial",
      { result: { textResultForLlm: "Not for you.", resultType: "denied" } },
      "Not for you.",
      { success: false, error: { code: "denied", message: "Not for you." } },
    ],
    [
      "what its handler threw",
      { error: "Melbourne" },
      'Failed to execute `get_weather` tool with arguments: {"city":"Oslo"} due to error: Error: Tool execution failed',
      { success: false, error: { message: "Tool execution failed", code: "failure" } },
    ],
  ])("%s is what the model reads", async (_what, answer, text, complete) => {
    const { complete: data, text: read } = await called(answer);
    expect(read).toBe(text);
    expect(data).toMatchObject(complete);
    expect(JSON.stringify(served.asked)).not.toContain("Melbourne");
    expect(JSON.stringify(served.asked)).not.toContain("ECONNREFUSED");
  });

  test("one that is rejected ends the turn", async () => {
    const { complete } = await called({ result: { textResultForLlm: "No.", resultType: "rejected" } });
    expect(complete).toMatchObject({ success: false, error: { code: "rejected", message: "No." } });
    expect(served.model.requests).toHaveLength(1);
  });

  test("an answer without result and error is refused, and the call stays open", async () => {
    const { client, sessionId } = await session({ tools: [{ ...weather, skipPermission: true }] });
    served.says(calling("get_weather", { city: "Oslo" }), "Thank you.");
    const done = client.say(sessionId, "Weather?");
    const { data } = await client.event("external_tool.requested");
    const { requestId } = data;
    expect((await client.refusal("session.tools.handlePendingToolCall", { sessionId, requestId })).code).toBe(-32602);
    await client.request("session.tools.handlePendingToolCall", { sessionId, requestId, result: "Late." });
    await done;
    expect(await client.request("session.tools.handlePendingToolCall", { sessionId, requestId, result: "Later." })).toEqual({
      success: false,
    });
    await client.request("session.destroy", { sessionId });
    expect((await client.refusal("session.tools.handlePendingToolCall", { sessionId, requestId, result: "x" })).message).toContain(
      "Session not found",
    );
  });

  test("a call of an unknown tool gets the result that the tool does not exist", async () => {
    const { client, sessionId } = await session({ tools: [weather], availableTools: ["custom:*"] });
    served.says(calling("report_intent"), "Sorry.");
    await client.say(sessionId, "Hi");
    expect(served.asked.messages.at(-1).content).toBe(
      "Tool 'report_intent' does not exist. Available tools that can be called are get_weather.",
    );
  });

  test("names that models cannot call refuse the whole session", async () => {
    served = await Served.start();
    const client = await served.connect();
    const { message } = await client.refusal("session.create", { sessionId: "dots", tools: [{ name: "my.tool" }] });
    expect(message).toContain("my.tool");
    expect((await client.request("session.list")).sessions).toEqual([]);
    await client.create({ sessionId: "dots" });
  });

  test("tools.set replaces a client's list, and the model has the new one in the same turn", async () => {
    const { client, sessionId } = await session({ tools: [{ ...weather, skipPermission: true }], availableTools: ["custom:*"] });
    served.says(calling("get_weather", { city: "Oslo" }), "Done.");
    const done = client.say(sessionId, "Go");
    const { data } = await client.event("external_tool.requested");
    expect(await client.request("session.tools.set", { sessionId, tools: [{ name: "get_time" }] })).toEqual({});
    await client.request("session.tools.handlePendingToolCall", { sessionId, requestId: data["requestId"], result: "Sun." });
    await done;
    expect(served.asked.tools.map((tool: Json) => tool.function.name)).toEqual(["get_time"]);
    const { tools } = await client.request("session.tools.getCurrentMetadata", { sessionId });
    expect(tools).toEqual([{ name: "get_time", description: "", deferLoading: false }]);
  });

  test("execute calls a tool without a model", async () => {
    const { client, sessionId } = await session();
    served.write("skills/books/SKILL.md", "---\nname: books\ndescription: Books.\n---\nRead.");
    served.write(
      "skills/books/tools/find_book.mjs",
      'export const SCHEMA = { name: "find_book", description: "Finds.", parameters: { type: "object", properties: {} }, skipPermission: true };\nexport const execute = () => "Emma";',
    );
    await client.event("session.tools_updated", () =>
      served.server.sessions
        .get(sessionId)!
        .session.listTools()
        .some(({ name }) => name === "find_book"),
    );
    await client.request("session.permissions.setApproveAll", { sessionId, enabled: true });
    expect(await client.request("session.permissions.getMode", { sessionId })).toEqual({ mode: "allow-all" });
    const result = await client.request("session.tools.execute", { sessionId, toolName: "find_book", arguments: {} });
    expect(result).toMatchObject({ resultType: "success", textResultForLlm: "Emma" });
    expect((await client.request("tools.list")).tools).toContainEqual(
      expect.objectContaining({ name: "find_book", namespacedName: "books/find_book" }),
    );
  });
});

describe("permissions", () => {
  test("of a client's tool say what would run, and rules of the session decide before", async () => {
    const { client, sessionId } = await session({ tools: [weather] });
    client.serve({ get_weather: () => "Sun." });
    served.says(calling("get_weather", { city: "Oslo" }), "One.");
    await client.say(sessionId, "Go");
    const asked = (await client.event("permission.requested")).data;
    expect(asked["permissionRequest"]).toMatchObject({
      kind: "custom-tool",
      toolCallId: "call-1",
      toolName: "get_weather",
      toolDescription: weather.description,
      args: { city: "Oslo" },
    });
    expect(asked["promptRequest"]).toEqual(asked["permissionRequest"]);
    expect((await client.event("permission.completed")).data["result"]).toEqual({ kind: "approved" });
    const add = [{ kind: "get_weather", argument: null }];
    await client.request("session.permissions.modifyRules", { sessionId, scope: "session", add });
    served.says(calling("get_weather", { city: "Rome" }, "call-2"), "Two.");
    await client.say(sessionId, "Again");
    expect(client.count("permission.requested")).toBe(1);
    await client.request("session.permissions.configure", { sessionId, rules: { approved: [], denied: add } });
    served.says(calling("get_weather", { city: "Rome" }, "call-3"), "Three.");
    await client.say(sessionId, "And again");
    expect(client.count("permission.requested")).toBe(1);
    expect(client.events.findLast(({ event }) => event.type === "tool.execution_complete")?.event.data["success"]).toBe(false);
  });

  test("an approval for the session is not requested again; without a user the call is denied", async () => {
    const { client, sessionId } = await session({ tools: [weather, { ...weather, name: "other" }] });
    client.answers("unused", () => {});
    const answer = async (requestIndex: number, result: object): Promise<void> => {
      const { data } = await client.eventually(
        () => client.events.filter(({ event }) => event.type === "permission.requested")[requestIndex]?.event,
      );
      const pending = await client.request("session.permissions.pendingRequests", { sessionId });
      expect(pending.items).toMatchObject([{ requestId: data["requestId"], request: { kind: "custom-tool" } }]);
      await client.request("session.permissions.handlePendingPermissionRequest", { sessionId, requestId: data["requestId"], result });
    };
    served.says(calling("get_weather", { city: "Oslo" }), calling("other", { city: "Oslo" }, "call-2"), "Done.");
    const done = client.say(sessionId, "Go");
    const approval = { kind: "custom-tool", toolName: "get_weather" };
    await answer(0, { kind: "approve-for-session", approval });
    const { data } = await client.event("external_tool.requested");
    await client.request("session.tools.handlePendingToolCall", { sessionId, requestId: data["requestId"], result: "Sun." });
    await answer(1, { kind: "user-not-available" });
    await done;
    expect(client.events.filter(({ event }) => event.type === "permission.completed").map(({ event }) => event.data["result"])).toEqual([
      { kind: "approved-for-session", approval },
      { kind: "denied-no-approval-rule-and-could-not-request-from-user" },
    ]);
    expect(served.asked.messages.at(-1).content).toBe("Permission denied and could not request permission from user");
  });

  test("paths, locations and folders that are trusted can be looked at and added", async () => {
    const { client, sessionId } = await session();
    const ask = (method: string, params: object = {}): Promise<Json> =>
      client.request(`session.permissions.${method}`, { sessionId, ...params });
    expect(await ask("paths.list")).toEqual({ directories: [served.folder], primary: served.folder });
    expect(await ask("paths.isPathWithinAllowedDirectories", { path: "/opt/x/y" })).toEqual({ allowed: false });
    await ask("paths.add", { path: "/opt/x" });
    expect(await ask("paths.isPathWithinAllowedDirectories", { path: "/opt/x/y" })).toEqual({ allowed: true });
    expect(await ask("paths.isPathWithinWorkspace", { path: "/opt/x/y" })).toEqual({ allowed: false });
    expect(await ask("paths.isPathWithinWorkspace", { path: "a/b" })).toEqual({ allowed: true });
    expect((await client.refusal("session.permissions.paths.updatePrimary", { sessionId, path: "/opt/missing" })).message).toContain(
      "must be a folder that exists",
    );
    const { locationKey } = await ask("locations.resolve", { workingDirectory: served.folder });
    expect(await ask("locations.apply", { workingDirectory: served.folder })).toMatchObject({ locationKey, changed: false });
    expect(await ask("folderTrust.isTrusted", { path: served.folder })).toEqual({ trusted: false });
    await ask("folderTrust.addTrusted", { path: served.folder });
    expect(await ask("folderTrust.isTrusted", { path: `${served.folder}/sub` })).toEqual({ trusted: true });
    for (const method of ["setRequired", "notifyPromptShown", "resetSessionApprovals", "urls.setUnrestrictedMode"]) {
      expect(await ask(method, { required: true, message: "m", enabled: true })).toEqual({ success: true });
    }
  });
});

describe("hooks", () => {
  test("go to the client that has them, and what it answers counts", async () => {
    const { client, sessionId } = await session({ hooks: true, tools: [weather] });
    client.serve({ get_weather: ({ city }) => `Sun in ${city}.` });
    const asked: Json[] = [];
    client.answers("hooks.invoke", (request) => {
      asked.push(request);
      const { hookType } = request;
      if (hookType === "preToolUse")
        return { output: { permissionDecision: "allow", modifiedArgs: { city: "Rome" }, additionalContext: null } };
      if (hookType === "userPromptSubmitted") return { output: { modifiedPrompt: "Weather, please." } };
      if (hookType === "postToolUse") return { output: { modifiedResult: { textResultForLlm: "Changed.", resultType: "success" } } };
      return {};
    });
    served.says(calling("get_weather", { city: "Oslo" }), "Thank you.");
    await client.say(sessionId, "Weather?");
    const kinds = asked.map(({ hookType }) => hookType);
    expect(kinds).toEqual([
      "userPromptSubmitted",
      "userPromptTransformed",
      "sessionStart",
      "preToolUse",
      "postToolUse",
      "agentStop",
      "sessionEnd",
    ]);
    expect(asked[3]).toMatchObject({
      sessionId,
      input: { sessionId, toolName: "get_weather", toolArgs: { city: "Oslo" }, cwd: served.folder },
    });
    expect(typeof asked[3].input.timestamp).toBe("number");
    expect(asked[4].input).toMatchObject({
      toolArgs: { city: "Rome" },
      toolResult: { resultType: "success", textResultForLlm: "Sun in Rome." },
    });
    expect(client.count("permission.requested")).toBe(0);
    expect(served.asked.messages.at(-1).content).toBe("Changed.");
    expect(served.asked.messages.find(({ role }: Json) => role === "user").content).toContain("Weather, please.");
    expect(client.count("hook.start")).toBe(asked.length);
  });

  test("a client that cannot answer preToolUse denies, one that has gone has no say any more", async () => {
    served = await Served.start();
    const [one, two] = [await served.connect(), await served.connect()];
    one.serve({ get_weather: () => "Sun." });
    const sessionId = await one.create({ model: "m", tools: [weather] });
    two.answers("hooks.invoke", ({ hookType }) => {
      if (hookType === "preToolUse") throw new Error("broken");
      return {};
    });
    await two.request("session.resume", { sessionId, hooks: true });
    served.says(calling("get_weather", { city: "Oslo" }), "Denied.");
    await one.say(sessionId, "Weather?");
    expect((await one.event("tool.execution_complete")).data["success"]).toBe(false);
    two.drop();
    await expect.poll(() => served.server.sessions.get(sessionId)?.clients.length).toBe(1);
    served.says(calling("get_weather", { city: "Oslo" }, "call-2"), "Fine.");
    await one.say(sessionId, "Weather again?");
    expect(served.asked.messages.at(-1).content).toBe("Sun.");
  });
});

describe("what is asked of people", () => {
  test("a question of the model goes to the client that answers such, and only then the model may ask", async () => {
    const { client, sessionId } = await session({ requestUserInput: true });
    const asked: Json[] = [];
    client.answers("userInput.request", (request) => {
      asked.push(request);
      return { answer: "Blue", wasFreeform: false };
    });
    client.serve();
    served.says(calling("ask_user", { question: "Which colour?", choices: ["Red", "Blue"] }), "Blue it is.");
    await client.say(sessionId, "Choose");
    expect(asked).toMatchObject([{ sessionId, question: "Which colour?", choices: ["Red", "Blue"] }]);
    expect(served.asked.messages.at(-1).content).toBe("User selected: Blue");
    const other = await client.create({ model: "m" });
    served.says("Hi.");
    await client.say(other, "Hi");
    expect(served.asked.tools.map((tool: Json) => tool.function.name)).not.toContain("ask_user");
  });

  test("an elicitation is an event that a client answers; without one it is called off", async () => {
    served = await Served.start();
    const [one, two] = [await served.connect(), await served.connect()];
    const sessionId = await one.create();
    const question = { sessionId, message: "Your name?", requestedSchema: { type: "object", properties: { name: { type: "string" } } } };
    expect(await one.request("session.ui.elicitation", question)).toEqual({ action: "cancel" });
    expect(await two.request("session.resume", { sessionId, requestElicitation: true })).toMatchObject({
      capabilities: { ui: { elicitation: true } },
    });
    expect((await one.event("capabilities.changed")).data).toEqual({ ui: { elicitation: true } });
    const answer = one.request("session.ui.elicitation", question);
    const { data } = await two.event("elicitation.requested", ({ data: asked }) => asked["requestId"] !== undefined);
    const asked = two.events.findLast(({ event }) => event.type === "elicitation.requested")!.event.data;
    expect(data["message"]).toBe("Your name?");
    const result = { action: "accept", content: { name: "Ada" } };
    expect(await two.request("session.ui.handlePendingElicitation", { sessionId, requestId: asked["requestId"], result })).toEqual({
      success: true,
    });
    expect(await answer).toEqual(result);
    two.drop();
    await one.event("capabilities.changed", (event) => JSON.stringify(event.data) === '{"ui":{"elicitation":false}}');
  });

  test("a command of a client is done by that client, and reaches no model", async () => {
    served = await Served.start();
    const [one, two] = [await served.connect(), await served.connect()];
    const sessionId = await one.create({ model: "m", commands: [{ name: "deploy", description: "Ships it." }] });
    expect((await one.event("commands.changed")).data).toEqual({ commands: [{ name: "deploy", description: "Ships it." }] });
    const { commands } = await one.request("session.commands.list", { sessionId, includeSkills: false });
    expect(commands).toContainEqual(expect.objectContaining({ name: "deploy", kind: "client" }));
    await two.request("session.resume", { sessionId });
    const done = one.say(sessionId, "/deploy to staging");
    const { data } = await one.event("command.execute");
    expect(data).toEqual({ requestId: expect.any(String), commandName: "deploy", command: "/deploy to staging", args: "to staging" });
    const { requestId } = data;
    expect(await two.request("session.commands.handlePendingCommand", { sessionId, requestId, error: "Unknown command" })).toEqual({
      success: true,
    });
    expect(await one.request("session.commands.handlePendingCommand", { sessionId, requestId })).toEqual({ success: true });
    await done;
    expect(served.model.requests).toEqual([]);
    const failing = two.request("session.commands.execute", { sessionId, commandName: "deploy", args: "" });
    const second = await one.event("command.execute", (event) => event.data["requestId"] !== requestId);
    await one.request("session.commands.handlePendingCommand", { sessionId, requestId: second.data["requestId"], error: "No." });
    expect(await failing).toEqual({ error: "No." });
    expect(await one.request("session.commands.execute", { sessionId, commandName: "nope" })).toMatchObject({
      error: expect.stringContaining("nope"),
    });
    one.drop();
    await two.event("commands.changed", (event) => JSON.stringify(event.data) === '{"commands":[]}');
  });
});

describe("the system message", () => {
  test.each([
    [{ mode: "append", content: "Say please." }, (text: string) => text.startsWith("You are") && text.endsWith("Say please.")],
    [{ content: "Say please." }, (text: string) => text.endsWith("Say please.")],
    [{ mode: "replace", content: "Only this." }, (text: string) => text.startsWith("Only this.")],
    [
      { mode: "customize", content: "At the end.", sections: { identity: { action: "replace", content: "I am a cat." } } },
      (text: string) => text.includes("I am a cat.") && text.endsWith("At the end."),
    ],
  ])("is made as the client wants it: %j", async (systemMessage, fits) => {
    const { client, sessionId } = await session({ systemMessage });
    served.says("Hi.");
    await client.say(sessionId, "Hi");
    const [system, ...rest] = served.asked.messages;
    expect([system.role, rest.some(({ role }: Json) => role === "system")]).toEqual(["system", false]);
    expect(fits(system.content)).toBe(true);
  });

  test("sections that the client transforms are sent to it together", async () => {
    const requests: Json[] = [];
    const transform = { action: "transform" };
    const { client, sessionId } = await session({
      systemMessage: { mode: "customize", sections: { identity: transform, guidelines: transform, environment_context: transform } },
    });
    client.answers("systemMessage.transform", (request) => {
      requests.push(request);
      const sections = Object.entries<Json>(request.sections).map(([id, { content }]) => [id, { content: `<${id}>${content.length > 0}` }]);
      return { sections: Object.fromEntries(sections) };
    });
    served.says("Hi.");
    await client.say(sessionId, "Hi");
    expect(requests).toHaveLength(1);
    expect(requests[0].sessionId).toBe(sessionId);
    for (const id of Object.keys(requests[0].sections)) expect(served.asked.messages[0].content).toContain(`<${id}>true`);
    expect(Object.keys(requests[0].sections).length).toBeGreaterThan(0);
  });
});

describe("models", () => {
  test("answer piece by piece when the client wants that", async () => {
    const { client, sessionId } = await session({ streaming: true });
    served.model.answer(chatStreamAnswer({ content: "One two three." }));
    await client.say(sessionId, "Count");
    const pieces = client.events
      .filter(({ event }) => event.type === "assistant.message_delta")
      .map(({ event }) => event.data["deltaContent"]);
    expect(pieces.length).toBeGreaterThan(1);
    expect(pieces.join("")).toBe("One two three.");
    expect(client.types()).toContain("assistant.message_start");
  });

  test("of a provider that the client brings get its key, its headers and the model's own name", async () => {
    served = await Served.start({ server: { environment: {} } });
    const client = await served.connect();
    expect((await client.refusal("models.list")).message).toContain("Not authenticated");
    const provider = {
      type: "openai",
      baseUrl: served.model.url,
      apiKey: "key-1",
      headers: { "x-team": "a" },
      wireModel: "gpt-wire",
      transport: "http",
    };
    const sessionId = await client.create({ model: "mine", provider });
    served.says("Hi.");
    await client.say(sessionId, "Hi", { requestHeaders: { "x-request": "b" } });
    const seen = served.model.requests.at(-1)!;
    expect(seen.headers).toMatchObject({ authorization: "Bearer key-1", "x-team": "a", "x-request": "b" });
    expect(seen.body.model).toBe("gpt-wire");
    const none = await client.create();
    expect((await client.refusal("session.send", { sessionId: none, prompt: "Hi" })).message).toContain("no model");
  });

  test("of a provider with a token of the client's ask the client for it each time", async () => {
    const { client } = await session();
    let token = 0;
    client.answers("providerToken.getToken", ({ providerName }) => ({ token: `${providerName}-${++token}` }));
    const sessionId = await client.create({ model: "m", provider: { baseUrl: served.model.url, hasBearerTokenProvider: true } });
    served.says("One.", "Two.");
    await client.say(sessionId, "Hi");
    await client.say(sessionId, "Hi");
    expect(served.model.requests.map(({ headers }) => headers.authorization)).toEqual(["Bearer default-1", "Bearer default-2"]);
  });

  test("are listed, chosen by name among several providers, and switched while the session lives", async () => {
    served = await Served.start();
    const client = await served.connect();
    served.model.answer({ headers: { "content-type": "application/json" }, steps: ['{"data":[{"id":"a","name":"A"}]}'] });
    expect((await client.request("models.list")).models).toMatchObject([
      { id: "a", name: "A", capabilities: { supports: {}, limits: {} } },
    ]);
    const providers = [{ name: "p", type: "openai", baseUrl: served.model.url, apiKey: "k" }];
    const models = [
      { id: "one", provider: "p", wireModel: "wire-one" },
      { id: "two", provider: "p" },
    ];
    const sessionId = await client.create({ model: "p/one", providers, models });
    served.says("Hi.", "Ho.");
    await client.say(sessionId, "Hi");
    expect(served.asked.model).toBe("wire-one");
    const plain = await client.create({ model: "x" });
    await client.request("session.model.switchTo", { sessionId: plain, modelId: "y", reasoningEffort: "high" });
    expect(await client.request("session.model.getCurrent", { sessionId: plain })).toEqual({ modelId: "y", reasoningEffort: "high" });
    expect((await client.event("session.model_change", ({ data }) => data["newModel"] === "y")).data).toMatchObject({ previousModel: "x" });
    await client.say(plain, "Hi");
    expect(served.asked).toMatchObject({ model: "y", reasoning_effort: "high" });
  });

  test("can be reached through a client that carries the requests", async () => {
    served = await Served.start({ server: { environment: {} } });
    const client = await served.connect();
    expect(await client.request("llmInference.setProvider", {})).toEqual({ success: true });
    const started: Json[] = [];
    client.answers("llmInference.httpRequestStart", (request) => {
      started.push(request);
      return { accepted: true };
    });
    client.answers("llmInference.httpRequestChunk", async ({ requestId, data, end }) => {
      if (end !== true) return { accepted: true };
      const body = JSON.stringify({
        model: "m",
        choices: [
          {
            index: 0,
            message: { role: "assistant", content: `Heard ${JSON.parse(data).messages.at(-1).content.length > 0}` },
            finish_reason: "stop",
          },
        ],
      });
      const half = Buffer.from(body);
      setImmediate(async () => {
        await client.request("llmInference.httpResponseStart", {
          requestId,
          status: 200,
          headers: { "content-type": ["application/json"] },
        });
        await client.request("llmInference.httpResponseChunk", { requestId, data: half.subarray(0, 20).toString("base64"), binary: true });
        await client.request("llmInference.httpResponseChunk", { requestId, data: half.subarray(20).toString("utf8"), end: true });
      });
      return { accepted: true };
    });
    const sessionId = await client.create({ model: "m" });
    await client.say(sessionId, "Hi");
    expect((await client.event("assistant.message")).data["content"]).toBe("Heard true");
    expect(started).toMatchObject([
      { sessionId, method: "POST", url: expect.stringContaining("/chat/completions"), headers: { "content-type": ["application/json"] } },
    ]);
    expect(await client.request("llmInference.httpResponseChunk", { requestId: "late", data: "", end: true })).toEqual({ accepted: false });
  });

  test.each([true, false])("WebSocket connections are opened through such a client, if it wants them: %s", async (isWanted) => {
    served = await Served.start({ server: { environment: {} } });
    const client = await served.connect();
    await client.request("llmInference.setProvider", {});
    const started: Json[] = [];
    const messages: Json[] = [];
    const respond = (method: string, params: object): Promise<Json> => client.request(`llmInference.httpResponse${method}`, params);
    const listed = { data: [{ id: "m", supported_endpoints: ["/responses", "ws:/responses"] }] };
    const whole = { id: "r", status: "completed", output: [{ type: "message", content: [{ type: "output_text", text: "HTTP" }] }] };
    client.answers("llmInference.httpRequestStart", (request) => {
      started.push(request);
      const { requestId, transport } = request;
      if (transport === "websocket") setImmediate(() => respond("Start", { requestId, status: 101, headers: {} }));
      return {};
    });
    client.answers("llmInference.httpRequestChunk", ({ requestId, data, cancel }) => {
      const { url, transport } = started.find((one) => one.requestId === requestId);
      if (cancel === true) messages.push("cancel");
      else if (transport === "websocket") {
        messages.push(JSON.parse(data));
        for (const event of socketEvents({ content: `Socket ${messages.length}` }, `resp_${messages.length}`))
          setImmediate(() => respond("Chunk", { requestId, data: JSON.stringify(event), binary: false }));
      } else {
        const [status, body] = url.endsWith("/models") ? [200, listed] : url.endsWith("/responses") ? [200, whole] : [404, {}];
        setImmediate(async () => {
          await respond("Start", { requestId, status, headers: { "content-type": ["application/json"] } });
          await respond("Chunk", { requestId, data: JSON.stringify(body), end: true });
        });
      }
      return {};
    });
    const sessionId = await client.create({ model: "m", capi: { enableWebSocketResponses: isWanted } });
    await client.say(sessionId, "Hi");
    await client.say(sessionId, "More");
    const said = client.events.filter(({ event }) => event.type === "assistant.message").map(({ event }) => event.data["content"]);
    const usage = client.events.flatMap(({ event }) => (event.type === "assistant.usage" ? [event.data] : []));
    const way = isWanted ? { apiEndpoint: "ws:/responses", transport: "websocket" } : { apiEndpoint: "/responses", transport: "http" };
    expect(usage).toMatchObject([way, way]);
    if (!isWanted) {
      expect(said).toEqual(["HTTP", "HTTP"]);
      expect(messages).toEqual([]);
      return;
    }
    expect(said).toEqual(["Socket 1", "Socket 2"]);
    const opened = started.filter(({ transport }) => transport === "websocket");
    expect(opened).toMatchObject([{ sessionId, method: "GET", url: expect.stringMatching(/^wss:.*\/responses$/), agentId: sessionId }]);
    expect(messages).toMatchObject([{ type: "response.create" }, { previous_response_id: "resp_1", input: [{ role: "user" }] }]);
  });

  test("a WebSocket connection that its client breaks is an error of the turn", async () => {
    served = await Served.start({ server: { environment: {} } });
    const client = await served.connect();
    await client.request("llmInference.setProvider", {});
    const provider = { type: "openai", baseUrl: "http://models.test", wireApi: "responses", transport: "websockets" };
    client.answers("llmInference.httpRequestStart", ({ requestId, transport }) => {
      const params = transport === "websocket" ? { status: 101 } : { status: 400 };
      setImmediate(() => client.request("llmInference.httpResponseStart", { requestId, headers: {}, ...params }));
      return {};
    });
    client.answers("llmInference.httpRequestChunk", ({ requestId, data }) => {
      const isSocket = data.includes("response.create");
      const broken = isSocket ? { error: { message: "The proxy said no." } } : {};
      setImmediate(() => client.request("llmInference.httpResponseChunk", { requestId, data: "{}", end: true, ...broken }));
      return {};
    });
    const sessionId = await client.create({ model: "m", provider });
    await client.say(sessionId, "Hi");
    expect((await client.event("session.error")).data["message"]).toContain("The proxy said no.");
  });

  test("model requests name the agent, the purpose and the parent agent", async () => {
    served = await Served.start({ server: { environment: {} } });
    const client = await served.connect();
    await client.request("llmInference.setProvider", {});
    const started: Json[] = [];
    const task = (name: string, prompt: string): object => {
      const args = { agent_type: "general-purpose", name, description: "Do", prompt };
      return { tool_calls: [{ id: `call-${name}`, type: "function", function: { name: "task", arguments: JSON.stringify(args) } }] };
    };
    const replies = [
      task("one", "First."),
      task("two", "Second."),
      { content: "Two." },
      { content: "One." },
      { content: "Done." },
      { content: "Brief." },
      { content: "Aside." },
    ];
    client.answers("llmInference.httpRequestStart", (request) => {
      started.push(request);
      return { accepted: true };
    });
    client.answers("llmInference.httpRequestChunk", ({ requestId }) => {
      const message = { role: "assistant", ...replies.shift() };
      const data = JSON.stringify({
        model: "m",
        choices: [{ index: 0, message, finish_reason: "content" in message ? "stop" : "tool_calls" }],
      });
      setImmediate(async () => {
        await client.request("llmInference.httpResponseStart", {
          requestId,
          status: 200,
          headers: { "content-type": ["application/json"] },
        });
        await client.request("llmInference.httpResponseChunk", { requestId, data, end: true });
      });
      return { accepted: true };
    });
    const sessionId = await client.create({ model: "m", streaming: false });
    await client.say(sessionId, "Go");
    await client.request("session.history.summarizeForHandoff", { sessionId });
    await client.request("session.ui.ephemeralQuery", { sessionId, question: "Who?" });
    const request = { messages: [{ role: "user", content: { type: "text", text: "Hi" } }], maxTokens: 10 };
    replies.push({ content: "Sampled." });
    await client.request("session.mcp.executeSampling", { sessionId, requestId: "1", serverName: "s", mcpRequestId: 1, request });
    const facts = started.map(({ interactionType, agentId, parentAgentId }) => [interactionType, agentId, parentAgentId]);
    const root = ["conversation-agent", sessionId, undefined];
    const one = ["conversation-subagent", "call-one", sessionId];
    expect(facts).toEqual([
      root,
      one,
      ["conversation-subagent", "call-two", "call-one"],
      one,
      root,
      ["conversation-compaction", sessionId, undefined],
      ["conversation-background", sessionId, undefined],
      ["conversation-sampling", expect.any(String), sessionId],
    ]);
    const invocations = started.map(({ agentInvocationId }) => agentInvocationId);
    expect([invocations[0], invocations[1]]).toEqual([invocations[4], invocations[3]]);
    expect(new Set(invocations).size).toBe(4);
  });
});
