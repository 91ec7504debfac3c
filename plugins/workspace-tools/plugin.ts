import { definePlugin, type Plugin, type PluginApi, type ToolContext } from "skillhost";
import { createCopilotTools } from "./copilot/copilot-tools.ts";
import type { Roots } from "./operations/places.ts";
import { findBash } from "./operations/shell-environment.ts";
import { Shells } from "./operations/shells.ts";
import { FileWriter } from "./operations/write-files.ts";

/** Files, shell commands and web pages: the tools of a workspace, as the Copilot runtime names them. */
export const workspaceTools: Plugin = definePlugin({
  name: "workspace-tools",
  version: "1.0.0",
  activate(api) {
    const bash = findBash();
    const shells = bash === undefined ? undefined : new Shells({ machine: api, bash });
    if (shells === undefined) api.log.info("There is no bash on this machine, so there are no tools for shell commands.");
    else {
      api.onDispose(() => shells.close());
      api.onSessionClosed((sessionId) => shells.endSession(sessionId));
    }
    const rootsOf = (context: ToolContext): Roots => rootsFor(api, context);
    api.addTools(createCopilotTools({ machine: api, writer: new FileWriter(api), shells, rootsOf }));
  },
});

function rootsFor(api: PluginApi, { invocation: { sessionId, workingDirectory } }: ToolContext): Roots {
  const session = api.session(sessionId);
  return {
    workingDirectory,
    writable: [workingDirectory, ...(session?.additionalDirectories ?? [])],
    readable: session?.readableDirectories ?? [],
  };
}
