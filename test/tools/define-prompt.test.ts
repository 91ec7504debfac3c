import { describe, expect, expectTypeOf, test } from "vitest";
import { createPrompt } from "../../src/tools/create/create-prompt.ts";
import { type DefinedPrompt, definePrompt, isDefinedPrompt } from "../../src/tools/define/define-prompt.ts";
import { isToolLike } from "../../src/tools/define/define-tool.ts";
import { isPromptName, type OfferContext, type Prompt, type PromptResult, promptName } from "../../src/tools/prompt.ts";

const context: OfferContext = {
  signal: new AbortController().signal,
  services: {},
  ask: () => Promise.reject(new Error("No client is attached.")),
};

function promptOf(defined: DefinedPrompt, generation = "1"): Prompt {
  return createPrompt(defined, { kind: "skill", source: "s", nativeName: defined.name }, generation);
}

function made(reply: unknown): Promise<PromptResult> {
  return promptOf(definePrompt("p", { handler: () => reply as string })).get({}, context);
}

const user = (content: object) => ({ role: "user", content });

describe("a prompt made with definePrompt", () => {
  test("a prompt's handler gets the declared arguments with their types", async () => {
    const defined = definePrompt("weather", {
      title: "Weather",
      description: "Asks for the weather.",
      arguments: { city: { description: "Which city.", required: true }, days: {} },
      handler: (args, { signal }) => {
        expectTypeOf(args.city).toEqualTypeOf<string>();
        expectTypeOf(args.days).toEqualTypeOf<string | undefined>();
        expectTypeOf(signal).toEqualTypeOf<AbortSignal>();
        return `${args.city} ${args.days} ${Object.keys(args)}`;
      },
    });
    const prompt = promptOf(defined);
    expect(prompt.definition).toEqual({
      name: "weather",
      title: "Weather",
      description: "Asks for the weather.",
      arguments: [{ name: "city", description: "Which city.", required: true }, { name: "days" }],
    });
    const args = { city: "Oslo", other: "x", ["__proto__"]: "y" };
    expect(await prompt.get(args, context)).toEqual({
      description: "Asks for the weather.",
      messages: [user({ type: "text", text: "Oslo undefined city" })],
    });
  });

  test.each<[what: string, args: unknown, message: RegExp]>([
    ["one missing", { days: "1" }, /requires city\. Pass each as a string/],
    ["a number", { city: 1 }, /city must be a string, not a number/],
    ["a list instead", ["Oslo"], /must be an object/],
    ["one that is only inherited", Object.create({ city: "Oslo" }), /requires city/],
  ])("a prompt refuses %s", async (_what, args, message) => {
    const prompt = promptOf(
      definePrompt("weather", { arguments: [{ name: "city", required: true }, { name: "days" }], handler: () => "" }),
    );
    await expect(prompt.get(args as Record<string, string>, context)).rejects.toMatchObject({
      code: "PROMPT_ARGUMENTS",
      message: expect.stringMatching(message),
    });
  });

  const image = { type: "image", data: "aGk=", mimeType: "image/png" };
  test.each<[what: string, reply: unknown, messages: object[]]>([
    ["text", "Hi", [user({ type: "text", text: "Hi" })]],
    ["a block", image, [user(image)]],
    ["bytes in a block", { ...image, data: new TextEncoder().encode("hi") }, [user(image)]],
    [
      "messages",
      [
        { role: "user", content: "Hi" },
        { role: "assistant", content: image },
      ],
      [user({ type: "text", text: "Hi" }), { role: "assistant", content: image }],
    ],
    ["several blocks in a message", { role: "user", content: ["See:", image] }, [user({ type: "text", text: "See:" }), user(image)]],
    ["text and blocks", ["See:", image], [user({ type: "text", text: "See:" }), user(image)]],
    [
      "an embedded resource",
      { type: "resource", resource: { uri: "x://y", blob: new Uint8Array([1]), mimeType: "a/b" }, annotations: { priority: 1 } },
      [user({ type: "resource", resource: { uri: "x://y", blob: "AQ==", mimeType: "a/b" }, annotations: { priority: 1 } })],
    ],
    ["a link", { type: "resource_link", uri: "x://y", name: "y" }, [user({ type: "resource_link", uri: "x://y", name: "y" })]],
    ["no messages", [], []],
  ])("a prompt may return %s", async (_what, reply, messages) => {
    expect(await made(reply)).toEqual({ messages });
  });

  test("a prompt may return a whole result with its own description", async () => {
    expect(await made({ description: "About it.", messages: ["Hi"] })).toEqual({
      description: "About it.",
      messages: [user({ type: "text", text: "Hi" })],
    });
  });

  test.each<[what: string, reply: unknown, message: RegExp]>([
    ["nothing", undefined, /message 0 must be a string or a content block/],
    ["a number", 7, /not a number/],
    ["another role", [{ role: "system", content: "x" }], /has the role "system"/],
    ["another type", { type: "video" }, /has the type "video"\. Use one of text, image/],
    ["an inherited type", { type: "constructor" }, /has the type "constructor"/],
    ["data that is invalid", ["a", { type: "image", data: "!", mimeType: "a/b" }], /message 1 needs data/],
    ["no media type", { type: "audio", data: "AQ==" }, /needs the field mimeType/],
    ["a resource without contents", { type: "resource", resource: { uri: "x:y" } }, /needs text, or a blob/],
    ["what JSON cannot hold", { type: "text", text: "x", _meta: { f: () => 1 } }, /contains a value that JSON does not support/],
  ])("a prompt must not return %s", async (_what, reply, message) => {
    await expect(made(reply)).rejects.toMatchObject({ code: "PROMPT_RESULT", message: expect.stringMatching(message) });
  });

  test("a prompt rejects with the error that its handler throws", async () => {
    const prompt = promptOf(
      definePrompt("p", {
        handler: () => {
          throw new RangeError("No.");
        },
      }),
    );
    await expect(prompt.get({}, context)).rejects.toThrow(RangeError);
  });

  test("a prompt with other code or another definition has another revision", () => {
    const define = (description: string) => definePrompt("p", { description, handler: () => "" });
    expect(promptOf(define("a")).revision).toBe(promptOf(define("a")).revision);
    expect(promptOf(define("a")).revision).not.toBe(promptOf(define("b")).revision);
    expect(promptOf(define("a"), "1").revision).not.toBe(promptOf(define("a"), "2").revision);
  });

  test("a prompt is not a tool, although it has a name and a handler", () => {
    const defined = definePrompt("p", { handler: () => "" });
    expect([isDefinedPrompt(defined), isToolLike(defined), isDefinedPrompt({ ...defined }), Object.isFrozen(defined)]).toEqual([
      true,
      false,
      true,
      true,
    ]);
    expect([isDefinedPrompt(null), isDefinedPrompt({ name: "p" }), isDefinedPrompt(throwingProxy())]).toEqual([false, false, false]);
  });

  test.each<[what: string, define: () => unknown, message: RegExp]>([
    ["a name with a space", () => definePrompt("a b", { handler: () => "" }), /1 to 128 letters/],
    ["no options", () => definePrompt("p", undefined as never), /options must be an object, not undefined/],
    ["no handler", () => definePrompt("p", {} as never), /handler must be a function, not undefined/],
    ["a title that is invalid", () => definePrompt("p", { title: 1 as never, handler: () => "" }), /title must be a string/],
    [
      "arguments that are invalid",
      () => definePrompt("p", { arguments: "x" as never, handler: () => "" }),
      /arguments must be an object or an array/,
    ],
    [
      "an argument without a name",
      () => definePrompt("p", { arguments: [{} as never], handler: () => "" }),
      /undefined is not a valid argument name/,
    ],
    ["an argument twice", () => definePrompt("p", { arguments: [{ name: "a" }, { name: "a" }], handler: () => "" }), /"a" occurs twice/],
    [
      "a requirement that is invalid",
      () => definePrompt("p", { arguments: { a: { required: 1 as never } }, handler: () => "" }),
      /required of the argument "a"/,
    ],
    [
      "a completion that is invalid",
      () => definePrompt("p", { arguments: { a: { complete: 1 as never } }, handler: () => "" }),
      /complete of the argument "a"/,
    ],
    ["options that cannot be read", () => definePrompt("p", throwingOptions()), /a getter throws/],
  ])("a prompt cannot be defined with %s", (_what, define, message) => {
    expect(define).toThrow(expect.objectContaining({ code: "PROMPT_INVALID", message: expect.stringMatching(message) }));
  });
});

describe("completion of a prompt's argument", () => {
  const signal = new AbortController().signal;
  const prompt = promptOf(
    definePrompt("p", {
      arguments: {
        city: { complete: (value, { arguments: others }) => [`${value}slo`, others["land"] ?? "nowhere"] },
        unit: { complete: ["Celsius", "fahrenheit", "kelvin"] },
        many: { complete: () => Array.from({ length: 250 }, (_, index) => String(index)) },
        whole: { complete: async () => ({ values: ["a"], total: 7, hasMore: true }) },
        wrong: { complete: () => [1] as never },
        none: { complete: () => undefined },
        plain: {},
      },
      handler: () => "",
    }),
  );
  const complete = (argument: string, value = "") => prompt.complete?.(argument, value, { arguments: { land: "Norway" }, signal });

  test("completions come from a list or from a function that knows the other arguments", async () => {
    expect(await complete("city", "O")).toEqual({ values: ["Oslo", "Norway"] });
    expect(await complete("unit", "c")).toEqual({ values: ["Celsius"] });
    expect(await complete("whole")).toEqual({ values: ["a"], total: 7, hasMore: true });
    expect(await complete("none")).toEqual({ values: [] });
    expect(await complete("plain")).toEqual({ values: [] });
    expect(await complete("unknown")).toEqual({ values: [] });
  });

  test("completions are limited to 100 values, and invalid ones are refused", async () => {
    const { values, ...rest } = (await complete("many"))!;
    expect([values.length, rest]).toEqual([100, { total: 250, hasMore: true }]);
    await expect(complete("wrong")).rejects.toThrow("must return an array of strings");
  });

  test("completion is absent if no argument supports it", () => {
    expect(promptOf(definePrompt("p", { arguments: { a: {} }, handler: () => "" })).complete).toBeUndefined();
  });
});

test("every name is converted to a valid name, and different names stay different", () => {
  expect(promptName("review-code.v2")).toBe("review-code.v2");
  const names = ["Größe ändern", "Grosse andern", "Größe/ändern", "日本語", "", "x".repeat(300), `${"x".repeat(299)}y`].map(promptName);
  expect(new Set(names).size).toBe(names.length);
  for (const name of names) expect(isPromptName(name), name).toBe(true);
  expect(names[0]).toMatch(/^Gro-e-andern-[0-9a-f]{8}$/);
});

function throwingProxy(): object {
  return new Proxy(
    {},
    {
      get() {
        throw new Error("No.");
      },
    },
  );
}

function throwingOptions(): never {
  return Object.defineProperty({}, "handler", {
    enumerable: true,
    get() {
      throw new Error("No.");
    },
  }) as never;
}
