import { HostError } from "../../base/errors.ts";
import type { JsonSchema, Tool, ToolContext, ToolResult } from "../../tools/tool.ts";
import { failureResult, successResult } from "../../tools/tool-result.ts";
import { askUserText } from "../instructions/model-text.ts";
import { createSessionTool } from "../session-tool.ts";

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
