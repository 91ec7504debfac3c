import type { Hook, PreToolUseOutput } from "../hooks/hook-kinds.ts";
import type { HookRun } from "../hooks/hooks.ts";
import { callContext } from "../instructions/model-text.ts";
import { type CallHost, hookInput, settle } from "./call-stages.ts";
import { Interruption, type RunningCall } from "./running-call.ts";

/**
 * Lets the preToolUse hooks see a call, one after the other, each with what the ones before made of it. The first that
 * denies, throws or cannot be understood ends it. A promise only if a hook returned one.
 */
export function gateCall(run: RunningCall, host: CallHost): void | Promise<void> {
  const { preToolUse } = host.config.hooks;
  return preToolUse.length === 0 ? undefined : runGates(run, host, preToolUse, 0);
}

function runGates(run: RunningCall, host: CallHost, hooks: readonly Hook<"preToolUse">[], from: number): void | Promise<void> {
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
  // Of several hooks the most careful one counts: one that wants somebody asked outweighs one that allows.
  if (decision === undefined || run.hookDecision === "ask") return;
  run.hookDecision = decision;
  run.hookReason = reason;
}
