import { randomUUID } from "node:crypto";
import { isBuiltin } from "node:module";
import { homedir, tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { isRecord } from "../base/json.ts";
import { createLogger, type Logger, type LogLevel, logLevels } from "../base/logger.ts";
import {
  type FieldReaders,
  fieldsReader,
  mustBe,
  readFields,
  readFlag,
  readOneOf,
  readPositive,
  readRecord,
  readText,
  readTexts,
} from "../base/read-fields.ts";
import type { HostModules } from "../io/module-loader/host-modules.ts";
import type { WatchBackend } from "../io/watch/watch-tree.ts";
import { isPlugin, type Plugin } from "../plugin-host/define-plugin.ts";
import type { PluginUse } from "../plugin-host/prepare-plugin.ts";
import { readServerMap } from "../session/agents/agent-profiles.ts";
import type { ServerPolicy } from "../session/mcp/server-connections.ts";
import { readServers, type ServersRead } from "../session/mcp/session-server-options.ts";
import type { SessionStore } from "../session/session-store.ts";
import { defaultIsolation, type Isolation, readIsolation } from "../skills/isolation/isolation-policy.ts";
import type { ConflictPolicy, ConflictRules } from "../skills/resolve-overrides.ts";
import { findProject, packagePlaces, packagesRoot } from "../skills/store/package-skills.ts";
import { fixedPart, resolveRoot } from "../skills/store/skill-roots.ts";
import type { HostServices } from "../tools/host-services.ts";
import { type FolderChoice, FolderTrust, readTrustVariable } from "../trust/folder-trust.ts";
import { readPackagePatterns, readRegistries } from "../trust/package-rules.ts";
import type { PinPolicy } from "../trust/pins/pins.ts";
import { trustFileIn } from "../trust/trust-file.ts";
import { readDefinitions, readProvenance, readPolicy as readTrustPolicy } from "../trust/trust-policy.ts";
import type { TrustOptions } from "../trust/trust-settings.ts";

/**
 * Options of `createHost`. All are optional: `createHost()` loads `./skills` and watches it.
 *
 * @example
 * ```ts
 * const options: HostOptions = { skillDirectories: ["./skills"], sessionsDirectory: "./sessions", watch: false };
 * ```
 */
export interface HostOptions {
  /** Skill folders, folders of skill folders, or patterns for them; `~` is the home folder. Later ones take precedence. Default: `./skills`. */
  readonly skillDirectories?: readonly string[] | undefined;
  /**
   * Skills of npm packages that `skillhost add` installed and `skillhost.packages` of a package.json names. `true`: those of the
   * project that contains the working directory, and of the user (`skillhost add --user`). A list: those of the projects in these
   * folders. The project's take precedence over the user's, and `skillDirectories` over both. Default: true, unless
   * `skillDirectories` are named.
   */
  readonly packageSkills?: boolean | readonly string[] | undefined;
  /** The names of disabled skills. */
  readonly disabledSkills?: readonly string[] | undefined;
  /** What happens when two skills, or tools of two skills, have the same name. Default: `override`, the later one wins. */
  readonly conflicts?: ConflictRules | undefined;
  /** Whether files are watched, so that saved changes are loaded. Default: true. */
  readonly watch?: boolean | undefined;
  /** How files are watched. `auto` chooses by the operating system. */
  readonly watchBackend?: WatchBackend | "auto" | undefined;
  /** The base of relative paths, and the default working directory of sessions. Default: that of the process. */
  readonly workingDirectory?: string | undefined;
  /** Milliseconds that a module may wait during its evaluation; its own work does not count. Default: 10,000. */
  readonly importTimeout?: number | undefined;
  /**
   * Plugins from `definePlugin`, or specifiers of modules that export one: a path relative to the working directory, a package,
   * or `skillhost/plugins/<name>`; with a configuration as `{ use, config }`. They are activated in this order, but each after
   * those that it requires. Default: none. `skillhost/plugins/workspace-tools` adds tools that run shell commands, change files
   * and fetch web pages.
   */
  readonly plugins?: readonly (Plugin | string | PluginUse)[] | undefined;
  /** Holds a data folder for each bundle. Default: `plugin-data` in the folder that `SKILLHOST_HOME` names, or in `~/.skillhost`. */
  readonly pluginDataDirectory?: string | undefined;
  /** Milliseconds for the activation of a plugin. Default: 10,000. */
  readonly activationTimeout?: number | undefined;
  /**
   * MCP servers of every session, by name, as in `SessionOptions.mcpServers`. Programs start in the working directory. A problem
   * with one server is reported in `host.diagnostics` and does not affect the others.
   */
  readonly mcpServers?: Readonly<Record<string, unknown>> | undefined;
  /** Options for all MCP servers. */
  readonly mcp?: McpOptions | undefined;
  /** The level of the log, which is written to stderr as JSON lines. Default: `error`. */
  readonly logLevel?: LogLevel | undefined;
  /** Replaces the log on stderr. */
  readonly logger?: Logger | undefined;
  /**
   * The folder in which conversations are stored, with results that are too large for a model, so that sessions can be resumed.
   * Several hosts may share it. Default: none. Conversations then stay in memory, and large results in a temporary folder until
   * the host is closed.
   */
  readonly sessionsDirectory?: string | undefined;
  /**
   * Keeps the conversations in place of `sessionsDirectory`, for example where other machines can resume them. Large results and other files of
   * sessions stay in that folder. The program closes the store after the host. Default: that of a plugin, else `sessionsDirectory`.
   */
  readonly sessionStore?: SessionStore | undefined;
  /**
   * The folder in which permissions for a location or permanent ones are stored. Default: `approvals` in the folder that
   * `SKILLHOST_HOME` names, or in `~/.skillhost`. It must not be part of a project, which could then contain its own approvals.
   */
  readonly approvalsDirectory?: string | undefined;
  /** Which skills may run, and what must be signed and approved. The user's settings in `trust.json` apply as well. */
  readonly trust?: TrustOptions | undefined;
  /**
   * What the program hands to the code of skills and plugins, such as a database: handlers of tools, prompts and resources read it
   * as `invocation.services`, in every session. Every skill that runs can use all of it. Declare its type by
   * extending `HostServices`.
   */
  readonly services?: HostServices | undefined;
  /**
   * Modules that the program and its skills share, by the specifier that skills import: the namespace (`import * as db from "./db.js"`) or
   * a function that imports it when the first skill needs it. Skills get the same objects and state as the program, which an import of their
   * own would load again. Such a specifier takes precedence over an installed package. Default: none.
   */
  readonly sharedModules?: HostModules | undefined;
  /**
   * Where the TypeScript and JavaScript of skills runs. `worker`: in a worker thread for each skill, where an endless loop ends with its call
   * and not with the host; this does not restrict what the code does. `process`: in a process for each skill, which reaches only what the
   * skill declares in `permissions`, as far as this machine enforces that. `strict`: the same, and skills are refused where the operating
   * system does not enforce it. `{ package: "strict" }`: by the origin of a skill, `off` for the others. `auto`: `process` for skills of
   * packages, and for those that were copied from Git repositories and websites, `off` for others. Isolated skills have no `services` and no
   * `sharedModules`. Default: `auto`.
   */
  readonly isolation?: Isolation | undefined;
  /** Whether `process.exit` in a loading module stops only that module. Default: false; the command line enables it. */
  readonly guardExit?: boolean | undefined;
  /**
   * Whether transformed modules and front matter are kept for the next start, in `skillhost` in the user's cache folder. Default: true. The environment
   * variable `SKILLHOST_CACHE=off` turns it off for all hosts.
   */
  readonly cache?: boolean | undefined;
}

export interface McpOptions {
  /**
   * When the definitions of a server are trusted. `first-use`, the default: the first ones are, and changed ones are held back
   * until `host.approveServer`. `require`: all are held back until then. `off`: all are trusted.
   */
  readonly pins?: PinPolicy | undefined;
  /** Whether servers may send forms to the clients of a session. Default: `ask`. */
  readonly elicitation?: ServerPolicy["elicitation"] | undefined;
  /**
   * Whether servers may request samples from a model. `ask`, the default: the clients of a session decide, and without a client
   * the request is refused. `allow`: if no client answers, the session's model does.
   */
  readonly sampling?: ServerPolicy["sampling"] | undefined;
  /** Milliseconds that a conversation waits once for servers to start. Servers that start later are still used. Default: 10,000. */
  readonly startupWait?: number | undefined;
  /** The folder in which the lists of servers are cached for the next start. Default: `mcp-cache` beside the default `approvalsDirectory`. */
  readonly cacheDirectory?: string | undefined;
  /** The folder of OAuth credentials. Default: `oauth` beside the default `approvalsDirectory`. */
  readonly credentialsDirectory?: string | undefined;
}

export interface ResolvedMcpOptions extends ServerPolicy {
  readonly pins: PinPolicy;
  readonly startupWait: number;
  readonly cacheDirectory: string;
  readonly credentialsDirectory: string;
}

export interface ResolvedHostOptions {
  readonly roots: readonly string[];
  /** The default roots, which may not exist. */
  readonly optionalRoots: ReadonlySet<string>;
  /** The roots of packages' skills, with the lowest precedence. */
  readonly packageRoots: readonly string[];
  readonly disabledSkills: readonly string[];
  readonly conflicts: ConflictRules;
  readonly watch: boolean;
  readonly watchBackend: WatchBackend | "auto";
  readonly workingDirectory: string;
  readonly importTimeout: number;
  readonly plugins: readonly (Plugin | string | PluginUse)[];
  readonly pluginDataDirectory: string;
  readonly activationTimeout: number;
  /** The host's own MCP servers. */
  readonly servers: ServersRead;
  readonly mcp: ResolvedMcpOptions;
  readonly log: Logger;
  readonly sessionsDirectory: string;
  /** Whether sessions are stored. Otherwise `sessionsDirectory` is a temporary folder of this host, which may not exist. */
  readonly storesSessions: boolean;
  readonly sessionStore: SessionStore | undefined;
  /** The folder of lasting approvals, which belongs to the user. */
  readonly approvalsDirectory: string;
  readonly trust: TrustOptions;
  /** The folders whose code may run. */
  readonly folderTrust: FolderTrust;
  /** Whether all named plugins may run regardless of their folder, because the program itself named them. */
  readonly namesPlugins: boolean;
  readonly isolation: Isolation;
  readonly guardExit: boolean;
  /** Whether anything is kept on disk for the next start. */
  readonly caches: boolean;
  readonly services: HostServices | undefined;
  readonly sharedModules: HostModules;
}

/**
 * Checks a host's options, and adds defaults.
 * @throws HostError `HOST_OPTIONS` naming the field that is unknown or of the wrong type.
 */
export function resolveHostOptions(options: HostOptions): ResolvedHostOptions {
  const given = readFields(options, "host options", "HOST_OPTIONS", readers);
  const workingDirectory = resolve(given.workingDirectory ?? "");
  const roots = (given.skillDirectories ?? ["./skills"]).map((entry) => resolveRoot(entry, workingDirectory));
  return Object.freeze({
    roots,
    optionalRoots: new Set(given.skillDirectories === undefined ? roots : []),
    packageRoots: resolvePackages(given.packageSkills ?? given.skillDirectories === undefined, workingDirectory),
    disabledSkills: given.disabledSkills ?? [],
    conflicts: given.conflicts ?? "override",
    watch: given.watch ?? true,
    watchBackend: given.watchBackend ?? "auto",
    workingDirectory,
    importTimeout: given.importTimeout ?? 10_000,
    plugins: given.plugins ?? [],
    pluginDataDirectory: resolve(workingDirectory, given.pluginDataDirectory ?? join(homeFolder(), "plugin-data")),
    activationTimeout: given.activationTimeout ?? 10_000,
    servers: readServers(given.mcpServers ?? {}, { dialect: "session" }, workingDirectory),
    mcp: resolveMcp(given.mcp ?? {}, workingDirectory),
    log: given.logger ?? createLogger({ level: given.logLevel ?? "error", write: (line) => void process.stderr.write(`${line}\n`) }),
    sessionsDirectory: resolve(workingDirectory, given.sessionsDirectory ?? join(tmpdir(), `skillhost-${randomUUID()}`)),
    storesSessions: given.sessionsDirectory !== undefined,
    sessionStore: given.sessionStore,
    trust: resolveTrust(given.trust ?? {}, workingDirectory),
    folderTrust: resolveFolders(given, workingDirectory),
    namesPlugins: given.trust?.folders === undefined,
    approvalsDirectory: resolve(workingDirectory, given.approvalsDirectory ?? join(homeFolder(), "approvals")),
    isolation: given.isolation ?? defaultIsolation,
    guardExit: given.guardExit ?? false,
    caches: given.cache ?? true,
    services: given.services,
    sharedModules: given.sharedModules ?? {},
  });
}

function resolvePackages(given: boolean | readonly string[], workingDirectory: string): readonly string[] {
  if (given === false) return [];
  const projects = given === true ? [userPackages(), findProject(workingDirectory)] : given;
  return projects.map((folder) => packagesRoot(resolveRoot(folder, workingDirectory)));
}

/** The folder of the user's own packages, which belong to no project. */
export function userPackages(): string {
  return join(homeFolder(), "packages");
}

/** The command line's default folder of sessions. */
export function userSessions(): string {
  return join(homeFolder(), "sessions");
}

function resolveMcp(given: McpOptions, workingDirectory: string): ResolvedMcpOptions {
  return Object.freeze({
    pins: given.pins ?? "first-use",
    elicitation: given.elicitation ?? "ask",
    sampling: given.sampling ?? "ask",
    startupWait: given.startupWait ?? 10_000,
    cacheDirectory: resolve(workingDirectory, given.cacheDirectory ?? join(homeFolder(), "mcp-cache")),
    credentialsDirectory: resolve(workingDirectory, given.credentialsDirectory ?? join(homeFolder(), "oauth")),
  });
}

function resolveTrust({ directory, ...rest }: TrustOptions, workingDirectory: string): TrustOptions {
  return Object.freeze({ ...rest, directory: resolve(workingDirectory, directory ?? homeFolder()) });
}

/** Naming a folder in the options trusts it. The default `./skills` and the packages of a project that was only found are not trusted. */
function resolveFolders({ skillDirectories = [], packageSkills = false, trust = {} }: HostOptions, workingDirectory: string): FolderTrust {
  const projects = typeof packageSkills === "boolean" ? [] : packageSkills.map((folder) => resolveRoot(folder, workingDirectory));
  const roots = skillDirectories.map((entry) => fixedPart(resolveRoot(entry, workingDirectory)));
  const named = trust.folders ?? [...roots, ...projects.flatMap(packagePlaces)];
  const ofUser = readTrustVariable(process.env["SKILLHOST_TRUST"]);
  const all = named === true || ofUser === true ? true : [...named, ...ofUser].map((folder) => resolve(workingDirectory, folder));
  const { directory = homeFolder() } = resolveTrust(trust, workingDirectory);
  return new FolderTrust({ file: trustFileIn(directory), home: homeFolder(), named: all });
}

function homeFolder(): string {
  return process.env["SKILLHOST_HOME"] || join(homedir(), ".skillhost");
}

const policies: readonly ConflictPolicy[] = ["override", "keep-first", "rename", "error"];
const readPolicy = readOneOf(policies);

const readers: FieldReaders<HostOptions> = {
  skillDirectories: readTexts,
  packageSkills: (value, path) => (typeof value === "boolean" ? value : readTexts(value, path)),
  disabledSkills: readTexts,
  conflicts: readConflicts,
  watch: readFlag,
  watchBackend: readOneOf(["auto", "directory", "chokidar"]),
  workingDirectory: readText,
  importTimeout: readPositive,
  plugins: readPlugins,
  pluginDataDirectory: readText,
  activationTimeout: readPositive,
  mcpServers: readServerMap,
  mcp: fieldsReader<McpOptions>({
    pins: readOneOf(["first-use", "require", "off"]),
    elicitation: readOneOf(["ask", "deny"]),
    sampling: readOneOf(["ask", "deny", "allow"]),
    startupWait: readPositive,
    cacheDirectory: readText,
    credentialsDirectory: readText,
  }),
  logLevel: readOneOf(logLevels),
  logger: (value, path) => (isLogger(value) ? value : mustBe(path, "an object with error, warning, info, debug and enabled")),
  sessionsDirectory: readText,
  sessionStore: (value, path) => (isSessionStore(value) ? value : mustBe(path, "a session store")),
  approvalsDirectory: readText,
  trust: fieldsReader<TrustOptions>({
    policy: readTrustPolicy,
    definitions: readDefinitions,
    provenance: readProvenance,
    registries: readRegistries,
    packages: readPackagePatterns,
    deniedPackages: readPackagePatterns,
    keys: readTexts,
    onlyKeys: readTexts,
    folders: readFolders,
    directory: readText,
  }),
  isolation: readIsolation,
  guardExit: readFlag,
  cache: readFlag,
  services: readRecord,
  sharedModules: readSharedModules,
};

function isSessionStore(value: unknown): value is SessionStore {
  const methods = ["attach", "create", "open", "read", "add", "list", "delete"] as const;
  return typeof value === "object" && value !== null && methods.every((name) => typeof (value as SessionStore)[name] === "function");
}

function readSharedModules(value: unknown, path: string): HostModules {
  if (!isRecord(value)) return mustBe(path, "an object of modules by specifier");
  for (const [specifier, module] of Object.entries(value)) {
    const at = `${path}[${JSON.stringify(specifier)}]`;
    if (!isPackageSpecifier(specifier)) return mustBe(at, 'named like a package, such as "my-app/database"');
    if (typeof module !== "function" && (typeof module !== "object" || module === null))
      return mustBe(at, "the namespace of a module or a function that imports it");
  }
  return Object.freeze({ ...value }) as HostModules;
}

/** Neither a path, a URL, a module of Node.js, nor this package. */
function isPackageSpecifier(specifier: string): boolean {
  return (
    /^(?:@[\w.~-]+\/)?[\w~-][\w.~-]*(?:\/[\w.~-]+)*$/.test(specifier) && !isBuiltin(specifier) && !/^skillhost(?:\/|$)/.test(specifier)
  );
}

function readFolders(value: unknown, path: string): FolderChoice {
  return value === true ? true : readTexts(value, path);
}

function readConflicts(value: unknown, path: string): ConflictRules {
  if (typeof value === "string") return readPolicy(value, path);
  return fieldsReader<Exclude<ConflictRules, string>>({
    default: readPolicy,
    names: (names, at) => {
      if (!isRecord(names)) return mustBe(at, "an object of policies by name");
      return Object.fromEntries(Object.entries(names).map(([name, policy]) => [name, readPolicy(policy, `${at}.${name}`)]));
    },
  })(value, path);
}

function readPlugins(value: unknown, path: string): readonly (Plugin | string | PluginUse)[] {
  if (!Array.isArray(value)) return mustBe(path, "an array of plugins");
  return Object.freeze(
    value.map((entry: unknown, index) => {
      const at = `${path}[${index}]`;
      return isRecord(entry) && !isPlugin(entry) && Object.hasOwn(entry, "use") ? readUse(entry, at) : readPlugin(entry, at);
    }),
  );
}

function readPlugin(value: unknown, path: string): Plugin | string {
  if (isPlugin(value)) return value;
  return typeof value === "string" ? readText(value, path) : mustBe(path, "a plugin made with definePlugin or the specifier of its module");
}

// The plugin checks its own configuration.
const readUse: (value: unknown, path: string) => PluginUse = fieldsReader<PluginUse>({
  use: readPlugin,
  config: (value) => value as object,
});

function isLogger(value: unknown): value is Logger {
  return isRecord(value) && ["error", "warning", "info", "debug", "enabled"].every((name) => typeof value[name] === "function");
}
