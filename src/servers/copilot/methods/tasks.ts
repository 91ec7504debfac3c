import { randomUUID } from "node:crypto";
import { onAbort } from "../../../base/wait.ts";
import type { SubAgent } from "../../../session/agents/sub-agent.ts";
import { isRunning } from "../../../session/agents/sub-agents.ts";
import type { RecordedEvent } from "../../../session/history/events.ts";
import { fleetRequest } from "../../../session/prompt/model-text.ts";
import type { Client } from "../clients/client.ts";
import type { TaskUpdate } from "../clients/client-tasks.ts";
import { badParams, Params } from "../connection/params.ts";
import { chooseModel } from "../request/model-endpoint.ts";
import type { CopilotSession } from "../sessions/copilot-session.ts";
import { findSession } from "../sessions/session-registry.ts";
import type { Call, MethodFamily } from "./method.ts";

/** How many tool calls the progress of an agent lists. */
const maxActivity = 10;

/** The agents that work for a session, which its model or a client has started, and the work that clients do themselves. */
export const tasks: MethodFamily = {
  "session.tasks.list"(call) {
    const { session, clientTasks } = sessionOf(call);
    return { tasks: [...session.subAgents.list().map(describeTask), ...clientTasks.list()] };
  },
  "session.tasks.register"(call) {
    const { params } = call;
    const { clientTasks } = sessionOf(call);
    const owner = joinedClient(call);
    if (params.text("type") !== "client") throw badParams(params.method, 'type must be "client".');
    const cancellable = params.optionalFlag("cancellable");
    if (cancellable === undefined) throw badParams(params.method, "cancellable must be true or false.");
    return clientTasks.register(owner, {
      clientTaskId: params.text("clientTaskId"),
      description: params.text("description"),
      displayName: params.optionalText("displayName"),
      isCancellable: cancellable,
      expectedSequence: params.optionalNumber("expectedSequence"),
    });
  },
  "session.tasks.update"(call) {
    const { params } = call;
    const { clientTasks } = sessionOf(call);
    const owner = joinedClient(call);
    const sequence = params.optionalNumber("sequence");
    if (sequence === undefined || !Number.isSafeInteger(sequence)) throw badParams(params.method, "sequence must be an integer.");
    const update = readUpdate(new Params(params.method, params.record("update")));
    return clientTasks.update(owner, params.text("id"), sequence, update);
  },
  // The list is always current.
  "session.tasks.refresh"(call) {
    sessionOf(call);
    return {};
  },
  async "session.tasks.getProgress"(call) {
    const session = sessionOf(call);
    const agent = findAgent(call);
    if (agent === undefined) return { progress: session.clientTasks.progressOf(call.params.text("id")) };
    return { progress: { type: "agent", recentActivity: await activityOf(session, agent) } };
  },
  async "session.tasks.startAgent"(call) {
    const { server, params } = call;
    const { session } = sessionOf(call);
    const { subAgents } = session;
    const request = {
      agentType: params.text("agentType"),
      name: params.text("name"),
      description: params.optionalText("description") ?? params.text("name"),
      prompt: params.text("prompt"),
      model: params.optionalText("model"),
    };
    sessionOf(call).assertAllowed(request.model);
    await chooseModel(server, session);
    const start = subAgents.start(request, { toolCallId: randomUUID(), agent: {} });
    if (start.kind === "refused") throw badParams(params.method, refusals[start.why](request.agentType));
    subAgents.notifyWhenSettled(start.agent);
    return { agentId: start.agent.id };
  },
  "session.tasks.sendMessage"(call) {
    const { params } = call;
    const { subAgents } = sessionOf(call).session;
    const message = params.text("message");
    const agent = findAgent(call);
    if (agent === undefined) return { sent: false, error: `There is no agent ${JSON.stringify(params.text("id").slice(0, 200))}.` };
    subAgents.send(agent, message);
    return { sent: true };
  },
  async "session.tasks.cancel"(call) {
    const agent = findAgent(call);
    if (agent === undefined) return { cancelled: await sessionOf(call).clientTasks.cancel(call.params.text("id")) };
    if (!isRunning(agent)) return { cancelled: false };
    agent.stop();
    return { cancelled: true };
  },
  "session.tasks.remove"(call) {
    const { session, clientTasks } = sessionOf(call);
    const agent = findAgent(call);
    return { removed: agent === undefined ? clientTasks.remove(call.params.text("id")) : session.subAgents.remove(agent) };
  },
  async "session.tasks.waitForPending"(call) {
    await untilIdle(sessionOf(call), call.signal());
    return {};
  },
  // A call that waits for its agent cannot continue without it.
  "session.tasks.getCurrentPromotable"(call) {
    sessionOf(call);
    return {};
  },
  "session.tasks.promoteToBackground"(call) {
    findAgent(call);
    return { promoted: false };
  },
  "session.tasks.promoteCurrentToBackground"(call) {
    sessionOf(call);
    return {};
  },
  async "session.fleet.start"(call) {
    const { session } = sessionOf(call);
    const prompt = call.params.optionalText("prompt");
    await chooseModel(call.server, session);
    await session.ready(call.signal());
    // Without it, the model could only pretend.
    if (!session.catalog.executables.has("task")) return { started: false };
    await session.send({ prompt: fleetRequest(prompt) });
    return { started: true };
  },
  "session.cancelAllBackgroundAgents"(call) {
    const running = sessionOf(call)
      .session.subAgents.list()
      .filter((agent) => agent.isInBackground && isRunning(agent));
    for (const agent of running) agent.stop();
    return running.length;
  },
};

const refusals = {
  "unknown type": (type: string) => `the session has no agent ${JSON.stringify(type.slice(0, 200))}. session.agent.list names its agents.`,
  "too deep": () => "an agent at this depth cannot start another one.",
  "too many": () => "too many agents are running. Wait until one is done, or cancel one with session.tasks.cancel.",
};

function sessionOf({ server, params }: Call): CopilotSession {
  return findSession(server, params);
}

/** The client as the owner of tasks, which others see until it leaves the session. */
function joinedClient(call: Call): Client {
  if (sessionOf(call).clients.includes(call.client)) return call.client;
  throw badParams(call.params.method, "only clients of the session own tasks. Resume it on this connection first.");
}

function readUpdate(given: Params): TaskUpdate {
  const kind = given.text("kind");
  const message = given.optionalText("message");
  if (kind === "completed") return { kind, message, result: given.get("result") };
  if (kind === "failed") return { kind, message, error: given.text("error"), code: given.optionalText("code") };
  if (kind === "cancelled") return { kind, message, reason: given.optionalText("reason") };
  if (kind !== "progress") throw badParams(given.method, "update.kind must be progress, completed, failed or cancelled.");
  const status = given.optionalText("status");
  const percentage = given.optionalNumber("percentage");
  if (status !== undefined && status !== "running" && status !== "idle") throw badParams(given.method, "status must be running or idle.");
  if (percentage !== undefined && (percentage < 0 || percentage > 100)) throw badParams(given.method, "percentage must be from 0 to 100.");
  // Null clears what was said before.
  const orCleared = <T>(name: string, value: T | undefined): T | null | undefined => value ?? (given.has(name) ? null : undefined);
  return {
    kind,
    status,
    message,
    phase: orCleared("phase", given.optionalText("phase")),
    percentage: orCleared("percentage", percentage),
  };
}

function findAgent(call: Call): SubAgent | undefined {
  return sessionOf(call).session.subAgents.find(call.params.text("id"));
}

function describeTask(agent: SubAgent): object {
  const { id, toolCallId, profile, status, startedAt, endedAt, error, prompt, replies, isInBackground } = agent;
  const { description, model } = agent.facts;
  const result = replies.at(-1);
  return {
    type: "agent",
    id,
    toolCallId,
    displayName: profile.displayName,
    description,
    status,
    startedAt: startedAt.toISOString(),
    ...(endedAt !== undefined && { completedAt: endedAt.toISOString() }),
    ...(error !== undefined && { error: error.message }),
    agentType: profile.name,
    prompt,
    ...(result !== undefined && status !== "running" && { result }),
    ...(result !== undefined && { latestResponse: result }),
    ...(model !== undefined && { model }),
    executionMode: isInBackground ? "background" : "sync",
    canPromoteToBackground: false,
  };
}

/** The last tool calls of an agent, oldest first. */
async function activityOf(session: CopilotSession, { conversation }: SubAgent): Promise<readonly object[]> {
  const events = await session.past();
  const calls = events.filter(({ type, agentId }) => type === "tool.execution_start" && agentId === conversation.agentId);
  return calls.slice(-maxActivity).map(({ data, timestamp }) => ({ message: `▸ ${String(data["toolName"])}`, timestamp }));
}

/** Resolves when no turn runs and no agent works. Rejects when the signal fires or the session ends. */
export async function untilIdle({ session }: CopilotSession, signal: AbortSignal): Promise<void> {
  if (session.conversation.isIdle) return;
  const opened: Disposable[] = [];
  try {
    await new Promise<void>((resolve, reject) => {
      const look = ({ type }: RecordedEvent): void => {
        if (type === "session.idle") resolve();
        if (type === "session.shutdown") reject(new Error("The session has ended."));
      };
      opened.push(
        session.events.addSink(look),
        onAbort(signal, () => reject(signal.reason)),
      );
    });
  } finally {
    for (const one of opened) one[Symbol.dispose]();
  }
}
