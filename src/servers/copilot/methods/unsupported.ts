/** The methods that skillhost refuses, by the reason in the error message. */
export const unsupported: Readonly<Record<string, readonly string[]>> = {
  "skillhost does not sign in to accounts; models use a key or token from the environment or the session.": [
    "account.login",
    "session.gitHubAuth.login",
    "session.gitHubAuth.switchToAuth",
  ],
  "agents are started by the model or with session.tasks.startAgent, and keep their own state.": [
    "session.tasks.register",
    "session.tasks.update",
  ],
  "extensions attach as clients do, by session.resume.": [
    "registerExtensionLaunchProvider",
    "session.extensions.sendAttachmentsToMessage",
    "sessions.configureSessionExtensions",
    "sessions.registerExtensionToolsOnSession",
  ],
  "machine settings come from skillhost.json, which is read at start.": ["user.settings.set"],
  "a session keeps the plugins that it started with; create another session to use the current ones.": ["session.plugins.reload"],
  "canvases are not supported.": [
    "session.canvas.action.invoke",
    "session.canvas.close",
    "session.canvas.open",
    "session.canvas.provider.register",
    "session.canvas.provider.unregister",
  ],
  "telemetry is not collected.": ["session.debug.collectLogs"],
  "factories are not supported.": [
    "session.factory.agent",
    "session.factory.cancel",
    "session.factory.getRun",
    "session.factory.getRunDetail",
    "session.factory.getRunProgress",
    "session.factory.journal.get",
    "session.factory.journal.put",
    "session.factory.log",
    "session.factory.pause",
    "session.factory.pauseAtCheckpoint",
    "session.factory.resume",
    "session.factory.resumeFromTool",
    "session.factory.run",
    "session.factory.runFromTool",
  ],
  "extensions of the user's folder are always loaded; use session.extensions.disable for one session, or remove the folder.": [
    "extensions.disable",
    "extensions.enable",
  ],
  "an MCP client object cannot be sent over a connection; configure the server in mcpServers instead.": [
    "session.mcp.registerExternalClient",
    "session.mcp.unregisterExternalClient",
  ],
  "a server's need for authorization is in session.mcp.list; answer with session.mcp.oauth.handlePendingRequest or sign in with session.mcp.oauth.login.":
    ["session.mcp.oauth.probe"],
  "the runtime itself decides when a session is idle.": ["session.queue.deferSessionIdle"],
  "sessions run only on this machine.": ["sessions.connect"],
  "the runtime does not sandbox the file system for tools.": ["session.sandbox.disableForSession", "session.sandbox.getEnforcementStatus"],
  "commands are run by tools of the model, which ask for permission, and with session.shell.executeUserRequested.": [
    "session.shell.exec",
    "session.shell.kill",
  ],
  "skillhost has no equivalent.": [
    "hooks.discover",
    "session.autopilotObjective.getState",
    "session.model.setAllowedModels",
    "session.model.switchAutoTier",
    "session.sendMessages",
    "session.tools.taskCompleteEventData",
  ],
};
