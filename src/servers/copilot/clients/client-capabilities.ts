import { isPlainRecord } from "../../../base/read-fields.ts";
import type { AskHandlers } from "../../../session/clients/client-requests.ts";
import type { AskKind } from "../../../session/clients/request-kinds.ts";
import type { AttachmentOptions } from "../../../session/clients/session-client.ts";
import { type Hook, type HookKind, hookOptions, type SessionHooks } from "../../../session/hooks/hook-kinds.ts";
import { toWireRequest } from "../sessions/copilot-events.ts";
import type { Client } from "./client.ts";
import type { CommandDeclaration } from "./client-commands.ts";

/** What a client offers in a session. */
export interface ClientCapabilities {
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
interface AskedClient {
  readonly client: Client;
}

/** How a client attaches to a session: what it may answer, and what it is asked by requests. */
export function toAttachment(asked: AskedClient, capabilities: ClientCapabilities): AttachmentOptions {
  // An extension is nobody who decides, unless it says so: a question that only it hears of would wait for ever.
  const { extension } = asked.client;
  const answers: AskKind[] = extension === undefined || capabilities.answersPermissions ? ["permission", "tool"] : ["tool"];
  if (capabilities.answersUserInput) answers.push("userInput");
  if (capabilities.answersElicitation) answers.push("elicitation");
  if (capabilities.answersPlans) answers.push("exitPlanMode");
  const handlers = {
    ...(asked.client.version === 2 && toV2Handlers(asked.client)),
    ...(capabilities.answersUserInput && userInputOf(asked)),
    ...(capabilities.answersPlans && plansOf(asked)),
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
export function areAlike(some: ClientCapabilities, other: ClientCapabilities): boolean {
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

/**
 * The hooks of a session that clients have: each is a request to every such client, one after the other. A client that
 * has gone decides nothing any more; one that fails or answers something else is the session's to judge.
 */
export function toClientHooks(sessionId: string, clients: readonly Client[]): SessionHooks | undefined {
  if (clients.length === 0) return undefined;
  const kinds = Object.keys(hookOptions) as HookKind[];
  return Object.fromEntries(kinds.map((kind) => [hookOptions[kind], clients.map((client) => createHook(kind, sessionId, client))]));
}

function createHook<K extends HookKind>(hookType: K, sessionId: string, { wire }: Client): Hook<K> {
  return async (input) => {
    const answer = await wire.request("hooks.invoke", { sessionId, hookType, input: toWireInput(hookType, input) });
    const output = isPlainRecord(answer) ? answer["output"] : undefined;
    return hookType === "preMcpToolCall" ? output : withoutNulls(output);
  };
}

/** The runtime of the Copilot SDK sends the arguments that are to be decided about as text. */
function toWireInput(kind: HookKind, input: object): object {
  return kind === "preToolUse" && "toolArgs" in input ? { ...input, toolArgs: JSON.stringify(input.toolArgs) ?? "" } : input;
}

function withoutNulls(output: unknown): unknown {
  if (!isPlainRecord(output)) return output;
  return Object.fromEntries(Object.entries(output).filter(([, value]) => value !== null));
}

/** Clients of protocol 2 are asked by requests for what those of 3 hear of by events. */
function toV2Handlers({ wire }: Client): AskHandlers {
  return {
    tool: async ({ toolCallId, toolName, arguments: args }, { sessionId, signal }) => {
      const answer = await wire.request("tool.call", { sessionId, toolCallId, toolName, arguments: args }, signal);
      return isPlainRecord(answer) && answer["result"] !== undefined
        ? { result: answer["result"] }
        : { error: "The client returned no result." };
    },
    permission: async (request, { sessionId, signal }) => {
      const permissionRequest = toWireRequest(request);
      const answer = await wire.request("permission.request", { sessionId, permissionRequest }, signal);
      const result = isPlainRecord(answer) ? answer["result"] : undefined;
      return toDecision(isPlainRecord(result) ? result["kind"] : undefined);
    },
  };
}

/** The kinds of protocol 2 in the words of 3. What is neither is the session's to refuse. */
function toDecision(kind: unknown): object {
  switch (kind) {
    case "approved":
      return { kind: "approve-once" };
    case "denied-interactively-by-user":
    case "denied-by-rules":
      return { kind: "reject" };
    case "denied-no-approval-rule-and-could-not-request-from-user":
      return { kind: "user-not-available" };
    default:
      return { kind };
  }
}
