import { type CallHost, hookInput, logFacts, settle } from "./call-stages.ts";
import type { Hook, HookRun, PreToolUseOutput } from "./hooks.ts";
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
    const ran = host.hooks.run("preToolUse", hooks[index]!, hookInput(run, host), run.agent.agentId);
    if (ran instanceof Promise) {
      return run.wait(ran).then((settled) => {
        applyGate(run, host, settled);
        return runGates(run, host, hooks, index + 1);
      });
    }
    applyGate(run, host, ran);
  }
}

/** Takes over what a hook decided. */
function applyGate(run: RunningCall, host: CallHost, ran: HookRun<"preToolUse"> | Interruption): void {
  const output = ran instanceof Interruption || ran.kind === "failed" ? undefined : readGate(ran.output);
  if (ran instanceof Interruption) settle(run, ran.reason === "closed" ? "session_closed" : "cancelled");
  else if (output === undefined) refuse(run, host, ran);
  else if (output.decision === "deny") settle(run, "denied_by_hook", { reason: output.reason });
  else pass(run, output);
  if (output?.context !== undefined) run.addMessage(output.context);
}

function refuse(run: RunningCall, host: CallHost, ran: HookRun<"preToolUse">): void {
  if (ran.kind === "answered") {
    host.log.error('A preToolUse hook decided something other than "allow", "deny" or "ask": the call was denied.', logFacts(run, host));
  }
  settle(run, "denied_by_failed_hook");
}

function pass(run: RunningCall, output: Gate): void {
  if (output.hasArgs) run.args = output.args;
  // Of several hooks the most careful one counts: one that wants somebody asked outweighs one that allows.
  if (output.decision !== "allow" && output.decision !== "ask") return;
  if (run.hookDecision === "ask") return;
  run.hookDecision = output.decision;
  run.hookReason = output.reason;
}

interface Gate {
  readonly decision: "allow" | "deny" | "ask" | undefined;
  readonly reason: string | undefined;
  readonly hasArgs: boolean;
  readonly args: unknown;
  readonly context: string | undefined;
}

/** Undefined: no decision that can be understood. */
function readGate(output: PreToolUseOutput): Gate | undefined {
  try {
    const { permissionDecision, permissionDecisionReason, modifiedArgs, additionalContext } = output;
    if (![undefined, null, "allow", "deny", "ask"].includes(permissionDecision)) return undefined;
    return {
      decision: permissionDecision ?? undefined,
      reason: textOf(permissionDecisionReason),
      hasArgs: modifiedArgs !== undefined && modifiedArgs !== null,
      args: modifiedArgs,
      context: textOf(additionalContext),
    };
  } catch {
    // A getter that throws: a gate that cannot be read stays shut.
    return undefined;
  }
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}
