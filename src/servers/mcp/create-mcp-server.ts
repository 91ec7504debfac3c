import type { CacheHint, CompleteResult, GetPromptResult, ReadResourceResult, Server, ServerOptions } from "@modelcontextprotocol/server";
import { HostError, toError } from "../../base/errors.ts";
import type { Logger } from "../../base/logger.ts";
import { type ClientChannel, type ClientChannelOptions, createRequestChannels, type WithClient } from "./client-channel.ts";
import { FastPathServer, guarded, resourceNotFound } from "./fast-path-server.ts";
import { callParams, createToolCaller } from "./handlers/call-tool.ts";
import { type SkillResources, serveSkills, skillsCapability } from "./handlers/skills-extension.ts";
import { type InputRequiredCalls, missingCapability } from "./input-required-calls.ts";
import { createErrorReport, type HostErrors, resourcePage, type ServedList, type ServedSession, sendNewErrors } from "./served-session.ts";
import type { ServerResourceSubscriptions } from "./server-resource-subscriptions.ts";

/** The parts that the servers of one endpoint share. */
export interface ServerParts {
  readonly served: ServedSession;
  readonly identity: ServerIdentity;
  readonly channelOptions: ClientChannelOptions;
  readonly roundTrips: InputRequiredCalls;
  readonly skills: SkillResources;
  /** Undefined: errors of the host are not reported. */
  readonly errors?: HostErrors | undefined;
  readonly log: Logger;
}

export interface ServerIdentity {
  readonly name: string;
  readonly title?: string | undefined;
  readonly version: string;
  /** The instructions for the client's model. */
  readonly instructions: string;
}

// A save can change any list. A client that does not listen for changes requests it again after a second.
const listHint: CacheHint = { ttlMs: 1_000, cacheScope: "private" };
const readHint: CacheHint = { ttlMs: 0, cacheScope: "private" };

/** Creates a server of the SDK for a session: one per connection, or one per request for stateless requests. */
export function createMcpServer(parts: ServerParts, era: "legacy" | "modern"): Server {
  const { served, identity, roundTrips, skills, log } = parts;
  const isModern = era === "modern";
  const { instructions, title, name, version } = identity;
  const server = new FastPathServer({ name, version, ...(title !== undefined && { title }) }, { ...serverOptions, instructions });
  server.onerror = (error) => log.debug("An MCP client sent an invalid message.", { error });
  const withClient = isModern ? roundTrips.withClient : createRequestChannels(server, parts.channelOptions, log);
  const callTool = createToolCaller({ served, server, withClient, isModern, log });
  const reportErrors = parts.errors && createErrorReport(parts.errors, isModern);
  server.setRequestHandler("tools/list", (_request, context) => {
    reportErrors?.(context);
    return served.whenStarted(() => served.toolList as never);
  });
  server.setRequestHandler("tools/call", { params: callParams }, callTool);
  serveFeatures({ served, server, withClient, log, isModern, skills });
  serveSkills(server, skills, isModern ? listHint : undefined, log);
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
  // Answers are validated by the code that reads them. The SDK would create a validator for each server.
  jsonSchemaValidator: { getValidator: () => () => ({ valid: false, data: undefined, errorMessage: "disabled" }) },
};

export type ConnectionEra = "legacy" | "modern";

/** Creates a server for one connection, which sends notifications about changes while it is open. */
export function createConnectedServer(
  { parts, watches }: { parts: ServerParts; watches: ServerResourceSubscriptions },
  era: ConnectionEra,
): Server {
  const { served, log } = parts;
  const server = createMcpServer(parts, era);
  const notify: { readonly [L in ServedList]: () => Promise<void> } = {
    tools: () => server.sendToolListChanged(),
    prompts: () => server.sendPromptListChanged(),
    resources: () => server.sendResourceListChanged(),
  };
  const send = (notification: () => Promise<void>): void => {
    // Before the handshake no client is connected, and a new client requests all lists.
    if (server.transport === undefined || (era === "legacy" && server.getNegotiatedProtocolVersion() === undefined)) return;
    notification().catch((error) => log.debug("A notification could not be sent to an MCP client.", { error: toError(error) }));
  };
  const errors = era === "legacy" && parts.errors !== undefined ? sendNewErrors(server, parts.errors, log) : undefined;
  const subscription = served.onChanged((list) => send(notify[list]));
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

/** The parts that the handlers of prompts and resources need. */
interface FeatureParts {
  readonly served: ServedSession;
  readonly server: Server;
  readonly withClient: WithClient;
  readonly log: Logger;
  readonly isModern: boolean;
  readonly skills: SkillResources;
}

// The protocol's limit of suggestions in one answer.
const maxSuggestions = 100;

/** Adds the handlers of prompts, resources, templates and completions to a server. */
function serveFeatures(parts: FeatureParts): void {
  const { served, server, log } = parts;
  const { session } = served;
  server.setRequestHandler("prompts/list", () => served.whenStarted(() => ({ prompts: [...session.listPrompts()] as never })));
  server.setRequestHandler("resources/list", ({ params }) =>
    served.whenStarted(() => {
      const { items, ...next } = resourcePage(session.listResources(), params?.cursor);
      return { resources: items as never, ...next };
    }),
  );
  server.setRequestHandler("resources/templates/list", () =>
    served.whenStarted(() => ({ resourceTemplates: [...session.listResourceTemplates()] as never })),
  );
  server.setRequestHandler("prompts/get", ({ params: { name, arguments: args = {} } }, context) => {
    const request = { method: "prompts/get", name, arguments: args };
    return guarded(log, `prompt "${name}"`, () => parts.withClient(request, context, (channel) => getPrompt(parts, name, args, channel)));
  });
  server.setRequestHandler("resources/read", ({ params: { uri } }, context) => {
    const request = { method: "resources/read", name: uri, arguments: undefined };
    return guarded(log, `resource ${uri}`, async () => {
      const ofSkill = await parts.skills.read(uri);
      if (ofSkill !== undefined) return { contents: [...ofSkill] } as ReadResourceResult;
      return parts.withClient(request, context, (channel) => readResource(parts, uri, channel));
    });
  });
  server.setRequestHandler("completion/complete", ({ params }, { mcpReq }) =>
    guarded(log, "completion", () => complete(served, params, mcpReq.signal)),
  );
}

async function getPrompt(
  { served, isModern }: FeatureParts,
  name: string,
  args: Readonly<Record<string, string>>,
  channel: ClientChannel,
): Promise<GetPromptResult> {
  return settle(served.session.getPrompt(name, args, channel), channel, isModern) as Promise<GetPromptResult>;
}

async function readResource({ served, isModern }: FeatureParts, uri: string, channel: ClientChannel): Promise<ReadResourceResult> {
  try {
    const contents = await settle(served.session.readResource(uri, channel), channel, isModern);
    return { contents: [...contents] } as ReadResourceResult;
  } catch (error) {
    if (error instanceof HostError && error.code === "RESOURCE_UNKNOWN") throw resourceNotFound(uri);
    throw error;
  }
}

/** Reports a failure because of missing capabilities, so that the client can declare them and retry. */
async function settle<T>(work: Promise<T>, channel: ClientChannel, isModern: boolean): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (isModern && channel.missing !== undefined) throw missingCapability(channel.missing);
    throw error;
  }
}

type CompleteParams = {
  readonly ref: { readonly type: "ref/prompt"; readonly name: string } | { readonly type: "ref/resource"; readonly uri: string };
  readonly argument: { readonly name: string; readonly value: string };
  readonly context?: { readonly arguments?: Readonly<Record<string, string>> | undefined } | undefined;
};

async function complete(served: ServedSession, params: CompleteParams, signal: AbortSignal): Promise<CompleteResult> {
  const { ref, argument, context } = params;
  const found = await served.session.complete(ref, argument, { arguments: context?.arguments ?? {}, signal });
  const values = found.values.slice(0, maxSuggestions);
  const total = found.total ?? found.values.length;
  return { completion: { values, total, hasMore: found.hasMore ?? total > values.length } };
}
