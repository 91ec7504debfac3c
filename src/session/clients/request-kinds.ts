import { isRecord } from "../../base/json.ts";
import type { Asks, PermissionDecision, ToolAnswer } from "../../tools/tool.ts";
import type { PermissionOutcome, SessionEventData } from "../history/event-types.ts";

export type AskKind = keyof Asks;

/** How an ask ended. */
export type AskOutcome<K extends AskKind = AskKind> =
  | { readonly kind: "answered"; readonly answer: Asks[K]["answer"]; readonly from: string }
  /** The answer could not be understood. */
  | { readonly kind: "unclear"; readonly from: string }
  | { readonly kind: "ended"; readonly reason: AskEnd };

/** `unavailable`: no client can answer, or all passed. `detached`: the last client that could answer detached. */
export type AskEnd = "unavailable" | "detached" | "cancelled" | "closed";

/** Who asks, for the events. */
export interface AskFacts {
  readonly requestId: string;
  readonly sessionId: string;
  readonly toolCallId: string | undefined;
  /** The MCP server that wants it asked. */
  readonly serverName: string | undefined;
}

/**
 * What a client answered. `unable`: it has no user. `left`: it leaves the answer to another client.
 * Undefined: nothing that is an answer of this kind.
 */
export function readAnswer<K extends AskKind>(kind: K, answer: unknown): Asks[K]["answer"] | "unable" | "left" | undefined {
  const fields = fieldsOf(answer);
  return fields["kind"] === noResult.kind ? "left" : (askKinds[kind] as AskKindRow<K>).parse(fields);
}

/** Leaves a question to another client, also to one that attaches later. */
export const noResult: { readonly kind: "no-result" } = Object.freeze({ kind: "no-result" });

type AnswerFields = Readonly<Record<string, unknown>>;

/** The events of each kind of question: when it is asked, and when it has ended. */
interface AskEvents {
  permission: { requested: "permission.requested"; completed: "permission.completed" };
  tool: { requested: "external_tool.requested"; completed: "external_tool.completed" };
  userInput: { requested: "user_input.requested"; completed: "user_input.completed" };
  elicitation: { requested: "elicitation.requested"; completed: "elicitation.completed" };
  sampling: { requested: "sampling.requested"; completed: "sampling.completed" };
  roots: { requested: "roots.requested"; completed: "roots.completed" };
  exitPlanMode: { requested: "exit_plan_mode.requested"; completed: "exit_plan_mode.completed" };
  accessToken: { requested: "mcp.oauth_required"; completed: "mcp.oauth_completed" };
  authorization: { requested: "mcp.oauth_required"; completed: "mcp.oauth_completed" };
}

/** What there is to know of one kind of ask: its events, and what an answer looks like. */
export interface AskKindRow<K extends AskKind> {
  readonly requested: AskEvents[K]["requested"];
  readonly completed: AskEvents[K]["completed"];
  toRequested(data: Asks[K]["data"], facts: AskFacts): SessionEventData[AskEvents[K]["requested"]];
  toCompleted(outcome: AskOutcome<K>, facts: AskFacts): SessionEventData[AskEvents[K]["completed"]];
  /** Undefined: not an answer of this kind. */
  parse(fields: AnswerFields): Asks[K]["answer"] | "unable" | undefined;
}

export const askKinds: { readonly [K in AskKind]: AskKindRow<K> } = {
  permission: {
    requested: "permission.requested",
    completed: "permission.completed",
    toRequested: (permissionRequest, { requestId }) => ({ requestId, permissionRequest }),
    toCompleted: (outcome, { requestId, toolCallId }) => ({
      requestId,
      result: permissionResult(outcome),
      ...(toolCallId === undefined ? {} : { toolCallId }),
    }),
    parse: parsePermission,
  },
  tool: {
    requested: "external_tool.requested",
    completed: "external_tool.completed",
    toRequested: (data, { requestId, sessionId }) => ({ requestId, sessionId, ...data }),
    toCompleted: (_outcome, { requestId }) => ({ requestId }),
    parse: parseToolAnswer,
  },
  userInput: {
    requested: "user_input.requested",
    completed: "user_input.completed",
    toRequested: (data, facts) => ({ ...data, ...asked(facts) }),
    toCompleted: (outcome, { requestId }) => ({ ...answerOf(outcome), requestId }),
    parse({ answer: text, wasFreeform }) {
      if (typeof text !== "string") return undefined;
      return typeof wasFreeform === "boolean" ? { answer: text, wasFreeform } : { answer: text };
    },
  },
  elicitation: {
    requested: "elicitation.requested",
    completed: "elicitation.completed",
    // What a server sends must not pass for the session's own words.
    toRequested: ({ message, requestedSchema, url }, facts) => ({
      message,
      mode: url === undefined ? "form" : "url",
      ...(requestedSchema !== undefined && { requestedSchema }),
      ...(url !== undefined && { url }),
      ...(facts.serverName !== undefined && { elicitationSource: facts.serverName }),
      ...asked(facts),
    }),
    toCompleted: (outcome, { requestId }) => ({ ...answerOf(outcome), requestId }),
    parse({ action, content }) {
      if (action !== "accept" && action !== "decline" && action !== "cancel") return undefined;
      return isRecord(content) ? { action, content } : { action };
    },
  },
  sampling: {
    requested: "sampling.requested",
    completed: "sampling.completed",
    toRequested: (request, facts) => ({
      ...asked(facts),
      serverName: facts.serverName ?? "",
      mcpRequestId: facts.toolCallId ?? facts.requestId,
      request,
    }),
    toCompleted: (_outcome, { requestId }) => ({ requestId }),
    parse: (fields) => (typeof fields["model"] === "string" && fields["content"] !== undefined ? fields : undefined),
  },
  roots: {
    requested: "roots.requested",
    completed: "roots.completed",
    toRequested: (_data, facts) => asked(facts),
    toCompleted: (_outcome, { requestId }) => ({ requestId }),
    parse: ({ roots }) => (isRootList(roots) ? { roots } : undefined),
  },
  exitPlanMode: {
    requested: "exit_plan_mode.requested",
    completed: "exit_plan_mode.completed",
    toRequested: (data, facts) => ({ ...data, ...asked(facts) }),
    toCompleted: (outcome, { requestId }) => ({ ...answerOf(outcome), requestId }),
    parse: parsePlanAnswer,
  },
  accessToken: {
    requested: "mcp.oauth_required",
    completed: "mcp.oauth_completed",
    toRequested: (data, { requestId }) => ({ ...data, requestId }),
    toCompleted: (outcome, { requestId }) => ({ requestId, outcome: isToken(outcome) ? "token" : "cancelled" }),
    parse: parseToken,
  },
  authorization: {
    requested: "mcp.oauth_required",
    completed: "mcp.oauth_completed",
    toRequested: ({ serverName, serverUrl = "", url, redirectUrl }, { requestId }) => ({
      serverName,
      serverUrl,
      reason: "initial",
      authorizationUrl: url,
      redirectUrl,
      requestId,
    }),
    toCompleted: (outcome, { requestId }) => ({ requestId, outcome: outcome.kind === "answered" ? "token" : "cancelled" }),
    parse: ({ callbackUrl }) => (typeof callbackUrl === "string" ? { callbackUrl } : undefined),
  },
};

function isToken(outcome: AskOutcome<"accessToken">): boolean {
  return outcome.kind === "answered" && outcome.answer.kind === "token";
}

function parseToken({ kind, accessToken, expiresIn }: AnswerFields): Asks["accessToken"]["answer"] | undefined {
  if (kind === "cancelled") return { kind };
  if (kind !== "token" || typeof accessToken !== "string" || accessToken === "") return undefined;
  return { kind, accessToken, ...(typeof expiresIn === "number" && expiresIn > 0 && { expiresIn }) };
}

function parsePlanAnswer(fields: AnswerFields): Asks["exitPlanMode"]["answer"] | undefined {
  const { approved, selectedAction, autoApproveEdits, feedback } = fields;
  if (typeof approved !== "boolean") return undefined;
  return {
    approved,
    ...(typeof selectedAction === "string" && { selectedAction }),
    ...(typeof autoApproveEdits === "boolean" && { autoApproveEdits }),
    ...(typeof feedback === "string" && { feedback }),
  };
}

function isRootList(value: unknown): value is Asks["roots"]["answer"]["roots"] {
  return Array.isArray(value) && value.every((root) => isRecord(root) && typeof root["uri"] === "string");
}

const permissionKinds: ReadonlySet<unknown> = new Set([
  "approve-once",
  "approve-for-session",
  "approve-for-location",
  "approve-permanently",
  "reject",
]);

function parsePermission(fields: AnswerFields): PermissionDecision | "unable" | undefined {
  if (fields["kind"] === "user-not-available") return "unable";
  if (permissionKinds.has(fields["kind"])) return fields as unknown as PermissionDecision;
  if (fields["kind"] !== undefined) return undefined;
  const { decision, reason } = fields;
  if (decision !== "allow" && decision !== "deny") return undefined;
  return typeof reason === "string" ? { decision, reason } : { decision };
}

function parseToolAnswer(fields: AnswerFields): ToolAnswer | undefined {
  if (typeof fields["error"] === "string" && !Object.hasOwn(fields, "result")) return { error: fields["error"] };
  return Object.hasOwn(fields, "result") ? { result: fields["result"] } : undefined;
}

// The kinds of results that the Copilot SDK knows for `permission.completed`.
function permissionResult(outcome: AskOutcome<"permission">): PermissionOutcome {
  if (outcome.kind === "ended" && outcome.reason !== "unavailable") return { kind: "cancelled", reason: outcome.reason };
  if (outcome.kind !== "answered") return { kind: "denied-no-approval-rule-and-could-not-request-from-user" };
  const { answer } = outcome;
  if ("decision" in answer) {
    return answer.decision === "allow" ? { kind: "approved" } : { kind: "denied-interactively-by-user", ...feedbackOf(answer.reason) };
  }
  if (answer.kind === "reject") return { kind: "denied-interactively-by-user", ...feedbackOf(answer.feedback) };
  const { kind, approval, locationKey } = answer as Readonly<Record<string, unknown>>;
  const what = isRecord(approval) ? { approval } : {};
  if (kind === "approve-for-session") return { kind: "approved-for-session", ...what };
  if (kind !== "approve-for-location") return { kind: "approved" };
  return { kind: "approved-for-location", ...what, ...(typeof locationKey === "string" && { locationKey }) };
}

function feedbackOf(feedback: unknown): { readonly feedback?: string } {
  return typeof feedback === "string" ? { feedback } : {};
}

function asked({ requestId, toolCallId }: AskFacts): { readonly requestId: string; readonly toolCallId?: string } {
  return toolCallId === undefined ? { requestId } : { requestId, toolCallId };
}

function answerOf<K extends AskKind>(outcome: AskOutcome<K>): Partial<Asks[K]["answer"]> {
  return outcome.kind === "answered" ? outcome.answer : {};
}

/** The own fields of an answer, each read once: an answer comes from outside and may have getters that change their mind. */
function fieldsOf(answer: unknown): AnswerFields {
  try {
    return isRecord(answer) ? { ...answer } : {};
  } catch {
    // A throwing getter: nothing here can be understood as an answer.
    return {};
  }
}
