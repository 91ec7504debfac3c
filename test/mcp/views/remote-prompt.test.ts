import { describe, expect, test } from "vitest";
import { HostError } from "../../../src/base/errors.ts";
import { remotePrompt } from "../../../src/mcp/views/remote-prompt.ts";
import type { OfferContext, Prompt } from "../../../src/tools/prompt.ts";
import { FakeServer, type Json, localSpec, never } from "../fake-servers.ts";

const definition = {
  name: "code review",
  title: "Review",
  description: "Reviews code.",
  arguments: [{ name: "code", description: "What", required: true }, { name: "style" }, { name: 7 }, null],
  icons: [],
};

const context: OfferContext = { signal: never, services: {}, ask: () => Promise.reject(new Error("no user is available")) };

function setUp(answer: Json = {}, hasCompletions = true): { prompt: Prompt; server: FakeServer } {
  const server = new FakeServer(localSpec("docs"));
  server.answer = () => answer;
  return { prompt: remotePrompt(definition, { server, serverName: "docs", generation: "1", hasCompletions })!, server };
}

describe("a prompt of a server", () => {
  test("has the server's name for it, its origin, and what of the definition can be used", () => {
    const { prompt } = setUp();
    expect(prompt.definition).toEqual({
      name: "code review",
      title: "Review",
      description: "Reviews code.",
      arguments: [{ name: "code", description: "What", required: true }, { name: "style" }],
    });
    expect(prompt.origin).toEqual({ kind: "mcp", source: "docs", nativeName: "code review" });
    expect(prompt.revision).toBe(setUp().prompt.revision);
  });

  test("is made by the server, with the arguments that it declares", async () => {
    const image = { type: "image", data: "AAAA", mimeType: "image/png", annotations: { priority: 1 } };
    const messages = [
      { role: "user", content: { type: "text", text: "Review a" } },
      { role: "assistant", content: image },
    ];
    const { prompt, server } = setUp({ description: "For a", messages, _meta: {} });
    expect(await prompt.get({ code: "a", unknown: "b" }, context)).toEqual({ description: "For a", messages });
    expect(server.received[0]).toMatchObject({ method: "prompts/get", params: { name: "code review", arguments: { code: "a" } } });
  });

  test("may have the server ask back, and is given up with its signal", async () => {
    const asked: unknown[] = [];
    const aborts = new AbortController();
    const server = new FakeServer(localSpec("docs"));
    server.answer = async ({ options }) => {
      const answer = await options.context!.ask("elicitation", { message: "Which?" });
      return { messages: [{ role: "user", content: { type: "text", text: JSON.stringify(answer) } }] };
    };
    const prompt = remotePrompt({ name: "p" }, { server, serverName: "docs", generation: "1", hasCompletions: false })!;
    const ask: OfferContext["ask"] = async (kind, data) => {
      asked.push([kind, data]);
      return { action: "decline" } as never;
    };
    const { messages } = await prompt.get({}, { signal: aborts.signal, services: {}, ask });
    expect(messages[0]!.content).toMatchObject({ text: '{"action":"decline"}' });
    expect(asked).toEqual([["elicitation", { message: "Which?" }]]);
    expect(server.received[0]!.options.signal).toBe(aborts.signal);
    await expect(server.received[0]!.options.context!.callTool("x", {})).rejects.toThrow(HostError);
  });

  test("asks for its required arguments before it asks the server", async () => {
    const { prompt, server } = setUp();
    await expect(prompt.get({ style: "b" }, context)).rejects.toMatchObject({
      code: "PROMPT_ARGUMENTS",
      message: expect.stringContaining("code"),
    });
    expect(server.received).toEqual([]);
  });

  test.each([
    ["nothing", {}],
    ["messages of another kind", { messages: [{ role: "system", content: { type: "text", text: "a" } }] }],
    ["content without a type", { messages: [{ role: "user", content: "a" }] }],
  ])("rejects an answer with %s", async (_, answer) => {
    await expect(setUp(answer).prompt.get({ code: "a" }, context)).rejects.toMatchObject({ code: "MCP_ANSWER" });
  });
});

describe("suggestions for an argument", () => {
  const others = { arguments: { style: "b" }, signal: never };

  test("are the server's, which gets the other arguments", async () => {
    const { prompt, server } = setUp({ completion: { values: ["python", "perl"], total: 9, hasMore: true } });
    expect(await prompt.complete!("code", "p", others)).toEqual({ values: ["python", "perl"], total: 9, hasMore: true });
    expect(server.received[0]!.params).toEqual({
      ref: { type: "ref/prompt", name: "code review" },
      argument: { name: "code", value: "p" },
      context: { arguments: { style: "b" } },
    });
  });

  test("are at most a hundred, whatever comes", async () => {
    const values = Array.from({ length: 500 }, (_, index) => String(index));
    expect((await setUp({ completion: { values } }).prompt.complete!("code", "", others)).values).toHaveLength(100);
  });

  test("reject when they are not texts, and are absent where the server has none", async () => {
    await expect(setUp({ completion: { values: [1] } }).prompt.complete!("code", "", others)).rejects.toThrow(TypeError);
    expect((await setUp({}).prompt.complete!("code", "", others)).values).toEqual([]);
    expect(setUp({}, false).prompt.complete).toBeUndefined();
  });
});

test("without a name there is no prompt", () => {
  const { server } = setUp();
  for (const name of [undefined, "", 7]) {
    expect(remotePrompt({ name }, { server, serverName: "docs", generation: "1", hasCompletions: false })).toBeUndefined();
  }
});
