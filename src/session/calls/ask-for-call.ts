import { HostError } from "../../base/errors.ts";
import type { AskOptions, Asks } from "../../tools/tool.ts";
import type { AskKind, AskOutcome } from "../asks/ask-kinds.ts";
import type { AskHandlers, SessionAsks } from "../asks/asks.ts";
import type { ServerPolicy } from "../servers/session-servers.ts";
import type { CallHost } from "./call-stages.ts";
import type { RunningCall } from "./running-call.ts";

export interface AskHost {
  readonly asks: SessionAsks;
  readonly config: Pick<CallHost["config"], "waitForAttachments" | "view">;
  readonly servers: {
    /** What MCP servers may ask for. */
    readonly policy: ServerPolicy;
  };
  /** Has the session's model answer what a server wants written. @throws HostError `SAMPLING_REQUEST`, `MODEL_MISSING`. */
  sample(request: Asks["sampling"]["data"], signal: AbortSignal): Promise<Asks["sampling"]["answer"]>;
}

export type CallAskHost = CallHost & AskHost;

/** On whose behalf something is asked. */
export interface Asker {
  readonly toolCallId?: string | undefined;
  readonly agentId?: string | undefined;
  /** The MCP server that wants it asked. */
  readonly serverName: string | undefined;
  /** Whoever waits for what asks: asked before all others. */
  readonly answers: AskHandlers | undefined;
  readonly key: string | undefined;
  /** Fires when nobody wants the answer any more. */
  signal(): AbortSignal;
}

/**
 * Asks on behalf of a call whoever may answer: first whoever made the call, then those who are attached. The call's
 * clock stands still meanwhile.
 * @throws HostError `ASK_UNANSWERED` when nobody answered, or a server is not to ask.
 */
export async function askForCall<K extends AskKind>(
  run: RunningCall,
  host: CallAskHost,
  kind: K,
  data: Asks[K]["data"],
  { key }: AskOptions = {},
): Promise<Asks[K]["answer"]> {
  if (run.isOver) throw new HostError("ASK_UNANSWERED", "The call that asks is over. Ask before the handler returns.");
  const serverName = run.tool?.origin.kind === "mcp" ? run.tool.origin.source : undefined;
  const { agentId, answers } = run.agent;
  run.pause();
  try {
    return await askAround({ toolCallId: run.call.id, agentId, answers, serverName, key, signal: () => run.signal }, host, kind, data);
  } finally {
    run.resume();
  }
}

/**
 * Asks first whoever waits for what asks, then those who are attached, as far as a server may ask at all.
 * @throws HostError `ASK_UNANSWERED` when nobody answered, or a server is not to ask.
 */
export async function askAround<K extends AskKind>(
  { toolCallId, agentId, answers, serverName, key, signal }: Asker,
  host: AskHost,
  kind: K,
  data: Asks[K]["data"],
): Promise<Asks[K]["answer"]> {
  if (serverName !== undefined && isDenied(kind, host.servers.policy)) throw deniedByPolicy(kind, serverName);
  const maySample = kind === "sampling" && host.servers.policy.sampling === "allow";
  // A model is there to answer: nobody need be waited for.
  const waits = host.config.waitForAttachments && !maySample;
  const outcome = await host.asks.open(kind, data, { toolCallId, agentId, waits, signal, caller: answers, key, serverName });
  if (outcome.kind === "answered") return outcome.answer;
  if (!isNobody(outcome) || !maySample) throw unanswered(kind, outcome);
  return (await host.sample(data as Asks["sampling"]["data"], signal())) as Asks[K]["answer"];
}

function isDenied(kind: AskKind, policy: ServerPolicy): boolean {
  return (kind === "elicitation" || kind === "sampling") && policy[kind] === "deny";
}

function isNobody(outcome: AskOutcome): boolean {
  return outcome.kind === "ended" && outcome.reason === "nobody";
}

function unanswered(kind: AskKind, outcome: AskOutcome): HostError {
  const why = outcome.kind === "ended" ? outcome.reason : outcome.kind;
  return new HostError("ASK_UNANSWERED", `The question of kind "${kind}" was not answered (${why}). Continue without an answer.`);
}

function deniedByPolicy(kind: AskKind, server: string): HostError {
  const message = `The MCP server "${server}" may not ask for ${kind}: mcp.${kind} of the host's options is "deny".`;
  return new HostError("ASK_UNANSWERED", message);
}
