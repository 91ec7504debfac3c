import { HostError } from "../../../base/errors.ts";
import { isRecord } from "../../../base/json.ts";
import { packageVersion } from "../../../base/package-root.ts";
import type { ProviderOptions } from "../../../models/provider.ts";
import type { Session } from "../../../session/session.ts";
import { isPluginProvider, type SessionProvider } from "../../../session/turns/turn-options.ts";
import type { Client } from "../clients/client.ts";
import type { Params } from "../connection/params.ts";
import type { ServerContext } from "../context.ts";
import type { Environment } from "../copilot-options.ts";
import { readUserSettings } from "../sessions/user-settings.ts";
import { pick } from "./parse-session-request.ts";
import type { NamedModel } from "./session-providers.ts";

/** Where a session's model is served, and its name there. */
interface ModelEndpoint {
  readonly provider: SessionProvider | undefined;
  /** Undefined: the session's own choice. */
  readonly model: string | undefined;
  /** The capabilities of the model according to the client, unchecked. */
  readonly capabilities?: unknown;
}

/** What the endpoint of a client's provider needs. */
interface ProviderPlace {
  readonly sessionId: string;
  /** The client that gave the provider. */
  readonly client: Client;
  /** Sends requests through a client. Undefined: the runtime sends them itself. */
  readonly carried: Pick<ProviderOptions, "fetch" | "connectSocket"> | undefined;
}

interface EndpointPlace extends ProviderPlace {
  readonly environment: Environment;
  /** The token from the client or the command line. */
  readonly gitHubToken: string | undefined;
  /** Gets tokens from the client, which replace `gitHubToken`. */
  readonly acquireToken: (() => Promise<string>) | undefined;
}

type Fields = Readonly<Record<string, unknown>>;

/** The names of a model at its endpoint, and its limits. */
const limitFields = ["modelId", "wireModel", "maxPromptTokens", "maxOutputTokens"] as const;

/**
 * Finds the endpoint of a session's model: the provider that the client names, else the endpoint of the environment
 * (`COPILOT_API_URL`, `OPENAI_BASE_URL`). The provider is undefined when both are absent.
 */
export function findEndpoint(params: Params, place: EndpointPlace): ModelEndpoint {
  const named = namedModel(params);
  if (named !== undefined) {
    return toEndpoint(named, place);
  }
  const own = params.optionalRecord("provider");
  if (own !== undefined) {
    const model = params.optionalText("model") ?? textOf(own, "modelId") ?? textOf(own, "wireModel");
    return { provider: toProvider(own, place), model, capabilities: capabilitiesOf(own) };
  }
  return { provider: environmentProvider(place, params), model: params.optionalText("model") };
}

/** The endpoint of a model that a client declared. */
export function toEndpoint({ model, provider }: NamedModel, place: ProviderPlace): ModelEndpoint {
  const own = { ...provider, ...pick(model, limitFields) };
  return { provider: toProvider(own, place), model: textOf(model, "id"), capabilities: capabilitiesOf(model) };
}

/** The entries of `models` and `providers` that `model` selects, as `id` or as `provider/id`. */
function namedModel(params: Params): NamedModel | undefined {
  const wanted = params.optionalText("model");
  const models = params.records("models");
  const chosen =
    wanted === undefined ? models[0] : models.find(({ provider, id }) => wanted === id || wanted === `${String(provider)}/${String(id)}`);
  if (chosen === undefined) return undefined;
  const provider = params.records("providers").find(({ name }) => name === chosen["provider"]);
  return provider && { model: chosen, provider };
}

function capabilitiesOf({ capabilities, maxContextWindowTokens }: Fields): unknown {
  if (typeof maxContextWindowTokens !== "number") return capabilities;
  const given = isRecord(capabilities) ? capabilities : {};
  const limits = isRecord(given["limits"]) ? given["limits"] : {};
  return { ...given, limits: { max_context_window_tokens: maxContextWindowTokens, ...limits } };
}

const providerFields = ["type", "baseUrl", "wireApi", "transport", "apiKey", "bearerToken", "headers", "azure", ...limitFields] as const;

function toProvider(given: Fields, { sessionId, client, carried }: ProviderPlace): SessionProvider {
  const { name, hasBearerTokenProvider } = given;
  const providerName = typeof name === "string" ? name : "default";
  const bearerToken = async (): Promise<string> => {
    const answer = await client.wire.request("providerToken.getToken", { sessionId, providerName });
    return isRecord(answer) && typeof answer["token"] === "string" ? answer["token"] : "";
  };
  const provider = { ...pick(given, providerFields), ...(hasBearerTokenProvider === true && { bearerToken }), ...carried };
  return provider as unknown as SessionProvider;
}

function environmentProvider(
  { environment, carried, gitHubToken, acquireToken }: EndpointPlace,
  params: Params,
): SessionProvider | undefined {
  const clientName = params.optionalText("clientName");
  const agent = `skillhost/${packageVersion}${clientName === undefined ? "" : ` ${clientName.replaceAll(/[^\x20-\x7e]/g, "?")}`}`;
  const headers = { "user-agent": agent };
  const copilot = environment["COPILOT_API_URL"] || undefined;
  const openai = environment["OPENAI_BASE_URL"] || undefined;
  if (copilot === undefined && openai !== undefined) {
    return { type: "openai", baseUrl: openai, apiKey: environment["OPENAI_API_KEY"] ?? "", headers, ...carried };
  }
  // A client that sends the requests chooses the real address; this one is a placeholder.
  const baseUrl = copilot ?? (carried && "https://api.githubcopilot.com");
  if (baseUrl === undefined) return undefined;
  const key = acquireToken === undefined ? { apiKey: gitHubToken ?? "" } : { bearerToken: acquireToken };
  return { type: "openai", wireApi: "auto", transport: transportOf(environment, params), baseUrl, ...key, headers, ...carried };
}

/** WebSocket connections are used for models that are listed for them, unless the client or the user does without. */
function transportOf(environment: Environment, params: Params): "http" | "websockets" {
  const isOff = /^(?:1|true)$/i.test(environment["COPILOT_CLI_DISABLE_WEBSOCKET_RESPONSES"] ?? "");
  return isOff || params.optionalRecord("capi")?.["enableWebSocketResponses"] === false ? "http" : "websockets";
}

function textOf(fields: Fields, key: string): string | undefined {
  const value = Object.hasOwn(fields, key) ? fields[key] : undefined;
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** Chooses the model of a session that names none, when it is first needed. */
export async function chooseModel(server: ServerContext, session: Session): Promise<void> {
  const { turn } = session.config;
  if (turn.chatModel !== undefined || turn.model !== undefined || turn.provider === undefined) return;
  const { COPILOT_MODEL: copilot, OPENAI_MODEL: openai } = server.options.environment;
  const model = copilot || openai || readUserSettings(server.options).model || (await findModel(turn.provider));
  await session.update({ model });
}

/** The default of the Copilot SDK's own runtime. */
const defaultModel = "claude-sonnet-4.5";

/** The default model if the endpoint has it, else the endpoint's first model. */
async function findModel(provider: SessionProvider): Promise<string> {
  if (isPluginProvider(provider)) throw new HostError("MODEL_MISSING", "The session has no model. Set one.");
  try {
    const { listModels } = await import("../../../models/provider.ts");
    const models = await listModels({ ...(provider as ProviderOptions), retries: 0 }, { signal: AbortSignal.timeout(10_000) });
    return models.find(({ id }) => id === defaultModel)?.id ?? models[0]?.id ?? defaultModel;
  } catch {
    // An endpoint that cannot list models may still have this one. If not, the next message reports its error.
    return defaultModel;
  }
}

/** A token is renewed this long before it expires. */
const aheadMs = 60 * 60 * 1000;

/**
 * Returns a function that gets the token of a session's models from a client: the first on first use, the next shortly before
 * that one expires. Concurrent calls share one request. Rejects when the client returns no token.
 */
export function createTokenSource(client: Client, sessionId: string, registrationId: string): () => Promise<string> {
  let current: { readonly token: string; readonly until: number } | undefined;
  let asking: Promise<string> | undefined;
  const ask = async (): Promise<string> => {
    const reason = current === undefined ? "initial" : "refresh";
    const answer = await client.wire.request("gitHubToken.getToken", { registrationId, host: "github.com", sessionId, reason });
    const given = isRecord(answer) && answer["kind"] === "token" ? answer : {};
    const { accessToken: token, expiresIn } = given;
    if (typeof token !== "string" || token === "") throw new Error("The client did not return a token for the models.");
    current = { token, until: Date.now() + (typeof expiresIn === "number" ? expiresIn * 1000 : 0) - aheadMs };
    return token;
  };
  return () => {
    if (current !== undefined && Date.now() < current.until) return Promise.resolve(current.token);
    asking ??= ask().finally(() => {
      asking = undefined;
    });
    return asking;
  };
}
