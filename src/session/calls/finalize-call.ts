import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { toError } from "../../base/errors.ts";
import { headInBytes } from "../../base/text.ts";
import { writeFileAtomic } from "../../io/atomic-write.ts";
import type { ToolResult } from "../../tools/tool.ts";
import { normalizeResult } from "../../tools/tool-result.ts";
import { searchActivated } from "../catalog/tool-catalog.ts";
import { toolSearch, toolSearchNames } from "../catalog/tool-search.ts";
import type { SessionEventData } from "../history/event-types.ts";
import type { SessionEvents } from "../history/events.ts";
import type { Hook, HookKind, HookKinds, PostToolUseOutput } from "../hooks/hook-kinds.ts";
import type { HookRun } from "../hooks/run-hooks.ts";
import { failureGuidance, largeOutputNote, successGuidance } from "../prompt/model-text.ts";
import { type CallServices, hookInput, logFacts } from "./call-stages.ts";
import { toSettledCall } from "./execute-call.ts";
import { Interruption, type RunningCall, type SettledCall } from "./running-call.ts";
import type { CallOutcome } from "./tool-call.ts";

/**
 * Runs the hooks that observe a result, emits the result and returns the call's outcome. Never rejects; a
 * promise only if a hook returned one or the result is too long.
 */
export function concludeCall(run: RunningCall, host: CallServices, ran: SettledCall): CallOutcome | Promise<CallOutcome> {
  run.isOver = true;
  run.held?.[Symbol.dispose]();
  // The span ends with the handler: what hooks do after it is not its time.
  run.trace?.end(ran.result.resultType === "success" ? {} : { error: ran.code });
  const observed = run.settlement === undefined ? observe(run, host, ran) : ran;
  return observed instanceof Promise ? observed.then((settled) => shorten(run, host, settled)) : shorten(run, host, observed);
}

function shorten(run: RunningCall, host: CallServices, observed: SettledCall): CallOutcome | Promise<CallOutcome> {
  const settled = withGuidance(run, observed);
  if (!isLargeOutput(settled.result, host)) return finish(run, host, settled);
  return spillLargeOutput(run, host, settled.result).then((result) => finish(run, host, { ...settled, result }));
}

function observe(run: RunningCall, host: CallServices, ran: SettledCall): SettledCall | Promise<SettledCall> {
  const { postToolUse, postToolUseFailure } = host.config.hooks;
  if (ran.result.resultType === "success")
    return postToolUse.length === 0 ? ran : runObservers(run, host, "postToolUse", postToolUse, ran, 0);
  return postToolUseFailure.length === 0 ? ran : runObservers(run, host, "postToolUseFailure", postToolUseFailure, ran, 0);
}

/** An observer that fails is ignored: what it observes has already happened. */
function runObservers<K extends "postToolUse" | "postToolUseFailure">(
  run: RunningCall,
  host: CallServices,
  kind: K,
  hooks: readonly Hook<K>[],
  ran: SettledCall,
  from: number,
): SettledCall | Promise<SettledCall> {
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

function inputOf<K extends HookKind>(run: RunningCall, host: CallServices, kind: K, result: ToolResult): HookKinds[K]["input"] {
  const input = hookInput(run, host);
  // Assigned: a literal that begins with a spread has a hidden class of its own each time.
  const about = kind === "postToolUse" ? { toolResult: result } : { error: result.error ?? result.textResultForLlm };
  return Object.assign(input, about) as HookKinds[K]["input"];
}

function applyObserver<K extends HookKind>(
  run: RunningCall,
  host: CallServices,
  kind: K,
  ran: HookRun<K>,
  before: SettledCall,
): SettledCall {
  if (ran.kind === "failed") return before;
  const { additionalContext, modifiedResult } = ran.output as PostToolUseOutput;
  if (additionalContext && kind === "postToolUse") run.addGuidance(additionalContext);
  else if (additionalContext) run.addMessage(failureGuidance(run.call.name, additionalContext));
  return modifiedResult === undefined ? before : replaceResult(run, host, kind, modifiedResult, before);
}

function replaceResult(run: RunningCall, host: CallServices, kind: HookKind, modified: unknown, before: SettledCall): SettledCall {
  try {
    return toSettledCall(normalizeResult(modified));
  } catch {
    // A getter of the result that throws: passed over like an observer that throws.
    host.log.error(`The result that a ${kind} hook returned could not be read.`, logFacts(run, host));
    return before;
  }
}

/** The text with what observers want read with it. They do not see what others of them added. */
function withGuidance(run: RunningCall, settled: SettledCall): SettledCall {
  if (run.guidance === undefined) return settled;
  const { result } = settled;
  const added = run.guidance.map((guidance) => successGuidance(run.call.name, guidance)).join("");
  return { ...settled, result: { ...result, textResultForLlm: result.textResultForLlm + added } };
}

function finish(run: RunningCall, host: CallServices, { code, result }: SettledCall): CallOutcome {
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

/** Logs the details of a result that the model does not see. */
function logDetails(run: RunningCall, host: CallServices, { resultType, error, sessionLog, toolTelemetry }: ToolResult): void {
  if (error === undefined && sessionLog === undefined && toolTelemetry === undefined) return;
  const details = { ...logFacts(run, host), resultType, error, sessionLog, toolTelemetry };
  host.log.info(`Tool "${run.call.name}" ended with ${resultType}.`, details);
}

/** The data of `tool.execution_complete`. The text is there for failures too: conversations are rebuilt from events. */
function completion(run: RunningCall, result: ToolResult): SessionEventData["tool.execution_complete"] {
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

// Enough to see what it is; the rest is read where it is needed.
const headBytes = 8192;

/** Where results are kept in a session's own folder. */
export const outputsFolder = "outputs";

/** Whether a text is over the limit of its session. */
function isLargeOutput({ textResultForLlm: text }: ToolResult, host: CallServices): boolean {
  const { maxSizeBytes } = host.config.largeOutput;
  // UTF-8 takes at most three bytes for a UTF-16 unit: most texts need no counting.
  return text.length * 3 > maxSizeBytes && Buffer.byteLength(text) > maxSizeBytes;
}

/** Writes a result's text to a file and gives the model its head and the way to the rest. Never rejects. */
async function spillLargeOutput(run: RunningCall, host: CallServices, result: ToolResult): Promise<ToolResult> {
  const bytes = Buffer.from(result.textResultForLlm);
  const file = await writeOutput(run, host, bytes);
  const head = headInBytes(result.textResultForLlm, Math.min(headBytes, host.config.largeOutput.maxSizeBytes));
  return { ...result, textResultForLlm: `${head}\n\n${largeOutputNote(bytes.length, file)}` };
}

async function writeOutput(run: RunningCall, host: CallServices, bytes: Buffer): Promise<string | undefined> {
  try {
    const folder = host.outputDirectory();
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const file = join(folder, `${fileNameOf(run.call.id)}.txt`);
    await writeFileAtomic(file, bytes, { mode: 0o600 });
    return file;
  } catch (error) {
    host.log.error("A result that is too long for the model could not be written to a file.", {
      ...logFacts(run, host),
      error: toError(error),
    });
    return undefined;
  }
}

/** The id comes from a model or a client: nothing in it may lead out of the folder. */
function fileNameOf(toolCallId: string): string {
  return `output-${toolCallId.replace(/[^a-zA-Z0-9_-]+/g, "_").slice(0, 100)}`;
}

/** What a result of the tool search means for its conversation: the tools that it refers to are advertised from now on. */
function showFoundTools(run: RunningCall, { toolReferences = [] }: ToolResult, events: SessionEvents): void {
  const { agent, call, catalog, tool } = run;
  if (!toolSearchNames.includes(call.name) || agent.disclosure === undefined) return;
  const toolNames = agent.disclosure.show(catalog, toolReferences);
  if (toolNames.length === 0 || !events.wants(searchActivated)) return;
  events.append(searchActivated, { strategy: tool === toolSearch ? "regex" : "custom", toolNames }, agent.agentId);
}
