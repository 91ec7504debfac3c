import { describe, expect, test } from "vitest";
import type { ChatModel } from "../../src/models/model.ts";
import { definePlugin } from "../../src/plugin-host/define-plugin.ts";
import type { PluginApi } from "../../src/plugin-host/plugin-api.ts";
import type { SessionOptions } from "../../src/session/session-config.ts";
import { fakeChat } from "../doubles/fake-chat.ts";
import { recordEvents } from "../session/session-kit.ts";
import { hostWith, sourceOfTools } from "./plugin-kit.ts";

async function sessionOver(activate: (api: PluginApi) => void, options: SessionOptions = {}) {
  const { host } = await hostWith([definePlugin({ name: "p", activate })]);
  const session = await host.createSession({ persist: false, ...options });
  return { host, session };
}

describe("the commands of a plugin", () => {
  test("a command runs by name with the text after it, is reported by events, and returns its result", async () => {
    const { session } = await sessionOver((api) => {
      api.addCommand({
        name: "deploy",
        description: "Deploys.",
        handler: ({ arguments: text, sessionId, signal }) => ({ text, sessionId, isAborted: signal.aborted }),
      });
    });
    const events = recordEvents(session, "command.execute", "command.completed");
    expect(session.commands).toEqual([{ name: "deploy", description: "Deploys." }]);
    expect(await session.runCommand("deploy", "to staging")).toEqual({ text: "to staging", sessionId: session.id, isAborted: false });
    const requestId = events[0]!.data["requestId"];
    expect(events.map(({ type, data }) => [type, data])).toEqual([
      ["command.execute", { requestId, commandName: "deploy", command: "/deploy to staging", args: "to staging" }],
      ["command.completed", { requestId }],
    ]);
    await expect(session.runCommand("delpoy")).rejects.toMatchObject({
      code: "COMMAND_UNKNOWN",
      message: expect.stringContaining("deploy"),
    });
  });

  test("a message that invokes a command is not answered by the model unless the command returns a prompt", async () => {
    const chat = fakeChat("Understood.");
    const done: string[] = [];
    const { session } = await sessionOver(
      (api) => {
        api.addCommand({ name: "note", handler: ({ arguments: text }) => void done.push(text) });
        api.addCommand({ name: "explain", handler: ({ arguments: text }) => `Explain ${text} in one sentence.` });
      },
      { chatModel: chat },
    );
    await expect(session.sendAndWait("/note buy milk")).rejects.toMatchObject({ code: "TURN_EMPTY" });
    expect([done, chat.requests.length]).toEqual([["buy milk"], 0]);
    expect((await session.sendAndWait("/explain tides")).content).toBe("Understood.");
    expect(chat.requests[0]!.messages.at(-1)).toMatchObject({
      role: "user",
      content: expect.stringContaining("Explain tides in one sentence."),
    });
    expect((await session.sendAndWait("/unknown thing")).content).toBe("Understood.");
  });

  test("a command that fails rejects the message, and the error names the command", async () => {
    const { session } = await sessionOver(
      (api) => {
        api.addCommand({ name: "break", handler: () => Promise.reject(new Error("out of paper")) });
      },
      { chatModel: fakeChat("Hello.") },
    );
    await expect(session.runCommand("break")).rejects.toMatchObject({
      code: "COMMAND_FAILED",
      message: 'Command "/break" failed: out of paper',
    });
    await expect(session.sendAndWait("/break")).rejects.toThrow("out of paper");
  });

  test("a command ends with the session or with its signal", async () => {
    const signals: AbortSignal[] = [];
    const { session } = await sessionOver((api) => {
      api.addCommand({
        name: "wait",
        handler({ signal }) {
          signals.push(signal);
          return new Promise(() => {});
        },
      });
    });
    const aborting = new AbortController();
    const aborted = session.runCommand("wait", "", { signal: aborting.signal });
    aborting.abort(new Error("enough"));
    await expect(aborted).rejects.toThrow("enough");
    const open = session.runCommand("wait");
    const closed = expect(open).rejects.toMatchObject({ code: "SESSION_CLOSED" });
    await session.disconnect();
    await closed;
    expect(signals.map((signal) => signal.aborted)).toEqual([true, true]);
  });
});

describe("the model provider of a plugin", () => {
  const echoing = (made: unknown[]): ((options: { readonly model: string }) => Promise<ChatModel>) => {
    return async (options) => {
      made.push(options);
      return { ...fakeChat(`I am ${options.model}.`), id: options.model };
    };
  };

  test("a provider creates the models of sessions that name it, once for each model, with the session's options", async () => {
    const made: unknown[] = [];
    const provider = { type: "local", gpu: 1 };
    const { session } = await sessionOver((api) => api.addModelProvider("local", echoing(made)), { model: "tiny", provider });
    expect((await session.sendAndWait("Who are you?")).content).toBe("I am tiny.");
    expect((await session.sendAndWait("Really?")).content).toBe("I am tiny.");
    expect(made).toEqual([{ model: "tiny", gpu: 1 }]);
    await session.update({ model: "large" });
    expect((await session.sendAndWait("And now?")).content).toBe("I am large.");
  });

  test("an unknown provider is refused by name, and an error of a provider is an error of the model", async () => {
    const { host, session } = await sessionOver(
      (api) => {
        api.addModelProvider("broken", () => Promise.reject(new Error("no weights")));
        api.addModelProvider("odd", () => ({}) as never);
      },
      { model: "m", provider: { type: "broken" } },
    );
    await expect(host.createSession({ model: "m", provider: { type: "brokn" } })).rejects.toMatchObject({
      code: "MODEL_OPTIONS",
      message: expect.stringContaining('"anthropic", "broken", "odd"'),
    });
    await expect(session.sendAndWait("Hi.")).rejects.toThrow('The provider "broken" could not create a model: no weights');
    await session.update({ provider: { type: "odd" } });
    await expect(session.sendAndWait("Hi.")).rejects.toThrow("not a chat model");
  });

  test("a provider cannot take the name of the host's own", async () => {
    const { host } = await sessionOver((api) => api.addModelProvider("openai", echoing([])));
    expect(host.plugins).toMatchObject([{ state: "failed" }]);
  });
});

describe("the agents of a plugin", () => {
  test("an invalid agent fails its plugin, and the message names the field", async () => {
    const { host } = await sessionOver((api) => api.addAgent({ name: "a", tools: "view" as never }));
    expect(host.plugins[0]?.diagnostics[0]?.message).toContain("agent.tools must be an array of strings");
  });

  test("a model can give tasks to an agent of a plugin", async () => {
    const chat = fakeChat(
      { calls: [{ name: "task", args: { agent_type: "helper", description: "Help", prompt: "Help.", mode: "sync" } }] },
      "Helped.",
      "Done.",
    );
    const { session } = await sessionOver((api) => api.addAgent({ name: "helper", description: "Helps.", prompt: "You help." }), {
      chatModel: chat,
      onPermissionRequest: () => ({ kind: "approve-once" }),
    });
    const updates = recordEvents(session, "subagent.started");
    await session.sendAndWait("Get help.");
    expect(chat.requests[1]!.messages[0]!.content).toContain("You help.");
    expect(updates).toMatchObject([{ data: { agentName: "helper" } }]);
  });
});

describe("the tool source of a plugin", () => {
  test("a source adds prompts and resources of the plugin, and they follow the plugin", async () => {
    const source = sourceOfTools("live");
    const { session } = await sessionOver((api) => api.addToolSource(source));
    expect(session.listPrompts()).toEqual([]);
    const posing = { kind: "skill", source: "someone", nativeName: "x" } as const;
    const greet = { definition: { name: "greet" }, origin: posing, revision: "1", get: async () => ({ messages: [] }) };
    const note = {
      definition: { uri: "note://1", name: "note" },
      origin: posing,
      revision: "1",
      read: async (uri: string) => [{ uri, text: "first" }],
    };
    source.offer({ prompts: [greet], resources: [note] });
    expect(session.listPrompts()).toEqual([{ name: "greet" }]);
    expect(session.offers.prompts[0]?.origin).toMatchObject({ kind: "plugin", source: "p" });
    expect(await session.readResource("note://1")).toEqual([{ uri: "note://1", text: "first" }]);
    source.offer({});
    expect(session.listResources()).toEqual([]);
  });
});
