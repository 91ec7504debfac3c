import { isListed } from "../../../session/turns/message-queue.ts";
import { badParams, Params } from "../connection/params.ts";
import { chooseModel } from "../request/model-endpoint.ts";
import type { CopilotSession } from "../sessions/copilot-session.ts";
import { findSession } from "../sessions/session-registry.ts";
import { toMessage } from "./messages.ts";
import type { Call, MethodFamily } from "./method.ts";

/** The messages and commands that wait in a session. */
export const queuedMessages: MethodFamily = {
  "session.queue.pendingItems": (call) => {
    const { items, steeringMessages } = describeQueue(sessionOf(call));
    return { items, steeringMessages };
  },
  "session.queue.snapshot": (call) => describeQueue(sessionOf(call)),
  "session.queue.hasPending": (call) => ({ hasPending: sessionOf(call).session.conversation.queued.length > 0 }),
  "session.queue.removeMostRecent": (call) => ({ removed: sessionOf(call).session.conversation.unqueue() }),
  "session.queue.removeAt"(call) {
    const { conversation } = sessionOf(call).session;
    const id = call.params.text("id");
    return { removed: conversation.queued.some((item) => item.id === id && isListed(item)) && conversation.unqueue(id) };
  },
  "session.queue.clear"(call) {
    const { conversation } = sessionOf(call).session;
    for (const { id } of conversation.queued) conversation.unqueue(id);
  },
  async "session.queue.insertAt"(call) {
    const { session } = sessionOf(call);
    const position = positionOf(call.params, "position");
    const message = toMessage(new Params(call.params.method, call.params.record("message")));
    if (message.mode === "immediate") throw badParams(call.params.method, "a message with a position cannot have the mode immediate.");
    await chooseModel(call.server, session);
    return { id: session.conversation.insert(message, position) };
  },
  "session.queue.duplicateAt": (call) => ({
    id: found(call, sessionOf(call).session.conversation.duplicateQueued(call.params.text("id"))),
  }),
  "session.queue.moveItem"(call) {
    const { conversation } = sessionOf(call).session;
    const position = positionOf(call.params, "toPosition");
    return { changed: found(call, conversation.changeQueued(call.params.text("id"), { position })) };
  },
  "session.queue.updateText"(call) {
    const { conversation } = sessionOf(call).session;
    const prompt = call.params.text("prompt");
    return { updated: found(call, conversation.changeQueued(call.params.text("id"), { prompt })) };
  },
  "session.queue.sendNow"(call) {
    const { conversation } = sessionOf(call).session;
    return { steered: found(call, conversation.changeQueued(call.params.text("id"), { isSteering: true })) };
  },
  "session.queue.setDrainPaused"(call) {
    const { conversation } = sessionOf(call).session;
    const isPaused = call.params.optionalFlag("paused");
    if (isPaused === undefined) throw badParams(call.params.method, "paused must be true or false.");
    if (isPaused && conversation.isPaused) {
      throw new Error("queue_already_paused: the queue of this session is paused. Release it with paused: false.");
    }
    conversation.pause(isPaused);
    return null;
  },
  // A session begins the next turn and emits session.idle by itself, so a client has nothing to drain.
  "session.queue.process": (call) => {
    sessionOf(call);
    return null;
  },
  "session.queue.deferSessionIdle": (call) => {
    sessionOf(call);
    return null;
  },
  "session.queue.beginDeferredIdleDrain": (call) => {
    sessionOf(call);
    return { shouldDrain: false };
  },
  "session.queue.finishDeferredIdleDrain": (call) => {
    sessionOf(call);
    return { action: "none", aborted: false };
  },
  "session.queue.enqueueResumePending": (call) => {
    sessionOf(call);
    return { queued: false };
  },
};

function describeQueue(session: CopilotSession): {
  readonly items: readonly object[];
  readonly steeringMessages: readonly string[];
  readonly itemOrders: readonly number[];
  readonly steeringMessageOrders: readonly number[];
} {
  const { queued } = session.session.conversation;
  const agentMode = session.mode;
  const ordered = queued.map((item, order) => ({ ...item, order }));
  const listed = ordered.filter(isListed);
  const steering = ordered.filter(({ isSteering }) => isSteering);
  return {
    items: listed.map(({ id, prompt, kind }) => ({
      id,
      ...(kind === "message" && { messageId: id }),
      kind,
      displayText: prompt,
      agentMode,
    })),
    steeringMessages: steering.map(({ prompt }) => prompt),
    itemOrders: listed.map(({ order }) => order),
    steeringMessageOrders: steering.map(({ order }) => order),
  };
}

/** The result of a change of an item, which must wait in the queue. */
function found<T>({ params }: Call, result: T | undefined): T {
  if (result === undefined) throw badParams(params.method, `no queued message or command has the id ${JSON.stringify(params.text("id"))}.`);
  return result;
}

function positionOf(params: Params, key: string): number {
  const position = params.optionalNumber(key);
  if (position === undefined || !Number.isInteger(position)) throw badParams(params.method, `${key} must be an integer.`);
  return position;
}

function sessionOf({ server, params }: Call): CopilotSession {
  return findSession(server, params);
}
