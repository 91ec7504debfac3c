import { toError } from "../../base/errors.ts";
import { isThenable } from "../../base/wait.ts";
import type { PermissionRequest, Tool, Validated } from "../../tools/tool.ts";
import type { Hook, PreToolUseOutput } from "../hooks/hook-kinds.ts";
import type { HookRun } from "../hooks/run-hooks.ts";
import type { PermissionVerdict } from "../permissions/permissions.ts";
import { callContext } from "../prompt/model-text.ts";
import { type CallServices, hookInput, logFacts, settle } from "./call-stages.ts";
import { Interruption, type RunningCall } from "./running-call.ts";

/**
 * Lets the preToolUse hooks see a call, one after the other, each with what the ones before made of it. The first that
 * denies, throws or cannot be understood ends it. A promise only if a hook returned one.
 */
export function gateCall(run: RunningCall, host: CallServices): void | Promise<void> {
  const { preToolUse } = host.config.hooks;
  return preToolUse.length === 0 ? undefined : runGates(run, host, preToolUse, 0);
}

function runGates(run: RunningCall, host: CallServices, hooks: readonly Hook<"preToolUse">[], from: number): void | Promise<void> {
  for (let index = from; index < hooks.length && run.settlement === undefined; index++) {
    const ran = host.hooks.invoke("preToolUse", hooks[index]!, hookInput(run, host), { agentId: run.agent.agentId });
    if (ran instanceof Promise) {
      return run.wait(ran).then((settled) => {
        applyGate(run, settled);
        return runGates(run, host, hooks, index + 1);
      });
    }
    applyGate(run, ran);
  }
}

/** Takes over what a hook decided. */
function applyGate(run: RunningCall, ran: HookRun<"preToolUse"> | Interruption): void {
  if (ran instanceof Interruption) settle(run, ran.reason === "closed" ? "session_closed" : "cancelled");
  else if (ran.kind === "failed") settle(run, "denied_by_failed_hook");
  else pass(run, ran.output);
}

function pass(run: RunningCall, output: PreToolUseOutput): void {
  const { permissionDecision: decision, permissionDecisionReason: reason, modifiedArgs, additionalContext } = output;
  if (additionalContext) run.addMessage(callContext(additionalContext));
  if (decision === "deny") {
    settle(run, "denied_by_hook", { reason });
    return;
  }
  if (modifiedArgs !== undefined) run.args = modifiedArgs;
  // Of several hooks the most careful one counts: one that requires a question outweighs one that allows.
  if (decision === undefined || run.hookDecision === "ask") return;
  run.hookDecision = decision;
  run.hookReason = reason;
}

/**
 * Decides whether a call runs: finds its tool, checks the arguments, and asks for permission for what would really
 * run. Where that takes time the call is left `waiting`, and `decided` says when it is not any more.
 */
export function decideCall(run: RunningCall, host: CallServices): void {
  if (run.settlement !== undefined) return;
  const tool = run.catalog.executables.get(run.call.name);
  run.tool = tool;
  const pending = tool === undefined ? settleUnknown(run) : checkArguments(run, host, tool);
  if (pending !== undefined) awaitDecision(run, host, pending);
}

function awaitDecision(run: RunningCall, host: CallServices, pending: Promise<void>): void {
  run.kind = "waiting";
  // A reload meanwhile must not end the generation that this call is going to run on.
  run.held = run.tool?.hold?.();
  run.decided = pending.then(
    () => {
      run.kind = run.settlement === undefined ? "run" : "settled";
    },
    (error) => {
      host.log.error("Permission for a call could not be decided.", { ...logFacts(run, host), error: toError(error) });
      settle(run, "threw");
    },
  );
}

function settleUnknown(run: RunningCall): undefined {
  const { name } = run.call;
  const code = run.agent.hasVanished?.(name) ? "vanished_tool" : "unknown_tool";
  const available = run.catalog.advertised.map((definition) => definition.name);
  const error = code === "unknown_tool" ? `Tool '${name}' does not exist.` : `Tool '${name}' is no longer available.`;
  settle(run, code, { available }, error);
}

type Pending = Promise<void> | undefined;

function checkArguments(run: RunningCall, host: CallServices, tool: Tool): Pending {
  const { argumentsError } = run.call;
  if (argumentsError !== undefined && !run.isRewritten) {
    return void settle(run, "invalid_arguments", { issues: [{ path: "", message: argumentsError }] });
  }
  try {
    const checked = tool.validate(run.args);
    if (!isThenable(checked)) return applyCheck(run, host, tool, checked);
    return run.wait(checked).then(
      (settled) => (settled instanceof Interruption ? settleInterrupted(run, settled) : applyCheck(run, host, tool, settled as Validated)),
      (error) => settleUnchecked(run, host, error),
    );
  } catch (error) {
    return settleUnchecked(run, host, error);
  }
}

function applyCheck(run: RunningCall, host: CallServices, tool: Tool, checked: Validated): Pending {
  if (!checked.ok) return void settle(run, "invalid_arguments", { issues: checked.issues });
  run.value = checked.value;
  return seekPermission(run, host, tool);
}

function settleUnchecked(run: RunningCall, host: CallServices, error: unknown): undefined {
  host.log.error("Validating the arguments of a call failed.", { ...logFacts(run, host), error: toError(error) });
  settle(run, "unchecked_arguments");
}

function settleInterrupted(run: RunningCall, { reason }: Interruption): undefined {
  settle(run, reason === "closed" ? "session_closed" : "cancelled");
}

function seekPermission(run: RunningCall, host: CallServices, tool: Tool): Pending {
  const exemption = exemptionOf(run, tool);
  if (exemption !== undefined && !host.permissions.mayStop(tool)) return undefined;
  return tool.reach === undefined ? describeCall(run, host, tool, exemption) : findReach(run, host, tool, exemption);
}

/** What a call reaches is known before the tool is asked what it says of it. */
function findReach(run: RunningCall, host: CallServices, tool: Tool, exemption: Exemption): Pending {
  try {
    const found = host.permissions.reachOf(tool, run.value, run.context!);
    if (!(found instanceof Promise)) {
      run.reach = found;
      return describeCall(run, host, tool, exemption);
    }
    return run.wait(found).then(
      (settled) => {
        if (settled instanceof Interruption) return settleInterrupted(run, settled);
        run.reach = settled;
        return describeCall(run, host, tool, exemption);
      },
      (error) => settleFailedGate(run, host, error),
    );
  } catch (error) {
    return settleFailedGate(run, host, error);
  }
}

function describeCall(run: RunningCall, host: CallServices, tool: Tool, exemption: Exemption): Pending {
  if (tool.permission === undefined) return ask(run, host, tool, undefined, exemption);
  try {
    const described = tool.permission(run.value, run.context!);
    if (!isThenable(described)) return askAsDescribed(run, host, tool, described, exemption);
    return run.wait(described).then(
      (settled) =>
        settled instanceof Interruption ? settleInterrupted(run, settled) : askAsDescribed(run, host, tool, settled, exemption),
      (error) => settleFailedGate(run, host, error),
    );
  } catch (error) {
    return settleFailedGate(run, host, error);
  }
}

type Exemption = "hook" | "tool" | undefined;

function exemptionOf(run: RunningCall, tool: Tool): Exemption {
  if (run.hookDecision !== undefined) return run.hookDecision === "allow" ? "hook" : undefined;
  return tool.definition.skipPermission === true && tool.isAlwaysAsked !== true ? "tool" : undefined;
}

function askAsDescribed(run: RunningCall, host: CallServices, tool: Tool, described: unknown, exemption: Exemption): Pending {
  if (described === null) {
    const isExempt = run.hookDecision !== "ask" && tool.isAlwaysAsked !== true;
    return ask(run, host, tool, undefined, exemption ?? (isExempt ? "tool" : undefined));
  }
  // A copy: it is judged, asked with and remembered, and must be the same each time.
  const request = typeof described === "object" ? ({ ...described } as PermissionRequest) : undefined;
  if (typeof request?.kind === "string") return ask(run, host, tool, request, exemption);
  return settleFailedGate(run, host, new TypeError("permission() returned neither null nor an object with a kind."));
}

/** A gate that throws stays shut. */
function settleFailedGate(run: RunningCall, host: CallServices, error: unknown): undefined {
  host.log.error("A tool's own permission check failed: the call was denied.", { ...logFacts(run, host), error: toError(error) });
  settle(run, "permission_failed");
}

function ask(run: RunningCall, host: CallServices, tool: Tool, request: PermissionRequest | undefined, exemption: Exemption): Pending {
  const question = {
    tool,
    toolCallId: run.call.id,
    toolArgs: run.value,
    agentId: run.agent.agentId,
    request,
    reach: run.reach,
    exemption,
    askedByHook: run.hookDecision === "ask" ? { reason: run.hookReason } : undefined,
    signal: () => run.signal,
    caller: run.agent.answers,
  };
  run.pause();
  const verdict = host.permissions.decide(question, host.config.waitForAttachments);
  if (!(verdict instanceof Promise)) return applyVerdict(run, host, verdict);
  return run.wait(verdict).then((settled) => {
    if (!(settled instanceof Interruption)) return applyVerdict(run, host, settled);
    run.resume();
    return settleInterrupted(run, settled);
  });
}

function applyVerdict(run: RunningCall, host: CallServices, verdict: PermissionVerdict): undefined {
  run.resume();
  if (verdict.allowed) return;
  if (verdict.isUnclear) {
    const message = `An answer to the permission request of tool "${run.call.name}" could not be understood, so the call was denied. Answer with a kind such as "approve-once" or "reject".`;
    host.log.warning(message, logFacts(run, host));
    host.events.append("session.warning", { warningType: "permission", message }, run.agent.agentId);
  }
  settle(run, verdict.code, { reason: verdict.reason });
}
