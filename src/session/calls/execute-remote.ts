import { setCallMeta } from "../../tools/tool-source.ts";
import type { HookResults } from "../hooks/hook-results.ts";
import type { Telemetry, TracedStep } from "../telemetry.ts";
import type { CallAskHost } from "./ask-for-call.ts";
import { settlementOf } from "./call-stages.ts";
import { executeCall } from "./execute-call.ts";
import { Interruption, type RunningCall, type Settlement } from "./running-call.ts";

export interface RemoteCallHost extends CallAskHost {
  readonly servers: CallAskHost["servers"] & {
    /** How a server is reached; undefined: it is not known. */
    transportOf(server: string): "stdio" | "http" | "sse" | undefined;
  };
}

type Settled = Settlement | Promise<Settlement>;
type Meta = HookResults["preMcpToolCall"];

/**
 * Runs a call of an MCP server's tool: after the preMcpToolCall hooks, which may deny it or say what goes along as
 * `_meta`, and within a span of its own that the server can carry on. Never rejects; a promise only where something is
 * asynchronous.
 */
export function executeRemote(run: RunningCall, host: RemoteCallHost, telemetry: Telemetry | undefined): Settled {
  const asked = askHooks(run, host);
  if (!(asked instanceof Promise)) return callServer(run, host, telemetry, asked);
  return run.wait(asked).then((meta) => {
    if (meta instanceof Interruption) return settlementOf(run, meta.reason === "closed" ? "session_closed" : "cancelled");
    return callServer(run, host, telemetry, meta);
  });
}

function askHooks(run: RunningCall, host: RemoteCallHost): Meta | Promise<Meta> {
  if (host.config.hooks.preMcpToolCall.length === 0) return nothing;
  const { source: serverName, nativeName: toolName } = run.tool!.origin;
  const facts = { toolCallId: run.call.id, serverName, toolName, arguments: run.value };
  return host.hooks.run("preMcpToolCall", facts, { agentId: run.agent.agentId });
}

const nothing: Meta = Object.freeze({ isDenied: false, meta: undefined });

function callServer(run: RunningCall, host: RemoteCallHost, telemetry: Telemetry | undefined, { isDenied, meta }: Meta): Settled {
  if (isDenied) return settlementOf(run, "denied_by_failed_mcp_hook");
  const step = telemetry && beginStep(run, host, telemetry);
  // What a hook says goes; where the call stands in a trace comes on top (keys of W3C Trace Context, as SEP-414 has them).
  const sent = step === undefined ? meta : { ...step.headers, ...meta };
  if (sent !== undefined && Object.keys(sent).length > 0) setCallMeta(run.context!, sent);
  const ran = executeCall(run, host, step);
  if (ran instanceof Promise) return ran.then((settled) => end(step, settled));
  return end(step, ran);
}

function beginStep(run: RunningCall, host: RemoteCallHost, telemetry: Telemetry): TracedStep | undefined {
  const { source, nativeName } = run.tool!.origin;
  return telemetry.begin(
    { kind: "mcp", tool: nativeName, transport: host.servers.transportOf(source) },
    run.agent.agentId,
    run.trace?.context,
  );
}

function end(step: TracedStep | undefined, settled: Settlement): Settlement {
  // A result that says it is an error is one of the tool's, not of the protocol.
  const { code } = settled;
  step?.end(code === "success" ? {} : { error: code === "failure" ? "tool_error" : code });
  return settled;
}
