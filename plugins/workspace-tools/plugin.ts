import { resolve } from "node:path";
import { definePlugin, type Plugin, type PluginApi, type ToolContext } from "skillhost";
import { configSchema, type WorkspaceConfig } from "./config.ts";
import { createCopilotTools } from "./copilot/copilot-tools.ts";
import { createEditorTools } from "./editor/editor-tools.ts";
import { CommandConfinement } from "./operations/command-confinement.ts";
import type { WebMachine } from "./operations/fetch-page.ts";
import type { Machine } from "./operations/machine.ts";
import type { Roots } from "./operations/places.ts";
import { findBash, shellEnvironment } from "./operations/shell-environment.ts";
import { Shells } from "./operations/shells.ts";
import { FileWriter } from "./operations/write-files.ts";

type Api = PluginApi<WorkspaceConfig>;

/** Tools for files, shell commands and web pages, with the names of the Copilot runtime or of editors. */
export const workspaceTools: Plugin = definePlugin<WorkspaceConfig>({
  name: "workspace-tools",
  version: "1.0.0",
  configSchema,
  activate(api) {
    const { presentation, shell, web } = api.config;
    const bash = shell ? findBash() : undefined;
    const machine = machineOf(api);
    const shells = bash === undefined ? undefined : openShells(api, machine, bash);
    if (shell && bash === undefined) api.log.info("There is no bash on this machine, so there are no tools for shell commands.");
    const rootsOf = (context: ToolContext): Roots => rootsFor(api, context);
    const confinement = new CommandConfinement(machine, api.config.confinement === "auto");
    const parts = { machine, confinement, writer: new FileWriter(api), shells, rootsOf };
    const copilot = presentation === "editor" ? [] : createCopilotTools(parts);
    const editor = presentation === "copilot" ? [] : createEditorTools({ ...parts, bash, runsPrograms: shell });
    api.addTools([...copilot, ...editor].filter(({ name }) => web || !webTools.has(name)));
  },
});

const webTools: ReadonlySet<string> = new Set(["web_fetch", "fetch_web_page"]);

function openShells(api: Api, machine: Machine, bash: string): Shells {
  const shells = new Shells({ machine, bash });
  api.onDispose(() => shells.close());
  api.onSessionClosed((sessionId) => shells.endSession(sessionId));
  return shells;
}

function machineOf(api: Api): Machine & WebMachine {
  return {
    startProcess: (spec) => api.startProcess({ ...spec, environment: shellEnvironment(process.env, api.config.environment) }),
    fetch: api.fetch,
    writeFile: api.writeFile,
    log: api.log,
    privateHosts: api.config.privateHosts,
    confinement: () => api.confinement(),
  };
}

function rootsFor(api: Api, { invocation: { sessionId, workingDirectory } }: ToolContext): Roots {
  const session = api.session(sessionId);
  const configured = api.config.roots.map((root) => resolve(api.workingDirectory, root));
  return {
    workingDirectory,
    writable: [workingDirectory, ...(session?.additionalDirectories ?? []), ...configured],
    readable: session?.readableDirectories ?? [],
    isKeptBack: session?.isKeptBack,
    isAddressKeptBack: session?.isAddressKeptBack,
    limitsOf: session?.limitsOf,
  };
}
