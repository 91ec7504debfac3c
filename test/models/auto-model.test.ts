import { describe, expect, test } from "vitest";
import { chatAnswer, jsonAnswer, type ScriptedAnswer } from "../doubles/scripted-model.ts";
import { responsesAnswer } from "../doubles/scripted-responses.ts";
import { ask, endpoint, hello, modelAt } from "./models-kit.ts";

const refusal: ScriptedAnswer = {
  status: 400,
  headers: { "content-type": "application/json" },
  steps: [JSON.stringify({ error: { message: "The model is not available here.", code: "unsupported_api_for_model" } })],
};

function listing(...endpoints: readonly string[]): ScriptedAnswer {
  return jsonAnswer({ data: [{ id: "other" }, { id: "test-model", supported_endpoints: endpoints }] });
}

describe("a model with wireApi auto", () => {
  test.each([400, 404, 405])(
    "is asked by the Responses API after a refusal with status %i, when it is listed for that only",
    async (status) => {
      const at = await endpoint();
      at.answer(
        { ...refusal, status },
        listing("/responses", "ws:/responses"),
        responsesAnswer({ content: "One" }),
        responsesAnswer({ content: "Two" }),
      );
      const model = modelAt(at.url, { wireApi: "auto" });
      expect((await ask(model)).content).toBe("One");
      expect((await ask(model)).content).toBe("Two");
      expect(JSON.parse(model.bodyOf!(hello))).toEqual(at.requests.at(-1)?.body);
      expect(at.requests.map(({ path }) => path)).toEqual(["/v1/chat/completions", "/v1/models", "/v1/responses", "/v1/responses"]);
    },
  );

  test("is never looked up while chat completions answers", async () => {
    const at = await endpoint();
    at.answer(chatAnswer({ content: "One" }), refusal);
    const model = modelAt(at.url, { wireApi: "auto" });
    expect((await ask(model)).content).toBe("One");
    await expect(ask(model)).rejects.toMatchObject({ code: "MODEL_HTTP", status: 400 });
    expect(at.requests).toHaveLength(2);
  });

  test.each([
    ["lists it for chat completions too", listing("/chat/completions", "/responses")],
    ["lists it for WebSockets only", listing("ws:/responses")],
    ["does not name its APIs", jsonAnswer({ data: [{ id: "test-model", supported_endpoints: "/responses" }] })],
    ["does not list it", jsonAnswer({ data: [] })],
    ["has no list", { status: 404 }],
    ["sends no list", jsonAnswer({ nothing: true })],
  ] satisfies [string, ScriptedAnswer][])("keeps the refusal when the endpoint %s", async (_, answer) => {
    const at = await endpoint();
    at.answer(refusal, answer);
    await expect(ask(modelAt(at.url, { wireApi: "auto" }))).rejects.toMatchObject({ code: "MODEL_HTTP", status: 400 });
    expect(at.requests.map(({ path }) => path)).toEqual(["/v1/chat/completions", "/v1/models"]);
  });

  test("does not look for another API after other failures", async () => {
    const at = await endpoint();
    at.answer({ ...refusal, status: 401 });
    await expect(ask(modelAt(at.url, { wireApi: "auto" }))).rejects.toMatchObject({ code: "MODEL_AUTH" });
    expect(at.requests).toHaveLength(1);
  });
});
