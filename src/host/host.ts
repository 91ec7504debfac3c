import type { Diagnostic } from "../base/diagnostic.ts";
import type { SkillPermissions } from "../formats/skills/skill-permissions.ts";
import type { McpPeers } from "../plugin-host/mcp-peers.ts";
import type { PluginInfo } from "../plugin-host/plugin-entry.ts";
import type { PluginsChange } from "../plugin-host/plugin-reloads.ts";
import type { ProgressListener } from "../session/calls/tool-call.ts";
import type { ServerInfo } from "../session/mcp/server-connections.ts";
import type { Session } from "../session/session.ts";
import type { SessionOptions } from "../session/session-config.ts";
import type { IsolationTier } from "../skills/isolation/isolation-policy.ts";
import type { SkillPackage, SkillPrompt, SkillsChange } from "../skills/skill.ts";
import type { CallResult } from "../tools/tool.ts";
import type { CallParameters, ToolData, ToolName } from "../tools/tool-signatures.ts";
import type { HeldPush } from "../trust/push-trust.ts";
import type { TrustState } from "../trust/skill-trust.ts";
import type { Explanation, HostTool } from "./explain.ts";
import type { ExportFormat } from "./file-session-store.ts";
import type { SignInOptions } from "./host-servers.ts";
import type { ForkSessionOptions, OpenSession, ResumeOptions, SessionInfo, SessionOpening } from "./host-sessions.ts";
import type { Inspector, InspectorOptions } from "./inspection.ts";
import type { ServerTraffic } from "./session-server-sets.ts";

/** A skill in the list of a host. */
export interface SkillInfo {
  readonly name: string;
  readonly displayName?: string;
  readonly description: string;
  readonly version?: string;
  readonly folder: string;
  /** The npm package that contains it. */
  readonly package?: SkillPackage;
  /**
   * `shadowed`: another skill with its name is used. `refused`: a requirement is not met. `untrusted`: its folder is not trusted,
   * so its code was not run. `failed`: it could not be loaded.
   */
  readonly state: "active" | "disabled" | "shadowed" | "refused" | "untrusted" | "failed";
  /** The rule that decided the state. */
  readonly rule: string;
  /** Whether its files have an error and the last working version keeps running. */
  readonly stale: boolean;
  readonly generation: number;
  readonly promptMode: "eager" | "on-demand";
  readonly prompts: readonly SkillPrompt[];
  /** The names of its tools in its own files. */
  readonly tools: readonly string[];
  /** The permissions that its manifest declares for its tools. Absent: none. */
  readonly permissions?: SkillPermissions;
  /** Where its code runs. Absent: in the process of the host. */
  readonly isolation?: Exclude<IsolationTier, "off">;
  /** The programs, URLs and variables of its JSON tools, one per line, by tool name. */
  readonly uses?: Readonly<Record<string, readonly string[]>>;
  readonly diagnostics: readonly Diagnostic[];
  /** The state of its signature. Absent: signatures are not checked. */
  readonly trust?: TrustState;
  /** Tools that are held back until their definitions are approved. */
  readonly held?: readonly HeldSkillTool[];
}

/** A tool of a skill that is withheld until its changed definition is approved. */
export interface HeldSkillTool {
  readonly name: string;
  /** `changed`: it differs from the version that was seen or approved before. `new`: no version has been approved, which is required. */
  readonly reason: "changed" | "new";
  /** The changes, one per line. */
  readonly diff: readonly string[];
}

/** The events of a host by name, for `host.on`. */
export interface HostEvents {
  /** Emitted after a load with its changes. The host already has the new snapshot. */
  "skills.changed": SkillsChange;
  /** Emitted after changed plugins were loaded, with the outcome. Sessions use the new plugins from their next request on. */
  "plugins.changed": PluginsChange;
  /** Emitted for each new problem, such as one with watching files. */
  diagnostic: Diagnostic;
  /** Emitted once for all changes of a turn of the event loop after which skills, tools or MCP servers may differ. Read and compare them. */
  changed: undefined;
  /** Emitted before anything happens in a session that is created or resumed here. */
  "session.opened": OpenSession;
  /** Emitted when a session of this host has ended. */
  "session.closed": { readonly sessionId: string };
  /** Emitted for each message to and from an MCP server of the host or a session, only while something listens. */
  "server.message": ServerTraffic;
}

/**
 * Options of one call without a session of the caller.
 *
 * @example
 * ```ts
 * const options: HostCallOptions = { allow: ["get_weather"] };
 * ```
 */
export interface HostCallOptions extends Pick<SessionOptions, "context" | "onPermissionRequest" | "workingDirectory"> {
  /** Rules of calls that are allowed, as in `permissions.allow`: often just the tool's name. Others are asked about, or denied. */
  readonly allow?: readonly string[] | undefined;
  /** Cancels the call. */
  readonly signal?: AbortSignal | undefined;
  /** Receives the progress of the call. Default: none. */
  readonly onProgress?: ProgressListener | undefined;
}

export interface ConnectServersOptions {
  readonly signal?: AbortSignal | undefined;
  readonly timeout?: number | undefined;
}

/**
 * Loads skills once for any number of sessions. A saved change is used as soon as it is loaded. When it cannot be loaded, the last
 * working version keeps running.
 */
export interface Host extends AsyncDisposable {
  readonly version: string;
  readonly workingDirectory: string;
  /** All plugins in the order of activation, with their contributions or errors. */
  readonly plugins: readonly PluginInfo[];
  /** What plugins added with `addMcpPeers`: the host's MCP servers over HTTP join these. Undefined: none. */
  readonly mcpPeers: McpPeers | undefined;
  /** All current skills in order of precedence. */
  readonly skills: readonly SkillInfo[];
  /**
   * The tools of skills, plugins and those MCP servers that have answered, with the rule that decided what each name refers to in a
   * session without options. Computed on each access.
   */
  readonly tools: readonly HostTool[];
  /** The sessions that are open here, the oldest first. */
  readonly openSessions: readonly OpenSession[];
  /** All current problems, with their locations. */
  readonly diagnostics: readonly Diagnostic[];
  on<K extends keyof HostEvents>(type: K, listener: (event: HostEvents[K]) => void): Disposable;
  /**
   * Creates a session with access to every skill. Its events are stored in the host's folder for sessions, unless `persist` is
   * false.
   * @throws HostError `SESSION_OPTIONS`, `SESSION_EXISTS` when the id is in use, `SESSION_IN_USE`, `HOST_CLOSED`;
   * `SESSION_STORE` when `persist` is true and the folder cannot be written.
   */
  createSession(options?: SessionOptions, opening?: SessionOpening): Promise<Session>;
  /**
   * Calls one tool, by its name or as `server/tool`, in a session of its own that ends with the call: through hooks, checks and
   * permission like any other. Failures are results. For several calls, create a session.
   * @throws HostError `HOST_CALL` for an option that is unknown or of the wrong type; `PERMISSION_RULE`, `HOST_CLOSED`; the signal's
   * reason when it fires before the call begins.
   */
  callTool<Name extends ToolName>(name: Name, ...rest: CallParameters<Name, HostCallOptions>): Promise<CallResult<ToolData<Name>>>;
  /**
   * Resumes a session with its history and its former options, except those in `changes`. Functions and tools of the program are
   * not stored, so pass them again; nor are options that may contain a secret, such as `provider`, except by the host that had the
   * session. A session that is open in this host is changed and returned. One whose process has ended is opened again, and its
   * unfinished work is settled as failed.
   * @throws HostError `SESSION_NOT_FOUND`, `SESSION_IN_USE` when another process or host has it open, `SESSION_OPTIONS`,
   * `SESSION_LOG_DAMAGED` when its log does not contain valid options, `SESSION_LOG_NEWER`, `HOST_CLOSED`.
   */
  resumeSession(sessionId: string, changes?: ResumeOptions, opening?: SessionOpening): Promise<Session>;
  /**
   * Stores a new session with the history of another, whole or up to an event, and with copies of its workspace files. The other
   * session continues unchanged, also while it is running: the fork has what was recorded at this moment. Returns the new id, for
   * `resumeSession`.
   * @throws HostError `SESSION_NOT_FOUND`, `EVENT_UNKNOWN`, `SESSION_EXISTS`, `SESSION_STORE` when this host stores no sessions,
   * `SESSION_LOG_DAMAGED`, `SESSION_LOG_NEWER`, `SESSION_OPTIONS`, `HOST_CLOSED`.
   */
  forkSession(sessionId: string, options?: ForkSessionOptions): Promise<string>;
  /** The sessions that can be resumed or are open here, the most recently changed first. */
  listSessions(): Promise<readonly SessionInfo[]>;
  /** Ends a session if it is open here, and deletes all of its stored data. @throws HostError `SESSION_NOT_FOUND`, `SESSION_IN_USE`. */
  deleteSession(sessionId: string): Promise<void>;
  /** Exports a session's events as JSON lines or Markdown. Default: `jsonl`. @throws HostError `SESSION_NOT_FOUND`. */
  exportSession(sessionId: string, options?: { readonly format?: ExportFormat }): Promise<string>;
  /** Enables a skill in every session that `disableSkill` or `disabledSkills` has disabled. */
  enableSkill(name: string): void;
  /** Disables a skill in every session. Running calls continue. */
  disableSkill(name: string): void;
  /** Checks all files of plugins and skills, and loads the changed ones. A host that watches files does this itself. */
  reload(): Promise<void>;
  /**
   * The current MCP servers of the host, its skills and its plugins, and those that open sessions configured. Does not start any.
   */
  listServers(): readonly ServerInfo[];
  /**
   * Starts the servers of the host, its skills and its plugins, waits until each has answered or failed, and lists them.
   * Rejects when the signal fires, with its reason; past `timeout`, milliseconds, it lists what there is.
   */
  connectServers(options?: ConnectServersOptions): Promise<readonly ServerInfo[]>;
  /**
   * Serves the inspector of this host on this machine: a page that shows skills, tools, sessions, calls and MCP servers while they change, and the
   * feed that it reads, which docs/inspector.md describes. Open `url` in a browser; a program that has it can call tools. Dispose of the
   * inspector before the host.
   * @throws HostError `INSPECTOR_OPTIONS`; `HTTP_LISTEN` when the port is in use; `HOST_CLOSED`.
   */
  inspect(options?: InspectorOptions): Promise<Inspector>;
  /**
   * Starts an MCP server of the host, its skills or its plugins again, for all sessions. Settles after the attempt, whose outcome is in
   * `listServers`. @throws HostError `MCP_SERVER_UNKNOWN`.
   */
  restartServer(name: string): Promise<void>;
  /**
   * Approves the held-back definitions of an MCP server, which differ from those that were seen or approved before: all of them,
   * or one tool by the server's own name. Returns the number of approved definitions. Review `held` of `listServers` first.
   * @throws HostError `MCP_SERVER_UNKNOWN`.
   */
  approveServer(name: string, tool?: string): Promise<number>;
  /**
   * Approves the held-back definitions of a skill, which differ from those that were seen or approved before: all of them, or one
   * tool. Returns the number of approved definitions. Review `held` of `host.skills` first.
   * @throws HostError `SKILL_UNKNOWN`.
   */
  approveSkill(name: string, tool?: string): Promise<number>;
  /** Tools that programs or clients added to a session of this user, here or elsewhere, and that wait for approval. */
  heldTools(): Promise<readonly HeldPush[]>;
  /** Approves the tools of `heldTools`, all or one, for every session from now on. Returns the number of approved tools. */
  approveTools(name?: string): Promise<number>;
  /**
   * Lets the user sign in to a remote MCP server of the host, its skills or its plugins if it requires that, connects to it, and
   * returns its state. The credentials are stored for all programs of this user.
   * @throws HostError `MCP_SERVER_UNKNOWN`; `MCP_NO_SIGN_IN` when it does not use OAuth.
   */
  signInToServer(name: string, options: SignInOptions): Promise<ServerInfo>;
  /**
   * Revokes the credentials for a server if the authorization server supports that, deletes them, and ends the connection.
   * @throws HostError as `signInToServer`.
   */
  signOutOfServer(name: string, options?: { readonly signal?: AbortSignal | undefined }): Promise<void>;
  /** Explains what the name of a skill or tool refers to, what else has this name, and which rules decided. */
  explain(name: string): Explanation;
  /** Settles when nothing is being loaded and all files are watched. */
  idle(): Promise<void>;
  /** Ends every session, waits for running calls, and disposes of what skills opened. */
  close(): Promise<void>;
}
