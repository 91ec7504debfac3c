import { randomUUID } from "node:crypto";
import { refused } from "../connection/params.ts";
import { findSession } from "../sessions/session-registry.ts";
import { authStatus } from "./handshake.ts";
import type { Call, Method, MethodFamily } from "./method.ts";

/**
 * The methods of services that skillhost does not have: schedules, remote control, accounts and others. Questions get the answer
 * of a runtime in which nothing of the kind exists. Requests that would need the service are refused, in the form that the protocol
 * has for it or as in `unsupported.ts`.
 */
export const absentServices: MethodFamily = {
  "account.getAllUsers": () => [],
  "account.logout": () => ({ hasMoreUsers: false }),
  "agentRegistry.spawn": () => ({
    kind: "spawn-error",
    message: "skillhost starts no other runtimes. Start one with skillhost --headless, and connect a client to it.",
  }),
  // No catalog is known, and no other address is contacted.
  "catalog.search": () => ({
    kind: "unavailable",
    reason: "authority-not-configured",
    message: "skillhost has no catalog of servers and skills. Configure servers with mcp.config.add, install plugins with plugins.install.",
  }),
  "mcp.planInstall": () => ({
    kind: "unavailable",
    reason: "planning-unavailable",
    message: "skillhost does not plan installations. Add the server with mcp.config.add.",
  }),
  // The names of commands come from the plugins and clients of a session.
  "commands.list": () => ({ commands: [] }),
  "managedSettings.read": () => ({}),
  "managedSettings.clearCache": () => undefined,

  // Turns have no objective that outlives them; session.workspaces.readAutopilotObjective reads the text that a client stored.
  "session.autopilotObjective.getState": inSession(() => ({ state: null })),
  "session.canvas.list": inSession(() => ({ canvases: [] })),
  "session.canvas.listOpen": inSession(() => ({ openCanvases: [] })),
  // None can be registered.
  "session.canvas.provider.unregister": inSession(() => null),
  "session.factory.listRuns": inSession(() => ({ runs: [] })),
  "session.completions.getTriggerCharacters": inSession(() => ({ triggerCharacters: [] })),
  "session.completions.request": inSession(() => ({ items: [] })),
  // No policy is available, so no path is excluded by one.
  "session.contentExclusion.checkPaths": inSession(({ params }) => ({
    available: false,
    checks: params.texts("paths").map((path) => ({ path, excluded: false })),
  })),
  "session.gitHubAuth.getStatus": inSession(authStatus),
  "session.gitHubAuth.getAllAuthAvailable": inSession((call) => [authStatus(call)]),
  "session.gitHubAuth.getCurrentAuthInfo": inSession(({ server: { options } }) =>
    options.gitHubToken === undefined ? null : { type: "env", host: "https://github.com", envVar: "" },
  ),
  "session.gitHubAuth.lastAuthErrors": inSession(() => []),
  "session.gitHubAuth.logout": inSession(() => false),
  "session.gitHubAuth.logoutUser": inSession(() => false),
  // Accounts have no profile that could have changed, and a session cannot be given another account: its providers have their keys.
  "session.gitHubAuth.refreshCopilotUser": inSession(() => null),
  "session.gitHubAuth.setCredentials": inSession(() => ({ success: false })),
  // Credits are of a billing that skillhost has no part in. The protocol knows no other reason than that there is no such model.
  "session.limitPrediction.predict": inSession(() => ({ kind: "unavailable", reason: "no_model" })),
  // The session has no language servers whose configuration would be loaded.
  "session.lsp.initialize": inSession(() => undefined),
  // Requests for authorization are answered with session.mcp.oauth.handlePendingRequest, so none waits for this answer.
  "session.mcp.oauth.respond"({ server, params }) {
    findSession(server, params);
    params.text("requestId");
    return { success: false };
  },
  // A client object cannot be sent over a connection, so none is registered.
  "session.mcp.unregisterExternalClient": inSession(({ params }) => {
    params.text("serverName");
    return null;
  }),
  // Headers are never requested from clients, so no request is pending.
  "session.mcp.headers.handlePendingHeadersRefreshRequest": inSession(() => ({ success: false })),
  // Notifications are delivered at once and do not wait in the queue.
  "session.queue.consumeSystemNotifications": inSession(() => ({ removed: false })),
  "session.remote.disable": inSession(() => undefined),
  "session.remote.enable": inSession(({ params }) => {
    if (params.optionalText("mode") === "off") return { remoteSteerable: false };
    throw refused(params.method, onlyHere);
  }),
  "session.remote.notifySteerableChanged": inSession(({ params }) => {
    if (!params.flag("remoteSteerable")) return {};
    throw refused(params.method, onlyHere);
  }),
  // No policy demands a sandbox, and no permission request offers to leave one.
  "session.sandbox.getEnforcementStatus": inSession(() => ({ required: false, blocked: false })),
  "session.sandbox.disableForSession": inSession(({ params }) => {
    params.text("requestId");
    return { success: false, enabled: false };
  }),
  "session.schedule.list": inSession(() => ({ entries: [] })),
  "session.schedule.hasSelfPaced": inSession(() => ({ hasSelfPaced: false })),
  "session.schedule.hydrate": inSession(() => undefined),
  "session.schedule.stop": inSession(() => ({})),
  "session.schedule.add": inSession(refuseSchedule),
  "session.schedule.addAt": inSession(refuseSchedule),
  "session.schedule.addCron": inSession(refuseSchedule),
  "session.schedule.addSelfPaced": inSession(refuseSchedule),
  "session.schedule.rearmSelfPaced": inSession(refuseSchedule),
  // The predicates name features of the official runtime that skillhost does not have.
  "session.settings.evaluatePredicate": inSession(({ params }) => {
    params.text("name");
    return { enabled: false };
  }),
  "session.settings.snapshot": inSession(settingsOf),
  "session.telemetry.getEngagementId": inSession(() => ({})),
  // Features are attached to telemetry, which is not sent.
  "session.telemetry.setFeatureOverrides": inSession(() => undefined),
  "session.tools.updateSubagentSettings": inSession(updateSubAgents),
  // These questions are never asked, so no request is pending, and a handler is never called.
  "session.ui.handlePendingAutoModeSwitch": inSession(() => ({ success: false })),
  "session.ui.handlePendingSessionLimitsExhausted": inSession(() => ({ success: false })),
  "session.ui.registerDirectAutoModeSwitchHandler"({ server, client, params }) {
    const handle = randomUUID();
    findSession(server, params).addInterest(client, handle, autoModeSwitch);
    return { handle };
  },
  "session.ui.unregisterDirectAutoModeSwitchHandler": ({ server, client, params }) => ({
    unregistered: findSession(server, params).removeInterest(client, params.text("handle")),
  }),
  "session.visibility.get": inSession(() => ({ synced: false })),
  "session.visibility.set": inSession(() => ({ synced: false })),

  // A controller is an object of the caller's own process. Without one, there is nothing to detach.
  "sessions.configureSessionExtensions": inSession(({ params }) => {
    if (params.get("controller") === undefined) return null;
    throw refused(params.method, "a controller cannot be sent over a connection. Use session.extensions.enable, disable and reload.");
  }),
  "sessions.getBoardEntryCount": () => ({}),
  "sessions.getPersistedRemoteSteerable": () => ({}),
  "sessions.getRemoteControlStatus": () => ({ status: off }),
  "sessions.setRemoteControlSteering": () => ({ status: off }),
  "sessions.startRemoteControl": ({ server, params }) => ({
    status: {
      state: "error",
      error: `Remote control was not started: ${onlyHere}`,
      attachedSessionId: findSession(server, params).session.id,
    },
  }),
  "sessions.stopRemoteControl": () => ({ status: off, stopped: false }),
  "sessions.transferRemoteControl": () => ({ status: off, transferred: false }),
};

const off = { state: "off" } as const;

const onlyHere = "sessions run only on this machine.";

const autoModeSwitch = "auto_mode_switch.requested";

/** The answer for a session that exists. @throws HostError `SESSION_NOT_FOUND`. */
function inSession(answer: Method): Method {
  return (call) => {
    findSession(call.server, call.params);
    return answer(call);
  };
}

/** Only the model is a setting that skillhost has, too. */
function settingsOf({ server, params }: Call): object {
  const { model, reasoningEffort } = findSession(server, params).session.config.turn;
  return {
    repo: {},
    model: { ...(model !== undefined && { model }), ...(reasoningEffort !== undefined && { defaultReasoningEffort: reasoningEffort }) },
    validation: {},
    job: {},
    onlineEvaluation: {},
  };
}

function refuseSchedule(): object {
  return { error: "Scheduling is not supported by skillhost. A program can send the message at the right time with session.send." };
}

/** Absent settings are the defaults. Others would be ignored, so they are refused. */
function updateSubAgents({ params }: Call): object {
  const settings = params.optionalRecord("subagents") ?? {};
  const given = Object.keys(settings).filter((key) => settings[key] !== undefined && settings[key] !== null);
  if (given.length === 0) return {};
  throw refused(params.method, `${given.join(", ")} cannot change. Use excludedBuiltinAgents and customAgents of the session.`);
}
