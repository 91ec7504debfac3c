import type { Scenario } from "./protocol-scenarios.ts";
import type { RawClient } from "./raw-client.ts";

const weather = {
  name: "weather",
  description: "Returns the weather.",
  inputSchema: { type: "object", properties: { city: { type: "string", description: "Where." } }, required: ["city"] },
};
const ok = { content: [{ value: "ok" }], status: "success" };
const failed = "Tool call failed with error: Error: Failed to invoke client tool weather: Error:";
const invalid = `${failed} Schema validation failed with the following errors:\n-`;
const unusable = `${failed} Failed to invoke client tool weather:`;
const notIterable = `${unusable} TypeError: c is not iterable`;
const broken = `${unusable} Error: Failed to invoke client tool weather: broken`;

/** Answers to a call with the status that the server reports and the text that the model reads. */
export const answerScenarios: readonly Scenario<RawClient>[] = [
  answers("a list of two", [ok, null], "completed", "ok"),
  answers("a list of one", [ok], "completed", "ok"),
  answers("no status", [{ content: [{ value: "ok" }] }, null], "completed", "ok"),
  answers("the status error", [{ content: [{ value: "no" }], status: "error" }, null], "error", "Tool call failed with error: no"),
  answers(
    "the status cancelled",
    [{ content: [{ value: "no" }], status: "cancelled" }, null],
    "cancelled",
    "Tool call is cancelled with result: no",
  ),
  answers("an unknown status", [{ ...ok, status: "failure" }, null], "error", `${invalid} /status: Expected union value`),
  answers("a result without the list", ok, "error", notIterable),
  answers("null", null, "error", notIterable),
  answers(
    "a list of text parts",
    [{ type: "text", value: "x" }],
    "error",
    `${invalid} /content: Expected required property\n- /content: Expected array`,
  ),
  answers("a text for content", [{ content: "text", status: "success" }, null], "error", `${invalid} /content: Expected array`),
  answers("a text for content, without the list", { content: "text", status: "success" }, "error", notIterable),
  answers("an error in the second place", [null, { code: 1, message: "broken" }], "error", broken),
  answers("both places filled", [ok, { code: 1, message: "broken" }], "error", broken),
  answers("neither place filled", [null, null], "error", `${unusable} No result returned`),
  answers(
    "a failed request",
    new Error("broken"),
    "error",
    `${unusable} Error: Request conversation/invokeClientTool failed with message: broken`,
  ),
  answers(
    "a part without a value",
    [{ content: [{ text: "x" }], status: "success" }, null],
    "error",
    `${invalid} /content/0: Expected union value`,
  ),
  answers("an object for a value", [{ content: [{ value: { a: 1 } }], status: "success" }, null], "completed", "(empty)"),
  answers("no parts", [{ content: [], status: "success" }, null], "completed", "(empty)"),
  answers("two parts", [{ content: [{ value: "a" }, { value: "b" }], status: "success" }, null], "completed", "a\nb"),
];

function answers(what: string, reply: unknown, status: string, model: string): Scenario<RawClient> {
  return {
    name: `the server handles an answer with ${what}`,
    async run(client) {
      await client.request("conversation/registerTools", { tools: [weather] });
      client.onInvoke = () => {
        if (reply instanceof Error) throw reply;
        return reply;
      };
      client.backend.answer({ toolCalls: [{ id: "call", name: "weather", arguments: { city: "Oslo" } }] }, { content: "done" });
      await client.turn("Weather?");
      return { status: client.calls[0]?.status, model: client.results.at(-1), turn: client.end?.error ?? "ok" };
    },
    expected: { status, model, turn: "ok" },
  };
}
