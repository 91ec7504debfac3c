import { HostError } from "../base/errors.ts";
import { isRecord } from "../base/json.ts";
import {
  type FieldReaders,
  fieldsReader,
  mustBe,
  readCallback,
  readFields,
  readOneOf,
  readPositive,
  readText,
} from "../base/read-fields.ts";
import { type Clock, systemClock } from "../base/wait.ts";
import type { ModelFetch } from "./http.ts";
import { fetchModels, type ModelInfo } from "./list-models.ts";
import type { ChatModel, ModelRequest } from "./model.ts";
import type { ConnectSocket } from "./model-socket.ts";
import { nodeFetch } from "./node-fetch.ts";
import {
  type Credential,
  createEndpoint,
  type Endpoint,
  isHeaderValue,
  type ProviderEndpointOptions,
  readHeaders,
  type Secret,
} from "./provider-endpoint.ts";
import {
  createModelFor,
  type ProviderType,
  providerTypes,
  type RouteOptions,
  readBaseUrl,
  routeTo,
  type Transport,
  transports,
  type WireApi,
  wireApis,
} from "./provider-route.ts";

/**
 * A model provider, with the field names of the Copilot SDK's `ProviderConfig`.
 *
 * @example
 * ```ts
 * const provider: ProviderOptions = { type: "openai", baseUrl: "http://localhost:11434/v1" };
 * ```
 */
export interface ProviderOptions {
  /** The protocol. Default: `openai`, which most endpoints and local servers support. */
  readonly type?: ProviderType | undefined;
  /**
   * For `openai` and `azure`: chat completions, the default, or the Responses API. For `openai` also `auto`: chat completions, or
   * the Responses API for a model that the endpoint lists for that API only.
   */
  readonly wireApi?: WireApi | undefined;
  /**
   * How requests to the Responses API are sent, for `openai`. `websockets`: over connections that are kept for the next requests, which
   * contain only what was added, and over HTTP where the endpoint opens no connection. With `wireApi: "auto"`, only for models that the
   * endpoint lists for that. Default: `http`.
   */
  readonly transport?: Transport | undefined;
  /** With or without `/v1`, a slash at its end or the path of the chat itself: `https://api.openai.com/v1`. For `azure`, the resource. */
  readonly baseUrl: string;
  /** Sent in the provider's header for keys. A function is called before every request. Empty: none. */
  readonly apiKey?: Secret | undefined;
  /** Sent as a bearer token instead of the key. A function is called before every request. */
  readonly bearerToken?: Secret | undefined;
  /** With `apiVersion`, chat requests go to the deployment named by the model; without it, to the unversioned API. */
  readonly azure?: { readonly apiVersion?: string | undefined } | undefined;
  /** Sent with every request. An `authorization` header here replaces the key. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** The model's name at the endpoint, or its deployment, if it differs from the model's own name. */
  readonly wireModel?: string | undefined;
  /** The well-known model whose properties apply. Sent as the name without `wireModel`. */
  readonly modelId?: string | undefined;
  /** The token limit of a request. Default: by the model's name. */
  readonly maxPromptTokens?: number | undefined;
  /** The token limit of a reply for requests without their own. */
  readonly maxOutputTokens?: number | undefined;
  /** Sends the requests instead of Node's own client, for example `globalThis.fetch`. */
  readonly fetch?: ModelFetch | undefined;
  /** Opens WebSocket connections instead of skillhost, for `transport: "websockets"`. @internal */
  readonly connectSocket?: ConnectSocket | undefined;
  /** The number of retries after temporary failures. Default: 3. */
  readonly retries?: number | undefined;
  /** Time limits in milliseconds until a response begins, default 300,000, and between two chunks, default 120,000. */
  readonly responseTimeout?: number | undefined;
  readonly idleTimeout?: number | undefined;
  /** The size limit of a response in bytes. Default: 64 MiB. */
  readonly maxAnswerBytes?: number | undefined;
  /** The sources of time and jitter. For tests. */
  readonly clock?: Clock | undefined;
  readonly random?: (() => number) | undefined;
}

export interface ModelOptions extends ProviderOptions {
  /** The model's name at the endpoint. */
  readonly model: string;
}

/**
 * Creates a chat model at an endpoint. It sends no request before `complete`.
 * @throws HostError `MODEL_OPTIONS` naming the option that is unknown or wrong. Messages never contain values.
 */
export function createModel(options: ModelOptions): ChatModel {
  const given = readFields(options, "model options", "MODEL_OPTIONS", modelReaders);
  if (given.model === undefined) throw new HostError("MODEL_OPTIONS", "model is missing. Use the endpoint's name of the model.");
  const name = given.wireModel ?? given.modelId ?? given.model;
  const known = given.modelId ?? given.model;
  const route = toRouteOptions(given, name);
  const endpoint = resolveProvider(given, route);
  const model = createModelFor(
    route,
    name,
    {
      id: given.model,
      address: endpoint.baseUrl.host,
      contextWindow: given.maxPromptTokens ?? contextWindowOf(known),
      endpoint: createEndpoint(endpoint),
      clock: endpoint.clock,
    },
    socketEndpoint(given, route, endpoint),
  );
  const { maxOutputTokens } = given;
  return maxOutputTokens === undefined ? model : limited(model, maxOutputTokens);
}

/** Undefined: requests are sent over HTTP only. */
function socketEndpoint(given: ProviderOptions, { type, wireApi }: RouteOptions, endpoint: ProviderEndpointOptions): Endpoint | undefined {
  if (given.transport !== "websockets") return undefined;
  const wrong = (happened: string): HostError => new HostError("MODEL_OPTIONS", `transport "websockets" ${happened}.`);
  if (type !== "openai") throw wrong(`is supported for the provider type "openai" only, not for "${type}"`);
  if (wireApi === "completions") throw wrong('requires wireApi "responses" or "auto"');
  const { connectSocket: connect } = given;
  return createEndpoint({ ...endpoint, fetch: overSocket({ connect, fetch: endpoint.fetch, tellsInitiator: wireApi === "auto" }) });
}

/** Loads what it needs with the first request, as few models are asked this way. */
function overSocket({ connect, ...options }: SocketOptions): ModelFetch {
  let loading: Promise<ModelFetch> | undefined;
  const load = async (): Promise<ModelFetch> => {
    const [{ createResponsesSocket }, { connectSocket }] = await Promise.all([
      import("./responses-socket.ts"),
      import("./model-socket.ts"),
    ]);
    return createResponsesSocket({ ...options, connect: connect ?? connectSocket });
  };
  return async (url, request) => {
    loading ??= load();
    return (await loading)(url, request);
  };
}

interface SocketOptions {
  readonly connect: ConnectSocket | undefined;
  readonly fetch: ModelFetch;
  readonly tellsInitiator: boolean;
}

function limited(model: ChatModel, limit: number): ChatModel {
  const within = (request: ModelRequest): ModelRequest => ({ ...request, maxOutputTokens: request.maxOutputTokens ?? limit });
  return {
    ...model,
    complete: (request, how) => model.complete(within(request), how),
    bodyOf: (request) => model.bodyOf!(within(request)),
  };
}

/**
 * Lists the models of an endpoint.
 * @throws HostError `MODEL_OPTIONS` as `createModel` does. @throws ModelError if the list is not available.
 */
export async function listModels(options: ProviderOptions, { signal }: { readonly signal: AbortSignal }): Promise<readonly ModelInfo[]> {
  const given = readFields(options, "provider options", "MODEL_OPTIONS", providerReaders);
  const route = toRouteOptions(given, undefined);
  return fetchModels(createEndpoint(resolveProvider(given, route)), signal, route.type === "anthropic" ? { limit: "1000" } : {});
}

const providerReaders: FieldReaders<ProviderOptions> = {
  type: readOneOf(providerTypes),
  wireApi: readOneOf(wireApis),
  transport: readOneOf(transports),
  baseUrl: (value, path) => readBaseUrl(value, path).href,
  apiKey: readSecret,
  bearerToken: readSecret,
  azure: fieldsReader<NonNullable<ProviderOptions["azure"]>>({ apiVersion: readText }),
  headers: (value, path) => {
    if (!isRecord(value)) return mustBe(path, "an object of strings by header name");
    return readHeaders(value as Readonly<Record<string, string>>, path);
  },
  wireModel: readText,
  modelId: readText,
  maxPromptTokens: readPositive,
  maxOutputTokens: readPositive,
  fetch: readCallback,
  connectSocket: readCallback,
  retries: (value, path) =>
    Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : mustBe(path, "a non-negative integer"),
  responseTimeout: readPositive,
  idleTimeout: readPositive,
  maxAnswerBytes: readPositive,
  clock: (value, path) => (isClock(value) ? value : mustBe(path, "an object with now and after")),
  random: readCallback,
};

const modelReaders: FieldReaders<ModelOptions> = { ...providerReaders, model: readText };

function toRouteOptions(given: ProviderOptions, model: string | undefined): RouteOptions {
  if (given.baseUrl === undefined)
    throw new HostError("MODEL_OPTIONS", 'baseUrl is missing. Use a URL such as "http://localhost:11434/v1".');
  const { type = "openai", wireApi = "completions", azure } = given;
  return { type, wireApi, baseUrl: readBaseUrl(given.baseUrl, "baseUrl"), apiVersion: azure?.apiVersion, model };
}

function resolveProvider(given: ProviderOptions, options: RouteOptions): ProviderEndpointOptions {
  const { baseUrl, bases, keyHeader, headers } = routeTo(options);
  return {
    baseUrl,
    bases,
    credential: credentialOf(given, keyHeader),
    headers: { ...headers, ...given.headers },
    fetch: given.fetch ?? nodeFetch,
    clock: given.clock ?? systemClock,
    random: given.random ?? Math.random,
    retries: given.retries ?? 3,
    firstDelay: 500,
    longestDelay: 8_000,
    longestRetryAfter: 60_000,
    responseTimeout: given.responseTimeout ?? 300_000,
    idleTimeout: given.idleTimeout ?? 120_000,
    maxBytes: given.maxAnswerBytes ?? 64 * 1024 * 1024,
  };
}

function credentialOf({ apiKey, bearerToken }: ProviderOptions, keyHeader: Credential["header"]): Credential | undefined {
  if (bearerToken !== undefined && bearerToken !== "") return { header: "authorization", secret: bearerToken };
  return apiKey === undefined || apiKey === "" ? undefined : { header: keyHeader, secret: apiKey };
}

function readSecret(value: unknown, path: string): Secret {
  if (typeof value === "function") return value as Exclude<Secret, string>;
  // Keys that were read from files often end with a line break.
  if (isHeaderValue(typeof value === "string" ? value.trim() : value)) return (value as string).trim();
  return mustBe(path, "a string that is valid in a header, or a function that returns one");
}

function isClock(value: unknown): value is Clock {
  return isRecord(value) && typeof value["now"] === "function" && typeof value["after"] === "function";
}

/** Context windows by prefix of the model's name. Newest first, because older names are prefixes of newer ones. */
const windows: readonly (readonly [name: RegExp, tokens: number])[] = [
  [/gpt-5/i, 400_000],
  [/gpt-4\.1/i, 1_047_576],
  [/gpt-4o|gpt-4-turbo|gpt-oss/i, 128_000],
  [/(?:^|\/)o[134](?:-|$)/i, 200_000],
  [/claude/i, 200_000],
  [/gemini/i, 1_048_576],
];

/** The context window of a well-known model; undefined for others. */
function contextWindowOf(model: string): number | undefined {
  return windows.find(([name]) => name.test(model))?.[1];
}
