import { isPlainRecord } from "../../../base/read-fields.ts";
import type { AskKind } from "../../../session/asks/ask-kinds.ts";
import type { AskHandlers } from "../../../session/asks/asks.ts";
import type { AttachmentOptions } from "../../../session/asks/attachments.ts";
import type { Client } from "./client.ts";
import type { CommandDeclaration } from "./client-commands.ts";
import { toV2Handlers } from "./v2.ts";

/** What a client offers in a session. */
export interface ClientOffer {
  readonly hooks: boolean;
  readonly answersPermissions: boolean;
  readonly answersUserInput: boolean;
  readonly answersElicitation: boolean;
  readonly answersPlans: boolean;
  readonly rendersApps: boolean;
  readonly wantsSubAgentStreaming: boolean;
  readonly commands: readonly CommandDeclaration[];
  /** Undefined: it says nothing about tools. */
  readonly tools: readonly object[] | undefined;
}

/** Who is asked: another client may come in the place of one that has gone. */
export interface AskedClient {
  readonly client: Client;
}

/** How a client attaches to a session: what it may answer, and what it is asked by requests. */
export function toAttachment(asked: AskedClient, offer: ClientOffer): AttachmentOptions {
  // An extension is nobody who decides, unless it says so: a question that only it hears of would wait for ever.
  const { extension } = asked.client;
  const answers: AskKind[] = extension === undefined || offer.answersPermissions ? ["permission", "tool"] : ["tool"];
  if (offer.answersUserInput) answers.push("userInput");
  if (offer.answersElicitation) answers.push("elicitation");
  if (offer.answersPlans) answers.push("exitPlanMode");
  const handlers = {
    ...(asked.client.version === 2 && toV2Handlers(asked.client)),
    ...(offer.answersUserInput && userInputOf(asked)),
    ...(offer.answersPlans && plansOf(asked)),
  };
  if (extension === undefined) return { level: "connection", name: "a client", answers, handlers };
  return { level: "extension", name: `extension "${extension.id}"`, answers, handlers };
}

/** The questions that clients may say later that they answer, by the event that tells of them. */
export const answeredBy: Readonly<Record<string, AskKind | undefined>> = {
  "sampling.requested": "sampling",
  "elicitation.requested": "elicitation",
  "mcp.oauth_required": "accessToken",
  "user_input.requested": "userInput",
  "exit_plan_mode.requested": "exitPlanMode",
};

/** Whether two offers attach alike. */
export function areAlike(some: ClientOffer, other: ClientOffer): boolean {
  const { answersElicitation, answersUserInput, answersPlans } = other;
  return some.answersElicitation === answersElicitation && some.answersUserInput === answersUserInput && some.answersPlans === answersPlans;
}

function plansOf(asked: AskedClient): AskHandlers {
  return {
    exitPlanMode: async (plan, { sessionId, signal }) => {
      const answer = await asked.client.wire.request("exitPlanMode.request", { sessionId, ...plan }, signal);
      return isPlainRecord(answer) ? answer : {};
    },
  };
}

function userInputOf(asked: AskedClient): AskHandlers {
  return {
    userInput: async ({ question, choices, allowFreeform }, { sessionId, signal }) => {
      const request = { sessionId, question, ...(choices && { choices }), ...(allowFreeform !== undefined && { allowFreeform }) };
      const answer = await asked.client.wire.request("userInput.request", request, signal);
      return isPlainRecord(answer) ? answer : {};
    },
  };
}
