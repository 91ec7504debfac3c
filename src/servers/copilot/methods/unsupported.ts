/** The methods that skillhost refuses, by the reason in the error message. */
export const unsupported: Readonly<Record<string, readonly string[]>> = {
  "skillhost does not sign in to accounts; models use a key or token from the environment or the session.": [
    "account.login",
    "session.gitHubAuth.login",
    "session.gitHubAuth.switchToAuth",
  ],
  "extensions attach as clients do, by session.resume.": ["registerExtensionLaunchProvider", "sessions.registerExtensionToolsOnSession"],
  "canvases are not supported.": [
    "session.canvas.action.invoke",
    "session.canvas.close",
    "session.canvas.open",
    "session.canvas.provider.register",
  ],
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
  "an MCP client object cannot be sent over a connection; configure the server in mcpServers instead.": [
    "session.mcp.registerExternalClient",
  ],
  "sessions run only on this machine.": ["sessions.connect"],
};
