import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { HostError } from "../../base/errors.ts";
import { isPlainRecord } from "../../base/read-fields.ts";
import { noResult } from "../../session/asks/ask-kinds.ts";
import { approveAll } from "../../session/permissions/permissions.ts";
import type { SessionOptions } from "../../session/session-config.ts";
import type { Client } from "./client.ts";
import type { CommandDeclaration } from "./client-commands.ts";
import { toClientHooks } from "./client-hooks.ts";
import type { ClientOffer } from "./client-offer.ts";
import { toSystemMessage } from "./client-sections.ts";
import { findEndpoint } from "./model-endpoint.ts";
import type { Params } from "./params.ts";
import type { CopilotServer } from "./server.ts";
import { toDeclarations, toSessionOptions } from "./session-options.ts";
import { WireSession } from "./wire-session.ts";

/** Makes a session as a client wants it, with the client in it. @throws HostError as `Host.createSession`, `Attachment.setTools`. */
export async function createWireSession(server: CopilotServer, client: Client, params: Params): Promise<WireSession> {
  const sessionId = params.optionalText("sessionId") ?? randomUUID();
  const offer = toOffer(params, client);
  const options = toOptions(server, client, params, sessionId, offer.hooks ? [client] : []);
  const host = await server.host();
  const mcpServers = await withUserServers(server, options.mcpServers);
  const fixed = { ...ownCallbacks(server, sessionId), ...mcpServers, sessionId, waitForAttachments: true };
  const session = await host.createSession({ ...options, ...fixed }, soon);
  const wireSession = new WireSession(session, server);
  server.sessions.set(sessionId, wireSession);
  try {
    wireSession.join(client, offer, "all");
  } catch (error) {
    await server.end(wireSession);
    // Nothing of a session that did not come about stays behind.
    await host.deleteSession(sessionId).catch(() => {});
    throw error;
  }
  await leaveIfGone(server, wireSession, client);
  return wireSession;
}

/** Goes on with a session, open here or kept, and takes the client in. @throws HostError as `Host.resumeSession`, `Attachment.setTools`. */
export async function resumeWireSession(server: CopilotServer, client: Client, params: Params): Promise<WireSession> {
  const sessionId = params.text("sessionId");
  const offer = toOffer(params, client);
  const known = server.sessions.get(sessionId);
  const others = (known?.hookClients ?? []).filter((other) => other !== client);
  const options = toOptions(server, client, params, sessionId, offer.hooks ? [...others, client] : others);
  const hadHooks = known?.hookClients.includes(client) === true;
  const host = await server.host();
  const fixed = {
    ...ownCallbacks(server, sessionId),
    ...(hadHooks && options.hooks === undefined && { hooks: {} }),
    waitForAttachments: true,
  };
  const session = await host.resumeSession(sessionId, { ...options, ...fixed }, soon);
  const wireSession = known?.session === session ? known : new WireSession(session, server);
  server.sessions.set(sessionId, wireSession);
  try {
    wireSession.join(client, offer, params.flag("disableResume") ? noPast : resumed);
  } catch (error) {
    if (wireSession.clients.length === 0) await server.end(wireSession);
    throw error;
  }
  await leaveIfGone(server, wireSession, client);
  return wireSession;
}

/** Clients wait for their session, and not yet for its skills and servers. */
const soon = { awaitsSources: false } as const;

/** The servers that the user configured through a client; the session's own take precedence. */
async function withUserServers(server: CopilotServer, own: SessionOptions["mcpServers"]): Promise<Pick<SessionOptions, "mcpServers">> {
  const { enabled } = await server.mcpConfig();
  return Object.keys(enabled).length === 0 ? {} : { mcpServers: { ...enabled, ...own } };
}

const resumed: ReadonlySet<string> = new Set(["session.resume"]);
const noPast: ReadonlySet<string> = new Set();

/** A client leaves a session, which ends with the last. @param keeps: the last client may come back. */
export async function leaveSession(server: CopilotServer, session: WireSession, client: Client): Promise<void> {
  const hadHooks = session.hookClients.includes(client);
  if (session.clients.length === 1 && session.clients[0] === client) return server.end(session);
  await session.leave(client);
  if (hadHooks) await session.session.update({ hooks: toClientHooks(session.id, session.hookClients) });
}

/** The client's line was closed. Its sessions go on without it; those that nobody else is in wait a while for it. */
export async function dropClient(server: CopilotServer, client: Client): Promise<void> {
  for (const session of [...client.sessions]) {
    const hadHooks = session.hookClients.includes(client);
    await session.leave(client);
    if (!session.session.isOpen) continue;
    if (hadHooks) await session.session.update({ hooks: toClientHooks(session.id, session.hookClients) });
    if (session.clients.length === 0) server.timers.await(session);
  }
}

/** A client that went while its session was being made never hears of it. */
async function leaveIfGone(server: CopilotServer, session: WireSession, client: Client): Promise<void> {
  if (client.wire.isOpen) return;
  await session.leave(client);
  if (session.clients.length === 0) server.timers.await(session);
}

/** The session that a request is about. */
export function findSession(server: CopilotServer, params: Params): WireSession {
  const sessionId = params.text("sessionId");
  const found = server.sessions.get(sessionId);
  if (found?.session.isOpen !== true) throw new HostError("SESSION_NOT_FOUND", `Session not found for sessionId: ${sessionId}`);
  found.touch();
  return found;
}

function toOffer(params: Params, client: Client): ClientOffer {
  return {
    hooks: params.flag("hooks"),
    answersUserInput: params.flag("requestUserInput"),
    answersElicitation: client.version !== 2 && params.flag("requestElicitation"),
    wantsSubAgentStreaming: params.optionalFlag("includeSubAgentStreamingEvents") ?? true,
    commands: params.records("commands").flatMap(toCommand),
    tools: params.get("tools") === undefined ? undefined : toDeclarations(params),
  };
}

function toCommand({ name, description }: Readonly<Record<string, unknown>>): readonly CommandDeclaration[] {
  return typeof name === "string" && name !== "" ? [{ name, description: typeof description === "string" ? description : "" }] : [];
}

/** What `session.options.update` changes. */
export function optionsOf(server: CopilotServer, client: Client, params: Params, sessionId: string): SessionOptions {
  const { hooks: _hooks, ...options } = toOptions(server, client, params, sessionId, []);
  if (params.get("provider") !== undefined || params.get("providers") !== undefined) return options;
  const { provider: _provider, ...rest } = options;
  return rest;
}

function toOptions(
  server: CopilotServer,
  client: Client,
  params: Params,
  sessionId: string,
  hookClients: readonly Client[],
): SessionOptions {
  const options = toSessionOptions(params);
  const skillsOfPlugins = [...server.pluginDirectories, ...params.texts("pluginDirectories")].map((folder) => join(folder, "skills"));
  const { environment, gitHubToken } = server.options;
  const endpoint = findEndpoint(params, {
    sessionId,
    client,
    environment,
    gitHubToken: params.optionalText("gitHubToken") ?? gitHubToken,
    fetch: carrierOf(server)?.modelRequests.fetchFor(sessionId),
  });
  const systemMessage = toSystemMessage(params.get("systemMessage"), sessionId, client);
  const hooks = toClientHooks(sessionId, hookClients);
  return {
    ...options,
    ...(skillsOfPlugins.length > 0 && { skillDirectories: [...skillsOfPlugins, ...(options.skillDirectories ?? [])] }),
    ...(endpoint.model !== undefined && { model: endpoint.model }),
    ...(endpoint.provider !== undefined && { provider: endpoint.provider }),
    ...(isPlainRecord(endpoint.capabilities) && options.modelCapabilities === undefined && { modelCapabilities: endpoint.capabilities }),
    ...(systemMessage !== undefined && { systemMessage }),
    ...(hooks !== undefined && { hooks }),
    ...(server.options.allowsAll === true && { onPermissionRequest: approveAll }),
  };
}

/** Questions for which nobody may still come, as it is for a permission, are over when no client answers them. */
function ownCallbacks(server: CopilotServer, sessionId: string): Partial<SessionOptions> {
  const nobody = (): never => {
    throw new HostError("ASK_UNANSWERED", "No client of this session answers such questions.");
  };
  return {
    onElicitationRequest: () => (server.sessions.get(sessionId)?.canElicit === true ? noResult : nobody()),
    onSamplingRequest: nobody,
    onMcpAuthorization: nobody,
  };
}

/** The client that offered to carry requests to models; the first of several. */
export function carrierOf({ clients }: CopilotServer): Client | undefined {
  return [...clients].find((client) => client.carriesModelRequests);
}
