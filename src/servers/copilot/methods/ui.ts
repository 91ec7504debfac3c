import { randomUUID } from "node:crypto";
import { HostError } from "../../../base/errors.ts";
import { noResult } from "../../../session/asks/ask-kinds.ts";
import type { JsonSchema } from "../../../tools/tool.ts";
import { chooseModel } from "../sessions/choose-model.ts";
import { findSession } from "../sessions/sessions.ts";
import type { Call, MethodFamily } from "./method.ts";

/** Questions to people, and the commands that people give. */
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
  "session.commands.list"(call) {
    const { params } = call;
    const session = findSession(call.server, params);
    const wants = (key: string): boolean => params.optionalFlag(key) ?? true;
    const clients = [...session.commands.all.values()].map((command) => ({ ...command, kind: "client", allowDuringAgentExecution: true }));
    const own = session.session.commands.map(({ name, description = "" }) => describe(name, description, "builtin"));
    const skills = session.session.listSkills().filter(({ userInvocable }) => userInvocable !== false);
    return {
      commands: [
        ...(wants("includeClientCommands") ? clients : []),
        ...(wants("includeBuiltins") ? own : []),
        ...(wants("includeSkills") ? skills.map(({ name, description }) => describe(name, description, "skill")) : []),
      ],
    };
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
    // A skill is used by saying its name: whoever asked sends that.
    const isSkill = !session.commands.all.has(name) && session.session.listSkills().some((skill) => skill.name === name);
    if (isSkill) return { kind: "agent-prompt", prompt, displayPrompt: prompt };
    const error = await runCommand(call, name, input);
    if (error !== undefined) throw new HostError("COMMAND_FAILED", error);
    return { kind: "completed" };
  },
  async "session.commands.enqueue"({ server, params }) {
    const { session } = findSession(server, params);
    await chooseModel(server, session);
    await session.send({ prompt: params.text("command") });
    return { queued: true };
  },
  "session.commands.handlePendingCommand"({ server, client, params }) {
    const session = findSession(server, params);
    session.commands.settle(params.text("requestId"), client, params.optionalText("error"));
    // Every client hears of a command, and those that do not have it say so: that is no failure.
    return { success: true };
  },
  // Commands run when they are given, so none is ever queued.
  "session.commands.respondToQueuedCommand": ({ server, params }) => ({ success: !findSession(server, params).session.isOpen }),
  async "session.eventLog.registerInterest"({ server, client, params }) {
    const handle = randomUUID();
    const session = findSession(server, params);
    const eventType = params.text("eventType");
    session.addInterest(client, handle, eventType);
    // Who brings tokens brings them for this session: nobody else's connection uses them.
    if (eventType === "mcp.oauth_required") await session.session.update({ mcpTokenOwner: session.id });
    return { handle };
  },
  "session.eventLog.releaseInterest": ({ server, client, params }) => ({
    success: findSession(server, params).removeInterest(client, params.text("handle")),
  }),
};

function describe(name: string, description: string, kind: "builtin" | "skill"): object {
  return { name, description, kind, allowDuringAgentExecution: false };
}

/** Undefined: it was done. */
async function runCommand({ server, params }: Call, name: string, args: string): Promise<string | undefined> {
  const { session, commands } = findSession(server, params);
  if (commands.all.has(name)) return commands.run(name, args);
  try {
    await session.runCommand(name, args);
    return undefined;
  } catch (error) {
    if (error instanceof HostError && error.code.startsWith("COMMAND_")) return error.message;
    throw error;
  }
}
