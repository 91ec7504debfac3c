import { resolve } from "node:path";
import { toError } from "../base/errors.ts";
import { type Logger, toLogger } from "../base/logger.ts";
import type { Host } from "../host/host.ts";
import { type HostOptions, userSessions } from "../host/host-options.ts";
import { isUnsettled } from "../packages/commit.ts";
import { isBundledSpecifier, workspacePlugin } from "../plugin-host/bundled.ts";
import { type CommandContext, type ConfiguredOptions, countsAsNamed } from "./command-context.ts";
import { readConfiguredServers, toHostServers } from "./configured-servers.ts";
import { runnableFolders, withheldCode } from "./project-consent.ts";
import { visibleLine } from "./terminal-style.ts";

// A tool that ignores that its call was cancelled may run for ever; whoever waits for the answer should not.
const closingMs = 1_000;

interface WithHostOptions {
  readonly directories?: readonly string[];
  readonly watch?: boolean;
  readonly workspace?: boolean;
  /** The command's own output has the diagnostics, so that they need not be on stderr, too. */
  readonly listsDiagnostics?: boolean;
}

/**
 * Runs something with a host as options and configuration have it, and closes the host. Modules that call `process.exit`
 * while they load are stopped. Unless the configuration names plugins there are none; with `workspace`, the tools for a
 * workspace: users of an agent on the command line expect it to read and change files.
 */
export async function withHost<T>(context: CommandContext, options: WithHostOptions, use: (host: Host) => Promise<T>): Promise<T> {
  const { createHost } = await import("../host/create-host.ts");
  const { directories = [], watch = false, listsDiagnostics = false } = options;
  const told = listsDiagnostics ? { ...context, log: withoutDiagnostics(context.log) } : context;
  const hostOptions = toHostOptions(told, directories, watch);
  await settlePackages(hostOptions, context);
  const host = await createHost({ ...(options.workspace === true && { plugins: [workspacePlugin] }), ...hostOptions });
  try {
    const withheld = withheldCode(context, options);
    const isTold = host.diagnostics.some(({ code }) => code === withheld?.code);
    if (withheld !== undefined && !isTold) context.out.complainOf(withheld);
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

/** Directories on the command line take the place of those in the configuration. Undefined: nobody names any. */
function namedDirectories({ options, config }: CommandContext, directories: readonly string[]): readonly string[] | undefined {
  const named = [...directories, ...(options.skills ?? [])];
  // The configuration may name another working directory; where skills are by default is not for it to say.
  return named.length > 0 ? named : (config.skillDirectories ?? (config.workingDirectory === undefined ? undefined : ["./skills"]));
}

/** Where skills are, whether or not anybody says so. */
export function skillDirectories(context: CommandContext, directories: readonly string[] = []): readonly string[] {
  return namedDirectories(context, directories) ?? ["./skills"];
}

export function toHostOptions(context: CommandContext, directories: readonly string[], watch: boolean): HostOptions {
  const { config, io, log, options } = context;
  const { logLevel: _level, logFile: _file, serversIn: _servers, origin: _origin, trust, ...rest } = config;
  const servers = readConfiguredServers(context);
  const roots = skillDirectories(context, directories).map((entry) => absolute(entry, io.cwd));
  const isNamed = namedDirectories(context, directories) !== undefined;
  return {
    workingDirectory: io.cwd,
    // Whoever names skills means those.
    packageSkills: directories.length === 0 && options.skills === undefined,
    ...(rest as HostOptions),
    sessionsDirectory: config.sessionsDirectory ?? userSessions(),
    ...(isNamed && { skillDirectories: roots }),
    ...(config.plugins !== undefined && { plugins: usablePlugins(context, config.plugins) }),
    trust: { ...trust, folders: runnableFolders(context, directories, roots) },
    ...(servers.all.length > 0 && { mcpServers: toHostServers(servers) }),
    watch,
    logger: log,
    guardExit: true,
  };
}

/** One that comes with skillhost may run anywhere, but not configured by a project that is not trusted. */
function usablePlugins(
  context: CommandContext,
  plugins: NonNullable<ConfiguredOptions["plugins"]>,
): NonNullable<ConfiguredOptions["plugins"]> {
  if (countsAsNamed(context)) return plugins;
  return plugins.filter((plugin) => !isBundledSpecifier(typeof plugin === "string" ? plugin : plugin.use));
}

// The configuration may name another working directory; what was typed is relative to where it was typed.
function absolute(entry: string, cwd: string): string {
  return entry.startsWith("~") ? entry : resolve(cwd, entry);
}

/** The log without what a host reports of skills and plugins: for commands whose output lists that. */
function withoutDiagnostics(log: Logger): Logger {
  return toLogger(log.enabled.bind(log), (level, message, data) => {
    if (data === undefined || !("diagnostic" in data)) log[level](message, data);
  });
}

type Told = Pick<CommandContext, "io" | "out" | "log">;

/** Has a host that is about to start find the packages of its projects as a command left them that was not killed. */
export async function settlePackages(options: HostOptions, told: Told): Promise<void> {
  if (options.packageSkills === undefined || options.packageSkills === false) return;
  const { resolveHostOptions } = await import("../host/host-options.ts");
  const { projectOfRoot } = await import("../skills/store/package-skills.ts");
  for (const root of resolveHostOptions(options).packageRoots) {
    const folder = projectOfRoot(root);
    if (folder !== undefined) await settleFolder(folder, told);
  }
}

/** The same for one project. That it cannot be done is said, and keeps nobody from using what is there. */
export async function settleFolder(folder: string, { io, out, log }: Told): Promise<void> {
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

/** Says that what an earlier command had begun is undone. */
export function recoveredText(paths: readonly string[]): string {
  return `An earlier command was interrupted; its changes were undone: ${paths.map(visibleLine).join(", ")}.`;
}
