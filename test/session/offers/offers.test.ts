import { describe, expect, test } from "vitest";
import { noResult } from "../../../src/session/clients/request-kinds.ts";
import { assemblePromptsAndResources, type PromptAndResourceSource } from "../../../src/session/prompts-resources/prompts-and-resources.ts";
import type { OffersChange } from "../../../src/session/prompts-resources/session-prompts-resources.ts";
import { createPrompt } from "../../../src/tools/create/create-prompt.ts";
import { createResource, createResourceTemplate } from "../../../src/tools/create/create-resource.ts";
import { definePrompt, type PromptReply } from "../../../src/tools/define/define-prompt.ts";
import { defineResource, type ResourceOptions } from "../../../src/tools/define/define-resource.ts";
import type { OfferContext, Prompt } from "../../../src/tools/prompt.ts";
import type { Resource, ResourceTemplate } from "../../../src/tools/resource.ts";
import type { ToolKind } from "../../../src/tools/tool.ts";
import { createTestEnvironment, deferred, openSession, settleMicrotasks } from "../session-kit.ts";

type Handler = (context: OfferContext) => PromptReply | Promise<PromptReply>;

function promptOf(name: string, handler: string | Handler, kind: ToolKind = "skill", source = "s"): Prompt {
  const make: Handler = typeof handler === "string" ? () => handler : handler;
  const defined = definePrompt(name, { description: `${source} ${name}`, handler: (_args, context) => make(context) });
  return createPrompt(defined, { kind, source, nativeName: name }, String(handler));
}

function resourceOf(uri: string, read: string | ResourceOptions["read"], options: Partial<ResourceOptions> = {}, source = "s"): Resource {
  const place = { origin: { kind: "skill", source }, generation: `${source} ${String(read)}` } as const;
  return createResource(defineResource(uri, { read: typeof read === "string" ? () => read : read, ...options }), place);
}

function templateOf(uri: string, text: string, options: Partial<ResourceOptions> = {}): ResourceTemplate {
  const place = { origin: { kind: "skill", source: "s" }, generation: text } as const;
  return createResourceTemplate(defineResource(uri, { read: () => text, ...options }), place);
}

function sourceOf(offers: Omit<PromptAndResourceSource, "kind" | "id">, kind: ToolKind = "skill"): PromptAndResourceSource {
  return { kind, id: kind, ...offers };
}

function sessionOf(offers: Omit<PromptAndResourceSource, "kind" | "id">, options: Parameters<typeof openSession>[1] = {}) {
  const environment = createTestEnvironment();
  environment.publishOffers(sourceOf(offers));
  const session = openSession(environment, options);
  return { environment, session, textOf: async (name: string) => (await session.getPrompt(name)).messages[0]?.content["text"] };
}

describe("prompts and resources of several sources", () => {
  test("of two with the same name or URI, the later kind wins in whatever order the sources arrive", () => {
    const sources = (["plugin", "mcp", "external", "builtin", "skill"] as const).map((kind) => {
      return sourceOf({ prompts: [promptOf("p", kind, kind, kind), promptOf(kind, kind, kind, kind)] }, kind);
    });
    const offers = assemblePromptsAndResources(sources);
    expect(offers.findPrompt("p")?.origin.source).toBe("external");
    expect(offers.prompts.map(({ definition }) => definition.name)).toEqual(["p", "builtin", "mcp", "skill", "plugin", "external"]);
    expect(offers.diagnostics.map(({ code, source }) => [code, source])).toEqual([
      ["PROMPT_NAME_CLASH", "builtin"],
      ["PROMPT_NAME_CLASH", "mcp"],
      ["PROMPT_NAME_CLASH", "skill"],
      ["PROMPT_NAME_CLASH", "plugin"],
    ]);
  });

  test("within a kind the later source wins, and identical entries are not a conflict", () => {
    const [one, two] = [resourceOf("x://1", "one", {}, "a"), resourceOf("x://1", "two", {}, "b")];
    const offers = assemblePromptsAndResources([sourceOf({ resources: [one] }), sourceOf({ resources: [one, two, two] })]);
    expect(offers.resources).toEqual([two]);
    expect(offers.diagnostics).toMatchObject([{ code: "RESOURCE_CLASH", severity: "warning", source: "a" }]);
  });

  test("lists are read on first use, once, and independently", () => {
    const read: string[] = [];
    const source: PromptAndResourceSource = {
      kind: "skill",
      id: "s",
      get prompts() {
        read.push("prompts");
        return [];
      },
      get resources() {
        read.push("resources");
        return [];
      },
    };
    const offers = assemblePromptsAndResources([source]);
    expect([read, offers.diagnostics]).toEqual([[], []]);
    expect(offers.prompts).toBe(offers.prompts);
    expect(offers.findPrompt("p")).toBeUndefined();
    expect(read).toEqual(["prompts"]);
    expect(offers.resources).toBe(offers.resources);
    expect(read).toEqual(["prompts", "resources"]);
  });

  test("a URI is looked up literally, then normalized, then among the templates from last to first", () => {
    const [plain, encoded] = [resourceOf("x://a/b", ""), resourceOf("x://a/b%20c", "")];
    const [general, special] = [templateOf("x://a/{name}", "general"), templateOf("x://a/s-{name}", "special")];
    const offers = assemblePromptsAndResources([sourceOf({ resources: [plain, encoded], resourceTemplates: [general, special] })]);
    const found = ["x://a/b", "x://a/b c", "X://a/%62", "x://a/s-1", "x://a/t-1", "y://a/b", "x://a/%zz"].map((uri) =>
      offers.findResource(uri),
    );
    expect(found).toEqual([plain, encoded, plain, special, general, undefined, undefined]);
    expect(offers.findTemplate("x://a/{name}")).toBe(general);
    expect(offers.findTemplate("x://a/1")).toBeUndefined();
  });
});

describe("prompts and resources of a session", () => {
  test("a session returns prompts, reads resources and reports missing ones", async () => {
    const { session, textOf } = sessionOf({
      prompts: [promptOf("p", "Hi")],
      resources: [resourceOf("x://1", "One")],
      resourceTemplates: [templateOf("y://{a}", "Many")],
    });
    expect(await textOf("p")).toBe("Hi");
    expect(await session.readResource("x://1")).toMatchObject([{ text: "One" }]);
    expect(await session.readResource("y://2")).toMatchObject([{ uri: "y://2", text: "Many" }]);
    await expect(session.getPrompt("q")).rejects.toMatchObject({ code: "PROMPT_UNKNOWN", message: expect.stringContaining('"q"') });
    await expect(session.readResource("z://1")).rejects.toMatchObject({ code: "RESOURCE_UNKNOWN" });
  });

  test("a session without sources offers nothing", async () => {
    const environment = createTestEnvironment();
    const session = openSession({ ...environment, offerSources: undefined } as never);
    expect([session.listPrompts(), session.listResources(), session.listResourceTemplates()]).toEqual([[], [], []]);
    expect(session.listPrompts()).toBe(session.listPrompts());
  });

  test("a session suggests values for arguments and variables", async () => {
    const defined = definePrompt("p", {
      arguments: { city: { complete: (value, context) => [value, String(context.arguments["land"])] }, land: {} },
      handler: () => "",
    });
    const prompt = createPrompt(defined, { kind: "skill", source: "s", nativeName: "p" }, "1");
    const { session } = sessionOf({
      prompts: [prompt, promptOf("q", "")],
      resourceTemplates: [templateOf("y://{a}", "", { complete: { a: ["one", "two"] } })],
    });
    const ref = { type: "ref/prompt", name: "p" } as const;
    expect(await session.complete(ref, { name: "city", value: "O" }, { arguments: { land: "NO" } })).toEqual({ values: ["O", "NO"] });
    expect(await session.complete({ type: "ref/prompt", name: "q" }, { name: "x", value: "" })).toEqual({ values: [] });
    expect(await session.complete({ type: "ref/resource", uri: "y://{a}" }, { name: "a", value: "t" })).toEqual({ values: ["two"] });
    await expect(session.complete({ type: "ref/prompt", name: "r" }, { name: "x", value: "" })).rejects.toMatchObject({
      code: "PROMPT_UNKNOWN",
    });
    await expect(session.complete({ type: "ref/resource", uri: "y://1" }, { name: "a", value: "" })).rejects.toMatchObject({
      code: "RESOURCE_UNKNOWN",
    });
  });

  const question = { question: "Who?" };
  test("questions of a prompt's handler go to its requester first, then to the attached clients", async () => {
    const prompts = [promptOf("p", async ({ ask }) => (await ask("userInput", question, { key: "who" })).answer)];
    const { session, textOf } = sessionOf({ prompts }, { onUserInputRequest: () => ({ answer: "The program", wasFreeform: true }) });
    expect(await textOf("p")).toBe("The program");
    const keys: (string | undefined)[] = [];
    const asking = session.getPrompt(
      "p",
      {},
      {
        answers: {
          userInput: (_data, { key }) => {
            keys.push(key);
            return { answer: "The caller" };
          },
        },
      },
    );
    expect((await asking).messages[0]?.content["text"]).toBe("The caller");
    expect(keys).toEqual(["who"]);
    const passed = await session.getPrompt("p", {}, { answers: { userInput: () => noResult } });
    expect(passed.messages[0]?.content["text"]).toBe("The program");
  });

  test("an unanswered or late question is rejected", async () => {
    let late: OfferContext["ask"] | undefined;
    const prompts = [
      promptOf("p", async ({ ask }) => {
        late = ask;
        return (await ask("userInput", question).catch((error) => error.code)) as string;
      }),
    ];
    const { textOf } = sessionOf({ prompts });
    expect(await textOf("p")).toBe("ASK_UNANSWERED");
    await expect(late?.("userInput", question)).rejects.toMatchObject({
      code: "ASK_UNANSWERED",
      message: expect.stringContaining("has ended"),
    });
  });

  test("waiting ends when the caller aborts or the session ends, and the handler's signal fires", async () => {
    const signals: AbortSignal[] = [];
    const stuck: Handler = ({ signal }) => {
      signals.push(signal);
      return new Promise(() => {});
    };
    const { session } = sessionOf({
      prompts: [promptOf("stuck", stuck)],
      resources: [resourceOf("x://stuck", (_uri, _values, context) => stuck(context) as Promise<string>)],
    });
    const giveUp = new AbortController();
    const making = session.getPrompt("stuck", {}, { signal: giveUp.signal });
    const reading = session.readResource("x://stuck");
    await settleMicrotasks();
    giveUp.abort(new Error("Enough."));
    await expect(making).rejects.toThrow("Enough.");
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, false]);
    await Promise.all([expect(reading).rejects.toMatchObject({ code: "SESSION_CLOSED" }), session.disconnect()]);
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, true]);
    await expect(session.getPrompt("stuck", {}, { signal: AbortSignal.abort(new Error("Before.")) })).rejects.toMatchObject({
      code: "SESSION_CLOSED",
    });
    for (const use of [
      () => session.listPrompts(),
      () => session.listSkills(),
      () => session.offers,
      () => session.onOffersChanged(() => {}),
    ])
      expect(use).toThrow(expect.objectContaining({ code: "SESSION_CLOSED" }));
    await expect(session.watchResource("x://1", () => {})).rejects.toMatchObject({ code: "SESSION_CLOSED" });
  });

  test("a request that is already aborted does not start", async () => {
    let isBegun = false;
    const { session } = sessionOf({
      prompts: [
        promptOf("p", () => {
          isBegun = true;
          return "";
        }),
      ],
    });
    await expect(session.getPrompt("p", {}, { signal: AbortSignal.abort(new Error("Before.")) })).rejects.toThrow("Before.");
    expect(isBegun).toBe(false);
  });
});

describe("changes of prompts and resources", () => {
  test("one event reports all earlier changes, and only for lists that differ", async () => {
    const { environment, session } = sessionOf({ prompts: [promptOf("p", "One")] });
    const changes: OffersChange[] = [];
    const listening = session.onOffersChanged((change) => changes.push(change));
    const list = session.listPrompts();
    environment.publishOffers(sourceOf({ prompts: [promptOf("p", "Two")] }));
    await settleMicrotasks();
    expect([changes, session.listPrompts() === list]).toEqual([[], true]);
    environment.publishOffers(sourceOf({ prompts: [promptOf("q", "One")] }));
    environment.publishOffers(sourceOf({ prompts: [promptOf("q", "One")], resourceTemplates: [templateOf("x://{a}", "")] }));
    await settleMicrotasks();
    expect(changes).toEqual([{ prompts: true, resources: false, resourceTemplates: true }]);
    listening[Symbol.dispose]();
    environment.publishOffers();
    await settleMicrotasks();
    expect(changes).toHaveLength(1);
  });

  test("changes of resources are reported only after they were listed, and not for a new size alone", async () => {
    const { environment, session } = sessionOf({ resources: [resourceOf("x://1", "", { size: 1 })] });
    const changes: OffersChange[] = [];
    session.onOffersChanged((change) => changes.push(change));
    const publish = async (...resources: Resource[]): Promise<void> => {
      environment.publishOffers(sourceOf({ resources }));
      await settleMicrotasks();
    };
    await publish(resourceOf("x://2", ""));
    expect(changes).toEqual([]);
    expect(session.listResources()).toMatchObject([{ uri: "x://2" }]);
    await publish(resourceOf("x://2", "", { size: 2 }));
    expect(changes).toEqual([]);
    expect(session.listResources()).toMatchObject([{ uri: "x://2", size: 2 }]);
    await publish();
    expect(changes).toEqual([{ prompts: false, resources: true, resourceTemplates: false }]);
  });
});

describe("subscriptions to a resource", () => {
  function watched() {
    const listeners: (() => void)[] = [];
    let ended = 0;
    const watch: NonNullable<ResourceOptions["watch"]> = (_uri, changed) => {
      listeners.push(changed);
      return () => ended++;
    };
    return { listeners, watch, ended: () => ended };
  }

  test("a subscription reports changes, even if another resource replaces it or none exists", async () => {
    const { listeners, watch, ended } = watched();
    const { environment, session } = sessionOf({});
    let seen = 0;
    const watching = await session.watchResource("x://1", () => seen++);
    const publish = async (...resources: Resource[]): Promise<void> => {
      environment.publishOffers(sourceOf({ resources }));
      await settleMicrotasks();
      await settleMicrotasks();
    };
    await publish(resourceOf("x://1", "One", { watch }));
    expect([seen, listeners.length]).toEqual([1, 1]);
    listeners[0]?.();
    listeners[0]?.();
    await settleMicrotasks();
    expect(seen).toBe(2);
    await publish(resourceOf("x://1", "One", { watch }));
    expect([seen, listeners.length, ended()]).toEqual([2, 2, 1]);
    listeners[0]?.();
    await settleMicrotasks();
    expect(seen).toBe(2);
    await publish(resourceOf("x://1", "Two", { watch }), resourceOf("x://2", "Other"));
    expect([seen, ended()]).toEqual([3, 2]);
    await publish();
    expect([seen, ended()]).toEqual([4, 3]);
    await watching[Symbol.asyncDispose]();
    await publish(resourceOf("x://1", "One", { watch }));
    expect([seen, listeners.length, ended()]).toEqual([4, 3, 3]);
  });

  test("a subscription ends with the session, even while it starts", async () => {
    const gate = deferred();
    let ended = 0;
    const slow: ResourceOptions["watch"] = async () => {
      await gate.promise;
      return () => ended++;
    };
    const { watch, ended: endedAtOnce } = watched();
    const { session } = sessionOf({ resources: [resourceOf("x://1", "", { watch }), resourceOf("x://slow", "", { watch: slow })] });
    await session.watchResource("x://1", () => {});
    const beginning = session.watchResource("x://slow", () => {});
    await session.disconnect();
    expect(endedAtOnce()).toBe(1);
    gate.resolve();
    await beginning;
    expect(ended).toBe(1);
  });

  test("a subscription that fails is logged and still reports changes of the URI", async () => {
    const { environment, session } = sessionOf({
      resources: [
        resourceOf("x://1", "One", {
          watch: () => {
            throw new Error("No.");
          },
        }),
      ],
    });
    let seen = 0;
    await session.watchResource("x://1", () => seen++);
    expect(environment.lines).toMatchObject([{ level: "warning", message: "Watching a resource failed.", data: { uri: "x://1" } }]);
    environment.publishOffers();
    await settleMicrotasks();
    await settleMicrotasks();
    expect(seen).toBe(1);
  });
});
