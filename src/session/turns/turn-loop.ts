import { randomUUID } from "node:crypto";
import { toError } from "../../base/errors.ts";
import type { ModelReply, ModelToolCall } from "../../models/model.ts";
import { ModelError } from "../../models/model-error.ts";
import type { AgentScope, ToolCall } from "../calls/tool-call.ts";
import type { ToolCatalog } from "../catalog/tool-catalog.ts";
import { assembleMessages } from "../history/conversation-history.ts";
import type { SessionEventData, ToolRequest } from "../history/event-types.ts";
import { errorType, placeInTrace } from "../telemetry.ts";
import { callModel } from "./model-call.ts";
import type { AssistantReply, TurnAgent, TurnContext, TurnEnd, TurnRun } from "./turn-types.ts";

/**
 * Asks the model, runs the tools that it calls and asks again, until it calls none. Before each request the tools and
 * instructions of that moment are read. Ends early when a call was rejected, a terminal tool succeeded, the budget is
 * used up or the signal fires; never rejects.
 */
export async function runTurn(agent: TurnAgent, host: TurnContext, run: TurnRun): Promise<TurnEnd> {
  const step = host.pipeline.telemetry?.begin({ kind: "agent" }, agent.agentId, run.trace);
  if (step === undefined) return runRounds(agent, host, run);
  const end = await step.within(() => runRounds(agent, host, { ...run, trace: step.context }));
  step.end(end.kind === "failed" ? { error: errorType(end.error) } : {});
  return end;
}

async function runRounds(agent: TurnAgent, host: TurnContext, run: TurnRun): Promise<TurnEnd> {
  let reply: AssistantReply | undefined;
  try {
    for (;;) {
      if (run.signal.aborted) return { kind: "aborted" };
      if (run.budget.left <= 0) {
        const { agentId } = agent;
        const { events, log } = host;
        const message = `The turn was stopped: the model was asked ${run.budget.total} times and still calls tools. Send another message to continue, or raise maxIterations.`;
        log.warning(message, { interactionId: run.interactionId });
        events.append("session.info", { infoType: "iteration_limit", message }, agentId);
        return { kind: "ended", reason: "limit", reply };
      }
      run.budget.left--;
      const round = await runRound(agent, host, run);
      reply = round.reply;
      if (run.signal.aborted) return { kind: "aborted" };
      if (round.end !== undefined) return { kind: "ended", reason: round.end, reply };
      const hasNews = await agent.takeSteeringMessages();
      if (!round.continues && !hasNews) return { kind: "ended", reason: "answered", reply };
    }
  } catch (error) {
    return run.signal.aborted ? { kind: "aborted" } : { kind: "failed", error: toError(error) };
  }
}

interface Round {
  readonly reply: AssistantReply;
  /** The turn is over, whatever was said meanwhile. */
  readonly end?: "terminal" | "rejected";
  /** The model waits for results. */
  readonly continues: boolean;
}

/** One answer of the model and the calls in it. */
async function runRound(agent: TurnAgent, host: TurnContext, run: TurnRun): Promise<Round> {
  const { events } = host;
  const { interactionId, signal } = run;
  const turnId = String(run.counter.next++);
  const model = agent.model();
  const scope = agent.scope({ turnId, signal });
  if (run.trace !== undefined) placeInTrace(scope, run.trace);
  // The catalog of this moment. Calls are looked up in the catalog of their own moment, which knows which tools have vanished.
  const { catalog } = scope;
  const system = await agent.instructions(catalog);
  const turn = { turnId, interactionId, model: model.chat.id };
  events.append("assistant.turn_start", turn, agent.agentId);
  try {
    const messageId = randomUUID();
    const tools = agent.tools(catalog);
    await agent.context?.makeRoom({ model, system, tools }, signal);
    const ask = (): Promise<ModelReply> => {
      const messages = assembleMessages(system, agent.history, model);
      return callModel({ agent, model, messages, tools, messageId, turnId, run }, host);
    };
    const answer = await ask().catch((error: unknown) => (isTooLong(error) ? askAgain(agent, ask, error, signal) : Promise.reject(error)));
    agent.context?.learn(answer);
    return await takeReply(agent, host, run, { answer, messageId, turnId, scope });
  } finally {
    events.append("assistant.turn_end", { turnId, model: turn.model }, agent.agentId);
  }
}

function isTooLong(error: unknown): boolean {
  return error instanceof ModelError && error.code === "MODEL_CONTEXT_TOO_LONG";
}

/** What the endpoint finds too long may be shortened, once. */
async function askAgain({ context }: TurnAgent, ask: () => Promise<ModelReply>, error: unknown, signal: AbortSignal): Promise<ModelReply> {
  if ((await context?.makeRoomAnyway(signal)) !== true) throw error;
  return ask();
}

interface Answered {
  readonly answer: ModelReply;
  readonly messageId: string;
  readonly turnId: string;
  readonly scope: AgentScope;
}

async function takeReply(agent: TurnAgent, host: TurnContext, run: TurnRun, answered: Answered): Promise<Round> {
  const { answer, messageId, turnId, scope } = answered;
  const { interactionId } = run;
  const calls = readToolCalls(answer.toolCalls);
  const data = toMessageData(answer, calls, scope.catalog, { messageId, interactionId, turnId });
  host.events.append("assistant.message", data, agent.agentId);
  const reply = toReply(answer, { messageId, interactionId });
  if (calls.length === 0) return { reply, continues: false };
  const prepared = await host.pipeline.prepare(calls, scope);
  const outcomes = await Promise.all(prepared.map((call) => host.pipeline.run(call)));
  // What hooks and tools want the model to read after the results.
  const { agentId } = agent;
  const { events } = host;
  for (const { messages } of outcomes) {
    for (const content of messages) events.append("user.message", { content, source: "hook", interactionId }, agentId);
  }
  const rejected = outcomes.some(({ result }) => result.resultType === "rejected");
  if (rejected) return { reply, end: "rejected", continues: false };
  return outcomes.some(({ endsTurn }) => endsTurn) ? { reply, end: "terminal", continues: false } : { reply, continues: true };
}

/** A call of a model, as the pipeline takes it, with the model's own words. */
interface ReadCall extends ToolCall {
  readonly argumentsText: string;
  readonly replay?: ModelToolCall["replay"];
}

/** The calls of one answer. A repeated id is replaced, because results could not be matched to it. */
function readToolCalls(calls: readonly ModelToolCall[]): readonly ReadCall[] {
  const taken = new Set<string>();
  return calls.map(({ id, name, arguments: args, argumentsText, argumentsError, replay }) => {
    const own = id === "" || taken.has(id) ? `call_${randomUUID()}` : id;
    taken.add(own);
    return {
      id: own,
      name,
      arguments: args,
      argumentsText,
      ...(argumentsError !== undefined && { argumentsError }),
      ...(replay && { replay }),
    };
  });
}

interface Place {
  readonly messageId: string;
  readonly interactionId: string;
}

/**
 * The data of `assistant.message`. Beside the fields of the Copilot SDK it keeps what the endpoint must see again: the
 * text of arguments where it is not what JSON.stringify would write, and `replay`.
 */
function toMessageData(
  answer: ModelReply,
  calls: readonly ReadCall[],
  catalog: ToolCatalog,
  place: Place & { readonly turnId: string },
): SessionEventData["assistant.message"] {
  const { content, reasoning, model, usage, requestId, callId, chunkCount, replay } = answer;
  return {
    ...place,
    model,
    content,
    toolRequests: calls.map((call) => toRequest(call, catalog)),
    ...(reasoning !== undefined && { reasoningText: reasoning }),
    ...(usage && { outputTokens: usage.outputTokens }),
    ...(requestId !== undefined && { requestId }),
    ...(callId !== undefined && { apiCallId: callId }),
    chunkCount,
    ...(replay && { replay }),
  };
}

function toRequest({ id, name, arguments: args, argumentsText, argumentsError, replay }: ReadCall, catalog: ToolCatalog): ToolRequest {
  const tool = catalog.executables.get(name);
  const title = tool?.definition.title;
  return {
    toolCallId: id,
    name,
    arguments: args,
    type: "function",
    ...(title !== undefined && { toolTitle: title }),
    ...(tool?.origin.kind === "mcp" && { mcpServerName: tool.origin.source, mcpToolName: tool.origin.nativeName }),
    ...(JSON.stringify(args) !== argumentsText && { argumentsText }),
    ...(argumentsError !== undefined && { argumentsError }),
    ...(replay && { replay }),
  };
}

function toReply({ content, reasoning, model }: ModelReply, place: Place): AssistantReply {
  const { messageId, interactionId } = place;
  return Object.freeze({ messageId, content, ...(reasoning !== undefined && { reasoningText: reasoning }), model, interactionId });
}
