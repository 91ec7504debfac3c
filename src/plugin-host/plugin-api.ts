import type { Logger } from "../base/logger.ts";
import type { ChatModel } from "../models/model.ts";
import type { SessionHooks } from "../session/hook-kinds.ts";
import type { ToolRunner } from "../skills/tool-runner.ts";
import type { ToolLike } from "../tools/define-tool.ts";
import type { Tool } from "../tools/tool.ts";
import type { ToolSource } from "../tools/tool-source.ts";

/** A custom agent, with the field names of the Copilot SDK. */
export interface PluginAgent {
  readonly name: string;
  readonly displayName?: string | undefined;
  readonly description?: string | undefined;
  readonly prompt?: string | undefined;
  /** Null, absent or `["*"]`: all. */
  readonly tools?: readonly string[] | null | undefined;
  readonly skills?: readonly string[] | undefined;
  readonly mcpServers?: Readonly<Record<string, object>> | undefined;
  readonly model?: string | undefined;
  readonly infer?: boolean | undefined;
}

/** A command that a person gives, such as `/deploy`. */
export interface PluginCommand {
  /** Without a slash. */
  readonly name: string;
  readonly description?: string | undefined;
  handler(invocation: { readonly sessionId: string; readonly arguments: string }): unknown;
}

/** Makes a chat model for a provider of this plugin's name for it. */
export type ModelFactory = (options: { readonly model: string; readonly [option: string]: unknown }) => ChatModel | Promise<ChatModel>;

export interface PluginToolOptions {
  /** Names the state of the code behind the tool: another one makes it another tool. Default: the handler's identity. */
  readonly generation?: string | number;
  /** The skill's file that it was made of, for runners: it is that skill's tool then, and not the plugin's. */
  readonly ofSkill?: { readonly name: string; readonly file: string };
}

/**
 * What a plugin gets of its host, and all of it. What is added counts when `activate` has succeeded, as a whole; after
 * that nothing can be added, so that what a host offers is known when it has started. Tools that come and go are what
 * tool sources are for.
 *
 * Each `add…` throws HostError `PLUGIN_CONTRIBUTION` for what cannot be added, naming it, and `PLUGIN_NOT_ACTIVATING`
 * when `activate` is over.
 */
export interface PluginApi {
  readonly name: string;
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
}
