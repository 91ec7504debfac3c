import { HostError } from "../../base/errors.ts";
import type { JsonSchema, Tool, ToolContext, ToolResult } from "../../tools/tool.ts";
import { failureResult, successResult } from "../../tools/tool-result.ts";
import { createSessionTool } from "../catalog/session-tool.ts";
import { askUserText } from "../prompt/model-text.ts";

interface AskArguments {
  readonly question: string;
  readonly choices?: readonly string[];
  readonly allow_freeform?: boolean;
}

/** Asks the user of any attached client. */
export const askUser: Tool = createSessionTool({
  name: "ask_user",
  description:
    "Asks the user a question and waits for the answer. Ask only what the user alone can know or decide, one question at a time.",
  parameters: {
    type: "object",
    properties: {
      question: { type: "string" },
      choices: { type: "array", items: { type: "string" }, description: "Answers to choose from, if there are a few likely ones." },
      allow_freeform: { type: "boolean", description: "Whether the user may give an answer that is not among the choices. Default: true." },
    },
    required: ["question"],
  },
  handler: async (args: AskArguments, _invocation: unknown, context: ToolContext): Promise<ToolResult> => {
    const { question, choices, allow_freeform: allowFreeform = true } = args;
    try {
      const { answer, wasFreeform } = await context.ask("userInput", { question, ...(choices && { choices }), allowFreeform });
      const isChoice = wasFreeform === undefined ? choices?.includes(answer) === true : !wasFreeform;
      return successResult(isChoice ? askUserText.selected(answer) : askUserText.responded(answer));
    } catch (error) {
      if (error instanceof HostError && error.code === "ASK_UNANSWERED") return failureResult(askUserText.unanswered);
      throw error;
    }
  },
});

interface FormArguments {
  readonly message: string;
  readonly requestedSchema?: JsonSchema;
}

/** Asks the user by a form: `ask_user` for clients that show forms. */
export const askUserByForm: Tool = createSessionTool({
  name: "ask_user",
  description:
    "Asks the user to fill in a form and waits for the answer. Ask only what the user alone can know or decide, with as few fields as possible.",
  parameters: {
    type: "object",
    properties: {
      message: { type: "string", description: "What you want to know, and why." },
      requestedSchema: {
        type: "object",
        description:
          'A JSON Schema of the form: {"type": "object", "properties": {…}, "required": […]}, whose properties are strings, numbers, booleans, or strings with an enum. Default: one string.',
      },
    },
    required: ["message"],
  },
  handler: async (
    { message, requestedSchema = oneText }: FormArguments,
    _invocation: unknown,
    context: ToolContext,
  ): Promise<ToolResult> => {
    try {
      const { action, content = {} } = await context.ask("elicitation", { message, requestedSchema });
      if (action !== "accept") return failureResult(action === "decline" ? askUserText.declined : askUserText.unanswered);
      return successResult(askUserText.responded(JSON.stringify(content)));
    } catch (error) {
      if (error instanceof HostError && error.code === "ASK_UNANSWERED") return failureResult(askUserText.unanswered);
      throw error;
    }
  },
});

const oneText: JsonSchema = { type: "object", properties: { answer: { type: "string" } }, required: ["answer"] };
