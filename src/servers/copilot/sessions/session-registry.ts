import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { isAbsolute, resolve } from "node:path";
import { errorMessage, HostError, toError } from "../../../base/errors.ts";
import { minimalEnvironment } from "../../../io/process/child-environment.ts";
import type { SessionOptions } from "../../../session/session-config.ts";
import type { Client } from "../clients/client.ts";
import { toClientHooks } from "../clients/client-capabilities.ts";
import { ClientPlugins } from "../clients/client-plugins.ts";
import type { Params } from "../connection/params.ts";
import type { ServerContext } from "../context.ts";
import { SessionExtensions } from "../extensions/session-extensions.ts";
import { completeOptions, instructionsOf, ownCallbacks, toCustomInstructions } from "../request/apply-session-request.ts";
import { type DiscoveredConfiguration, withDiscovered } from "../request/discovered-options.ts";
import { parseSessionRequest } from "../request/parse-session-request.ts";
import { CopilotSession } from "./copilot-session.ts";
import { filesAt, findStorage, storageIn } from "./workspace.ts";

/** Creates a session that its client has joined. @throws HostError as `Host.createSession`, `Attachment.setTools`. */
export async function createCopilotSession(server: ServerContext, client: Client, params: Params): Promise<CopilotSession> {
  const { capabilities, ignored, ...request } = parseSessionRequest(params, client.version);
  const sessionId = params.optionalText("sessionId") ?? randomUUID();
  const hookClients = capabilities.hooks ? [client] : [];
  const complete = completeOptions(server, { ...request, client, params, sessionId, hookClients });
  const customInstructions = toCustomInstructions(params, server.options.environment, undefined);
  const host = await server.host();
  const trace = await loadTracing(server);
  const discovered = await discoverFor(server, params, { ...inClientsFolder(client), ...complete }.workingDirectory ?? ".");
  const options = discovered === undefined ? complete : withDiscovered(complete, discovered.options);
  const plugins = await loadClientPlugins(server, params.texts("pluginDirectories"), options.workingDirectory);
  const withPlugins = plugins.addTo(options);
  const mcpServers = await withUserServers(server, withPlugins.mcpServers);
  const fixed = { ...ownCallbacks(server, sessionId), ...mcpServers, sessionId, waitForAttachments: true, sessionDatabase: true };
  const files = filesAt(client, sessionId);
  const place = files === undefined ? {} : { storage: storageIn(files) };
  const given = { ...inClientsFolder(client), ...withPlugins, ...(customInstructions && { customInstructions }), ...fixed };
  const session = await host.createSession(given, { ...soon, ...place, client: "copilot" }).catch((error: unknown) => {
    plugins[Symbol.dispose]();
    throw error;
  });
  const copilotSession = new CopilotSession(session, server, plugins);
  copilotSession.files = files;
  copilotSession.providers.keep(params, client);
  trace?.(copilotSession, params);
  server.sessions.set(sessionId, copilotSession);
  try {
    copilotSession.join(client, capabilities, { past: "all" });
  } catch (error) {
    await server.end(copilotSession);
    // A failed request must leave no session behind.
    await host.deleteSession(sessionId).catch(() => {});
    throw error;
  }
  copilotSession.derivedEvents.emitOpened();
  if (ignored.length > 0) {
    const message = `These options of ${params.method} have no effect in skillhost: ${ignored.join(", ")}.`;
    session.events.append("session.info", { infoType: "options_without_effect", message });
  }
  for (const message of discovered?.problems ?? []) session.events.append("session.warning", { warningType: "config_discovery", message });
  copilotSession.followErrors(host);
  followJoin(server, copilotSession, client, params);
  await leaveIfGone(server, copilotSession, client);
  return copilotSession;
}

type TraceSession = (session: CopilotSession, params: Params) => void;

/**
 * Returns what exports spans of a session, at the place in a trace that its client names. Loaded before the session is made: its client joins
 * at once, and would miss events otherwise. Undefined: nothing is exported.
 */
async function loadTracing(server: ServerContext): Promise<TraceSession | undefined> {
  const file = await server.telemetry();
  if (file === undefined) return undefined;
  const { createSessionSpans } = await import("../telemetry/session-spans.ts");
  return (session, params) => {
    session.spans ??= createSessionSpans(file, session.session, server.options.environment);
    session.spans.placeAt(params.get("traceparent"), params.get("tracestate"));
  };
}

/** What the project's folder adds to a session whose client asks for it. The session itself refuses a wrong folder. */
async function discoverFor(server: ServerContext, params: Params, folder: unknown): Promise<DiscoveredConfiguration | undefined> {
  if (params.optionalFlag("enableConfigDiscovery") !== true || typeof folder !== "string") return undefined;
  const [{ discoverConfiguration }, { workingDirectory }] = await Promise.all([
    import("../request/discover-configuration.ts"),
    server.host(),
  ]);
  return discoverConfiguration(server, resolve(workingDirectory, folder));
}

/** Resumes an open or stored session, and adds the client. @throws HostError as `Host.resumeSession`, `Attachment.setTools`. */
export async function resumeCopilotSession(server: ServerContext, client: Client, params: Params): Promise<CopilotSession> {
  const sessionId = params.text("sessionId");
  admitExtension(client, params, sessionId, server.options.environment);
  const { capabilities, ...request } = parseSessionRequest(params, client.version);
  const known = server.sessions.get(sessionId);
  const others = (known?.hookClients ?? []).filter((other) => other !== client);
  const hookClients = capabilities.hooks ? [...others, client] : others;
  const options = changesOf(client, params, completeOptions(server, { ...request, client, params, sessionId, hookClients }));
  known?.assertAllowed(options.model);
  const hadHooks = known?.hookClients.includes(client) === true;
  const host = await server.host();
  const trace = await loadTracing(server);
  const plugins = await pluginsOf(server, known, params, options.workingDirectory);
  const fixed = {
    ...ownCallbacks(server, sessionId),
    ...(hadHooks && options.hooks === undefined && { hooks: plugins.withHooks(undefined) ?? {} }),
    ...instructionsOf(server, params, known?.session),
    waitForAttachments: true,
    sessionDatabase: true,
  };
  const files = filesAt(client, sessionId);
  const place = files === undefined || known?.session.isOpen ? {} : { storage: await findStorage(files, sessionId) };
  const resuming = host.resumeSession(
    sessionId,
    { ...plugins.addToChange(options), ...fixed, takeOver: true },
    { ...soon, ...place, client: "copilot", tellsResume: !params.flag("disableResume"), continuesWork: params.flag("continuePendingWork") },
  );
  const session = await resuming.catch((error: unknown) => {
    // The session keeps its plugins.
    if (plugins !== known?.plugins) plugins[Symbol.dispose]();
    throw error;
  });
  if (plugins !== known?.plugins) known?.plugins[Symbol.dispose]();
  const copilotSession = known?.session === session ? known : new CopilotSession(session, server, plugins);
  if (known !== copilotSession) {
    copilotSession.files = files;
    await copilotSession.restoreName(server.log);
  }
  // The client that stored the files may have disconnected.
  else if (copilotSession.files !== undefined && files !== undefined) copilotSession.files.client = client;
  copilotSession.plugins = plugins;
  copilotSession.providers.keep(params, client);
  trace?.(copilotSession, params);
  server.sessions.set(sessionId, copilotSession);
  try {
    const past = params.flag("disableResume") ? noPast : resumed;
    copilotSession.join(client, capabilities, { past, continuesWork: params.flag("continuePendingWork") });
  } catch (error) {
    if (copilotSession.clients.length === 0) await server.end(copilotSession);
    // The hooks of a client that has not joined must not run.
    else if (capabilities.hooks) await updateHooks(copilotSession);
    throw error;
  }
  copilotSession.followErrors(host);
  followJoin(server, copilotSession, client, params);
  await leaveIfGone(server, copilotSession, client);
  return copilotSession;
}

/** The session's own plugins, unless the joining client names others. */
async function pluginsOf(
  server: ServerContext,
  known: CopilotSession | undefined,
  params: Params,
  workingDirectory: string | undefined,
): Promise<ClientPlugins> {
  const own = params.optionalTexts("pluginDirectories");
  if (known !== undefined && own === undefined) return known.plugins;
  return loadClientPlugins(server, own ?? [], known?.session.config.workingDirectory ?? workingDirectory);
}

/** What of a session follows a change of its plugins. */
export interface PluginReload {
  readonly servers: boolean;
  readonly agents: boolean;
  readonly hooks: boolean;
}

/** Reads the plugins of a session again, with those that the user has installed since. @throws HostError as `Session.update`. */
export async function reloadPlugins(server: ServerContext, copilotSession: CopilotSession, reload: PluginReload): Promise<void> {
  const { plugins, session, id, hookClients } = copilotSession;
  const next = await loadClientPlugins(server, plugins.named, session.config.workingDirectory);
  const { skillDirectories, customAgents, mcpServers } = plugins.changeTo(next, session.config.options);
  try {
    await session.update({
      skillDirectories: skillDirectories ?? [],
      ...(reload.agents && { customAgents: customAgents ?? [] }),
      ...(reload.servers && { mcpServers: mcpServers ?? {} }),
      ...(reload.hooks && { hooks: next.withHooks(toClientHooks(id, hookClients)) ?? {} }),
    });
  } catch (error) {
    next[Symbol.dispose]();
    throw error;
  }
  copilotSession.plugins = next;
  if (reload.hooks) plugins[Symbol.dispose]();
  else next.keepHooksOf(plugins);
}

/** Removes the hooks of clients that have left. */
function updateHooks({ id, session, hookClients, plugins }: CopilotSession): Promise<void> {
  return session.update({ hooks: plugins.withHooks(toClientHooks(id, hookClients)) });
}

/** The default working directory of sessions whose client has its own file system. */
function inClientsFolder({ fileSystem }: Client): Pick<SessionOptions, "workingDirectory"> {
  const folder = fileSystem?.initialDirectory;
  return folder !== undefined && isAbsolute(folder) && existsSync(folder) ? { workingDirectory: folder } : {};
}

/** A client waits for its session only, not for the session's skills and servers. */
const soon = { awaitsSources: false } as const;

/** The servers that the user configured through a client; the session's own take precedence. */
async function withUserServers(server: ServerContext, own: SessionOptions["mcpServers"]): Promise<Pick<SessionOptions, "mcpServers">> {
  const { enabled } = await server.mcpConfig();
  return Object.keys(enabled).length === 0 ? {} : { mcpServers: { ...enabled, ...own } };
}

const resumed: ReadonlySet<string> = new Set(["session.resume"]);
const noPast: ReadonlySet<string> = new Set();

/** Removes a client from a session. Without its last client, the session ends. */
export async function leaveSession(server: ServerContext, session: CopilotSession, client: Client): Promise<void> {
  const hadHooks = session.hookClients.includes(client);
  if (session.participants.length === 1 && session.participants[0] === client) return server.end(session);
  await session.leave(client);
  if (hadHooks) await updateHooks(session);
}

/** Handles a closed connection: the client's sessions continue, and those without other clients wait for it for some time. */
export async function dropClient(server: ServerContext, client: Client): Promise<void> {
  const joined = [...server.sessions.values()].filter((session) => session.clients.includes(client));
  const parked = await Promise.allSettled(joined.map((session) => parkSession(server, session, client)));
  const failed = parked.flatMap((one) => (one.status === "rejected" ? [toError(one.reason)] : []));
  if (failed.length > 0) throw new AggregateError(failed, `${failed.length} sessions of a disconnected client could not be kept for it.`);
}

/** Keeps a session open without a client. If it was the last one, its pending requests wait for another. */
export async function parkSession(server: ServerContext, session: CopilotSession, client: Client): Promise<void> {
  const hadHooks = session.hookClients.includes(client);
  if (session.participants.length === 1 && session.participants[0] === client) session.lose(client);
  else await session.leave(client);
  if (!session.session.isOpen) return;
  if (hadHooks) await updateHooks(session);
  if (session.participants.length === 0 && client.extension === undefined) server.timers.scheduleOrphanEnd(session);
}

/** Removes a client that disconnected while its session was being created or resumed. */
async function leaveIfGone(server: ServerContext, session: CopilotSession, client: Client): Promise<void> {
  if (client.wire.isOpen) return;
  await session.leave(client);
  if (session.participants.length === 0) server.timers.scheduleOrphanEnd(session);
}

/** The session that a request names. @throws HostError `SESSION_NOT_FOUND`. */
export function findSession(server: ServerContext, params: Params): CopilotSession {
  const sessionId = params.text("sessionId");
  const found = server.sessions.get(sessionId);
  if (found?.session.isOpen !== true) throw new HostError("SESSION_NOT_FOUND", `Session not found for sessionId: ${sessionId}`);
  found.touch();
  return found;
}

/** Loads the plugins of a session: the server's, and those that its client names. Problems are logged. */
export async function loadClientPlugins(
  server: ServerContext,
  own: readonly string[],
  workingDirectory: string | undefined,
): Promise<ClientPlugins> {
  const installed = (await server.pluginLibrary()).enabled;
  const directories = [...new Set([...installed.map(({ folder }) => folder), ...server.pluginDirectories, ...own])];
  const ending = new AbortController();
  if (directories.length === 0) return new ClientPlugins(own, undefined, ending);
  const { loadSessionBundles } = await import("../../../plugin-host/bundles/bundle-plugin.ts");
  const { fromStoredEntry } = await import("../../../plugin-host/bundles/read-marketplace.ts");
  const entries = new Map(
    installed.flatMap(({ folder, entry }) => {
      const listed = entry && fromStoredEntry(entry, folder);
      return listed === undefined ? [] : [[folder, listed] as const];
    }),
  );
  const bundles = loadSessionBundles(directories, {
    entries,
    workingDirectory: workingDirectory ?? (await server.host()).workingDirectory,
    dataDirectory: server.options.pluginDataDirectory,
    log: server.log,
    signal: ending.signal,
  });
  for (const { severity, code, message, file } of bundles.diagnostics) {
    if (severity !== "info") server.log.warning(`A plugin of a session: ${message}`, { code, file });
  }
  return new ClientPlugins(own, bundles, ending);
}

/** Refuses an extension that joins another session than its own. @throws HostError `EXTENSION_REFUSED`. */
function admitExtension(
  { extension }: Client,
  params: Params,
  sessionId: string,
  environment: ServerContext["options"]["environment"],
): void {
  if (extension === undefined) return;
  if (extension.sessionId !== sessionId) {
    throw new HostError(
      "EXTENSION_REFUSED",
      `Extension "${extension.id}" was started for session ${extension.sessionId} and cannot join another one.`,
    );
  }
  const given = minimalEnvironment();
  const kept = params
    .texts("requestedEnvironmentVariables")
    .filter((name) => environment[name] !== undefined && !Object.hasOwn(given, name));
  if (kept.length === 0) return;
  const advice = "skillhost does not pass its environment variables to extensions. Read the values from a file instead.";
  throw new HostError("EXTENSION_REFUSED", `Extension "${extension.id}" requests ${kept.join(", ")}, but ${advice}`);
}

/** Records why an extension could not join: it will exit, and the reason is reported then. */
export async function joining<T>({ extension }: Client, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (extension !== undefined) extension.refusal = errorMessage(error);
    throw error;
  }
}

/** The options that a joining client changes. An extension changes the model's provider only if it names one. */
function changesOf({ extension }: Client, params: Params, options: SessionOptions): SessionOptions {
  if (extension === undefined || params.get("provider") !== undefined || params.get("providers") !== undefined) return options;
  const { provider: _provider, ...rest } = options;
  return rest;
}

/** Completes a join: an extension counts as running now, and a client that requests extensions gets them started. */
function followJoin(server: ServerContext, session: CopilotSession, client: Client, params: Params): void {
  client.extension?.onJoined();
  if (client.extension !== undefined || !params.flag("requestExtensions") || session.extensions !== undefined) return;
  session.extensions = new SessionExtensions(server, session.session, params.optionalText("extensionSdkPath"));
  session.extensions.start();
}
