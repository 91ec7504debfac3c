import { mustBe, readText } from "../base/read-fields.ts";
import { anthropicMessages } from "./anthropic-messages.ts";
import { createAutoModel } from "./auto-model.ts";
import { chatCompletions } from "./chat-completions.ts";
import type { ChatModel } from "./model.ts";
import type { Credential, Endpoint } from "./provider-endpoint.ts";
import { responses } from "./responses.ts";
import { createWireModel, type WireModelOptions } from "./wire-model.ts";

/** The built-in endpoint types; plugins add other values of `provider.type`. */
export const providerTypes = ["openai", "azure", "anthropic"] as const;
export type ProviderType = (typeof providerTypes)[number];
export const wireApis = ["completions", "responses", "auto"] as const;
export type WireApi = (typeof wireApis)[number];
export const transports = ["http", "websockets"] as const;
export type Transport = (typeof transports)[number];

/** The options that determine the route of requests. */
export interface RouteOptions {
  readonly type: ProviderType;
  readonly wireApi: WireApi;
  readonly baseUrl: URL;
  readonly apiVersion: string | undefined;
  /** The model's name at the endpoint; undefined when listing models. */
  readonly model: string | undefined;
}

/** The route of requests with its headers and credential. */
export interface Route {
  readonly baseUrl: URL;
  /** See `EndpointOptions`. */
  readonly bases: readonly string[];
  /** The header of an API key; tokens are always sent as bearer tokens. */
  readonly keyHeader: Credential["header"];
  readonly headers: Readonly<Record<string, string>>;
}

/** Parses a base URL with or without a version, a trailing slash, or the path of the chat endpoint. Throws `FieldError` by `mustBe`. */
export function readBaseUrl(value: unknown, path: string): URL {
  const text = readText(value, path).trim();
  if (!URL.canParse(text) || !/^https?:/i.test(text)) return mustBe(path, "a URL that begins with http:// or https://");
  const url = new URL(text);
  if (url.username !== "" || url.password !== "") return mustBe(path, "a URL without user name and password; use apiKey or headers");
  url.hash = "";
  url.pathname = url.pathname.replace(/\/+$/, "").replace(/\/(?:chat\/completions|responses|messages)$/, "");
  return url;
}

export function routeTo(options: RouteOptions): Route {
  const { type, baseUrl } = options;
  const path = baseUrl.pathname.replace(/\/+$/, "");
  if (type === "azure") return routeToAzure(options, path);
  if (type === "anthropic") {
    const bases = [path.endsWith("/v1") ? path : `${path}/v1`];
    return { baseUrl, bases, keyHeader: "x-api-key", headers: { "anthropic-version": "2023-06-01" } };
  }
  // A URL without a path is tried unchanged, then with `/v1`: both are common.
  return { baseUrl, bases: path === "" ? ["", "/v1"] : [path], keyHeader: "authorization", headers: {} };
}

/** A model on a route. `socket`: the same endpoint over WebSocket connections, if they are to be used. */
export function createModelFor(
  { type, wireApi }: RouteOptions,
  name: string,
  options: WireModelOptions,
  socket: Endpoint | undefined,
): ChatModel {
  if (type === "anthropic") return createWireModel(options, anthropicMessages(name));
  if (wireApi === "responses") return createWireModel({ ...options, endpoint: socket ?? options.endpoint }, responses(name));
  const chat = createWireModel(options, chatCompletions(name));
  if (wireApi === "completions" || type !== "openai") return chat;
  const overHttp = createWireModel(options, responses(name));
  const overSocket = socket && createWireModel({ ...options, endpoint: socket }, responses(name));
  return createAutoModel({ chat, responses: overHttp, overSocket, endpoint: options.endpoint, name });
}

// With an API version, only chat requests go to a deployment; without one, the paths are those of OpenAI.
function routeToAzure({ wireApi, baseUrl, apiVersion, model }: RouteOptions, path: string): Route {
  // Users pass the host, as documented, or the URL from the portal.
  const found = /^(.*?)\/openai(?:\/(?:v1|deployments\/([^/]+)))?$/.exec(path);
  const { root, deployment } = { root: found?.[1] ?? path, deployment: found?.[2] };
  const version = apiVersion ?? baseUrl.searchParams.get("api-version") ?? undefined;
  const url = new URL(baseUrl);
  if (version !== undefined) url.searchParams.set("api-version", version);
  const isDeployed = version !== undefined && wireApi === "completions" && model !== undefined;
  const name = deployment ?? encodeURIComponent(model ?? "");
  const below = isDeployed ? `/openai/deployments/${name}` : version === undefined ? "/openai/v1" : "/openai";
  return { baseUrl: url, bases: [root + below], keyHeader: "api-key", headers: {} };
}
