import { isAbsolute, resolve } from "node:path";
import type { ContextUse } from "../../../session/conversation.ts";
import type { AgentMode } from "../../../session/prompt/system-prompt.ts";
import { badParams } from "../connection/params.ts";
import { optionsOf } from "../request/apply-session-request.ts";
import type { CopilotSession } from "../sessions/copilot-session.ts";
import { findSession } from "../sessions/session-registry.ts";
import type { Call, MethodFamily } from "./method.ts";

/** The options, mode, name and metadata of a session. */
export const metadata: MethodFamily = {
  async "session.options.update"({ server, client, params }) {
    const session = findSession(server, params);
    const change = optionsOf(server, client, params, session.id);
    session.assertAllowed(change.model);
    if (Object.keys(change).length > 0) await session.session.update(change);
    session.providers.keep(params, client);
    return { success: true };
  },
  "session.mode.get": (call) => sessionOf(call).mode,
  async "session.mode.set"(call) {
    const mode = toMode(call.params.text("mode"), call.params.method);
    const session = sessionOf(call);
    if (mode !== session.mode) await session.session.update({ agentMode: mode });
    return { status: "changed", modelChanged: false };
  },
  "session.name.get": (call) => ({ name: sessionOf(call).name ?? null }),
  async "session.name.set"(call) {
    const session = sessionOf(call);
    const name = call.params.text("name").trim();
    if (name === "") throw badParams(call.params.method, "a name must not be blank.");
    await session.setName(name, true);
  },
  async "session.name.setAuto"(call) {
    const session = sessionOf(call);
    const summary = call.params.text("summary").trim();
    // A name that a user chose is kept.
    const applied = summary !== "" && session.name === undefined;
    if (applied) await session.setName(summary, false);
    return { applied };
  },
  async "session.metadata.snapshot"(call) {
    const session = sessionOf(call);
    const { config } = session.session;
    const model = config.view.model;
    return {
      sessionId: session.id,
      startTime: session.createdAt.toISOString(),
      modifiedTime: session.modifiedAt.toISOString(),
      isRemote: false,
      alreadyInUse: false,
      workspacePath: sessionOf(call).session.workspace.path,
      ...(session.name !== undefined && { initialName: session.name }),
      workingDirectory: config.workingDirectory,
      currentMode: session.mode,
      ...(model !== undefined && { selectedModel: model }),
      sessionLimits: null,
      workspace: null,
    };
  },
  "session.metadata.recordContextChange"(call) {
    const { session } = sessionOf(call);
    const { cwd, ...git } = call.params.record("context");
    if (typeof cwd !== "string") throw badParams(call.params.method, "context.cwd must be a string.");
    // The session itself knows its directory, so a report about another one is ignored.
    if (resolve(cwd) === resolve(session.config.workingDirectory))
      session.events.append("session.context_changed", { cwd, ...textsOf(git) });
    return {};
  },
  async "session.metadata.setWorkingDirectory"(call) {
    const { session } = sessionOf(call);
    await session.setWorkingDirectory(absolutePath(call, "workingDirectory"));
    return { workingDirectory: session.config.workingDirectory };
  },
  "session.metadata.isProcessing": (call) => ({ processing: sessionOf(call).isBusy }),
  "session.metadata.activity"(call) {
    const { isBusy, session } = sessionOf(call);
    // Background work counts as active, but abort does not stop it.
    return { abortable: session.conversation.isBusy, hasActiveWork: isBusy };
  },
  "session.metadata.contextInfo"(call) {
    const session = sessionOf(call);
    const use = session.session.conversation.contextUse;
    return { contextInfo: use === undefined ? null : toContextInfo(use, session, call) };
  },
  "session.metadata.recomputeContextTokens"(call) {
    const use = sessionOf(call).session.conversation.contextUse;
    const { systemTokens = 0, conversationTokens = 0 } = use ?? {};
    return { totalTokens: systemTokens + conversationTokens, messagesTokenCount: conversationTokens, systemTokenCount: systemTokens };
  },
};

const gitFacts = ["gitRoot", "repository", "hostType", "repositoryHost", "branch", "headCommit", "baseCommit"];

function textsOf(facts: Readonly<Record<string, unknown>>): Readonly<Record<string, string>> {
  return Object.fromEntries(gitFacts.flatMap((name) => (typeof facts[name] === "string" ? [[name, facts[name]]] : [])));
}

function absolutePath({ params }: Call, key: string): string {
  const path = params.text(key);
  if (isAbsolute(path)) return path;
  throw badParams(params.method, `${key} must be an absolute path.`);
}

export function toMode(mode: string, method: string): AgentMode {
  if (mode === "interactive" || mode === "plan" || mode === "autopilot") return mode;
  throw badParams(method, 'a mode must be "interactive", "plan" or "autopilot".');
}

function sessionOf({ server, params }: Call): CopilotSession {
  return findSession(server, params);
}

function toContextInfo(use: ContextUse, { session }: CopilotSession, { params }: Call): object {
  const { systemTokens, conversationTokens, toolDefinitionsTokens, currentTokens } = use;
  const promptTokenLimit = params.optionalNumber("promptTokenLimit") || use.tokenLimit;
  const output = params.optionalNumber("outputTokenLimit") ?? 0;
  const { infinite, model } = session.config.turn;
  return {
    modelName: params.optionalText("selectedModel") ?? model ?? "",
    systemTokens,
    conversationTokens,
    toolDefinitionsTokens,
    mcpToolsTokens: 0,
    totalTokens: currentTokens,
    promptTokenLimit,
    compactionThreshold: Math.floor(promptTokenLimit * (infinite?.backgroundThreshold ?? 1)),
    limit: promptTokenLimit + output,
    bufferTokens: output + Math.floor(promptTokenLimit * (1 - (infinite?.exhaustionThreshold ?? 1))),
  };
}
