import { errorMessage, HostError } from "../../../base/errors.ts";
import { noResult } from "../../../session/clients/request-kinds.ts";
import type { QueuedCommand } from "../../../session/turns/message-queue.ts";
import type { JsonSchema } from "../../../tools/tool.ts";
import { badParams } from "../connection/params.ts";
import { chooseModel } from "../request/model-endpoint.ts";
import type { CopilotSession } from "../sessions/copilot-session.ts";
import { findSession } from "../sessions/session-registry.ts";
import { findBuiltin, isSkill, listCommands } from "./builtin-commands.ts";
import type { Call, MethodFamily } from "./method.ts";

/** Questions to users, and slash commands. */
export const ui: MethodFamily = {
  async "session.ui.elicitation"({ server, params, signal }) {
    const { session } = findSession(server, params);
    const schema = params.optionalRecord("requestedSchema");
    const data = { message: params.text("message"), ...(schema && { requestedSchema: schema as JsonSchema }) };
    const outcome = await session.asks.open("elicitation", data, { signal });
    return outcome.kind === "answered" ? outcome.answer : { action: "cancel" };
  },
  "session.ui.handlePendingElicitation": ({ server, client, params }) => ({
    success: findSession(server, params).answer(client, params.text("requestId"), params.record("result")),
  }),
  "session.ui.handlePendingUserInput": ({ server, client, params }) => ({
    success: findSession(server, params).answer(client, params.text("requestId"), params.record("response")),
  }),
  "session.ui.handlePendingSampling": ({ server, client, params }) => ({
    success: findSession(server, params).answer(client, params.text("requestId"), params.optionalRecord("response") ?? noResult),
  }),
  "session.ui.handlePendingExitPlanMode": ({ server, client, params }) => ({
    success: findSession(server, params).answer(client, params.text("requestId"), params.record("response")),
  }),
  async "session.ui.ephemeralQuery"(call) {
    const { session } = findSession(call.server, call.params);
    await chooseModel(call.server, session);
    return { answer: await session.conversation.ask(call.params.text("question"), call.signal()) };
  },
  "session.commands.list"(call) {
    const { params } = call;
    const session = findSession(call.server, params);
    const wants = (key: string): boolean => params.optionalFlag(key) ?? true;
    const kinds = { client: wants("includeClientCommands"), builtin: wants("includeBuiltins"), skill: wants("includeSkills") };
    return { commands: listCommands(session).filter(({ kind }) => kinds[kind]) };
  },
  async "session.commands.execute"(call) {
    const error = await runCommand(call, call.params.text("commandName"), call.params.optionalText("args") ?? "");
    return error === undefined ? {} : { error };
  },
  async "session.commands.invoke"(call) {
    const name = call.params.text("name");
    const input = call.params.optionalText("input") ?? "";
    const session = findSession(call.server, call.params);
    const prompt = input === "" ? `/${name}` : `/${name} ${input}`;
    // A skill is used by its name in a message, which the client sends itself.
    const isSkill = !session.commands.all.has(name) && session.session.listSkills().some((skill) => skill.name === name);
    if (isSkill) return { kind: "agent-prompt", prompt, displayPrompt: prompt };
    const builtin = findBuiltin(session, name);
    if (builtin !== undefined) return builtin.run(call, session, input);
    const error = await runCommand(call, name, input);
    if (error !== undefined) throw new HostError("COMMAND_FAILED", `Command /${name} failed: ${error}`);
    return { kind: "completed" };
  },
  "session.commands.enqueue"(call) {
    const session = findSession(call.server, call.params);
    const command = call.params.text("command");
    session.session.conversation.enqueue(command, (signal) => runQueuedCommand(call, session, command, signal));
    return { queued: true };
  },
  "session.commands.handlePendingCommand"({ server, client, params }) {
    const session = findSession(server, params);
    session.commands.settle(params.text("requestId"), client, params.optionalText("error"));
    // Each client receives each command and answers, even when it does not have it. That is not an error.
    return { success: true };
  },
  // Commands apply their effects themselves, so nothing is left to store.
  "session.commands.finalizeInvocationEffect"({ server, params }) {
    findSession(server, params);
    params.record("effect");
    const outcome = params.text("outcome");
    if (outcome !== "applied" && outcome !== "cancelled") throw badParams(params.method, 'outcome must be "applied" or "cancelled".');
    return { success: true };
  },
  "session.commands.respondToQueuedCommand"({ server, client, params }) {
    const session = findSession(server, params);
    const { handled, stopProcessingQueue } = params.record("result");
    if (typeof handled !== "boolean") throw badParams(params.method, "result.handled must be true or false.");
    const result = { handled, stopProcessingQueue: handled && stopProcessingQueue === true };
    const isIn = session.attachmentOf(client) !== undefined;
    return { success: isIn && session.queuedCommands.answer(params.text("requestId"), result) };
  },
};

/** Offers the command to clients with an interest in queued commands, then to the client, plugin or skill with its name. */
async function runQueuedCommand(call: Call, session: CopilotSession, text: string, signal: AbortSignal): ReturnType<QueuedCommand> {
  if (session.hasInterestIn("command.queued")) {
    const { handled, stopProcessingQueue } = await session.queuedCommands.offer(text, signal);
    if (handled) return stopProcessingQueue ? "hold" : "done";
    signal.throwIfAborted();
  }
  const { events } = session.session;
  const [, name = ""] = /^\/(\S+)/.exec(text.trim()) ?? [];
  const own = session.commands.find(text);
  if (own !== undefined) {
    const error = await session.commands.run(own.name, own.args);
    if (error !== undefined) events.append("session.error", { errorType: "command", message: `Command "/${name}" failed: ${error}` });
    return "done";
  }
  const builtin = findBuiltin(session, name);
  if (builtin !== undefined) {
    const input = text
      .trim()
      .slice(name.length + 1)
      .trim();
    try {
      await builtin.run(call, session, input, signal);
    } catch (error) {
      signal.throwIfAborted();
      events.append("session.error", { errorType: "command", message: `Command "/${name}" failed: ${errorMessage(error)}` });
    }
    return "done";
  }
  const isKnown = session.session.commands.some((command) => command.name === name) || isSkill(session, name);
  if (isKnown) {
    await chooseModel(call.server, session.session);
    return "message";
  }
  const message = `Queued command ${JSON.stringify(text)} was not run: no client handled it, and no plugin or skill has that name.`;
  events.append("session.warning", { warningType: "command", message });
  return "done";
}

/** Runs a command. Returns its error; undefined: it succeeded. */
async function runCommand(call: Call, name: string, args: string): Promise<string | undefined> {
  const found = findSession(call.server, call.params);
  const { session, commands } = found;
  if (commands.all.has(name)) return commands.run(name, args);
  const builtin = findBuiltin(found, name);
  try {
    if (builtin !== undefined) {
      await builtin.run(call, found, args);
      return undefined;
    }
    await session.runCommand(name, args);
    return undefined;
  } catch (error) {
    if (error instanceof HostError && (builtin !== undefined || error.code.startsWith("COMMAND_"))) return error.message;
    throw error;
  }
}
