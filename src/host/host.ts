import type { Diagnostic } from "../base/diagnostic.ts";
import type { SkillPermissions } from "../formats/skills/skill-permissions.ts";
import type { PluginInfo } from "../plugin-host/plugin-entry.ts";
import type { PluginsChange } from "../plugin-host/plugin-reloads.ts";
import type { ServerInfo } from "../session/mcp/server-connections.ts";
import type { Session } from "../session/session.ts";
import type { SessionOptions } from "../session/session-config.ts";
import type { SkillPackage, SkillPrompt, SkillsChange } from "../skills/skill.ts";
import type { HeldPush } from "../trust/push-trust.ts";
import type { TrustState } from "../trust/skill-trust.ts";
import type { Explanation } from "./explain.ts";
import type { SignInOptions } from "./host-servers.ts";
import type { ResumeOptions, SessionInfo, SessionOpening } from "./host-sessions.ts";
import type { ExportFormat } from "./session-store.ts";

/** A skill as a host lists it. */
export interface SkillInfo {
  readonly name: string;
  readonly displayName?: string;
  readonly description: string;
  readonly version?: string;
  readonly folder: string;
  /** The npm package that it came with. */
  readonly package?: SkillPackage;
  /**
   * `shadowed`: another skill has its name. `refused`: what it requires is not there. `untrusted`: its folder is not trusted, so
   * nothing of it was run. `failed`: nothing of it could be loaded.
   */
  readonly state: "active" | "disabled" | "shadowed" | "refused" | "untrusted" | "failed";
  /** The rule that decided the state. */
  readonly rule: string;
  /** True: the files hold a fault, and the last generation that worked serves. */
  readonly stale: boolean;
  readonly generation: number;
  readonly promptMode: "eager" | "on-demand";
  readonly prompts: readonly SkillPrompt[];
  /** Names of its tools, as its author named them. */
  readonly tools: readonly string[];
  /** What its manifest declares that its tools reach; absent: nothing. */
  readonly permissions?: SkillPermissions;
  /** The programs, addresses and variables of its tools that are written in JSON, a fact a line, by the names of the tools. */
  readonly uses?: Readonly<Record<string, readonly string[]>>;
  readonly diagnostics: readonly Diagnostic[];
  /** How its signature stands; absent: nobody asked for it to be looked at. */
  readonly trust?: TrustState;
  /** Tools that are held back until somebody approves how they are defined. */
  readonly held?: readonly HeldSkillTool[];
}

export interface HeldSkillTool {
  readonly name: string;
  /** `changed`: it is not what was seen or approved before. `new`: nobody approved any version of it, and somebody must. */
  readonly reason: "changed" | "new";
  /** What changed, a line each. */
  readonly diff: readonly string[];
}

export interface HostEvents {
  /** After a load: what it changed. The host's snapshot is already the new one. */
  "skills.changed": SkillsChange;
  /** After the files of a plugin changed: what came of it. Sessions go by it from their next request on. */
  "plugins.changed": PluginsChange;
  /** Something is wrong that no skill's own diagnostics tell, such as trouble with watching. */
  diagnostic: Diagnostic;
}

export interface ConnectServersOptions {
  readonly signal?: AbortSignal | undefined;
  readonly timeout?: number | undefined;
}

/**
 * Loads skills once and serves them to any number of sessions. What is saved is served as soon as it loads; what does
 * not load leaves the last good generation serving.
 */
export interface Host extends AsyncDisposable {
  readonly version: string;
  readonly workingDirectory: string;
  /** All plugins in the order they are activated in, with what each added or why it failed. */
  readonly plugins: readonly PluginInfo[];
  /** All skills in order of precedence, as they are now. */
  readonly skills: readonly SkillInfo[];
  /** Everything that is wrong now, with its place. */
  readonly diagnostics: readonly Diagnostic[];
  on<K extends keyof HostEvents>(type: K, listener: (event: HostEvents[K]) => void): Disposable;
  /**
   * Settles with a session that sees every skill. What happens in it is kept in the host's folder for sessions, unless
   * `persist` is false.
   * @throws HostError `SESSION_OPTIONS`, `SESSION_EXISTS` when the id is taken, `SESSION_IN_USE`, `HOST_CLOSED`;
   * `SESSION_STORE` when `persist` is true and the folder cannot be written.
   */
  createSession(options?: SessionOptions, opening?: SessionOpening): Promise<Session>;
  /**
   * Goes on with a session: with its history, and the options it had, as far as `changes` does not name them. Functions
   * and tools of the program are not kept, so name them; nor is what may hold a secret, such as `provider`, except in the
   * host that had the session. A session that is open in this host is changed and given
   * as it is; one whose process ended, however it ended, is opened anew, and what it left unfinished is settled as failed.
   * @throws HostError `SESSION_NOT_FOUND`, `SESSION_IN_USE` when another process or host has it open, `SESSION_OPTIONS`,
   * `SESSION_LOG_DAMAGED` when its log does not say how it was made, `SESSION_LOG_NEWER`, `HOST_CLOSED`.
   */
  resumeSession(sessionId: string, changes?: ResumeOptions, opening?: SessionOpening): Promise<Session>;
  /** The sessions that can be resumed or are open here, the last changed first. */
  listSessions(): Promise<readonly SessionInfo[]>;
  /** Ends a session if it is open here, and deletes all that is kept of it. @throws HostError `SESSION_NOT_FOUND`, `SESSION_IN_USE`. */
  deleteSession(sessionId: string): Promise<void>;
  /** A session's events as JSON lines, or as a page to read. Default: `jsonl`. @throws HostError `SESSION_NOT_FOUND`. */
  exportSession(sessionId: string, options?: { readonly format?: ExportFormat }): Promise<string>;
  /** Lets a skill that `disableSkill` or `disabledSkills` switched off contribute again, in every session. */
  enableSkill(name: string): void;
  /** Takes what a skill contributes out of every session. Calls that run go on. */
  disableSkill(name: string): void;
  /** Looks at all files of plugins and skills again and loads what changed; a host that watches does so by itself. */
  reload(): Promise<void>;
  /**
   * The MCP servers of the host, its skills and its plugins as they stand now, and those that open sessions brought. None
   * is started by that.
   */
  listServers(): readonly ServerInfo[];
  /**
   * Starts the servers of the host, its skills and its plugins, waits until each has answered or failed, and lists them.
   * Rejects when the signal fires, with its reason; past `timeout`, milliseconds, it lists what there is.
   */
  connectServers(options?: ConnectServersOptions): Promise<readonly ServerInfo[]>;
  /**
   * Approves what is held back of an MCP server because it is not what was seen or approved before: all of it, or one
   * tool by the server's own name. Gives how many definitions that were. Look at `held` of `listServers` first.
   * @throws HostError `MCP_SERVER_UNKNOWN`.
   */
  approveServer(name: string, tool?: string): Promise<number>;
  /**
   * Approves what is held back of a skill because it is not defined as it was seen or approved before: all of it, or one
   * tool. Gives how many definitions that were. Look at `held` of `host.skills` first.
   * @throws HostError `SKILL_UNKNOWN`.
   */
  approveSkill(name: string, tool?: string): Promise<number>;
  /** Tools that were pushed into a session of this user's, here or elsewhere, and wait for somebody to approve them. */
  heldTools(): Promise<readonly HeldPush[]>;
  /** Approves what `heldTools` lists, all of it or one tool, from now on and in every session. Gives how many tools that were. */
  approveTools(name?: string): Promise<number>;
  /**
   * Has somebody sign in to a remote MCP server of the host, its skills or its plugins, where it wants that, and connects to
   * it; how it stands then. What was signed in with is stored, and serves other programs of this user, too.
   * @throws HostError `MCP_SERVER_UNKNOWN`; `MCP_NO_SIGN_IN` when it is not signed in to by OAuth.
   */
  signInToServer(name: string, options: SignInOptions): Promise<ServerInfo>;
  /**
   * Takes back what was signed in with, where the authorization server has a way to, forgets it, and ends the connection.
   * @throws HostError as `signInToServer`.
   */
  signOutOfServer(name: string, options?: { readonly signal?: AbortSignal | undefined }): Promise<void>;
  /** Why a name of a skill or tool means what it means: who has it, who lost it, by which rule. */
  explain(name: string): Explanation;
  /** Settles when nothing is being loaded and everything is watched. */
  idle(): Promise<void>;
  /** Ends every session, waits for the calls that run, and disposes of what skills opened. */
  close(): Promise<void>;
}
