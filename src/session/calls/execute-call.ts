import { toError } from "../../base/errors.ts";
import { redactText } from "../../base/logger.ts";
import { trafficTap } from "../../base/traffic-tap.ts";
import { isThenable } from "../../base/wait.ts";
import { withoutHostFrames } from "../../io/module-loader/module-error.ts";
import { readableStack } from "../../io/module-loader/source-positions.ts";
import type { Tool, ToolAnswer, ToolResult } from "../../tools/tool.ts";
import { normalizeResult, resultOfThrow } from "../../tools/tool-result.ts";
import { setCallMeta } from "../../tools/tool-source.ts";
import { isSessionTool } from "../catalog/session-tool.ts";
import type { AskOutcome } from "../clients/request-kinds.ts";
import type { HookResults } from "../hooks/hook-results.ts";
import type { Telemetry, TracedStep } from "../telemetry.ts";
import { type CallServices, interruptionOf, logFacts, settlementOf } from "./call-stages.ts";
import { Interruption, type RunningCall, type SettledCall } from "./running-call.ts";
import { tappedExecution } from "./tapped-execution.ts";

/**
 * Runs a call that is allowed to, within its deadline and within a span. Never throws or rejects; a promise only if the
 * handler returned one.
 */
export function executeCall(
  run: RunningCall,
  host: CallServices,
  step: TracedStep | undefined = run.trace,
): SettledCall | Promise<SettledCall> {
  const tool = run.tool!;
  if (!tool.hasHandler) return askForResult(run, host, tool);
  // What a session's own tool waits for, people and agents, has its own limits.
  run.startClock(tool.definition.timeout ?? (isSessionTool(tool) ? Number.POSITIVE_INFINITY : host.config.toolTimeout));
  try {
    const tap = trafficTap();
    const raw =
      tap?.taps(run.call.name) === true
        ? tappedExecution(tap, run.call.name, run.value, () => tool.execute(run.value, run.context!))
        : step === undefined
          ? tool.execute(run.value, run.context!)
          : step.within(() => tool.execute(run.value, run.context!));
    if (isThenable(raw)) return awaitResult(run, host, raw);
    run.stopClock();
    return toSettledCall(normalizeResult(raw));
  } catch (error) {
    run.stopClock();
    return threw(run, host, error);
  }
}

/** The tool's own word on how it went. */
export function toSettledCall(result: ToolResult): SettledCall {
  return { code: result.resultType, result };
}

function awaitResult(run: RunningCall, host: CallServices, raw: PromiseLike<unknown>): Promise<SettledCall> {
  run.watchClock();
  return run.wait(raw).then(
    (value) => {
      run.stopClock();
      return value instanceof Interruption ? interruptionOf(run, value) : toSettledCall(normalizeResult(value));
    },
    (error) => {
      run.stopClock();
      return threw(run, host, error);
    },
  );
}

function threw(run: RunningCall, host: CallServices, error: unknown): SettledCall {
  const { stack, place } = readableStack(error);
  host.log.error(`Tool "${run.call.name}" threw.`, { ...logFacts(run, host), error: toError(error), stack, ...(place && { place }) });
  const sessionLog = redactText(withoutHostFrames(stack));
  return { code: "threw", result: { ...resultOfThrow(error), ...(sessionLog !== "" && { sessionLog }) } };
}

/** A tool without a handler: the clients that pushed it answer, or any attached one. The deadline does not apply. */
function askForResult(run: RunningCall, host: CallServices, tool: Tool): SettledCall | Promise<SettledCall> {
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

function applyAnswer(run: RunningCall, host: CallServices, outcome: AskOutcome<"tool">): SettledCall {
  run.resume();
  if (outcome.kind === "answered") return fromAnswer(run, host, outcome.answer);
  if (outcome.kind === "ended" && outcome.reason === "closed") return settlementOf(run, "session_closed");
  if (outcome.kind === "ended" && outcome.reason === "cancelled") return settlementOf(run, "cancelled");
  return settlementOf(run, "owner_gone");
}

function fromAnswer(run: RunningCall, host: CallServices, answer: ToolAnswer): SettledCall {
  if ("result" in answer) return toSettledCall(normalizeResult(answer.result, { form: "wire" }));
  host.log.error(`The client that provides tool "${run.call.name}" reported an error.`, { ...logFacts(run, host), error: answer.error });
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

type Settled = SettledCall | Promise<SettledCall>;
type Meta = HookResults["preMcpToolCall"];

/**
 * Runs a call of an MCP server's tool: after the preMcpToolCall hooks, which may deny it or say what goes along as
 * `_meta`, and within a span of its own that the server can carry on. Never rejects; a promise only where something is
 * asynchronous.
 */
export function executeRemote(run: RunningCall, host: CallServices, telemetry: Telemetry | undefined): Settled {
  const asked = askHooks(run, host);
  if (!(asked instanceof Promise)) return callServer(run, host, telemetry, asked);
  return run.wait(asked).then((meta) => {
    if (meta instanceof Interruption) return settlementOf(run, meta.reason === "closed" ? "session_closed" : "cancelled");
    return callServer(run, host, telemetry, meta);
  });
}

function askHooks(run: RunningCall, host: CallServices): Meta | Promise<Meta> {
  if (host.config.hooks.preMcpToolCall.length === 0) return nothing;
  const { source: serverName, nativeName: toolName } = run.tool!.origin;
  const facts = { toolCallId: run.call.id, serverName, toolName, arguments: run.value };
  return host.hooks.run("preMcpToolCall", facts, { agentId: run.agent.agentId });
}

const nothing: Meta = Object.freeze({ isDenied: false, meta: undefined });

function callServer(run: RunningCall, host: CallServices, telemetry: Telemetry | undefined, { isDenied, meta }: Meta): Settled {
  if (isDenied) return settlementOf(run, "denied_by_failed_mcp_hook");
  const step = telemetry && beginStep(run, host, telemetry);
  // What a hook says goes; where the call stands in a trace comes on top (keys of W3C Trace Context, as SEP-414 has them).
  const sent = step === undefined ? meta : { ...step.headers, ...meta };
  if (sent !== undefined && Object.keys(sent).length > 0) setCallMeta(run.context!, sent);
  const ran = executeCall(run, host, step);
  if (ran instanceof Promise) return ran.then((settled) => end(step, settled));
  return end(step, ran);
}

function beginStep(run: RunningCall, host: CallServices, telemetry: Telemetry): TracedStep | undefined {
  const { source, nativeName } = run.tool!.origin;
  return telemetry.begin(
    { kind: "mcp", tool: nativeName, transport: host.servers.transportOf(source) },
    run.agent.agentId,
    run.trace?.context,
  );
}

function end(step: TracedStep | undefined, settled: SettledCall): SettledCall {
  // A result that says it is an error is one of the tool's, not of the protocol.
  const { code } = settled;
  step?.end(code === "success" ? {} : { error: code === "failure" ? "tool_error" : code });
  return settled;
}
