import { toError } from "../../base/errors.ts";
import { redactText } from "../../base/logger.ts";
import { isThenable } from "../../base/thenable.ts";
import { withoutHostFrames } from "../../io/module-loader/module-error.ts";
import { readableStack } from "../../io/module-loader/source-positions.ts";
import type { Tool, ToolAnswer, ToolResult } from "../../tools/tool.ts";
import { normalizeResult, resultOfThrow } from "../../tools/tool-result.ts";
import type { AskOutcome } from "../asks/ask-kinds.ts";
import { isSessionTool } from "../session-tool.ts";
import type { TracedStep } from "../telemetry.ts";
import { type CallHost, interruptionOf, logFacts, settlementOf } from "./call-stages.ts";
import { Interruption, type RunningCall, type Settlement } from "./running-call.ts";

/**
 * Runs a call that is allowed to, within its deadline and within a span. Never throws or rejects; a promise only if the
 * handler returned one.
 */
export function executeCall(run: RunningCall, host: CallHost, step: TracedStep | undefined = run.trace): Settlement | Promise<Settlement> {
  const tool = run.tool!;
  if (!tool.hasHandler) return askForResult(run, host, tool);
  // What a session's own tool waits for, people and agents, has its own limits.
  run.startClock(isSessionTool(tool) ? Number.POSITIVE_INFINITY : (tool.definition.timeout ?? host.config.toolTimeout));
  try {
    const raw = step === undefined ? tool.execute(run.value, run.context!) : step.within(() => tool.execute(run.value, run.context!));
    if (isThenable(raw)) return awaitResult(run, host, raw);
    run.stopClock();
    return toSettlement(normalizeResult(raw));
  } catch (error) {
    run.stopClock();
    return threw(run, host, error);
  }
}

/** The tool's own word on how it went. */
export function toSettlement(result: ToolResult): Settlement {
  return { code: result.resultType, result };
}

function awaitResult(run: RunningCall, host: CallHost, raw: PromiseLike<unknown>): Promise<Settlement> {
  run.watchClock();
  return run.wait(raw).then(
    (value) => {
      run.stopClock();
      return value instanceof Interruption ? interruptionOf(run, value) : toSettlement(normalizeResult(value));
    },
    (error) => {
      run.stopClock();
      return threw(run, host, error);
    },
  );
}

function threw(run: RunningCall, host: CallHost, error: unknown): Settlement {
  const { stack, place } = readableStack(error);
  host.log.error(`Tool "${run.call.name}" threw.`, { ...logFacts(run, host), error: toError(error), stack, ...(place && { place }) });
  const sessionLog = redactText(withoutHostFrames(stack));
  return { code: "threw", result: { ...resultOfThrow(error), ...(sessionLog !== "" && { sessionLog }) } };
}

/** A tool without a handler: whoever pushed it answers, or whoever is attached. No clock runs meanwhile. */
function askForResult(run: RunningCall, host: CallHost, tool: Tool): Settlement | Promise<Settlement> {
  const owners = host.ownersOf(tool);
  const data = {
    toolCallId: run.call.id,
    toolName: run.call.name,
    arguments: run.value,
    workingDirectory: host.config.workingDirectory,
    ...run.trace?.headers,
  };
  run.pause();
  const outcome = host.asks.open("tool", data, {
    toolCallId: run.call.id,
    agentId: run.agent.agentId,
    from: owners,
    waits: owners === undefined,
    signal: () => run.signal,
    caller: owners === undefined ? run.agent.answers : undefined,
  });
  if (!(outcome instanceof Promise)) return applyAnswer(run, host, outcome);
  return run.wait(outcome).then((settled) => {
    if (!(settled instanceof Interruption)) return applyAnswer(run, host, settled);
    run.resume();
    return interruptionOf(run, settled);
  });
}

function applyAnswer(run: RunningCall, host: CallHost, outcome: AskOutcome<"tool">): Settlement {
  run.resume();
  if (outcome.kind === "answered") return fromAnswer(run, host, outcome.answer);
  if (outcome.kind === "ended" && outcome.reason === "closed") return settlementOf(run, "session_closed");
  if (outcome.kind === "ended" && outcome.reason === "cancelled") return settlementOf(run, "cancelled");
  return settlementOf(run, "owner_gone");
}

function fromAnswer(run: RunningCall, host: CallHost, answer: ToolAnswer): Settlement {
  if ("result" in answer) return toSettlement(normalizeResult(answer.result, { form: "wire" }));
  host.log.error(`The client that answers for tool "${run.call.name}" reported an error.`, { ...logFacts(run, host), error: answer.error });
  // What went wrong at the client is for the log: neither events nor the model get it.
  return settlementOf(run, "client_error", { argumentsJson: jsonOf(run.args) }, "Tool execution failed");
}

function jsonOf(args: unknown): string {
  try {
    return JSON.stringify(args) ?? "{}";
  } catch {
    // A hook gave arguments that JSON cannot hold; the sentence does without them.
    return "{}";
  }
}
