import type { Asks, Tool } from "../../tools/tool.ts";
import type { ClientRequests } from "../clients/client-requests.ts";
import type { HookInput } from "../hooks/hook-kinds.ts";
import type { HookRunner } from "../hooks/run-hooks.ts";
import type { SessionServerConnections } from "../mcp/server-connections.ts";
import type { Permissions } from "../permissions/permissions.ts";
import { modelText, resultTypeOf, type SettledCode, type TextFacts } from "../prompt/model-text.ts";
import type { SessionContext } from "../session-context.ts";
import type { SessionServices } from "../tools/session-tool-services.ts";
import type { Interruption, RunningCall, SettledCall } from "./running-call.ts";
import type { FileChange } from "./tool-call.ts";

/** What the stages of a call work with. */
export interface CallServices extends SessionContext {
  readonly asks: ClientRequests;
  readonly permissions: Permissions;
  readonly hooks: HookRunner;
  readonly servers: SessionServerConnections;
  /** For the tools that the session brings itself. */
  readonly services: SessionServices;
  /** The clients that pushed a tool; undefined: it is not a pushed one. */
  ownersOf(tool: Tool): readonly string[] | undefined;
  /** Where results go that are too long for a model. */
  outputDirectory(): string;
  /** Has the session's model answer a server's sampling request. @throws HostError `SAMPLING_REQUEST`, `MODEL_MISSING`. */
  sample(request: Asks["sampling"]["data"], signal: AbortSignal): Promise<Asks["sampling"]["answer"]>;
  onFileChanged(change: FileChange): void;
  background(work: PromiseLike<unknown>): void;
}

/** An outcome that is not the tool's own, with the sentence for the model. `error` is for events and logs. */
export function settlementOf(run: RunningCall, code: SettledCode, facts: Omit<TextFacts, "tool"> = {}, error?: string): SettledCall {
  const text = modelText(code, { tool: run.call.name, ...facts });
  const result = { resultType: resultTypeOf(code, facts), textResultForLlm: text };
  return { code, result: error === undefined ? result : { ...result, error } };
}

/** Ends a call before it runs. */
export function settle(run: RunningCall, code: SettledCode, facts?: Omit<TextFacts, "tool">, error?: string): void {
  run.kind = "settled";
  run.settlement = settlementOf(run, code, facts, error);
}

export function interruptionOf(run: RunningCall, { reason }: Interruption): SettledCall {
  if (reason === "closed") return settlementOf(run, "session_closed");
  if (reason === "cancelled") return settlementOf(run, "cancelled");
  return settlementOf(run, "timeout", { timeoutMs: run.timeout }, `The deadline of ${run.timeout} ms passed.`);
}

/** The common input of all hooks of a call. Hooks of a sub-agent get the sub-agent as their session, as in the Copilot SDK. */
export function hookInput(run: RunningCall, host: CallServices): HookInput & { readonly toolName: string; readonly toolArgs: unknown } {
  return {
    sessionId: run.agent.agentId ?? host.sessionId,
    timestamp: Date.now(),
    cwd: host.config.workingDirectory,
    toolName: run.call.name,
    toolArgs: run.args,
  };
}

/** What logs say of a call. */
export function logFacts(run: RunningCall, host: CallServices): { sessionId: string; toolCallId: string; tool: string } {
  return { sessionId: host.sessionId, toolCallId: run.call.id, tool: run.call.name };
}
