import { isRecord } from "../../../base/json.ts";
import type { SendOptions } from "../../../session/turns/message-queue.ts";
import { badParams, Params } from "../connection/params.ts";
import { chooseModel } from "../request/model-endpoint.ts";
import type { CopilotSession } from "../sessions/copilot-session.ts";
import { findSession } from "../sessions/session-registry.ts";
import { toMode } from "./metadata.ts";
import type { Call, MethodFamily } from "./method.ts";
import { untilIdle } from "./tasks.ts";

/** Messages to a session, and its events. */
export const messages: MethodFamily = {
  async "session.send"(call) {
    const session = findSession(call.server, call.params);
    const command = session.commands.find(call.params.text("prompt"));
    if (command !== undefined) return { messageId: await runCommand(session, command) };
    await chooseModel(call.server, session.session);
    await chooseMode(call, session);
    // Not awaited, so that the message's place in a trace is known before it is taken.
    const messageId = session.session.conversation.insert(toMessage(call.params), Number.POSITIVE_INFINITY);
    session.spans?.placeAt(call.params.get("traceparent"), call.params.get("tracestate"), messageId);
    return { messageId };
  },
  async "session.sendMessages"(call) {
    const { server, params } = call;
    const session = findSession(server, params);
    if (!params.has("messages")) throw badParams(params.method, "messages must be an array of objects.");
    const list = params.records("messages").map((message) => toMessage(new Params(params.method, message)));
    await chooseModel(server, session.session);
    await chooseMode(call, session);
    const { mode, requestHeaders } = toMessage(params, "");
    const messageIds = session.session.conversation.sendAll(list, {
      mode,
      requestHeaders,
      ...(params.flag("prepend") && { position: 0 }),
    });
    if (params.flag("wait")) await untilIdle(session, call.signal());
    return { messageIds };
  },
  async "session.abort"({ server, params }) {
    await findSession(server, params).session.abort();
    return { success: true };
  },
  async "session.interruptMainTurn"({ server, params }) {
    const { session } = findSession(server, params);
    const { isBusy } = session.conversation;
    await session.abort();
    return { interrupted: isBusy };
  },
  async "session.getMessages"({ server, params }) {
    return { events: await findSession(server, params).past() };
  },
  "session.log"({ server, params }) {
    const { session } = findSession(server, params);
    const { level = "info", type = "notification" } = { level: params.optionalText("level"), type: params.optionalText("type") };
    const url = params.optionalText("url");
    const tip = params.optionalText("tip");
    const isEphemeral = params.flag("ephemeral");
    const message = { message: params.text("message"), ...(url !== undefined && { url }) };
    let eventId = "";
    const sink = session.events.addSink((event) => {
      eventId ||= event.id;
    });
    const options = { isEphemeral };
    if (level === "error") session.events.append("session.error", { errorType: type, ...message }, undefined, options);
    else if (level === "warning") session.events.append("session.warning", { warningType: type, ...message }, undefined, options);
    else session.events.append("session.info", { infoType: type, ...message, ...(tip !== undefined && { tip }) }, undefined, options);
    sink[Symbol.dispose]();
    return { eventId };
  },
  async "session.sendSystemNotification"(call) {
    const { session } = findSession(call.server, call.params);
    const content = call.params.text("message");
    session.events.append("system.notification", { content, kind: call.params.get("kind") ?? { type: "unclassified" } });
    await session.send({ prompt: content, mode: "immediate", source: "system" });
  },
};

/** Has the client that provides a command run it. The message does not reach the model. */
async function runCommand(session: CopilotSession, { name, args }: { readonly name: string; readonly args: string }): Promise<string> {
  const { events } = session.session;
  const ran = session.commands.run(name, args);
  void ran.then((error) => {
    if (!session.session.isOpen) return;
    if (error !== undefined) events.append("session.error", { errorType: "command", message: `Command "/${name}" failed: ${error}` });
    // Otherwise the running work emits it at its end.
    if (session.session.conversation.isIdle) events.append("session.idle", {});
  });
  return `command-${name}`;
}

/** Switches the session to the mode of the message. */
async function chooseMode({ params }: Call, { mode, session }: CopilotSession): Promise<void> {
  const wanted = params.optionalText("agentMode");
  if (wanted === "shell") throw badParams(params.method, "shell commands are run only by tools of the model; send the task as a message.");
  const next = wanted === undefined ? mode : toMode(wanted, params.method);
  if (next !== mode) await session.update({ agentMode: next });
}

export function toMessage(params: Params, prompt: string = params.text("prompt")): SendOptions {
  const mode = params.optionalText("mode");
  const headers = params.optionalRecord("requestHeaders");
  const source = params.optionalText("source");
  const attachments = params.get("attachments");
  return {
    prompt,
    ...(mode !== undefined && { mode: mode as "enqueue" | "immediate" }),
    ...(headers !== undefined && { requestHeaders: headers as Readonly<Record<string, string>> }),
    ...(source !== undefined && source !== "user" && { source }),
    ...(attachments !== undefined && {
      attachments: (Array.isArray(attachments) ? attachments.map(withoutNull) : attachments) as NonNullable<SendOptions["attachments"]>,
    }),
  };
}

/** Clients in other languages send null for what is absent. */
function withoutNull(attachment: unknown): unknown {
  return isRecord(attachment) ? Object.fromEntries(Object.entries(attachment).filter(([, value]) => value !== null)) : attachment;
}
