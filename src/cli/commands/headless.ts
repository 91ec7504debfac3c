import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { errorMessage, toError } from "../../base/errors.ts";
import { type Logger, toLogger } from "../../base/logger.ts";
import { onAbort } from "../../base/wait.ts";
import type { Host } from "../../host/host.ts";
import { createConnectionToken } from "../../io/net/connection-gate.ts";
import { CopilotServer } from "../../servers/copilot/copilot-server.ts";
import { describeStrayError } from "../cli-error.ts";
import { openLog } from "../command-log.ts";
import { type HeadlessArguments, parseHeadlessArguments } from "../headless.ts";
import { type CliIo, letHeapGrow } from "../process-io.ts";

/**
 * Serves clients of the Copilot SDK over stdin and stdout or on a port, until they disconnect or stop it. Settles with the exit code and
 * never rejects. The host is created when a client first needs it, so that clients get their first answers immediately.
 */
export async function headless(argv: readonly string[], io: CliIo): Promise<number> {
  const parsed = parseHeadlessArguments(argv);
  if (!parsed.ok) {
    io.stderr.write(`error: ${parsed.problem}\n`);
    return 2;
  }
  try {
    return await serve(parsed.value, io);
  } catch (error) {
    io.stderr.write(`error: ${errorMessage(error)}\n`);
    return 1;
  }
}

async function logStray(error: Error, log: Logger): Promise<void> {
  const { message, stack, place } = await describeStrayError(error);
  log.error(message, { error, stack, ...(place && { place }) });
}

async function serve(options: HeadlessArguments, io: CliIo): Promise<number> {
  // Must run before other code is loaded, whose output must not get into the protocol.
  const streams = options.transport.kind === "stdio" ? io.takeStreams?.() : undefined;
  const opened = openLog({ level: options.logLevel, file: options.logFile }, io);
  const token = tokenOf(options, io);
  const secrets = new Set<string>(token && [token.text]);
  const log = hideSecrets(opened.log, secrets);
  const stray = io.onStrayError?.((error) => void logStray(error, log));
  let inspector: AsyncDisposable | undefined;
  const server = createServer(options, io, log, secrets, token?.text, async (host) => {
    inspector = await openInspector(options, io, host);
  });
  const stopped = onAbort(io.signal, () => server.requestShutdown());
  try {
    if (streams !== undefined) {
      const client = server.acceptParent(streams);
      await Promise.race([client.wire.closed, server.shutdown]);
    } else await listen(server, options, io, token);
    return 0;
  } finally {
    stopped[Symbol.dispose]();
    await inspector?.[Symbol.asyncDispose]();
    await closeInTime(server, log);
    streams?.[Symbol.dispose]();
    stray?.[Symbol.dispose]();
    opened[Symbol.dispose]();
  }
}

interface ConnectionToken {
  readonly text: string;
  readonly isMadeUp: boolean;
}

/** Undefined when no token is needed: the client at the other end of stdin started this process, or the user disabled tokens. */
function tokenOf({ transport, allowsNoToken }: HeadlessArguments, { env }: CliIo): ConnectionToken | undefined {
  const known = env["COPILOT_CONNECTION_TOKEN"];
  if (known) return { text: known, isMadeUp: false };
  return transport.kind === "stdio" || allowsNoToken ? undefined : { text: createConnectionToken(), isMadeUp: true };
}

function createServer(
  options: HeadlessArguments,
  io: CliIo,
  log: Logger,
  secrets: Set<string>,
  token: string | undefined,
  onHost: (host: Host) => Promise<void>,
): CopilotServer {
  const { env } = io;
  const home = homeOf(env);
  const variable = options.authTokenVariable;
  const gitHubToken = (variable === undefined ? undefined : env[variable]) || env["GH_TOKEN"] || env["GITHUB_TOKEN"] || undefined;
  return new CopilotServer({
    openHost: async () => {
      const host = await openHost(options, io, log, home);
      await onHost(host);
      return host;
    },
    log,
    secrets,
    environment: env,
    token,
    gitHubToken,
    mayRun: async (path) => (await import("../project-consent.ts")).readConsent(io, { trust: options.trusts }).trust.allows(path),
    sessionsDirectory: join(home, "sessions"),
    pluginDirectories: options.pluginDirectories.map((folder) => resolve(io.cwd, folder)),
    pluginLibraryDirectory: join(home, "plugins"),
    pluginDataDirectory: join(home, "plugin-data"),
    mcpConfigFile: join(env["COPILOT_HOME"] ? resolve(env["COPILOT_HOME"]) : home, "mcp-config.json"),
    extensionsDirectory: join(env["COPILOT_HOME"] ? resolve(env["COPILOT_HOME"]) : home, "extensions"),
    allowsAll: options.allowsAll,
    warmsUp: true,
    onFirstTurnOver: letHeapGrow,
    idleTimeout: options.idleTimeoutSeconds === undefined ? undefined : options.idleTimeoutSeconds * 1_000,
  });
}

/** The folder for everything that outlives the process. Clients choose their own with COPILOT_HOME. */
function homeOf(env: CliIo["env"]): string {
  const copilotHome = env["COPILOT_HOME"];
  if (copilotHome) return join(resolve(copilotHome), "skillhost");
  return env["SKILLHOST_HOME"] || join(homedir(), ".skillhost");
}

async function openHost(options: HeadlessArguments, io: CliIo, log: Logger, home: string): Promise<Host> {
  const { openHeadlessHost } = await import("../headless.ts");
  return openHeadlessHost(options, io, log, home);
}

/** Its address goes to stderr. A port that is in use does not keep clients from being served. */
async function openInspector({ inspect }: HeadlessArguments, io: CliIo, host: Host): Promise<AsyncDisposable | undefined> {
  if (inspect === undefined) return undefined;
  const { serveInspector } = await import("../../servers/inspector/serve-inspector.ts");
  try {
    const inspector = await serveInspector(host, { port: inspect });
    io.stderr.write(`Inspector: ${inspector.url}\n`);
    return inspector;
  } catch (error) {
    io.stderr.write(`error: ${errorMessage(error)}\n`);
    return undefined;
  }
}

async function listen(
  server: CopilotServer,
  { transport }: HeadlessArguments,
  io: CliIo,
  token: ConnectionToken | undefined,
): Promise<void> {
  if (transport.kind !== "tcp") throw new Error("Standard input and output are not available to serve on. Use --port.");
  const { listenForClients } = await import("../../servers/copilot/connection/listen.ts");
  const listening = await listenForClients(server, transport);
  // Written before the port, so that a program that waits for the port already has the token.
  if (token?.isMadeUp === true) {
    io.stderr.write(`Clients must send this token. Set COPILOT_CONNECTION_TOKEN to choose another, or use --no-token.\n`);
    io.stderr.write(`COPILOT_CONNECTION_TOKEN=${token.text}\n`);
  }
  io.stdout.write(`CLI server listening on port ${listening.port}\n`);
  await server.shutdown;
  await listening[Symbol.asyncDispose]();
}

const closingMs = 2_000;

/** A tool that ignores cancellation may run forever; the process must end nevertheless. */
async function closeInTime(server: CopilotServer, log: Logger): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((settle) => {
    timer = setTimeout(settle, closingMs);
  });
  const closed = server.close().catch((error: unknown) => log.error("The server could not be closed properly.", { error: toError(error) }));
  await Promise.race([closed, late]);
  clearTimeout(timer);
}

/** Wraps a log so that none of these texts appear in it. Texts can be added later. */
export function hideSecrets(log: Logger, secrets: ReadonlySet<string>): Logger {
  const hide = (text: string): string => [...secrets].reduce((rest, secret) => rest.replaceAll(secret, "[secret]"), text);
  return toLogger(log.enabled.bind(log), (level, message, data) => {
    if (secrets.size === 0 || !log.enabled(level)) log[level](message, data);
    else log[level](hide(message), data && hideIn(data, hide));
  });
}

function hideIn(data: object, hide: (text: string) => string): object {
  try {
    return JSON.parse(hide(JSON.stringify(data, replaceErrors))) as object;
  } catch {
    // Data that cannot be searched for secrets is not logged.
    return { data: "[cannot be shown]" };
  }
}

function replaceErrors(_key: string, value: unknown): unknown {
  if (!(value instanceof Error)) return value;
  const { name, message, stack } = value;
  return { name, message, ...("code" in value && { code: value.code }), ...(stack !== undefined && { stack }) };
}
