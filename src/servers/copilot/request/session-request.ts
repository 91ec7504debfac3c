import { HostError } from "../../../base/errors.ts";
import { isPlainRecord } from "../../../base/read-fields.ts";
import { noResult } from "../../../session/clients/request-kinds.ts";
import { approveUnasked } from "../../../session/permissions/permissions.ts";
import type { Session } from "../../../session/session.ts";
import type { SessionOptions } from "../../../session/session-config.ts";
import type { Client } from "../clients/client.ts";
import { type ClientCapabilities, toClientHooks } from "../clients/client-capabilities.ts";
import type { CommandDeclaration } from "../clients/client-commands.ts";
import type { Params } from "../connection/params.ts";
import type { ServerContext } from "../context.ts";
import { createTokenSource } from "./github-token.ts";
import { findEndpoint } from "./model-endpoint.ts";
import { toCustomInstructions, toDeclarations, toSessionOptions } from "./session-options.ts";
import { toSystemMessage } from "./system-message-sections.ts";

/** What `session.options.update` changes. */
export function optionsOf(server: ServerContext, client: Client, params: Params, sessionId: string): SessionOptions {
  const { hooks: _hooks, ...made } = toOptions(server, client, params, sessionId, []);
  const options = { ...made, ...instructionsOf(server, params, server.sessions.get(sessionId)?.session) };
  if (params.get("provider") !== undefined || params.get("providers") !== undefined) return options;
  const { provider: _provider, ...rest } = options;
  return rest;
}

/** What a request says of a session, as the session takes it. `hookClients`: whose hooks run. */
export function toOptions(
  server: ServerContext,
  client: Client,
  params: Params,
  sessionId: string,
  hookClients: readonly Client[],
): SessionOptions {
  const options = toSessionOptions(params);
  const { environment, gitHubToken } = server.options;
  const registration = params.optionalText("gitHubTokenProviderRegistrationId");
  const endpoint = findEndpoint(params, {
    sessionId,
    client,
    environment,
    acquireToken: registration === undefined ? undefined : createTokenSource(client, sessionId, registration),
    gitHubToken: params.optionalText("gitHubToken") ?? gitHubToken,
    fetch: carrierOf(server)?.modelRequests.fetchFor(sessionId),
  });
  const systemMessage = toSystemMessage(params.get("systemMessage"), sessionId, client);
  const hooks = toClientHooks(sessionId, hookClients);
  return {
    ...options,
    ...(endpoint.model !== undefined && { model: endpoint.model }),
    ...(endpoint.provider !== undefined && { provider: endpoint.provider }),
    ...(isPlainRecord(endpoint.capabilities) && options.modelCapabilities === undefined && { modelCapabilities: endpoint.capabilities }),
    ...(systemMessage !== undefined && { systemMessage }),
    ...(hooks !== undefined && { hooks }),
    ...(server.options.allowsAll === true && { onPermissionRequest: approveUnasked }),
  };
}

/** What a request says of the client that comes with it. */
export function toCapabilities(params: Params, client: Client): ClientCapabilities {
  return {
    hooks: params.flag("hooks"),
    answersPermissions: params.flag("requestPermission"),
    answersUserInput: params.flag("requestUserInput"),
    answersElicitation: client.version !== 2 && params.flag("requestElicitation"),
    answersPlans: client.version !== 2 && params.flag("requestExitPlanMode"),
    rendersApps: params.flag("requestMcpApps"),
    wantsSubAgentStreaming: params.optionalFlag("includeSubAgentStreamingEvents") ?? true,
    commands: params.records("commands").flatMap(toCommand),
    tools: params.get("tools") === undefined ? undefined : toDeclarations(params),
  };
}

function toCommand({ name, description }: Readonly<Record<string, unknown>>): readonly CommandDeclaration[] {
  return typeof name === "string" && name !== "" ? [{ name, description: typeof description === "string" ? description : "" }] : [];
}

/** Custom instructions as a session that goes on has them after a request; empty: as before. */
export function instructionsOf(
  { options }: ServerContext,
  params: Params,
  session: Session | undefined,
): Pick<SessionOptions, "customInstructions"> {
  const before = session?.config.turn.customInstructions ?? {};
  const customInstructions = toCustomInstructions(params, options.environment, before);
  return customInstructions === undefined ? {} : { customInstructions };
}

/** Questions for which nobody may still come, as it is for a permission, are over when no client answers them. */
export function ownCallbacks(server: ServerContext, sessionId: string): Partial<SessionOptions> {
  const nobody = (): never => {
    throw new HostError("ASK_UNANSWERED", "No client of this session supports this kind of request.");
  };
  return {
    onElicitationRequest: () => (server.sessions.get(sessionId)?.canElicit === true ? noResult : nobody()),
    onSamplingRequest: nobody,
    onMcpAuthorization: nobody,
  };
}

/** The client that offered to carry requests to models; the first of several. */
export function carrierOf({ clients }: ServerContext): Client | undefined {
  return [...clients].find((client) => client.carriesModelRequests);
}
