import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { HostError } from "../../../base/errors.ts";
import { isRecord } from "../../../base/json.ts";
import type { ProviderOptions } from "../../../models/provider.ts";
import { noResult } from "../../../session/clients/request-kinds.ts";
import { approveUnasked } from "../../../session/permissions/permissions.ts";
import type { SectionTransform, SystemMessageOptions } from "../../../session/prompt/customize-prompt.ts";
import type { CustomInstructionOptions } from "../../../session/prompt/instruction-files.ts";
import type { Session } from "../../../session/session.ts";
import type { SessionOptions } from "../../../session/session-config.ts";
import type { Client } from "../clients/client.ts";
import { toClientHooks } from "../clients/client-capabilities.ts";
import type { Params } from "../connection/params.ts";
import type { ServerContext } from "../context.ts";
import type { Environment } from "../copilot-options.ts";
import { createTokenSource, findEndpoint } from "./model-endpoint.ts";
import { parseSessionOptions } from "./parse-session-request.ts";

/** The options that `session.options.update` changes. */
export function optionsOf(server: ServerContext, client: Client, params: Params, sessionId: string): SessionOptions {
  const { hooks: _hooks, ...complete } = completeOptions(server, {
    client,
    params,
    sessionId,
    options: parseSessionOptions(params),
    hookClients: [],
  });
  const options = { ...complete, ...instructionsOf(server, params, server.sessions.get(sessionId)?.session) };
  if (params.get("provider") !== undefined || params.get("providers") !== undefined) return options;
  const { provider: _provider, ...rest } = options;
  return rest;
}

interface OptionsRequest {
  readonly client: Client;
  readonly params: Params;
  readonly sessionId: string;
  /** What the parameters say by themselves. */
  readonly options: SessionOptions;
  /** The clients whose hooks run. */
  readonly hookClients: readonly Client[];
}

/** Adds to the options of a request what depends on the server and its clients: the model's endpoint, hooks, the system message. */
export function completeOptions(
  server: ServerContext,
  { client, params, sessionId, options, hookClients }: OptionsRequest,
): SessionOptions {
  const { environment, gitHubToken } = server.options;
  const registration = params.optionalText("gitHubTokenProviderRegistrationId");
  const endpoint = findEndpoint(params, {
    sessionId,
    client,
    environment,
    acquireToken: registration === undefined ? undefined : createTokenSource(client, sessionId, registration),
    gitHubToken: params.optionalText("gitHubToken") ?? gitHubToken,
    carried: carriedBy(server, sessionId),
  });
  const systemMessage = toSystemMessage(params.get("systemMessage"), sessionId, client);
  const hooks = toClientHooks(sessionId, hookClients);
  return {
    ...options,
    ...(endpoint.model !== undefined && { model: endpoint.model }),
    ...(endpoint.provider !== undefined && { provider: endpoint.provider }),
    ...(isRecord(endpoint.capabilities) && options.modelCapabilities === undefined && { modelCapabilities: endpoint.capabilities }),
    ...(systemMessage !== undefined && { systemMessage }),
    ...(hooks !== undefined && { hooks }),
    ...(server.options.allowsAll === true && { onPermissionRequest: approveUnasked }),
  };
}

/** The custom instructions of an existing session after a request. Empty: unchanged. */
export function instructionsOf(
  { options }: ServerContext,
  params: Params,
  session: Session | undefined,
): Pick<SessionOptions, "customInstructions"> {
  const before = session?.config.turn.customInstructions ?? {};
  const customInstructions = toCustomInstructions(params, options.environment, before);
  return customInstructions === undefined ? {} : { customInstructions };
}

/**
 * Handlers of requests that no client can answer. They refuse at once: unlike a permission request, such a request does not
 * wait for a client to join.
 */
export function ownCallbacks(server: ServerContext, sessionId: string): Partial<SessionOptions> {
  const refuse = (): never => {
    throw new HostError("ASK_UNANSWERED", "No client of this session supports this kind of request.");
  };
  return {
    onElicitationRequest: () => (server.sessions.get(sessionId)?.canElicit === true ? noResult : refuse()),
    onSamplingRequest: refuse,
    onMcpAuthorization: refuse,
  };
}

/** How the first client that sends model requests for the runtime does so for a session. Undefined: no client does. */
export function carriedBy({ clients }: ServerContext, sessionId: string): Pick<ProviderOptions, "fetch" | "connectSocket"> | undefined {
  const requests = [...clients].find((client) => client.carriesModelRequests)?.modelRequests;
  return requests && { fetch: requests.fetchFor(sessionId), connectSocket: requests.socketFor(sessionId) };
}

/**
 * The custom instructions that a request leads to. Undefined: the request does not change the instructions `before` it. A new
 * session has none before, and reads the files of its project unless its client disables them.
 */
export function toCustomInstructions(
  params: Params,
  environment: Environment,
  before: CustomInstructionOptions | undefined,
): CustomInstructionOptions | undefined {
  const skips = params.optionalFlag("skipCustomInstructions");
  const directories = params.optionalTexts("instructionDirectories");
  const organization = params.optionalText("organizationCustomInstructions");
  if (before !== undefined && skips === undefined && directories === undefined && organization === undefined) return undefined;
  const userDirectory = userDirectoryOf(environment);
  return {
    userDirectory,
    ...before,
    ...(skips === undefined ? { files: before?.files ?? true } : { files: !skips }),
    ...(directories !== undefined && { directories }),
    ...(organization !== undefined && { organization }),
  };
}

/** The folder of the user's own instructions for Copilot. */
export function userDirectoryOf(environment: Environment): string {
  const home = environment["COPILOT_HOME"];
  return home ? resolve(home) : join(environment["HOME"] || homedir(), ".copilot");
}

/**
 * Reads a client's system message. A section with the action `transform` is sent to the client, which returns the changed
 * text; one request carries all sections of a message.
 */
function toSystemMessage(value: unknown, sessionId: string, client: Client): SystemMessageOptions | undefined {
  if (!isRecord(value) || !isRecord(value["sections"])) return value as SystemMessageOptions | undefined;
  const transforms = new SectionRequests(sessionId, client);
  const sections = Object.entries(value["sections"]).map(([id, change]) => [id, toChange(id, change, transforms)] as const);
  return { ...value, sections: Object.fromEntries(sections) } as SystemMessageOptions;
}

function toChange(id: string, change: unknown, transforms: SectionRequests): unknown {
  if (!isRecord(change)) return change;
  const { action, content } = change;
  return action === "transform" ? { action: transforms.of(id) } : { action, ...(content !== null && content !== undefined && { content }) };
}

interface Waiting {
  readonly id: string;
  readonly content: string;
  readonly resolve: (content: string) => void;
}

class SectionRequests {
  readonly #sessionId: string;
  readonly #client: Client;
  #waiting: Waiting[] = [];

  constructor(sessionId: string, client: Client) {
    this.#sessionId = sessionId;
    this.#client = client;
  }

  of(id: string): SectionTransform {
    return (content) =>
      new Promise((resolve) => {
        if (this.#waiting.length === 0) queueMicrotask(() => void this.#send());
        this.#waiting.push({ id, content, resolve });
      });
  }

  async #send(): Promise<void> {
    const waiting = this.#waiting;
    this.#waiting = [];
    try {
      const sections = Object.fromEntries(waiting.map(({ id, content }) => [id, { content }]));
      const answer = await this.#client.wire.request("systemMessage.transform", { sessionId: this.#sessionId, sections });
      const changed = isRecord(answer) && isRecord(answer["sections"]) ? answer["sections"] : {};
      for (const { id, content, resolve } of waiting) resolve(contentOf(changed, id) ?? content);
    } catch {
      // When the client fails or has disconnected, the sections stay unchanged.
      for (const { content, resolve } of waiting) resolve(content);
    }
  }
}

function contentOf(sections: Readonly<Record<string, unknown>>, id: string): string | undefined {
  const section = Object.hasOwn(sections, id) ? sections[id] : undefined;
  const content = isRecord(section) ? section["content"] : undefined;
  return typeof content === "string" ? content : undefined;
}
