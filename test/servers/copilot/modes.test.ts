import { afterEach, describe, expect, test } from "vitest";
import { calling, type Json, Served, type ServedOptions, type TestClient } from "./wire-kit.ts";

let served: Served;

afterEach(() => served?.[Symbol.asyncDispose]());

async function session(
  options: object = {},
  serving: ServedOptions = {},
): Promise<{ readonly client: TestClient; readonly sessionId: string }> {
  served = await Served.start(serving);
  const client = await served.connect();
  return { client, sessionId: await client.create({ model: "m", ...options }) };
}

function offered(): readonly string[] {
  return (served.asked.tools ?? []).map((tool: Json) => tool.function.name);
}

function system(): string {
  return served.asked.messages[0].content;
}

const planning = calling("exit_plan_mode", { summary: "Two steps.", plan: "# Plan\n1. a\n2. b", recommended_action: "interactive" });

describe("plan mode", () => {
  test("a plan goes to the client, and an approval ends the mode and the tool", async () => {
    const { client, sessionId } = await session({ requestExitPlanMode: true });
    const asked: Json[] = [];
    client.answers("exitPlanMode.request", (params) => {
      asked.push(params);
      return { approved: true, selectedAction: "interactive", feedback: "Mind the gap." };
    });
    served.says(planning, "I begin.");
    await client.say(sessionId, "Plan it.", { agentMode: "plan" });
    expect(asked).toEqual([
      {
        sessionId,
        summary: "Two steps.",
        planContent: "# Plan\n1. a\n2. b",
        actions: ["exit_only", "interactive", "autopilot"],
        recommendedAction: "interactive",
      },
    ]);
    const result = served.asked.messages.at(-1).content;
    expect(result).toContain("The user approved the plan.");
    expect(result).toContain("Mind the gap.");
    expect(offered()).not.toContain("exit_plan_mode");
    expect(await client.request("session.mode.get", { sessionId })).toBe("interactive");
    const modes = client.events.filter(({ event }) => event.type === "session.mode_changed").map(({ event }) => event.data["newMode"]);
    expect(modes).toEqual(["plan", "interactive"]);
    expect(await client.request("session.plan.read", { sessionId })).toMatchObject({ exists: true, content: "# Plan\n1. a\n2. b" });
    expect((await client.event("exit_plan_mode.completed")).data).toMatchObject({ approved: true });
  });

  test("a plan that is refused leaves the session in the mode", async () => {
    const { client, sessionId } = await session({ requestExitPlanMode: true });
    client.answers("exitPlanMode.request", () => ({ approved: false, feedback: "Shorter." }));
    served.says(planning, "All right.");
    await client.say(sessionId, "Plan it.", { agentMode: "plan" });
    expect(served.asked.messages.at(-1).content).toContain("Shorter.");
    expect(offered()).toContain("exit_plan_mode");
    expect(system()).toContain("You are in plan mode.");
    expect(await client.request("session.mode.get", { sessionId })).toBe("plan");
  });

  test("a client may answer by the event instead of the request", async () => {
    const { client, sessionId } = await session({ requestExitPlanMode: true });
    client.answers("exitPlanMode.request", () => new Promise(() => {}));
    served.says(planning, "I begin.");
    const said = client.say(sessionId, "Plan it.", { agentMode: "plan" });
    const { requestId } = (await client.event("exit_plan_mode.requested")).data;
    const response = { approved: true, selectedAction: "autopilot", autoApproveEdits: true };
    expect(await client.request("session.ui.handlePendingExitPlanMode", { sessionId, requestId, response })).toEqual({ success: true });
    await said;
    expect(await client.request("session.mode.get", { sessionId })).toBe("autopilot");
    expect(system()).toContain("You are in autopilot mode.");
    expect(await client.request("session.ui.handlePendingExitPlanMode", { sessionId, requestId, response })).toEqual({ success: false });
  });

  test("the tool is there only in the mode, and only for a client that decides about plans", async () => {
    const { client, sessionId } = await session({ requestExitPlanMode: true });
    served.says("Hello.", "Hello.");
    await client.say(sessionId, "Hi.");
    expect(offered()).not.toContain("exit_plan_mode");
    const other = await client.create({ model: "m" });
    await client.say(other, "Hi.", { agentMode: "plan" });
    expect(offered()).not.toContain("exit_plan_mode");
  });

  test("a mode that does not exist, and the one of a shell, are refused", async () => {
    const { client, sessionId } = await session();
    expect((await client.refusal("session.send", { sessionId, prompt: "x", agentMode: "fast" })).message).toContain("a mode must be");
    expect((await client.refusal("session.send", { sessionId, prompt: "ls", agentMode: "shell" })).message).toContain("shell");
  });
});

describe("questions to the user", () => {
  test("go by forms where the client wants it so", async () => {
    const { client, sessionId } = await session({ requestElicitation: true, requestUserInput: true, askUserVariant: "elicitation" });
    served.says(calling("ask_user", { message: "Which colour?" }), "Blue then.");
    const said = client.say(sessionId, "Paint it.");
    const { data } = await client.event("elicitation.requested");
    expect(data).toMatchObject({ message: "Which colour?", mode: "form" });
    const { requestId } = data;
    await client.request("session.ui.handlePendingElicitation", {
      sessionId,
      requestId,
      result: { action: "accept", content: { answer: "blue" } },
    });
    await said;
    expect(served.asked.messages.at(-1).content).toBe('User responded: {"answer":"blue"}');
  });

  test("are not there in autopilot mode", async () => {
    const { client, sessionId } = await session({ requestUserInput: true });
    served.says("Hello.", "Hello.");
    await client.say(sessionId, "Hi.");
    expect(offered()).toContain("ask_user");
    await client.say(sessionId, "Hi.", { agentMode: "autopilot" });
    expect(offered()).not.toContain("ask_user");
  });
});

describe("custom instructions", () => {
  const files = {
    "AGENTS.md": "Use tabs.",
    ".github/copilot-instructions.md": "Write tests.",
    ".github/instructions/style.instructions.md": "---\napplyTo: '**/*.ts'\ndescription: Style\n---\nNo semicolons.",
    "extra/AGENTS.md": "Say please.",
  };

  test("files of the project and of further folders, and the organisation's, are in the system message", async () => {
    const { client, sessionId } = await session(
      { instructionDirectories: ["extra"], organizationCustomInstructions: "Be legal." },
      { files },
    );
    served.says("Hello.");
    await client.say(sessionId, "Hi.");
    const text = system();
    for (const part of ["Use tabs.", "Write tests.", "No semicolons.", "Say please.", "Be legal.", 'applies-to="**/*.ts"']) {
      expect(text).toContain(part);
    }
    const { sources } = await client.request("session.instructions.getSources", { sessionId });
    expect(sources.map(({ sourcePath }: Json) => sourcePath)).toEqual([
      "AGENTS.md",
      ".github/copilot-instructions.md",
      ".github/instructions/style.instructions.md",
      "AGENTS.md",
    ]);
    expect(sources[2]).toMatchObject({ type: "vscode", location: "repository", applyTo: ["**/*.ts"], content: "No semicolons." });
  });

  test("a file that is saved counts with the next message, and none does for a client that skips them", async () => {
    const { client, sessionId } = await session({}, { files });
    served.says("Hello.", "Hello.", "Hello.");
    await client.say(sessionId, "Hi.");
    served.write("AGENTS.md", "Use spaces.");
    await client.say(sessionId, "Hi.");
    expect(system()).toContain("Use spaces.");
    await client.request("session.options.update", { sessionId, skipCustomInstructions: true });
    await client.say(sessionId, "Hi.");
    expect(system()).not.toContain("Use spaces.");
    expect((await client.request("session.instructions.getSources", { sessionId })).sources).toEqual([]);
  });

  test("are found without a session, too", async () => {
    const { client } = await session({}, { files });
    const { sources } = await client.request("instructions.discover", { projectPaths: [served.folder], excludeHostInstructions: true });
    expect(sources).toHaveLength(3);
    expect(sources[0]).toMatchObject({ projectPath: served.folder, sourcePath: "AGENTS.md" });
    const { paths } = await client.request("instructions.getDiscoveryPaths", {
      projectPaths: [served.folder],
      excludeHostInstructions: true,
    });
    expect(paths.filter(({ preferredForCreation }: Json) => preferredForCreation)).toHaveLength(1);
  });
});

describe("options", () => {
  test("options without effect are reported", async () => {
    const { client } = await session({ sessionLimits: { maxAiCredits: 5 }, memory: { enabled: true }, requestAutoModeSwitch: true });
    const { data } = await client.event("session.info", (event) => event.data["infoType"] === "options_without_effect");
    expect(data["message"]).toBe(
      "These options of session.create have no effect in skillhost: memory, requestAutoModeSwitch, sessionLimits.",
    );
  });

  const wished: Readonly<Record<string, unknown>> = {
    canvasProvider: { id: "c" },
    capi: { autoTier: "fast" },
    configDir: "/config",
    contextTier: "long_context",
    embeddingCacheStorage: "persistent",
    enableFileHooks: true,
    enableHostGitOperations: true,
    enableSessionStore: true,
    enableSessionTelemetry: true,
    expAssignments: { parameters: {} },
    extensionInfo: { source: "project", name: "e" },
    isExperimentalMode: true,
    mcpOAuthTokenStorage: "in-memory",
  };

  test.each(Object.entries(wished))("%s is reported where it would change something", async (option, value) => {
    const { client } = await session({ [option]: value });
    const { data } = await client.event("session.info", (event) => event.data["infoType"] === "options_without_effect");
    expect(data["message"]).toBe(`These options of session.create have no effect in skillhost: ${option}.`);
  });

  test("that ask for what is the case anyway are not reported", async () => {
    const { client, sessionId } = await session({
      capi: { enableWebSocketResponses: false },
      contextTier: "default",
      customAgentsLocalOnly: true,
      embeddingCacheStorage: "in-memory",
      enableConfigDiscovery: false,
      enableFileHooks: false,
      enableHostGitOperations: false,
      enableSessionStore: false,
      enableSessionTelemetry: false,
      isExperimentalMode: false,
      mcpOAuthTokenStorage: "persistent",
      skipEmbeddingRetrieval: true,
    });
    await client.request("session.metadata.activity", { sessionId });
    expect(client.events.filter(({ event }) => event.data["infoType"] === "options_without_effect")).toEqual([]);
  });

  test("that would only seem to protect are refused", async () => {
    served = await Served.start();
    const client = await served.connect();
    const managedSettings = { permissions: { deny: ["Bash(rm:*)"] } };
    expect((await client.refusal("session.create", { model: "m", managedSettings })).message).toContain("managedSettings is not enforced");
  });

  test("a token that the client acquires signs in to the endpoint, and is asked for once while it lasts", async () => {
    const { client, sessionId } = await session({ gitHubTokenProviderRegistrationId: "r1" });
    const asked: Json[] = [];
    client.answers("gitHubToken.getToken", (params) => {
      asked.push(params);
      return { kind: "token", accessToken: "acquired", expiresIn: 8 * 60 * 60 };
    });
    served.says("Hello.", "Hello.");
    await client.say(sessionId, "Hi.");
    await client.say(sessionId, "Hi.");
    expect(asked).toEqual([{ registrationId: "r1", host: "github.com", sessionId, reason: "initial" }]);
    expect(served.model.requests.at(-1)?.headers["authorization"]).toBe("Bearer acquired");
  });

  test("a change of the model is emitted once", async () => {
    const { client, sessionId } = await session();
    served.says("One.", "Two.");
    await client.say(sessionId, "Hi.");
    await client.request("session.model.switchTo", { sessionId, modelId: "n", reasoningEffort: "high" });
    await client.say(sessionId, "Hi.");
    const changes = client.events.filter(({ event }) => event.type === "session.model_change").map(({ event }) => event.data);
    // The first model is in session.start.
    expect(changes).toEqual([{ newModel: "n", previousModel: "m", reasoningEffort: "high" }]);
  });
});
