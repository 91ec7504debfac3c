import { resolve } from "node:path";
import { toError } from "../base/errors.ts";
import { type Logger, toLogger } from "../base/logger.ts";
import type { Host } from "../host/host.ts";
import { type HostOptions, userSessions } from "../host/host-options.ts";
import { isUnsettled } from "../packages/commit.ts";
import { isBundledSpecifier, workspacePlugin } from "../plugin-host/bundled.ts";
import { defaultIsolation, type Isolation } from "../skills/isolation/isolation-policy.ts";
import { type CommandContext, type ConfiguredOptions, countsAsNamed } from "./command-context.ts";
import { readConfiguredServers, toHostServers } from "./configured-servers.ts";
import { runnableFolders, withheldCode } from "./project-consent.ts";
import { visibleLine } from "./terminal-style.ts";

// A tool that ignores cancellation may run forever; the process must end nevertheless.
const closingMs = 1_000;

interface WithHostOptions {
  readonly directories?: readonly string[];
  readonly watch?: boolean;
  readonly workspace?: boolean;
  /** The command's own output lists the diagnostics, so they need not go to stderr too. */
  readonly listsDiagnostics?: boolean;
}

/**
 * Runs `use` with a host built from options and configuration, then closes the host. Modules that call `process.exit` while they load are
 * stopped. There are no plugins unless the configuration names some; `workspace` adds the workspace tools, because users of a
 * command-line agent expect it to read and change files.
 */
export async function withHost<T>(context: CommandContext, options: WithHostOptions, use: (host: Host) => Promise<T>): Promise<T> {
  const { createHost } = await import("../host/create-host.ts");
  const { directories = [], watch = false, listsDiagnostics = false } = options;
  const quieted = listsDiagnostics ? { ...context, log: withoutDiagnostics(context.log) } : context;
  const hostOptions = toHostOptions(quieted, directories, watch);
  await settlePackages(hostOptions, context);
  const host = await createHost({ ...(options.workspace === true && { plugins: [workspacePlugin] }), ...hostOptions });
  try {
    const withheld = withheldCode(context, options);
    const isReported = host.diagnostics.some(({ code }) => code === withheld?.code);
    if (withheld !== undefined && !isReported) context.out.complainOf(withheld);
    return await use(host);
  } finally {
    await close(host, context);
  }
}

async function close(host: Host, { log, out }: CommandContext): Promise<void> {
  let isLeftBehind = false;
  let timer: NodeJS.Timeout | undefined;
  const grace = new Promise<void>((resolve) => {
    timer = setTimeout(() => {
      isLeftBehind = true;
      resolve();
    }, closingMs);
  });
  await Promise.race([host.close(), grace]);
  clearTimeout(timer);
  if (!isLeftBehind) return;
  log.warning("A call was still running and was abandoned.");
  out.note("A tool ignored the cancellation of its call and is still running.");
}

/** Directories on the command line replace those of the configuration. Undefined: neither names any. */
function namedDirectories({ options, config }: CommandContext, directories: readonly string[]): readonly string[] | undefined {
  const named = [...directories, ...(options.skills ?? [])];
  // The configuration may set another working directory, but not move the default skill directory with it.
  return named.length > 0 ? named : (config.skillDirectories ?? (config.workingDirectory === undefined ? undefined : ["./skills"]));
}

/** The skill directories: named ones, or the default. */
export function skillDirectories(context: CommandContext, directories: readonly string[] = []): readonly string[] {
  return namedDirectories(context, directories) ?? ["./skills"];
}

/** The skill directories, beginning with the one for new skills. */
export function directoriesForNew(context: CommandContext): readonly string[] {
  const all = skillDirectories(context);
  const { foundSkills } = context.config;
  return foundSkills === undefined ? all : [...new Set([...(foundSkills.own ?? ["./skills"]), ...all])];
}

/** Where the code of skills runs. */
export function isolationOf({ options, config }: CommandContext): Isolation {
  return options.isolation ?? config.isolation ?? defaultIsolation;
}

export function toHostOptions(context: CommandContext, directories: readonly string[], watch: boolean): HostOptions {
  const { config, io, log, options } = context;
  const { logLevel: _level, logFile: _file, serversIn: _servers, origin: _origin, foundSkills: _found, trust, ...rest } = config;
  const servers = readConfiguredServers(context);
  // Typed paths are relative to where they were typed, even if the configuration sets another working directory.
  const roots = skillDirectories(context, directories).map((entry) => (entry.startsWith("~") ? entry : resolve(io.cwd, entry)));
  const isNamed = namedDirectories(context, directories) !== undefined;
  return {
    workingDirectory: io.cwd,
    // Named skill directories exclude skills of packages.
    packageSkills: directories.length === 0 && options.skills === undefined,
    ...(rest as HostOptions),
    sessionsDirectory: config.sessionsDirectory ?? userSessions(),
    ...(isNamed && { skillDirectories: roots }),
    ...(config.plugins !== undefined && { plugins: usablePlugins(context, config.plugins) }),
    trust: { ...trust, folders: runnableFolders(context, directories, roots) },
    ...(servers.all.length > 0 && { mcpServers: toHostServers(servers) }),
    ...(options.isolation !== undefined && { isolation: options.isolation }),
    watch,
    logger: log,
    guardExit: true,
  };
}

/** Bundled plugins may run anywhere, but not with the configuration of an untrusted project. */
function usablePlugins(
  context: CommandContext,
  plugins: NonNullable<ConfiguredOptions["plugins"]>,
): NonNullable<ConfiguredOptions["plugins"]> {
  if (countsAsNamed(context)) return plugins;
  return plugins.filter((plugin) => !isBundledSpecifier(typeof plugin === "string" ? plugin : plugin.use));
}

/** The log without diagnostics of skills and plugins, for commands whose output lists them. */
function withoutDiagnostics(log: Logger): Logger {
  return toLogger(log.enabled.bind(log), (level, message, data) => {
    if (data === undefined || !("diagnostic" in data)) log[level](message, data);
  });
}

type Messages = Pick<CommandContext, "io" | "out" | "log">;

/** Recovers interrupted package changes in the projects of a host before it starts. */
export async function settlePackages(options: HostOptions, messages: Messages): Promise<void> {
  if (options.packageSkills === undefined || options.packageSkills === false) return;
  const { resolveHostOptions } = await import("../host/host-options.ts");
  const { projectOfRoot } = await import("../skills/store/package-skills.ts");
  for (const root of resolveHostOptions(options).packageRoots) {
    const folder = projectOfRoot(root);
    if (folder !== undefined) await settleFolder(folder, messages);
  }
}

/** Recovers one project. A failure is reported but does not stop the command. */
export async function settleFolder(folder: string, { io, out, log }: Messages): Promise<void> {
  if (!isUnsettled(folder)) return;
  const { settleProject } = await import("../packages/package-project.ts");
  try {
    const settled = await settleProject(folder, io.signal);
    if (settled.kind === "settled") return;
    say(settled.kind === "busy" ? `Another process is changing the packages in ${folder}.` : recoveredText(settled.paths));
  } catch (error) {
    if (io.signal.aborted) throw error;
    say(`The changes of an interrupted command in ${folder} could not be undone: ${toError(error).message}`);
  }

  function say(text: string): void {
    log.warning(text);
    out.note(text);
  }
}

/** Reports that an interrupted command was rolled back. */
export function recoveredText(paths: readonly string[]): string {
  return `An earlier command was interrupted; its changes were undone: ${paths.map(visibleLine).join(", ")}.`;
}
