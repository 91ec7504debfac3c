import { randomUUID } from "node:crypto";
import { onAbort } from "../../../base/wait.ts";
import type { SubAgent } from "../../../session/agents/sub-agent.ts";
import { isRunning } from "../../../session/agents/sub-agents.ts";
import type { RecordedEvent } from "../../../session/history/events.ts";
import { fleetRequest } from "../../../session/prompt/model-text.ts";
import { badParams } from "../connection/params.ts";
import { chooseModel } from "../request/model-endpoint.ts";
import type { CopilotSession } from "../sessions/copilot-session.ts";
import { findSession } from "../sessions/session-registry.ts";
import type { Call, MethodFamily } from "./method.ts";

/** How many tool calls the progress of an agent lists. */
const maxActivity = 10;

/** The agents that work for a session, which its model or a client has started. */
export const tasks: MethodFamily = {
  "session.tasks.list": (call) => ({ tasks: sessionOf(call).session.subAgents.list().map(describeTask) }),
  // The list is always current.
  "session.tasks.refresh"(call) {
    sessionOf(call);
    return {};
  },
  async "session.tasks.getProgress"(call) {
    const session = sessionOf(call);
    const agent = findAgent(call);
    return { progress: agent === undefined ? null : { type: "agent", recentActivity: await activityOf(session, agent) } };
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
  "session.tasks.cancel"(call) {
    const agent = findAgent(call);
    if (agent === undefined || !isRunning(agent)) return { cancelled: false };
    agent.stop();
    return { cancelled: true };
  },
  "session.tasks.remove"(call) {
    const agent = findAgent(call);
    return { removed: agent !== undefined && sessionOf(call).session.subAgents.remove(agent) };
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
async function untilIdle({ session }: CopilotSession, signal: AbortSignal): Promise<void> {
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
