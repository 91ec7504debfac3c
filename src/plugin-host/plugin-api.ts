import type { Diagnostic } from "../base/diagnostic.ts";
import type { Logger } from "../base/logger.ts";
import { writeFileAtomic } from "../io/atomic-write.ts";
import { boundedFetch, type FetchOutcome, type FetchRequest } from "../io/net/bounded-fetch.ts";
import { type ManagedProcess, type ProcessSpec, type Spawned, spawnProcess } from "../io/process/child-process.ts";
import { type Confinement, findConfinement } from "../io/process/confine-process.ts";
import type { Scope } from "../io/scope.ts";
import type { CustomAgentOptions } from "../session/agents/agent-profiles.ts";
import type { SessionHooks } from "../session/hooks/hook-kinds.ts";
import type { SessionCommand } from "../session/turns/slash-commands.ts";
import type { ModelFactory } from "../session/turns/turn-options.ts";
import type { ToolRunner } from "../skills/load/tool-runner.ts";
import type { ToolLike } from "../tools/define/define-tool.ts";
import type { Tool } from "../tools/tool.ts";
import type { ToolSource } from "../tools/tool-source.ts";
import type { PluginSession } from "./plugin-sessions.ts";

/** A custom agent, as sessions bring them. */
export type PluginAgent = CustomAgentOptions;

/** A command that a person gives, such as `/deploy`. */
export type PluginCommand = SessionCommand;

export interface PluginToolOptions {
  /** Names the state of the code behind the tool: another one makes it another tool. Default: the handler's identity. */
  readonly generation?: string | number;
  /** The skill's file that it was made of, for runners: it is that skill's tool then, and not the plugin's. */
  readonly ofSkill?: { readonly name: string; readonly file: string };
  /** Receives what is wrong with the definition and does not keep it from being a tool, such as keys that are not known. */
  readonly onDiagnostic?: ((diagnostic: Diagnostic) => void) | undefined;
}

/**
 * What a plugin gets of its host, and all of it. What is added counts when `activate` has succeeded, as a whole; after
 * that nothing can be added, so that what a host offers is known when it has started. Tools that come and go are what
 * tool sources are for.
 *
 * Each `add…` throws HostError `PLUGIN_CONTRIBUTION` for what cannot be added, naming it, and `PLUGIN_NOT_ACTIVATING`
 * when `activate` is over.
 */
export interface PluginApi<Config = Readonly<Record<string, unknown>>> {
  readonly name: string;
  /** What the host was configured with for this plugin, checked by its `configSchema`, with defaults. Without a schema, as given. */
  readonly config: Config;
  /** Where the host works. */
  readonly workingDirectory: string;
  readonly log: Logger;
  /** Fires when the plugin is disposed of: when its host closes, or its activation has failed. */
  readonly signal: AbortSignal;
  /** Runs `end` then; last registered, first run. */
  onDispose(end: () => void | Promise<void>): void;
  /** One that cannot be a tool becomes a diagnostic and keeps no other back. */
  addTools(tools: ToolLike | readonly ToolLike[]): void;
  /** Tools that come and go. The host disposes of the source with the plugin. */
  addToolSource(source: ToolSource): void;
  /** Makes the tools of a source or runner. @throws HostError `TOOL_INVALID`. */
  createTool(definition: ToolLike, options?: PluginToolOptions): Tool;
  /** Has skills define tools in files of other languages. */
  addToolRunner(runner: ToolRunner): void;
  /** A skill's folder or one of skill folders; absolute. The host's own take precedence over it. */
  addSkillDirectory(directory: string): void;
  addAgent(agent: PluginAgent): void;
  /** They run in every session, before the session's own. */
  addHooks(hooks: SessionHooks): void;
  addCommand(command: PluginCommand): void;
  addModelProvider(name: string, create: ModelFactory): void;
  addMcpServer(name: string, config: object): void;
  /** A session that is open; undefined for any other. */
  session(sessionId: string): PluginSession | undefined;
  /** Runs when a session is closed, which is not its end: it may be resumed. What it throws is logged. */
  onSessionClosed(listener: (sessionId: string) => void | Promise<void>): void;
  /**
   * Starts a program in a process group of its own, never through a shell. The group ends with the plugin, at the latest.
   * Trouble is a value; it never rejects.
   */
  startProcess(spec: ProcessSpec): Promise<Spawned>;
  /** Whether this machine can keep programs to `limits`, which `startProcess` takes: by what, or why not. */
  confinement(): Promise<Confinement>;
  /** One HTTP exchange with limits. Trouble is a value; it never rejects. */
  fetch(request: FetchRequest): Promise<FetchOutcome>;
  /**
   * Replaces or makes a file as a whole: whoever reads it sees the old or the new one. An existing one keeps its mode.
   * Rejects with the system's error, and then everything is as before.
   */
  writeFile(path: string, data: string | Uint8Array): Promise<void>;
}

/** What a plugin may have of the machine. Programs that it starts end with it. */
export function createSystemApi(scope: Scope): Pick<PluginApi, "startProcess" | "confinement" | "fetch" | "writeFile"> {
  const running = new Set<ManagedProcess>();
  // Registered before anything of the plugin, so that it runs last: the plugin's own ends may still want its programs.
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
