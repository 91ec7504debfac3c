import type { Diagnostic } from "../base/diagnostic.ts";
import type { Logger } from "../base/logger.ts";
import { writeFileAtomic } from "../io/atomic-write.ts";
import { boundedFetch, type FetchOutcome, type FetchRequest } from "../io/net/bounded-fetch.ts";
import { type ManagedProcess, type ProcessSpec, type Spawned, spawnProcess } from "../io/process/child-process.ts";
import { type Confinement, findConfinement } from "../io/process/confine-process.ts";
import type { Scope } from "../io/scope.ts";
import type { CustomAgentOptions } from "../session/agents/agent-profiles.ts";
import type { SessionHooks } from "../session/hooks/hook-kinds.ts";
import type { SessionStore } from "../session/session-store.ts";
import type { SessionCommand } from "../session/turns/slash-commands.ts";
import type { ModelFactory } from "../session/turns/turn-options.ts";
import type { ToolRunner } from "../skills/load/tool-runner.ts";
import type { ToolLike } from "../tools/define/define-tool.ts";
import type { Tool } from "../tools/tool.ts";
import type { ToolSource } from "../tools/tool-source.ts";
import type { McpPeers } from "./mcp-peers.ts";
import type { PluginSession } from "./plugin-sessions.ts";
import type { PluginSkill } from "./plugin-skills.ts";

/** A custom agent, as in the options of a session. */
export type PluginAgent = CustomAgentOptions;

/** A slash command, such as `/deploy`. */
export type PluginCommand = SessionCommand;

/**
 * Options for the tools that a plugin adds.
 *
 * @example
 * ```ts
 * const options: PluginToolOptions = { generation: 2 };
 * ```
 */
export interface PluginToolOptions {
  /** Identifies the version of the code behind the tool: another value makes it a new revision. Default: the handler's identity. */
  readonly generation?: string | number;
  /** For tool runners: the skill and file that define the tool. It is a tool of that skill then, not of the plugin. */
  readonly ofSkill?: { readonly name: string; readonly file: string };
  /** Receives problems of the definition that do not prevent its use, such as unknown keys. */
  readonly onDiagnostic?: ((diagnostic: Diagnostic) => void) | undefined;
}

/**
 * Everything that a host gives to a plugin. Contributions take effect together when `activate` has succeeded; later ones are
 * refused, so that they are known once the host has started. Use a tool source for tools that change later.
 *
 * Each `add…` throws HostError `PLUGIN_CONTRIBUTION` for an invalid contribution, naming it, and `PLUGIN_NOT_ACTIVATING` after
 * `activate` has ended.
 */
export interface PluginApi<Config = Readonly<Record<string, unknown>>> {
  readonly name: string;
  /** The plugin's configuration, checked by its `configSchema` and completed with defaults. Without a schema, as given. */
  readonly config: Config;
  /** The working directory of the host. */
  readonly workingDirectory: string;
  readonly log: Logger;
  /** Fires when the plugin is disposed of: when its host closes, or its activation has failed. */
  readonly signal: AbortSignal;
  /** Runs `end` when the plugin is disposed of, in the reverse order of registration. */
  onDispose(end: () => void | Promise<void>): void;
  /** An invalid tool becomes a diagnostic; the others are added. */
  addTools(tools: ToolLike | readonly ToolLike[]): void;
  /** Adds tools that can change at any time. The host disposes of the source with the plugin. */
  addToolSource(source: ToolSource): void;
  /** Creates a tool for a source or runner. @throws HostError `TOOL_INVALID`. */
  createTool(definition: ToolLike, options?: PluginToolOptions): Tool;
  /** Lets skills define tools in files of other languages. */
  addToolRunner(runner: ToolRunner): void;
  /** Adds a skill folder, or a folder of them, by absolute path. The host's own skills take precedence. */
  addSkillDirectory(directory: string): void;
  addAgent(agent: PluginAgent): void;
  /** Adds hooks that run in every session, before the session's own. */
  addHooks(hooks: SessionHooks): void;
  addCommand(command: PluginCommand): void;
  addModelProvider(name: string, create: ModelFactory): void;
  addMcpServer(name: string, config: object): void;
  /** Keeps the host's sessions. The first store of all plugins is used, for as long as the host lives; `createHost({ sessionStore })` takes precedence. */
  addSessionStore(store: SessionStore): void;
  /** Has the MCP servers of this host answer for those of others, and be answered for. The first peers of all plugins are used. */
  addMcpPeers(peers: McpPeers): void;
  /** Returns an open session. Undefined: no open session has this id. */
  session(sessionId: string): PluginSession | undefined;
  /** Calls `listener` when a session is closed; it may be resumed later. Exceptions are logged. */
  onSessionClosed(listener: (sessionId: string) => void | Promise<void>): void;
  /** The skill in a folder, as it is now. Undefined: there is none, or skills were not loaded yet. */
  skillIn(folder: string): PluginSkill | undefined;
  /**
   * Loads the files of skills that changed, for a plugin that writes skills into a folder that it added. Settles when they are loaded;
   * `skillIn` has the outcome then. Waits for the first load of the host. Rejects with the reason of `signal` when the plugin is disposed of,
   * and with HostError `PLUGIN_ACTIVATING` before `activate` has ended.
   */
  reloadSkills(): Promise<void>;
  /**
   * Starts a program in its own process group, never through a shell. The group ends with the plugin at the latest. Errors are
   * values; it never rejects.
   */
  startProcess(spec: ProcessSpec): Promise<Spawned>;
  /** Whether and how this machine can enforce the `limits` of `startProcess`. */
  confinement(): Promise<Confinement>;
  /** Sends one HTTP request with limits. Errors are values; it never rejects. */
  fetch(request: FetchRequest): Promise<FetchOutcome>;
  /**
   * Creates or replaces a file atomically: readers see the old or the new content. An existing file keeps its mode. Rejects with
   * the system's error, and nothing has changed then.
   */
  writeFile(path: string, data: string | Uint8Array): Promise<void>;
}

/** The part of the API that accesses the machine. Programs that the plugin starts end with it. */
export function createSystemApi(scope: Scope): Pick<PluginApi, "startProcess" | "confinement" | "fetch" | "writeFile"> {
  const running = new Set<ManagedProcess>();
  // Registered first, so that it runs last: the plugin's own disposers may still need its programs.
  scope.onDispose(async () => {
    await Promise.all(Array.from(running, (process) => process.stop()));
  });
  return {
    async startProcess(spec) {
      const started = await spawnProcess(spec);
      if (started.kind !== "spawned") return started;
      const { process } = started;
      running.add(process);
      void process.ended.then(() => running.delete(process));
      if (!scope.signal.aborted) return started;
      await process.stop();
      return { kind: "failed-to-start", message: "The plugin that starts it is being disposed of." };
    },
    confinement: findConfinement,
    fetch: boundedFetch,
    writeFile: (path, data) => writeFileAtomic(path, data),
  };
}
