import type { Client } from "@modelcontextprotocol/client";
import { describe, expect, test } from "vitest";
import { answerOf, eras, modernRequest, post, serveSkill, textOf, toolModule } from "./serving-kit.ts";

const tools = toolModule(`[
  defineTool("greet", { description: "Greets.", handler: ({ name = "you" }) => \`Hello \${name}\` }),
  defineTool("who", {
    description: "Asks for a name.",
    skipPermission: true,
    handler: async (_args, _invocation, { ask }) => {
      const requestedSchema = { type: "object", properties: { name: { type: "string" } }, required: ["name"] };
      const { action, content } = await ask("elicitation", { message: "Your name?", requestedSchema }, { key: "name" });
      return \`\${action} \${content?.name}\`;
    },
  }),
  defineTool("choose", {
    description: "Asks for a choice.",
    skipPermission: true,
    handler: async (_args, _invocation, { ask }) => JSON.stringify(await ask("userInput", { question: "Which?", choices: ["red", "blue"] })),
  }),
  defineTool("roots", {
    description: "Asks which folders are worked in.",
    skipPermission: true,
    handler: async (_args, _invocation, { ask }) => (await ask("roots", {})).roots.map(({ uri }) => uri).join(),
  }),
  defineTool("both", {
    description: "Asks two things at once, and then a third.",
    skipPermission: true,
    handler: async (_args, _invocation, { ask }) => {
      const question = (message) => ask("userInput", { question: message });
      const [a, b] = await Promise.all([question("a?"), question("b?")]);
      const c = await question("c?");
      return [a, b, c].map(({ answer }) => answer).join();
    },
  }),
]`);

const form = { elicitation: {} };

/** Has a client answer every form with what the function gives, and keeps the forms. */
function answerForms(answer: (message: string) => object): { readonly setUp: (client: Client) => void; readonly messages: string[] } {
  const messages: string[] = [];
  const setUp = (client: Client): void =>
    client.setRequestHandler("elicitation/create", ({ params: { message } }) => {
      messages.push(message);
      return answer(message) as never;
    });
  return { setUp, messages };
}

const decide = (decision: string): object => ({ action: "accept", content: { decision } });

describe.each(eras)("a client of the %s era", (era) => {
  test("is asked for permission by a form, and what it says counts", async () => {
    await using served = await serveSkill({ "tools/all.ts": tools });
    let answer = decide("allow once");
    const { setUp, messages } = answerForms(() => answer);
    const client = await served.connect(era, setUp, form);
    expect(textOf(await client.callTool({ name: "greet", arguments: { name: "Ada" } }))).toBe("Hello Ada");
    expect(messages).toEqual(['May the tool "greet" be called?\nArguments:\n| {\n|   "name": "Ada"\n| }']);
    answer = decide("deny");
    expect((await client.callTool({ name: "greet" })).isError).toBe(true);
    answer = { action: "cancel" };
    expect((await client.callTool({ name: "greet" })).isError).toBe(true);
    expect(messages).toHaveLength(3);
  });

  test("cannot allow for longer, or without saying so, what is too long to be shown", async () => {
    await using served = await serveSkill({ "tools/all.ts": tools });
    let answer = decide("allow once");
    const { setUp, messages } = answerForms(() => answer);
    const client = await served.connect(era, setUp, form);
    const call = { name: "greet", arguments: { name: "Ada", note: `${"a".repeat(20_000)} and deletes` } };
    // An invalid answer to this form is a refusal, or the question is repeated until the client gives up.
    const isRefused = (): Promise<unknown> =>
      client.callTool(call).then(
        ({ isError }) => isError,
        () => true,
      );
    expect(await isRefused()).toBe(true);
    expect(messages[0]).toMatch(/\d+ of 20\d{3} characters are not shown/);
    expect(messages[0]).toContain(' and deletes"');
    answer = decide("allow for this session");
    expect(await isRefused()).toBe(true);
    answer = decide("allow once, including the parts that are not shown");
    expect(textOf(await client.callTool(call))).toBe("Hello Ada");
  });

  test("learns how a call can be allowed when it cannot be asked", async () => {
    await using served = await serveSkill({ "tools/all.ts": tools });
    const client = await served.connect(era);
    const denied = await client.callTool({ name: "greet" });
    expect(denied.isError).toBe(true);
    expect(textOf(denied)).toContain("--allow <rule>");
  });

  test("is not asked for what a rule decides", async () => {
    await using served = await serveSkill({ "tools/all.ts": tools }, { session: { permissions: { allow: ["greet"] } } });
    const { setUp, messages } = answerForms(() => decide("deny"));
    const client = await served.connect(era, setUp, form);
    expect(textOf(await client.callTool({ name: "greet" }))).toBe("Hello you");
    expect(messages).toEqual([]);
  });

  test("answers what a handler asks, and is asked again when the answer does not fit", async () => {
    await using served = await serveSkill({ "tools/all.ts": tools });
    const answers = era === "modern" ? [{ action: "accept", content: { name: 7 } }] : [];
    const { setUp, messages } = answerForms(() => answers.shift() ?? { action: "accept", content: { name: "Ada" } });
    const client = await served.connect(era, setUp, form);
    expect(textOf(await client.callTool({ name: "who" }))).toBe("accept Ada");
    expect(messages).toHaveLength(era === "modern" ? 2 : 1);
  });

  test("says no, and the handler hears it", async () => {
    await using served = await serveSkill({ "tools/all.ts": tools });
    const { setUp } = answerForms(() => ({ action: "decline" }));
    const client = await served.connect(era, setUp, form);
    expect(textOf(await client.callTool({ name: "who" }))).toBe("decline undefined");
  });

  test("is shown choices as a form, and names its folders", async () => {
    await using served = await serveSkill({ "tools/all.ts": tools });
    const { setUp } = answerForms(() => ({ action: "accept", content: { answer: "blue" } }));
    const both = (client: Client): void => {
      setUp(client);
      client.setRequestHandler("roots/list", () => ({ roots: [{ uri: "file:///work" }] }));
    };
    const client = await served.connect(era, both, { elicitation: {}, roots: {} });
    expect(textOf(await client.callTool({ name: "choose" }))).toBe('{"answer":"blue","wasFreeform":false}');
    expect(textOf(await client.callTool({ name: "roots" }))).toBe("file:///work");
  });

  test("answers several questions, also those that come up later", async () => {
    await using served = await serveSkill({ "tools/all.ts": tools });
    const { setUp } = answerForms((message) => ({ action: "accept", content: { answer: message.toUpperCase() } }));
    const client = await served.connect(era, setUp, form);
    expect(textOf(await client.callTool({ name: "both" }))).toBe("A?,B?,C?");
  });
});

test("an approval for the session holds where the session is the client's own, and is not offered where it is shared", async () => {
  await using served = await serveSkill({ "tools/all.ts": tools });
  const choices: unknown[] = [];
  const setUp = (client: Client): void =>
    client.setRequestHandler("elicitation/create", ({ params }) => {
      choices.push(
        (params as unknown as { requestedSchema: { properties: { decision: { enum: unknown } } } }).requestedSchema.properties.decision
          .enum,
      );
      return decide("allow for this session") as never;
    });
  const old = await served.connect("legacy", setUp, form);
  await old.callTool({ name: "greet" });
  await old.callTool({ name: "greet" });
  expect(choices).toEqual([["allow once", "allow for this session", "deny"]]);
  const other = await served.connect("legacy");
  expect((await other.callTool({ name: "greet" })).isError).toBe(true);
  const raw = modernRequest("tools/call", { name: "greet", arguments: {} }, form);
  const { result } = await answerOf(post(served.face.url, raw.body, raw.headers));
  expect(result.inputRequests["permission-1"].params.requestedSchema.properties.decision.enum).toEqual(["allow once", "deny"]);
});

describe("a request that ends with questions", () => {
  const call = modernRequest("tools/call", { name: "who", arguments: {} }, form);
  const retry = (url: string, params: object, of = call): Promise<Response> => {
    const body = of.body as { params: object };
    return post(url, { ...body, id: 2, params: { ...body.params, ...params } }, of.headers);
  };
  const named = { name: { action: "accept", content: { name: "Ada" } } };

  test("a suspended call continues with the answers once", async () => {
    await using served = await serveSkill({ "tools/all.ts": tools });
    const { url } = served.face;
    const { result } = await answerOf(post(url, call.body, call.headers));
    expect(result).toMatchObject({ resultType: "input_required", inputRequests: { name: { method: "elicitation/create" } } });
    const { requestState } = result;
    const done = await answerOf(retry(url, { requestState, inputResponses: named }));
    expect(done.result.content).toEqual([{ type: "text", text: "accept Ada" }]);
    const again = await answerOf(retry(url, { requestState, inputResponses: named }));
    expect(again.error).toMatchObject({ code: -32602, data: { reason: "invalid_request_state" } });
  });

  test("is refused with a state that was changed, made up, or belongs to another request", async () => {
    await using served = await serveSkill({ "tools/all.ts": tools });
    const { url } = served.face;
    const { result } = await answerOf(post(url, call.body, call.headers));
    const other = modernRequest("tools/call", { name: "choose", arguments: {} }, form);
    for (const [requestState, of] of [[`${result.requestState}x`], ["v1.e30.AAAA"], [result.requestState, other]] as const) {
      const { error } = await answerOf(retry(url, { requestState, inputResponses: named }, of));
      expect(error).toMatchObject({ code: -32602 });
    }
  });

  test("a question is repeated when its answer is missing or not valid", async () => {
    await using served = await serveSkill({ "tools/all.ts": tools });
    const { url } = served.face;
    let { result } = await answerOf(post(url, call.body, call.headers));
    for (const inputResponses of [{}, { name: 12345 }, { name: { action: "accept", content: {} } }, { other: named.name }]) {
      const before = result.requestState;
      ({ result } = await answerOf(retry(url, { requestState: before, inputResponses })));
      expect(result).toMatchObject({ resultType: "input_required", inputRequests: { name: {} } });
      expect(result.requestState).not.toBe(before);
    }
  });

  test("names the capability that the client would need", async () => {
    await using served = await serveSkill({ "tools/all.ts": tools });
    const deaf = modernRequest("tools/call", { name: "who", arguments: {} });
    const { error } = await answerOf(post(served.face.url, deaf.body, deaf.headers));
    expect(error).toMatchObject({ code: -32021, data: { requiredCapabilities: { elicitation: {} } } });
  });
});
