import { HostError } from "../base/errors.ts";
import {
  type FieldReaders,
  isPlainRecord,
  mustBe,
  readCallback,
  readFields,
  readOneOf,
  readPositive,
  readText,
} from "../base/read-fields.ts";
import { createChatCompletionsModel } from "./chat-completions.ts";
import { type Clock, systemClock } from "./clock.ts";
import { createEndpoint, type EndpointOptions, isHeaderValue, readHeaders } from "./endpoint.ts";
import type { ModelFetch } from "./http.ts";
import { fetchModels, type ModelInfo } from "./list-models.ts";
import type { ChatModel } from "./model.ts";

export interface ProviderOptions {
  /** The protocol: that of OpenAI, which most endpoints and local servers speak. */
  readonly type?: "openai" | undefined;
  /** With or without `/v1`, a slash at its end or the path of the chat itself: `https://api.openai.com/v1`. */
  readonly baseUrl: string;
  /** Sent as a bearer token. A function is asked before every request. Empty: none. */
  readonly apiKey?: string | (() => string | Promise<string>) | undefined;
  /** Sent with every request. An `authorization` here takes the place of the key. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Carries the requests in the place of the runtime's. */
  readonly fetch?: ModelFetch | undefined;
  /** How often a request that met trouble of a passing kind is sent again. Default: 3. */
  readonly retries?: number | undefined;
  /** Milliseconds until an answer must begin, default 300,000, and between two pieces of it, default 120,000. */
  readonly responseTimeout?: number | undefined;
  readonly idleTimeout?: number | undefined;
  /** Bytes that one answer may have. Default: 64 MiB. */
  readonly maxAnswerBytes?: number | undefined;
  /** What waits and their spread go by. For tests. */
  readonly clock?: Clock | undefined;
  readonly random?: (() => number) | undefined;
}

export interface ModelOptions extends ProviderOptions {
  /** The model's name at the endpoint. */
  readonly model: string;
}

/**
 * A chat model at an endpoint. Nothing is sent before it is asked to complete something.
 * @throws HostError `MODEL_OPTIONS` naming the option that is unknown or wrong. Values are not quoted.
 */
export function createModel(options: ModelOptions): ChatModel {
  const given = readFields(options, "model options", "MODEL_OPTIONS", modelReaders);
  if (given.model === undefined) throw new HostError("MODEL_OPTIONS", "model is missing. Name the model as its endpoint does.");
  const resolved = resolveProvider(given);
  return createChatCompletionsModel({
    model: given.model,
    address: resolved.baseUrl.host,
    endpoint: createEndpoint(resolved),
    clock: resolved.clock,
  });
}

/**
 * Asks an endpoint for its models.
 * @throws HostError `MODEL_OPTIONS` as `createModel` does. @throws ModelError when there is no list to be had.
 */
export async function listModels(options: ProviderOptions, { signal }: { readonly signal: AbortSignal }): Promise<readonly ModelInfo[]> {
  const given = readFields(options, "provider options", "MODEL_OPTIONS", providerReaders);
  return fetchModels(createEndpoint(resolveProvider(given)), signal);
}

const providerReaders: FieldReaders<ProviderOptions> = {
  type: readOneOf(["openai"]),
  baseUrl: (value, path) => readBaseUrl(value, path).href,
  apiKey: readApiKey,
  headers: (value, path) => {
    if (!isPlainRecord(value)) return mustBe(path, "an object of texts by header name");
    return readHeaders(value as Readonly<Record<string, string>>, path);
  },
  fetch: readCallback,
  retries: (value, path) =>
    Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : mustBe(path, "0 or a whole number"),
  responseTimeout: readPositive,
  idleTimeout: readPositive,
  maxAnswerBytes: readPositive,
  clock: (value, path) => (isClock(value) ? value : mustBe(path, "an object with now and after")),
  random: readCallback,
};

const modelReaders: FieldReaders<ModelOptions> = { ...providerReaders, model: readText };

function resolveProvider(given: ProviderOptions): EndpointOptions {
  if (given.baseUrl === undefined) throw new HostError("MODEL_OPTIONS", 'baseUrl is missing. Give it like "http://localhost:11434/v1".');
  return {
    baseUrl: readBaseUrl(given.baseUrl, "baseUrl"),
    apiKey: given.apiKey === "" ? undefined : given.apiKey,
    headers: given.headers ?? {},
    fetch: given.fetch ?? ((url, request) => fetch(url, request)),
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

function readBaseUrl(value: unknown, path: string): URL {
  const text = readText(value, path).trim();
  if (!URL.canParse(text) || !/^https?:/i.test(text)) return mustBe(path, "an address that begins with http:// or https://");
  const url = new URL(text);
  if (url.username !== "" || url.password !== "") return mustBe(path, "without user name and password; use apiKey or headers");
  url.hash = "";
  url.pathname = url.pathname.replace(/\/+$/, "").replace(/\/chat\/completions$/, "");
  return url;
}

function readApiKey(value: unknown, path: string): string | (() => string | Promise<string>) {
  if (typeof value === "function") return value as () => string | Promise<string>;
  // Keys read from files often end in a line break.
  if (isHeaderValue(typeof value === "string" ? value.trim() : value)) return (value as string).trim();
  return mustBe(path, "a text that a header can hold, or a function that gives one");
}

function isClock(value: unknown): value is Clock {
  return isPlainRecord(value) && typeof value["now"] === "function" && typeof value["after"] === "function";
}
