import type { ToolResult } from "../../tools/tool.ts";
import { normalizeResult } from "../../tools/tool-result.ts";
import { showFoundTools } from "../catalog/deferral.ts";
import type { Hook, HookKind, HookKinds, PostToolUseOutput } from "../hooks/hook-kinds.ts";
import type { HookRun } from "../hooks/hooks.ts";
import { failureGuidance, successGuidance } from "../instructions/model-text.ts";
import { type CallHost, hookInput, logFacts } from "./call-stages.ts";
import { toSettlement } from "./execute-call.ts";
import { isLargeOutput, spillLargeOutput } from "./large-output.ts";
import type { CallOutcome } from "./pipeline-types.ts";
import { Interruption, type RunningCall, type Settlement } from "./running-call.ts";

/**
 * Lets the hooks see what a call that ran came to, tells the events of it and gives its outcome. Never rejects; a
 * promise only if a hook returned one or the result is too long.
 */
export function concludeCall(run: RunningCall, host: CallHost, ran: Settlement): CallOutcome | Promise<CallOutcome> {
  run.isOver = true;
  run.held?.[Symbol.dispose]();
  // The span ends with the handler: what hooks do after it is not its time.
  run.trace?.end(ran.result.resultType === "success" ? {} : { error: ran.code });
  const observed = run.settlement === undefined ? observe(run, host, ran) : ran;
  return observed instanceof Promise ? observed.then((settled) => shorten(run, host, settled)) : shorten(run, host, observed);
}

function shorten(run: RunningCall, host: CallHost, observed: Settlement): CallOutcome | Promise<CallOutcome> {
  const settled = withGuidance(run, observed);
  if (!isLargeOutput(settled.result, host)) return finish(run, host, settled);
  return spillLargeOutput(run, host, settled.result).then((result) => finish(run, host, { ...settled, result }));
}

function observe(run: RunningCall, host: CallHost, ran: Settlement): Settlement | Promise<Settlement> {
  const { postToolUse, postToolUseFailure } = host.config.hooks;
  if (ran.result.resultType === "success")
    return postToolUse.length === 0 ? ran : runObservers(run, host, "postToolUse", postToolUse, ran, 0);
  return postToolUseFailure.length === 0 ? ran : runObservers(run, host, "postToolUseFailure", postToolUseFailure, ran, 0);
}

/** An observer that fails is passed over: what it should have seen has happened. */
function runObservers<K extends "postToolUse" | "postToolUseFailure">(
  run: RunningCall,
  host: CallHost,
  kind: K,
  hooks: readonly Hook<K>[],
  ran: Settlement,
  from: number,
): Settlement | Promise<Settlement> {
  let current = ran;
  for (let index = from; index < hooks.length; index++) {
    const observed = host.hooks.invoke(kind, hooks[index]!, inputOf(run, host, kind, current.result), { agentId: run.agent.agentId });
    if (observed instanceof Promise) {
      const before = current;
      return run.wait(observed).then((settled) => {
        const next = settled instanceof Interruption ? before : applyObserver(run, host, kind, settled, before);
        return runObservers(run, host, kind, hooks, next, index + 1);
      });
    }
    current = applyObserver(run, host, kind, observed, current);
  }
  return current;
}

function inputOf<K extends HookKind>(run: RunningCall, host: CallHost, kind: K, result: ToolResult): HookKinds[K]["input"] {
  const input = hookInput(run, host);
  // Assigned: a literal that begins with a spread has a hidden class of its own each time.
  const about = kind === "postToolUse" ? { toolResult: result } : { error: result.error ?? result.textResultForLlm };
  return Object.assign(input, about) as HookKinds[K]["input"];
}

function applyObserver<K extends HookKind>(run: RunningCall, host: CallHost, kind: K, ran: HookRun<K>, before: Settlement): Settlement {
  if (ran.kind === "failed") return before;
  const { additionalContext, modifiedResult } = ran.output as PostToolUseOutput;
  if (additionalContext && kind === "postToolUse") run.addGuidance(additionalContext);
  else if (additionalContext) run.addMessage(failureGuidance(run.call.name, additionalContext));
  return modifiedResult === undefined ? before : replaceResult(run, host, kind, modifiedResult, before);
}

function replaceResult(run: RunningCall, host: CallHost, kind: HookKind, modified: unknown, before: Settlement): Settlement {
  try {
    return toSettlement(normalizeResult(modified));
  } catch {
    // A getter of the result that throws: passed over like an observer that throws.
    host.log.error(`The result that a ${kind} hook gave could not be read.`, logFacts(run, host));
    return before;
  }
}

/** The text with what observers want read with it. They do not see what others of them added. */
function withGuidance(run: RunningCall, settled: Settlement): Settlement {
  if (run.guidance === undefined) return settled;
  const { result } = settled;
  const added = run.guidance.map((guidance) => successGuidance(run.call.name, guidance)).join("");
  return { ...settled, result: { ...result, textResultForLlm: result.textResultForLlm + added } };
}

function finish(run: RunningCall, host: CallHost, { code, result }: Settlement): CallOutcome {
  logDetails(run, host, result);
  if (host.events.wants("tool.execution_complete")) {
    host.events.append("tool.execution_complete", completion(run, result), run.agent.agentId);
  }
  const { resultType } = result;
  if (result.toolReferences !== undefined && resultType === "success") showFoundTools(run, result, host.events);
  const isTerminal = resultType === "success" && run.tool?.definition.isTerminal === true;
  return {
    toolCallId: run.call.id,
    toolName: run.call.name,
    code,
    result,
    arguments: run.args,
    messages: run.messages ?? noMessages,
    endsTurn: resultType === "rejected" || isTerminal,
  };
}

const noMessages: readonly string[] = Object.freeze([]);

/** What a tool wants written down, but not told to the model. */
function logDetails(run: RunningCall, host: CallHost, { resultType, error, sessionLog, toolTelemetry }: ToolResult): void {
  if (error === undefined && sessionLog === undefined && toolTelemetry === undefined) return;
  const details = { ...logFacts(run, host), resultType, error, sessionLog, toolTelemetry };
  host.log.info(`Tool "${run.call.name}" ended with ${resultType}.`, details);
}

/** The data of `tool.execution_complete`. The text is there for failures too: conversations are rebuilt from events. */
function completion(run: RunningCall, result: ToolResult): object {
  const {
    resultType,
    textResultForLlm: content,
    error,
    sessionLog,
    toolTelemetry,
    contents,
    structuredContent,
    binaryResultsForLlm,
  } = result;
  const success = resultType === "success";
  return {
    toolCallId: run.call.id,
    success,
    ...(run.isRewritten && { arguments: run.args }),
    result: {
      content,
      detailedContent: sessionLog ?? content,
      ...(contents && { contents }),
      ...(structuredContent !== undefined && { structuredContent }),
      ...(binaryResultsForLlm && { binaryResultsForLlm }),
    },
    ...(!success && { error: { message: error ?? content, code: resultType } }),
    ...(sessionLog !== undefined && { sessionLog }),
    toolTelemetry: toolTelemetry ?? {},
    ...(result.meta && { mcpMeta: result.meta }),
    ...(run.parent && { parentToolCallId: run.parent.call.id }),
    ...(run.agent.turnId !== undefined && { turnId: run.agent.turnId }),
  };
}
