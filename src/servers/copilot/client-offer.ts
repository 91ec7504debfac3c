import { isPlainRecord } from "../../base/read-fields.ts";
import type { AskKind } from "../../session/asks/ask-kinds.ts";
import type { AskHandlers } from "../../session/asks/asks.ts";
import type { AttachmentOptions } from "../../session/asks/attachments.ts";
import type { Client } from "./client.ts";
import type { CommandDeclaration } from "./client-commands.ts";
import { toV2Handlers } from "./v2.ts";

/** What a client offers in a session. */
export interface ClientOffer {
  readonly hooks: boolean;
  readonly answersUserInput: boolean;
  readonly answersElicitation: boolean;
  readonly wantsSubAgentStreaming: boolean;
  readonly commands: readonly CommandDeclaration[];
  /** Undefined: it says nothing about tools. */
  readonly tools: readonly object[] | undefined;
}

/** How a client attaches to a session: what it may answer, and what it is asked by requests. */
export function toAttachment(client: Client, offer: ClientOffer): AttachmentOptions {
  const answers: AskKind[] = ["permission", "tool"];
  if (offer.answersUserInput) answers.push("userInput");
  if (offer.answersElicitation) answers.push("elicitation");
  const handlers = { ...(client.version === 2 && toV2Handlers(client)), ...(offer.answersUserInput && userInputOf(client)) };
  return { level: "connection", name: "a client", answers, handlers };
}

/** The questions that clients may say later that they answer, by the event that tells of them. */
export const answeredBy: Readonly<Record<string, AskKind | undefined>> = {
  "sampling.requested": "sampling",
  "elicitation.requested": "elicitation",
  "user_input.requested": "userInput",
};

/** Whether two offers attach alike. */
export function areAlike(some: ClientOffer, other: ClientOffer): boolean {
  return some.answersElicitation === other.answersElicitation && some.answersUserInput === other.answersUserInput;
}

function userInputOf({ wire }: Client): AskHandlers {
  return {
    userInput: async ({ question, choices, allowFreeform }, { sessionId, signal }) => {
      const request = { sessionId, question, ...(choices && { choices }), ...(allowFreeform !== undefined && { allowFreeform }) };
      const answer = await wire.request("userInput.request", request, signal);
      return isPlainRecord(answer) ? answer : {};
    },
  };
}
