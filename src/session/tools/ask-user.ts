import { HostError } from "../../base/errors.ts";
import type { Tool, ToolContext, ToolResult } from "../../tools/tool.ts";
import { failureResult, successResult } from "../../tools/tool-result.ts";
import { askUserText } from "../instructions/model-text.ts";
import { createSessionTool } from "../session-tool.ts";

interface AskArguments {
  readonly question: string;
  readonly choices?: readonly string[];
  readonly allow_freeform?: boolean;
}

/** Asks the user, whoever that is at the moment. */
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
