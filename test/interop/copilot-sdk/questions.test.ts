import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { patience } from "../../slowness.ts";
import { calling, event, Runtime, type Sdk } from "./sdk-kit.ts";

let runtime: Runtime;
let sdk: Sdk;

beforeAll(async () => {
  runtime = await Runtime.start();
  sdk = runtime.sdk;
}, patience(120_000));

afterEach(() => runtime.clear());
afterAll(() => runtime[Symbol.asyncDispose]());

const weather = (handler: (args: Sdk, invocation: Sdk) => unknown, more: object = {}): Sdk =>
  sdk.defineTool("get_weather", {
    description: "Returns the weather of a city.",
    parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
    handler,
    ...more,
  });

const rolesAsked = (): string[] => runtime.asked.messages.map(({ role }: Sdk) => role);

describe("permissions", () => {
  test("a permission request says what would run, and a tool that skips permissions sends none", async () => {
    const asked: Sdk[] = [];
    const session = await runtime.session({
      tools: [weather(() => "Sun."), sdk.defineTool("free", { description: "Free.", skipPermission: true, handler: () => "Free." })],
      onPermissionRequest: (request: Sdk) => {
        asked.push(request);
        return { kind: "approve-once" };
      },
    });
    const completed = event(session, "permission.completed");
    runtime.says(calling("free"), calling("get_weather", { city: "Oslo" }, "call-2"), "Both.");
    await session.sendAndWait("Go");
    expect(asked).toMatchObject([
      {
        kind: "custom-tool",
        toolCallId: "call-2",
        toolName: "get_weather",
        toolDescription: "Returns the weather of a city.",
        args: { city: "Oslo" },
      },
    ]);
    expect((await completed).data.result).toMatchObject({ kind: "approved" });
  });

  test("a user who rejects a permission ends the turn", async () => {
    const session = await runtime.session({ onPermissionRequest: () => ({ kind: "reject" }), tools: [weather(() => "")] });
    const [decided, completed] = [event(session, "permission.completed"), event(session, "tool.execution_complete")];
    const before = runtime.requests.length;
    runtime.says(calling("get_weather", { city: "Oslo" }));
    await session.sendAndWait("Weather?");
    expect((await decided).data.result).toMatchObject({ kind: "denied-interactively-by-user" });
    expect((await completed).data.error).toEqual({ message: "The user rejected this tool call.", code: "rejected" });
    expect(runtime.requests).toHaveLength(before + 1);
  });

  test("a permission callback that throws counts as no user available, and the turn continues", async () => {
    const onPermissionRequest = (): never => {
      throw new Error("no terminal");
    };
    const session = await runtime.session({ onPermissionRequest, tools: [weather(() => "")] });
    const [decided, completed] = [event(session, "permission.completed"), event(session, "tool.execution_complete")];
    runtime.says(calling("get_weather", { city: "Oslo" }), "Then not.");
    expect((await session.sendAndWait("Weather?")).data.content).toBe("Then not.");
    expect((await decided).data.result).toMatchObject({ kind: "denied-no-approval-rule-and-could-not-request-from-user" });
    expect((await completed).data.error).toMatchObject({ code: "denied" });
    expect(runtime.lastToolResult).toBe("Permission denied and could not request permission from user");
  });

  test("an approval for the session covers later calls", async () => {
    let asked = 0;
    const onPermissionRequest = (): object => {
      asked++;
      return { kind: "approve-for-session", approval: { kind: "custom-tool", toolName: "get_weather" } };
    };
    const session = await runtime.session({ onPermissionRequest, tools: [weather(() => "Sun.")] });
    runtime.says(calling("get_weather", { city: "Oslo" }), calling("get_weather", { city: "Rome" }, "call-2"), "Both.");
    await session.sendAndWait("Weather?");
    expect(asked).toBe(1);
  });
});

describe("hooks", () => {
  test("hooks run in order, and their results take effect", async () => {
    const seen: string[] = [];
    const see = (name: string, output?: object) => (input: Sdk) => {
      seen.push(name);
      expect([typeof input.timestamp, input.sessionId !== undefined]).toEqual(["object", true]);
      return output;
    };
    const session = await runtime.session({
      tools: [weather(({ city }) => `Sun in ${city}.`)],
      onPermissionRequest: () => {
        seen.push("permission");
        return { kind: "approve-once" };
      },
      hooks: {
        onUserPromptSubmitted: see("userPromptSubmitted", { modifiedPrompt: "Weather, please." }),
        onSessionStart: see("sessionStart", { additionalContext: "It is winter." }),
        onPreToolUse: see("preToolUse", { permissionDecision: "allow", modifiedArgs: { city: "Rome" } }),
        onPostToolUse: see("postToolUse", { modifiedResult: { textResultForLlm: "Changed.", resultType: "success" } }),
        onSessionEnd: see("sessionEnd"),
      },
    });
    runtime.says(calling("get_weather", { city: "Oslo" }), "Thanks.");
    for (const type of ["assistant.idle", "session.idle"]) session.on(type, () => void seen.push(type));
    await session.sendAndWait("Weather?");
    expect(seen).toEqual([
      "userPromptSubmitted",
      "sessionStart",
      "preToolUse",
      "postToolUse",
      "sessionEnd",
      "assistant.idle",
      "session.idle",
    ]);
    expect(runtime.lastToolResult).toBe("Changed.");
    expect(rolesAsked()).toEqual(["system", "user", "user", "assistant", "tool"]);
    expect(runtime.asked.messages[1].content).toContain("It is winter.");
    expect(runtime.asked.messages[2].content).toContain("Weather, please.");
    expect(JSON.parse(runtime.asked.messages[3].tool_calls[0].function.arguments)).toEqual({ city: "Rome" });
  });

  test("a call that a hook denies does not run, even if its tool does not exist", async () => {
    const session = await runtime.session({
      tools: [weather(() => "Never.")],
      hooks: {
        onPreToolUse: ({ toolName }: Sdk) => ({
          permissionDecision: "deny",
          ...(toolName === "get_weather" && { permissionDecisionReason: "Too hot." }),
        }),
      },
    });
    const calls = [
      { id: "a", name: "get_weather", arguments: { city: "Oslo" } },
      { id: "b", name: "nowhere", arguments: {} },
    ];
    runtime.says({ toolCalls: calls }, "Denied.");
    await session.sendAndWait("Weather?");
    expect(runtime.asked.messages.slice(-2).map(({ content }: Sdk) => content)).toEqual([
      "Denied by preToolUse hook: Too hot.",
      "Denied by preToolUse hook: No reason provided",
    ]);
  });

  test("context that hooks add is at the same place as with the official runtime", async () => {
    const session = await runtime.session({
      tools: [weather(() => "Sun.", { skipPermission: true })],
      hooks: {
        onUserPromptSubmitted: () => ({ additionalContext: "It is Monday." }),
        onPreToolUse: () => ({ additionalContext: "The service is new." }),
        onPostToolUse: () => ({ additionalContext: "It may be wrong." }),
      },
    });
    runtime.says(calling("get_weather", { city: "Oslo" }), "Thanks.");
    await session.sendAndWait("Weather?");
    const [, prompt, , result, added] = runtime.asked.messages;
    expect(prompt.content).toContain("<system_reminder>\nIt is Monday.\n</system_reminder>");
    expect(result.content).toBe('Sun.\n\nTool "get_weather" succeeded. Additional guidance from postToolUse hooks:\nIt may be wrong.');
    expect(added).toMatchObject({ role: "user", content: "Additional context from preToolUse hook:\nThe service is new." });
  });

  test("a hook's guidance after a failure reaches the model, and a hook can make the agent continue", async () => {
    const stops: boolean[] = [];
    const session = await runtime.session({
      tools: [weather(() => ({ textResultForLlm: "Down.", resultType: "failure" }), { skipPermission: true })],
      hooks: {
        onPostToolUseFailure: ({ toolName }: Sdk) => ({ additionalContext: `Do without ${toolName}.` }),
        onAgentStop: ({ stopHookActive, stop_hook_active }: Sdk) => {
          stops.push(stopHookActive ?? stop_hook_active);
          return stops.length === 1 ? { decision: "block", reason: "Say goodbye." } : undefined;
        },
      },
    });
    runtime.says(calling("get_weather", { city: "Oslo" }), "Sorry.", "Goodbye.");
    expect((await session.sendAndWait("Weather?")).data.content).toBe("Goodbye.");
    const said = runtime.asked.messages.filter(({ role }: Sdk) => role === "user").map(({ content }: Sdk) => content);
    expect(said[1]).toBe('Tool "get_weather" failed. Additional guidance from postToolUseFailure hooks:\nDo without get_weather.');
    expect(said[2]).toContain("Say goodbye.");
    expect(stops).toHaveLength(2);
  });
});

describe("requests to the application", () => {
  test("questions, forms and commands reach the application", async () => {
    const given: string[] = [];
    const session = await runtime.session({
      onUserInputRequest: ({ choices }: Sdk) => ({ answer: choices[1], wasFreeform: false }),
      onElicitationRequest: ({ message }: Sdk) => ({ action: "accept", content: { confirmed: message === "Deploy?", value: "Ada" } }),
      commands: [{ name: "deploy", description: "Ships it.", handler: ({ args }: Sdk) => void given.push(args) }],
    });
    runtime.says(calling("ask_user", { question: "Which?", choices: ["Red", "Blue"] }), "Blue it is.");
    await session.sendAndWait("Choose");
    expect(runtime.lastToolResult).toBe("User selected: Blue");
    expect(session.capabilities.ui?.elicitation).toBe(true);
    expect(await session.ui.confirm("Deploy?")).toBe(true);
    expect(await session.ui.confirm("Delete?")).toBe(false);
    expect(await session.ui.input("Name?")).toBe("Ada");
    const { commands } = await session.rpc.commands.list();
    expect(commands.map(({ name }: Sdk) => name)).toContain("deploy");
    await session.rpc.commands.execute({ commandName: "deploy", args: "staging" });
    expect(given).toEqual(["staging"]);
  });

  test("the application transforms sections of the system message", async () => {
    const session = await runtime.session({
      systemMessage: {
        mode: "customize",
        sections: { identity: { action: (text: string) => `${text.length > 0} cat` } },
        content: "Say please.",
      },
    });
    runtime.says("Hi.");
    await session.sendAndWait("Hi");
    expect(runtime.asked.messages[0].content).toContain("true cat");
    expect(runtime.asked.messages[0].content).toContain("Say please.");
  });
});
