import { isRecord } from "../../../base/json.ts";
import type { AskHandlers } from "../../../session/clients/client-requests.ts";
import type { AskKind } from "../../../session/clients/request-kinds.ts";
import type { AttachmentOptions } from "../../../session/clients/session-client.ts";
import { type Hook, type HookKind, hookOptions, type SessionHooks } from "../../../session/hooks/hook-kinds.ts";
import { toWireRequest } from "../sessions/copilot-events.ts";
import type { Client } from "./client.ts";
import type { CommandDeclaration } from "./client-commands.ts";

/** What a client can do in a session. */
export interface ClientCapabilities {
  readonly hooks: boolean;
  readonly answersPermissions: boolean;
  readonly answersUserInput: boolean;
  readonly answersElicitation: boolean;
  readonly answersPlans: boolean;
  readonly rendersApps: boolean;
  readonly wantsSubAgentStreaming: boolean;
  readonly commands: readonly CommandDeclaration[];
  /** Undefined: the client does not declare tools, and keeps those that it has. */
  readonly tools: readonly object[] | undefined;
}

/** The client that gets requests. Another one may replace it after a disconnection. */
interface AskedClient {
  readonly client: Client;
}

/** The options with which a client attaches to a session: the kinds of requests that it answers, and how it gets them. */
export function toAttachment(asked: AskedClient, capabilities: ClientCapabilities): AttachmentOptions {
  // Most extensions answer no permission requests; a request that only they receive would wait forever.
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

/** The kinds of requests that clients can register for later, by the event that announces them. */
export const answeredBy: Readonly<Record<string, AskKind | undefined>> = {
  "sampling.requested": "sampling",
  "elicitation.requested": "elicitation",
  "mcp.oauth_required": "accessToken",
  "user_input.requested": "userInput",
  "exit_plan_mode.requested": "exitPlanMode",
};

/** Whether two clients would attach with the same options. */
export function areAlike(some: ClientCapabilities, other: ClientCapabilities): boolean {
  const { answersElicitation, answersUserInput, answersPlans } = other;
  return some.answersElicitation === answersElicitation && some.answersUserInput === answersUserInput && some.answersPlans === answersPlans;
}

function plansOf(asked: AskedClient): AskHandlers {
  return {
    exitPlanMode: async (plan, { sessionId, signal }) => {
      const answer = await asked.client.wire.request("exitPlanMode.request", { sessionId, ...plan }, signal);
      return isRecord(answer) ? answer : {};
    },
  };
}

function userInputOf(asked: AskedClient): AskHandlers {
  return {
    userInput: async ({ question, choices, allowFreeform }, { sessionId, signal }) => {
      const request = { sessionId, question, ...(choices && { choices }), ...(allowFreeform !== undefined && { allowFreeform }) };
      const answer = await asked.client.wire.request("userInput.request", request, signal);
      return isRecord(answer) ? answer : {};
    },
  };
}

/**
 * The hooks of a session's clients. Each hook is a request to every such client, one after the other. The session decides what
 * a failure or an invalid answer means.
 */
export function toClientHooks(sessionId: string, clients: readonly Client[]): SessionHooks | undefined {
  if (clients.length === 0) return undefined;
  const kinds = Object.keys(hookOptions) as HookKind[];
  return Object.fromEntries(kinds.map((kind) => [hookOptions[kind], clients.map((client) => createHook(kind, sessionId, client))]));
}

function createHook<K extends HookKind>(hookType: K, sessionId: string, { wire }: Client): Hook<K> {
  return async (input) => {
    const answer = await wire.request("hooks.invoke", { sessionId, hookType, input });
    const output = isRecord(answer) ? answer["output"] : undefined;
    if (hookType === "preMcpToolCall" || !isRecord(output)) return output;
    return Object.fromEntries(Object.entries(output).filter(([, value]) => value !== null));
  };
}

/** Clients of protocol 2 get tool calls and permission requests as requests; those of 3 get them as events. */
function toV2Handlers({ wire }: Client): AskHandlers {
  return {
    tool: async ({ toolCallId, toolName, arguments: args }, { sessionId, signal }) => {
      const answer = await wire.request("tool.call", { sessionId, toolCallId, toolName, arguments: args }, signal);
      return isRecord(answer) && answer["result"] !== undefined
        ? { result: answer["result"] }
        : { error: "The client returned no result." };
    },
    permission: async (request, { sessionId, signal }) => {
      const permissionRequest = toWireRequest(request);
      const answer = await wire.request("permission.request", { sessionId, permissionRequest }, signal);
      const result = isRecord(answer) ? answer["result"] : undefined;
      return toDecision(isRecord(result) ? result["kind"] : undefined);
    },
  };
}

/** Converts a decision of protocol 2. The session refuses unknown kinds. */
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
