import type { CacheHint, Server, ServerOptions } from "@modelcontextprotocol/server";
import { toError } from "../../base/errors.ts";
import type { Logger } from "../../base/logger.ts";
import { type ClientChannelOptions, createRequestChannels } from "./client-channel.ts";
import { FastPathServer } from "./fast-path-server.ts";
import { callParams, createToolCaller } from "./handlers/call-tool.ts";
import { serveFeatures } from "./handlers/features.ts";
import { type SkillResources, serveSkills, skillsCapability } from "./handlers/skills-extension.ts";
import type { InputRequiredCalls } from "./input-required-calls.ts";
import { createErrorReport, type HostErrors, type ServedList, type ServedSession, sendNewErrors } from "./served-session.ts";
import type { ServerResourceSubscriptions } from "./server-resource-subscriptions.ts";

/** What the servers of one face have in common. */
export interface ServerParts {
  readonly served: ServedSession;
  readonly identity: ServerIdentity;
  readonly conversations: ClientChannelOptions;
  readonly roundTrips: InputRequiredCalls;
  readonly shelf: SkillResources;
  /** Undefined: nobody knows of any. */
  readonly errors?: HostErrors | undefined;
  readonly log: Logger;
}

export interface ServerIdentity {
  readonly name: string;
  readonly title?: string | undefined;
  readonly version: string;
  /** What a client's model is told of the server. */
  readonly instructions: string;
}

// Lists may be others after any save. Whoever does not listen for that asks again after a second at the latest.
const listHint: CacheHint = { ttlMs: 1_000, cacheScope: "private" };
const readHint: CacheHint = { ttlMs: 0, cacheScope: "private" };

/** A server of the SDK that answers for a session: one for each connection, or for each request where those stand alone. */
export function createMcpServer(parts: ServerParts, era: "legacy" | "modern"): Server {
  const { served, identity, roundTrips, shelf, log } = parts;
  const isModern = era === "modern";
  const { instructions, title, name, version } = identity;
  const server = new FastPathServer({ name, version, ...(title !== undefined && { title }) }, { ...serverOptions, instructions });
  server.onerror = (error) => log.debug("An MCP client sent an invalid message.", { error });
  const converse = isModern ? roundTrips.converse : createRequestChannels(server, parts.conversations, log);
  const callTool = createToolCaller({ served, server, converse, isModern, log });
  const reportErrors = parts.errors && createErrorReport(parts.errors, isModern);
  server.setRequestHandler("tools/list", (_request, context) => {
    reportErrors?.(context);
    return served.whenStarted(() => served.toolList as never);
  });
  server.setRequestHandler("tools/call", { params: callParams }, callTool);
  serveFeatures({ served, server, converse, log, isModern, shelf });
  serveSkills(server, shelf, isModern ? listHint : undefined, log);
  return server;
}

const serverOptions: ServerOptions = {
  capabilities: {
    tools: { listChanged: true },
    prompts: { listChanged: true },
    resources: { listChanged: true, subscribe: true },
    completions: {},
    logging: {},
    extensions: skillsCapability,
  },
  cacheHints: {
    "tools/list": listHint,
    "prompts/list": listHint,
    "resources/list": listHint,
    "resources/templates/list": listHint,
    "resources/read": readHint,
    "server/discover": listHint,
  },
  // Answers are checked where they are read; the SDK would make a validator for each server.
  jsonSchemaValidator: { getValidator: () => () => ({ valid: false, data: undefined, errorMessage: "disabled" }) },
};

export type ConnectionEra = "legacy" | "modern";

/** A server with a connection of its own, which is told of news for as long as it is open. */
export function createConnectedServer(
  { parts, watches }: { parts: ServerParts; watches: ServerResourceSubscriptions },
  era: ConnectionEra,
): Server {
  const { served, log } = parts;
  const server = createMcpServer(parts, era);
  const tell: { readonly [L in ServedList]: () => Promise<void> } = {
    tools: () => server.sendToolListChanged(),
    prompts: () => server.sendPromptListChanged(),
    resources: () => server.sendResourceListChanged(),
  };
  const send = (news: () => Promise<void>): void => {
    // Before the handshake there is nobody to tell; whoever connects then asks for everything.
    if (server.transport === undefined || (era === "legacy" && server.getNegotiatedProtocolVersion() === undefined)) return;
    news().catch((error) => log.debug("A notification could not be sent to an MCP client.", { error: toError(error) }));
  };
  const errors = era === "legacy" && parts.errors !== undefined ? sendNewErrors(server, parts.errors, log) : undefined;
  const subscription = served.onChanged((list) => send(tell[list]));
  const subscribed = new Map<string, () => void>();
  server.setRequestHandler("resources/subscribe", ({ params: { uri } }) => {
    const listener = (): void => send(() => server.sendResourceUpdated({ uri }));
    if (!subscribed.has(uri) && watches.add(uri, listener)) subscribed.set(uri, listener);
    return {};
  });
  server.setRequestHandler("resources/unsubscribe", ({ params: { uri } }) => {
    const listener = subscribed.get(uri);
    if (listener !== undefined) watches.remove(uri, listener);
    subscribed.delete(uri);
    return {};
  });
  server.onclose = () => {
    subscription[Symbol.dispose]();
    errors?.[Symbol.dispose]();
    for (const [uri, listener] of subscribed) watches.remove(uri, listener);
  };
  return server;
}
