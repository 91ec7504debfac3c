import type { Client } from "../clients/client.ts";
import { notSupported, Params, refused, toRpcError } from "../connection/params.ts";
import type { AnswerRequest } from "../connection/wire.ts";
import type { ServerContext } from "../context.ts";
import { handshake } from "./handshake.ts";
import type { Call, Method, MethodFamily } from "./method.ts";

/** Creates the function that answers a client's requests. */
export function answerRequest(server: ServerContext, client: Client): AnswerRequest {
  return (method, values, signal) => {
    const call: Call = { server, client, params: new Params(method, values), signal };
    try {
      const answer = inOrder(call, answerAtOnce(method, call));
      return answer instanceof Promise ? answer.catch((error: unknown) => Promise.reject(toRpcError(method, error))) : answer;
    } catch (error) {
      throw toRpcError(method, error);
    }
  };
}

/** A client that has just joined a session is sent its events after those that it missed: what a request has done, before its answer. */
function inOrder({ server, client, params }: Call, answer: unknown): unknown {
  const sessionId = params.get("sessionId");
  const catchingUp = typeof sessionId === "string" ? server.sessions.get(sessionId)?.catchingUp(client) : undefined;
  if (catchingUp === undefined) return answer;
  return Promise.allSettled([answer, catchingUp]).then(() => answer);
}

/** Returns a promise only when the method has to be loaded or takes time itself. */
function answerAtOnce(name: string, call: Call): unknown {
  const first = Object.hasOwn(handshake, name) ? handshake[name] : undefined;
  if (!call.client.isAdmitted && name !== "connect") admitWithoutToken(name, call);
  const method = first ?? loaded.get(name);
  return method === undefined ? answerWhenLoaded(name, call) : method(call);
}

const loaded = new Map<string, Method>();

async function answerWhenLoaded(name: string, call: Call): Promise<unknown> {
  const method = await loadMethod(name);
  if (method === undefined) throw await refusalOf(name);
  loaded.set(name, method);
  return method(call);
}

async function refusalOf(name: string): Promise<Error> {
  const { unsupported } = await import("./unsupported.ts");
  const reason = Object.entries(unsupported).find(([, methods]) => methods.includes(name))?.[0];
  if (reason === undefined)
    return notSupported(`Method ${name.slice(0, 100)} is not part of the protocol version that skillhost supports.`);
  return refused(name, reason);
}

/** Without a token, a client may begin with any method. */
function admitWithoutToken(method: string, { server, client }: Call): void {
  if (server.accepts()) {
    client.admit();
    return;
  }
  client.countRefusal();
  throw new Error(`AUTHENTICATION_FAILED: ${method} requires an authenticated connection. Send connect with the token first.`);
}

/** The methods of services that skillhost does not have. */
const absentPrefixes = [
  "account.getAllUsers",
  "account.logout",
  "agentRegistry.",
  "catalog.",
  "commands.",
  "managedSettings.",
  "mcp.planInstall",
  "session.autopilotObjective.",
  "session.canvas.list",
  "session.canvas.provider.unregister",
  "session.completions.",
  "session.contentExclusion.",
  "session.factory.listRuns",
  "session.gitHubAuth.",
  "session.limitPrediction.",
  "session.lsp.",
  "session.mcp.headers.",
  "session.mcp.oauth.respond",
  "session.mcp.unregisterExternalClient",
  "session.queue.consumeSystemNotifications",
  "session.remote.",
  "session.sandbox.",
  "session.schedule.",
  "session.settings.",
  "session.telemetry.",
  "session.tools.updateSubagentSettings",
  "session.ui.handlePendingAutoModeSwitch",
  "session.ui.handlePendingSessionLimitsExhausted",
  "session.ui.registerDirectAutoModeSwitchHandler",
  "session.ui.unregisterDirectAutoModeSwitchHandler",
  "session.visibility.",
  "sessions.configureSessionExtensions",
  "sessions.getBoardEntryCount",
  "sessions.getPersistedRemoteSteerable",
  "sessions.getRemoteControlStatus",
  "sessions.setRemoteControlSteering",
  "sessions.startRemoteControl",
  "sessions.stopRemoteControl",
  "sessions.transferRemoteControl",
];

/**
 * The files of methods, with the prefixes of the names that they answer. The longest matching prefix decides.
 * @internal Exported for tests.
 */
export const families: readonly (readonly [prefixes: readonly string[], load: () => Promise<MethodFamily>])[] = [
  [["session."], async () => (await import("./lifecycle.ts")).lifecycle],
  [
    ["session.send", "session.abort", "session.interruptMainTurn", "session.getMessages", "session.log"],
    async () => (await import("./messages.ts")).messages,
  ],
  [absentPrefixes, async () => (await import("./absent-services.ts")).absentServices],
  [["session.agent.", "agents."], async () => (await import("./agents.ts")).agents],
  [["session.eventLog.", "session.usage."], async () => (await import("./event-log.ts")).eventLog],
  [["session.extensions.", "extensions."], async () => (await import("./extensions.ts")).extensions],
  [["session.history."], async () => (await import("./history.ts")).history],
  [["session.queue."], async () => (await import("./queued-messages.ts")).queuedMessages],
  [["session.debug."], async () => (await import("./debug-logs.ts")).debugLogs],
  [["session.instructions.", "instructions."], async () => (await import("./instructions.ts")).instructions],
  [["session.mcp.", "mcp."], async () => (await import("./mcp.ts")).mcp],
  [["session.mcp.apps."], async () => (await import("./apps.ts")).apps],
  [["session.metadata.", "session.mode.", "session.name.", "session.options."], async () => (await import("./metadata.ts")).metadata],
  [["session.metadata.getContext"], async () => (await import("./context-attribution.ts")).contextAttribution],
  [
    ["session.metadata.getClientMetadata", "session.metadata.updateClientMetadata", "sessions.getClientMetadata"],
    async () => (await import("./client-metadata.ts")).clientMetadata,
  ],
  [["session.model.", "models.", "account.", "llmInference."], async () => (await import("./models.ts")).models],
  [["session.permissions."], async () => (await import("./permissions.ts")).permissions],
  [["session.plan.", "session.workspaces."], async () => (await import("./workspaces.ts")).workspaces],
  [["session.plugins.", "plugins.", "hooks.discover"], async () => (await import("./plugins.ts")).plugins],
  [["user.settings."], async () => (await import("./user-settings.ts")).userSettings],
  [["session.provider."], async () => (await import("./providers.ts")).providers],
  [["session.shell."], async () => (await import("./user-commands.ts")).userCommands],
  [["session.skills.", "skills."], async () => (await import("./skills.ts")).skills],
  [["session.tasks.", "session.fleet.", "session.cancelAllBackgroundAgents"], async () => (await import("./tasks.ts")).tasks],
  [["session.tools.", "tools."], async () => (await import("./tools.ts")).tools],
  [["session.ui.", "session.commands."], async () => (await import("./ui.ts")).ui],
  [
    ["sessions.fork", "sessions.open", "sessions.listNonEmptySessionIds", "sessions.readPersistedEvents"],
    async () => (await import("./stored-sessions.ts")).storedSessions,
  ],
  [["sessions.", "sessionFs."], async () => (await import("./sessions.ts")).sessions],
];

/** Loads the file of a method. Undefined: no file has this method. @internal Exported for tests. */
export async function loadMethod(name: string): Promise<Method | undefined> {
  let longest = "";
  let found: (() => Promise<MethodFamily>) | undefined;
  for (const [prefixes, load] of families) {
    const prefix = prefixes.find((start) => name.startsWith(start));
    if (prefix === undefined || prefix.length <= longest.length) continue;
    longest = prefix;
    found = load;
  }
  const family = await found?.();
  return family !== undefined && Object.hasOwn(family, name) ? family[name] : undefined;
}
