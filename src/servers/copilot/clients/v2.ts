import { isPlainRecord } from "../../../base/read-fields.ts";
import type { AskHandlers } from "../../../session/asks/asks.ts";
import { toWireRequest } from "../sessions/wire-permission.ts";
import type { Client } from "./client.ts";

/** Clients of protocol 2 are asked by requests for what those of 3 hear of by events. */
export function toV2Handlers({ wire }: Client): AskHandlers {
  return {
    tool: async ({ toolCallId, toolName, arguments: args }, { sessionId, signal }) => {
      const answer = await wire.request("tool.call", { sessionId, toolCallId, toolName, arguments: args }, signal);
      return isPlainRecord(answer) && answer["result"] !== undefined
        ? { result: answer["result"] }
        : { error: "The client gave no result." };
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
