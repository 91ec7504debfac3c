import { mustBe, readText } from "../base/read-fields.ts";
import { anthropicMessages } from "./anthropic-messages.ts";
import { chatCompletions } from "./chat-completions.ts";
import type { ChatModel } from "./model.ts";
import type { Credential } from "./provider-endpoint.ts";
import { responses } from "./responses.ts";
import { createWireModel, type WireModelOptions } from "./wire-model.ts";

/** The kinds of endpoint that are known here; `provider.type` of others comes from plugins. */
export const providerTypes = ["openai", "azure", "anthropic"] as const;
export type ProviderType = (typeof providerTypes)[number];
export type WireApi = "completions" | "responses";

/** What decides where requests go. */
export interface RouteOptions {
  readonly type: ProviderType;
  readonly wireApi: WireApi;
  readonly baseUrl: URL;
  readonly apiVersion: string | undefined;
  /** The model's name at the endpoint; undefined when all are asked for. */
  readonly model: string | undefined;
}

/** Where requests go, and what they need besides. */
export interface Route {
  readonly baseUrl: URL;
  /** See `EndpointOptions`. */
  readonly bases: readonly string[];
  /** Where an API key is sent; tokens are always sent as such. */
  readonly keyHeader: Credential["header"];
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * An address as it is given: with or without a version, a slash at its end, or the path of the chat itself. Throws
 * `FieldError` by `mustBe`.
 */
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
  // An address that names only a server is tried as it stands, and below `/v1` when it knows nothing there: both are usual.
  return { baseUrl, bases: path === "" ? ["", "/v1"] : [path], keyHeader: "authorization", headers: {} };
}

/** A model at such a route. */
export function createModelFor({ type, wireApi }: RouteOptions, name: string, options: WireModelOptions): ChatModel {
  if (type === "anthropic") return createWireModel(options, anthropicMessages(name));
  return wireApi === "responses" ? createWireModel(options, responses(name)) : createWireModel(options, chatCompletions(name));
}

// With a version, chats go to a deployment and everything else does not; without one there is the path that OpenAI has, too.
function routeToAzure({ wireApi, baseUrl, apiVersion, model }: RouteOptions, path: string): Route {
  const { root, deployment } = readAzurePath(path);
  const version = apiVersion ?? baseUrl.searchParams.get("api-version") ?? undefined;
  const url = new URL(baseUrl);
  if (version !== undefined) url.searchParams.set("api-version", version);
  const isDeployed = version !== undefined && wireApi === "completions" && model !== undefined;
  const name = deployment ?? encodeURIComponent(model ?? "");
  const below = isDeployed ? `/openai/deployments/${name}` : version === undefined ? "/openai/v1" : "/openai";
  return { baseUrl: url, bases: [root + below], keyHeader: "api-key", headers: {} };
}

// People give the host, as they should, or what the portal shows them.
function readAzurePath(path: string): { readonly root: string; readonly deployment: string | undefined } {
  const found = /^(.*?)\/openai(?:\/(?:v1|deployments\/([^/]+)))?$/.exec(path);
  return { root: found?.[1] ?? path, deployment: found?.[2] };
}
