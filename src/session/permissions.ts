import type { Asks, PermissionDecision, PermissionRequest, Tool } from "../tools/tool.ts";
import type { AskOutcome } from "./ask-kinds.ts";
import type { AskHandler, SessionAsks } from "./asks.ts";

/** Allows every call. For programs that trust every tool they offer. */
export const approveAll: AskHandler<"permission"> = () => approval;

const approval: PermissionDecision = Object.freeze({ kind: "approve-once" });

/** The answer to "may it run?". */
export type PermissionVerdict =
  | { readonly allowed: true }
  | {
      readonly allowed: false;
      readonly code: "permission_rejected" | "permission_denied" | "permission_unavailable" | "cancelled" | "session_closed";
      readonly reason?: string | undefined;
      /** The answer could not be understood. */
      readonly isUnclear?: boolean;
    };

/** A call that needs permission. */
interface PermissionQuestion {
  readonly tool: Tool;
  readonly toolCallId: string;
  readonly toolArgs: unknown;
  readonly agentId: string | undefined;
  /** What the tool says that it would do; undefined: it says nothing. */
  readonly request: PermissionRequest | undefined;
  /** A hook wants the question asked, with its reason. */
  readonly askedByHook: { readonly reason: string | undefined } | undefined;
  /** Withdraws the question. */
  readonly signal: () => AbortSignal;
}

export interface Permissions {
  /** Decides at once what was approved before or is answered at once. Never rejects. */
  decide(question: PermissionQuestion, waits: boolean): PermissionVerdict | Promise<PermissionVerdict>;
  /** Forgets what was approved for the session. */
  reset(): void;
}

export function createPermissions(asks: SessionAsks): Permissions {
  const approved = new Set<string>();
  return {
    reset: () => approved.clear(),
    decide(question, waits) {
      const data = toPermissionAsk(question);
      const key = `${data.kind} ${question.tool.definition.name}`;
      if (approved.has(key)) return allowed;
      const options = { toolCallId: question.toolCallId, agentId: question.agentId, waits, signal: question.signal };
      const outcome = asks.open("permission", data, options);
      const judge = (settled: AskOutcome<"permission">): PermissionVerdict => {
        const verdict = toVerdict(settled);
        if (verdict.allowed && isLasting(settled)) approved.add(key);
        return verdict;
      };
      return outcome instanceof Promise ? outcome.then(judge) : judge(outcome);
    },
  };
}

const allowed: PermissionVerdict = Object.freeze({ allowed: true });
const unavailable: PermissionVerdict = Object.freeze({ allowed: false, code: "permission_unavailable" });

function toPermissionAsk({ tool, toolCallId, toolArgs, request, askedByHook }: PermissionQuestion): Asks["permission"]["data"] {
  const { name, description } = tool.definition;
  const own =
    askedByHook === undefined ? (request ?? defaultRequest(tool, toolArgs)) : { kind: "hook", ...hookMessage(askedByHook.reason) };
  const facts = { toolCallId, toolName: name, toolArgs };
  return description === undefined ? { ...own, ...facts } : { description, ...own, ...facts };
}

/** What the Copilot SDK's permission requests hold for tools that do not describe their calls themselves. */
function defaultRequest({ definition, origin }: Tool, args: unknown): PermissionRequest {
  if (origin.kind !== "mcp") return { kind: "custom-tool", toolDescription: definition.description ?? "", args };
  return {
    kind: "mcp",
    serverName: origin.source,
    toolTitle: definition.title ?? definition.annotations?.title ?? origin.nativeName,
    args,
    readOnly: definition.annotations?.readOnlyHint === true,
  };
}

function hookMessage(reason: string | undefined): object {
  return reason === undefined ? {} : { hookMessage: reason };
}

function toVerdict(outcome: AskOutcome<"permission">): PermissionVerdict {
  if (outcome.kind === "unclear") return { ...unavailable, isUnclear: true } as PermissionVerdict;
  if (outcome.kind === "ended") return toEndVerdict(outcome.reason);
  const { answer } = outcome;
  if ("decision" in answer) {
    return answer.decision === "allow" ? allowed : { allowed: false, code: "permission_denied", reason: answer.reason };
  }
  if (answer.kind !== "reject") return answer.kind === "user-not-available" ? unavailable : allowed;
  return { allowed: false, code: "permission_rejected", reason: typeof answer.feedback === "string" ? answer.feedback : undefined };
}

function toEndVerdict(reason: "nobody" | "detached" | "cancelled" | "closed"): PermissionVerdict {
  if (reason === "cancelled") return { allowed: false, code: "cancelled" };
  return reason === "closed" ? { allowed: false, code: "session_closed" } : unavailable;
}

/** Approvals for a place or for ever hold for the session at least. */
function isLasting(outcome: AskOutcome<"permission">): boolean {
  return outcome.kind === "answered" && "kind" in outcome.answer && outcome.answer.kind !== "approve-once";
}
