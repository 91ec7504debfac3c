import { randomUUID } from "node:crypto";
import { toError } from "../../base/errors.ts";
import type { Asks, PermissionDecision, PermissionRequest, Tool, ToolContext } from "../../tools/tool.ts";
import { type ApprovalKey, type ApprovalScope, type ApprovalStore, createMemoryApprovals } from "../../trust/approvals.ts";
import { locationOf } from "../../trust/trust-file.ts";
import type { AskHandler, AskHandlers, ClientRequests } from "../clients/client-requests.ts";
import type { AskOutcome } from "../clients/request-kinds.ts";
import type { SessionContext } from "../session-context.ts";
import { type ApprovableCall, type ApprovalGrant, approvalsFor, grantsFor, grantsOf, outdatedApprovals } from "./permission-approvals.ts";
import { findReach, type ReachFound, type RuledReach } from "./permission-reach.ts";
import type { RuleVerdict } from "./permission-rules.ts";

/** Allows every call that no rule denies or wants asked about, without announcing a question: clients might show it to a person. */
export const approveUnasked: AskHandler<"permission"> = () => approval;

const approval: PermissionDecision = Object.freeze({ kind: "approve-once" });

/** The answer to "may it run?". */
export type PermissionVerdict =
  | { readonly allowed: true }
  | {
      readonly allowed: false;
      readonly code:
        | "permission_rejected"
        | "permission_denied"
        | "permission_unavailable"
        | "denied_by_rules"
        | "cancelled"
        | "session_closed";
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
  /** What the host knows the call to reach; undefined: nothing, or no rule is about it. */
  readonly reach?: RuledReach | undefined;
  /** Why no question is needed: a hook allows the call, or the tool says that its calls, or this one, need no permission. */
  readonly exemption: "hook" | "tool" | undefined;
  /** A hook wants the question asked, with its reason. */
  readonly askedByHook: { readonly reason: string | undefined } | undefined;
  /** Withdraws the question. */
  readonly signal: () => AbortSignal;
  /** Handlers of the caller: asked before the attached clients. */
  readonly caller: AskHandlers | undefined;
}

const allowed: PermissionVerdict = Object.freeze({ allowed: true });
const unavailable: PermissionVerdict = Object.freeze({ allowed: false, code: "permission_unavailable" });

type Verdict = PermissionVerdict | Promise<PermissionVerdict>;

export class Permissions {
  readonly #host: SessionContext;
  readonly #asks: ClientRequests;
  /** Keeps approvals that outlive the session. Undefined: they last as long as the session. */
  readonly #approvals: ApprovalStore | undefined;
  readonly #sessionScope: ApprovalScope;
  #ofSession = createMemoryApprovals();
  #hasSessionGrants = false;
  readonly #lookedForOutdated = new WeakSet<Tool>();
  #lasting: { readonly directory: string; readonly scopes: readonly ApprovalScope[] } | undefined;

  constructor(host: SessionContext, asks: ClientRequests, approvals: ApprovalStore | undefined) {
    this.#host = host;
    this.#asks = asks;
    this.#approvals = approvals;
    this.#sessionScope = { kind: "session", id: host.sessionId };
  }

  /** Forgets what was approved for the session. */
  reset(): void {
    this.#ofSession = createMemoryApprovals();
    this.#hasSessionGrants = false;
  }

  /**
   * Approves something for a place before anybody asks for it: reading, commands, a server's tools, as the Copilot SDK
   * writes it. False: it is about none of these tools.
   */
  async approveFor(location: string, approval: unknown, tools: Iterable<Tool>): Promise<boolean> {
    const grants = grantsFor(approval, tools);
    const approvedAt = new Date().toISOString();
    const scope: ApprovalScope = { kind: "location", id: location };
    const isHere = this.#lastingScopes().some((known) => known.kind === "location" && known.id === location);
    if (isHere && grants.length > 0) {
      this.#hasSessionGrants = true;
      await this.#keep(this.#ofSession, grants, this.#sessionScope, approvedAt);
    }
    if (this.#approvals !== undefined) await this.#keep(this.#approvals, grants, scope, approvedAt);
    return grants.length > 0;
  }

  /** Whether rules may stop a call of this tool that is exempt from questions. */
  mayStop(tool: Tool): boolean {
    return this.#host.config.permissions.mayStop(tool);
  }

  /** What a call reaches, for rules. Undefined: unknown, or no rule is about it. Throws what the tool throws. */
  reachOf(tool: Tool, args: unknown, context: ToolContext): ReachFound | Promise<ReachFound> | undefined {
    const { permissions } = this.#host.config;
    if (tool.reach === undefined || !permissions.judgesReach(tool)) return undefined;
    return findReach(tool.reach(args, context), permissions);
  }

  /**
   * Decides, in this order: a rule that denies; a hook that allows; a hook or a rule that requires a question; a tool that needs no
   * permission; a rule that allows; an earlier approval; the answer of a client. Never rejects.
   */
  decide(question: PermissionQuestion, waits: boolean): Verdict {
    const { tool, request, toolArgs: args, exemption, askedByHook } = question;
    const ruled = this.#judge(question);
    if (ruled?.kind === "deny") {
      const { toolCallId, agentId } = question;
      const { kind, argument } = ruled.rule;
      const { events } = this.#host;
      const result = { kind: "denied-by-rules" as const, rules: [{ kind, argument }] };
      events.append("permission.completed", () => ({ requestId: randomUUID(), result, toolCallId }), agentId);
      return { allowed: false, code: "denied_by_rules" };
    }
    if (exemption === "hook") return allowed;
    if (askedByHook !== undefined) return this.#ask(question, waits, undefined);
    const call = { tool, request: requestOf(tool, request, args) };
    if (ruled?.kind === "ask") return this.#ask(question, waits, call);
    if (exemption === "tool" || ruled?.kind === "allow") return allowed;
    if (this.#host.config.onPermissionRequest === approveUnasked) return allowed;
    const isApproved = this.#wasApproved(call);
    if (!(isApproved instanceof Promise)) return isApproved ? allowed : this.#ask(question, waits, call);
    return isApproved.then((known) => (known ? allowed : this.#ask(question, waits, call)));
  }

  /** What a tool says of its calls may forbid them, even where it may not allow them. */
  #judge({ tool, request, reach, toolArgs: args }: PermissionQuestion): RuleVerdict | undefined {
    const { permissions } = this.#host.config;
    const reached = reach && { tool, request: reach.request, args, reach };
    const ruled = permissions.judge({ tool, request, args }, reached);
    if (tool.isAlwaysAsked !== true || request === undefined || ruled?.kind !== "allow") return ruled;
    return permissions.judge({ tool, request: undefined, args }, reached);
  }

  /** Asks the clients. Without a call nothing is remembered: a hook asks about each call again. */
  #ask(question: PermissionQuestion, waits: boolean, call: ApprovableCall | undefined): Verdict {
    const { toolCallId, agentId, signal, caller } = question;
    const options = { toolCallId, agentId, waits, signal, caller };
    if (call !== undefined) this.#reportOutdated(call);
    const outcome = this.#asks.open("permission", toPermissionAsk(question, call?.request), options);
    const judge = (settled: AskOutcome<"permission">): Verdict => {
      const verdict = toVerdict(settled);
      if (!verdict.allowed || settled.kind !== "answered" || !isLasting(settled.answer) || call === undefined) return verdict;
      const kept = this.#remember(settled.answer, call);
      return kept === undefined ? verdict : kept.then(() => verdict);
    };
    return outcome instanceof Promise ? outcome.then(judge) : judge(outcome);
  }

  /** Reports once that an approval which earlier versions kept by names alone is not honoured, and removes it. */
  #reportOutdated(call: ApprovableCall): void {
    const approvals = this.#approvals;
    if (approvals === undefined || this.#lookedForOutdated.has(call.tool)) return;
    this.#lookedForOutdated.add(call.tool);
    try {
      const keys = outdatedApprovals(call);
      const found = keys.map((key) => approvals.has(key, this.#lastingScopes()));
      const report = (known: readonly boolean[]): void =>
        this.#removeOutdated(
          approvals,
          call,
          keys.filter((_, index) => known[index]),
        );
      if (found.every((answer) => typeof answer === "boolean")) report(found);
      else Promise.all(found).then(report, (error: unknown) => this.#notFound(error));
    } catch (error) {
      this.#notFound(error);
    }
  }

  #removeOutdated(approvals: ApprovalStore, { tool: { definition, origin } }: ApprovableCall, keys: readonly ApprovalKey[]): void {
    if (keys.length === 0) return;
    const what = `An approval of tool "${definition.name}" of ${origin.kind} "${origin.source}" that an earlier version of skillhost stored`;
    const why = "was bound to these names only, which another source could use, so it was ignored and removed";
    this.#warn(`${what} ${why}. Answer the question with "approve-permanently" or "approve-for-location" to store it again.`);
    const removed = keys.flatMap(({ kind, id, digest }) =>
      this.#lastingScopes().map((scope) => approvals.forget({ kind, id, digest, scope })),
    );
    Promise.all(removed).catch((error: unknown) => this.#warn("An outdated approval could not be removed.", error));
  }

  #wasApproved(call: ApprovableCall): boolean | Promise<boolean> {
    const approvals = this.#approvals;
    if (!this.#hasSessionGrants && approvals === undefined) return false;
    try {
      const needed = approvalsFor(call);
      if (needed === undefined) return false;
      const missing = this.#hasSessionGrants ? needed.filter((keys) => !this.#areGranted(keys)) : needed;
      if (missing.length === 0) return true;
      return approvals === undefined ? false : this.#areKept(approvals, missing);
    } catch (error) {
      return this.#notFound(error);
    }
  }

  #areGranted(keys: readonly ApprovalKey[]): boolean {
    return keys.some((key) => this.#ofSession.has(key, [this.#sessionScope]));
  }

  #areKept(approvals: ApprovalStore, needed: readonly (readonly ApprovalKey[])[]): boolean | Promise<boolean> {
    const scopes = this.#lastingScopes();
    const answers = needed.map((keys) => keys.map((key) => approvals.has(key, scopes)));
    const isPlain = answers.flat().every((answer) => typeof answer === "boolean");
    if (isPlain) return answers.every((keys) => keys.includes(true));
    return Promise.all(answers.map((keys) => Promise.all(keys))).then(
      (known) => known.every((keys) => keys.includes(true)),
      (error) => this.#notFound(error),
    );
  }

  /** Remembers an answer. Undefined: at once. */
  #remember(decision: PermissionDecision, call: ApprovableCall): Promise<void> | undefined {
    const approvals = this.#approvals;
    const grants = this.#read(decision, call);
    if (grants === undefined) return undefined;
    const approvedAt = new Date().toISOString();
    this.#hasSessionGrants = true;
    // In memory it is there before this returns; the promise only reports what could not be stored.
    const inMemory = this.#keep(this.#ofSession, grants, this.#sessionScope, approvedAt);
    const failed = (error: unknown): void => this.#warn(`An approval of tool "${call.tool.definition.name}" could not be stored.`, error);
    const scope = this.#scopeOf(decision);
    if (scope === undefined || approvals === undefined) return void inMemory.catch(failed);
    return Promise.all([inMemory, this.#keep(approvals, grants, scope, approvedAt)]).then(() => {}, failed);
  }

  async #keep(store: ApprovalStore, grants: readonly ApprovalGrant[], scope: ApprovalScope, approvedAt: string): Promise<void> {
    await Promise.all(grants.map((grant) => store.remember({ ...grant, scope, approvedAt })));
  }

  #read(decision: PermissionDecision, call: ApprovableCall): readonly ApprovalGrant[] | undefined {
    const { name } = call.tool.definition;
    try {
      const grants = grantsOf(decision, call);
      if (grants === undefined)
        this.#warn(`The approval for tool "${name}" does not cover this call or cannot be stored, so the call was allowed once.`);
      return grants;
    } catch (error) {
      // What the tool says of its call has no JSON form, so that it would never be known again.
      this.#warn(`The approval for tool "${name}" cannot be stored, so the call was allowed once.`, error);
      return undefined;
    }
  }

  /** Undefined: the session only. */
  #scopeOf(decision: PermissionDecision): ApprovalScope | undefined {
    if (!("kind" in decision)) return undefined;
    if (decision.kind === "approve-permanently") return { kind: "user" };
    if (decision.kind !== "approve-for-location") return undefined;
    const { locationKey } = decision;
    const isNamed = typeof locationKey === "string" && locationKey !== "";
    return isNamed ? { kind: "location", id: locationKey } : this.#lastingScopes()[0];
  }

  #lastingScopes(): readonly ApprovalScope[] {
    const { workingDirectory: directory } = this.#host.config;
    if (this.#lasting?.directory !== directory) {
      this.#lasting = { directory, scopes: [{ kind: "location", id: locationOf(directory) }, { kind: "user" }] };
    }
    return this.#lasting.scopes;
  }

  #notFound(error: unknown): boolean {
    this.#host.log.error("Earlier approvals could not be read, so permission is requested.", { error: toError(error) });
    return false;
  }

  #warn(message: string, error?: unknown): void {
    const { log, events, sessionId } = this.#host;
    log.warning(message, { sessionId, ...(error === undefined ? {} : { error: toError(error) }) });
    events.append("session.warning", { warningType: "permission", message });
  }
}

function toPermissionAsk(
  { tool, toolCallId, toolArgs, askedByHook }: PermissionQuestion,
  request: PermissionRequest | undefined,
): Asks["permission"]["data"] {
  const { name, description } = tool.definition;
  const own = request ?? { kind: "hook", ...hookMessage(askedByHook?.reason) };
  const facts = { toolCallId, toolName: name, toolArgs };
  return description === undefined ? { ...own, ...facts } : { description, ...own, ...facts };
}

/** What is asked, and what an answer is remembered for. */
function requestOf(tool: Tool, request: PermissionRequest | undefined, args: unknown): PermissionRequest {
  if (request === undefined) return defaultRequest(tool, args);
  return tool.isAlwaysAsked === true ? { ...request, ...defaultRequest(tool, args) } : request;
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
  if (outcome.kind === "ended") {
    const reason = outcome.reason;
    if (reason === "cancelled") return { allowed: false, code: "cancelled" };
    return reason === "closed" ? { allowed: false, code: "session_closed" } : unavailable;
  }
  const { answer } = outcome;
  if ("decision" in answer) {
    return answer.decision === "allow" ? allowed : { allowed: false, code: "permission_denied", reason: answer.reason };
  }
  if (answer.kind !== "reject") return answer.kind === "user-not-available" ? unavailable : allowed;
  return { allowed: false, code: "permission_rejected", reason: typeof answer.feedback === "string" ? answer.feedback : undefined };
}

/** Approvals for a place or for ever hold for the session at least. */
function isLasting(answer: PermissionDecision): boolean {
  return "kind" in answer && answer.kind !== "approve-once";
}
