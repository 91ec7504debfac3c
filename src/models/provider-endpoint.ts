import { HostError } from "../base/errors.ts";
import { packageVersion } from "../base/package-root.ts";
import { type HttpAnswer, type HttpCall, type ModelHttpOptions, requestWithRetries } from "./http.ts";
import { createRequestErrors, ModelError } from "./model-error.ts";

/** A key or token, or a function that returns one. */
export type Secret = string | (() => string | Promise<string>);

/** The credential of requests. */
export interface Credential {
  /** The header that contains it; in `authorization` as a bearer token. */
  readonly header: "authorization" | "api-key" | "x-api-key";
  readonly secret: Secret;
}

/** An endpoint as resolved from options. */
export interface ProviderEndpointOptions extends ModelHttpOptions {
  /** Its path is ignored; `bases` contain the paths. */
  readonly baseUrl: URL;
  /** The candidate base paths. They are tried in order, and the first valid one is kept. */
  readonly bases: readonly string[];
  readonly credential: Credential | undefined;
  /** Names in lower case. A credential among them replaces `credential`. */
  readonly headers: Readonly<Record<string, string>>;
}

interface EndpointCall extends Pick<HttpCall, "method" | "body" | "signal" | "onRetry" | "origin"> {
  /** Relative to the base, with a leading slash. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface Endpoint {
  /** Sends a request with the endpoint's key and headers; see `requestWithRetries`. */
  request<T>(call: EndpointCall, read: (answer: HttpAnswer) => Promise<T>): Promise<T>;
}

export function createEndpoint(options: ProviderEndpointOptions): Endpoint {
  let { bases } = options;
  return {
    request: async (call, read) => {
      const headers = { ...options.headers, ...readHeaders(call.headers ?? {}, "headers of the request") };
      for (const [tried, base] of bases.entries()) {
        try {
          const result = await requestWithRetries(toHttpCall(options, call, headers, base), options, read);
          bases = [base];
          return result;
        } catch (error) {
          if (tried === bases.length - 1 || !isUnknownPath(error)) throw error;
        }
      }
      throw new Error("An endpoint needs at least one base URL.");
    },
  };
}

/**
 * Validates headers and converts their names to lower case.
 * @throws HostError `MODEL_OPTIONS` naming the invalid header, without its value.
 */
export function readHeaders(headers: Readonly<Record<string, string>>, what: string): Record<string, string> {
  const read: Record<string, string> = Object.create(null);
  for (const [name, value] of Object.entries(headers)) {
    const problem = headerFault(name, value);
    if (problem !== undefined) throw new HostError("MODEL_OPTIONS", `In the ${what}, ${JSON.stringify(name)} ${problem}.`);
    read[name.toLowerCase()] = value;
  }
  return read;
}

/** Whether a text is a valid header value. */
export function isHeaderValue(value: unknown): value is string {
  return typeof value === "string" && /^[\t\x20-\x7e\x80-\xff]*$/.test(value);
}

const ownedByTransport = /^(?:connection|content-length|expect|host|keep-alive|te|trailer|transfer-encoding|upgrade|proxy-.*)$/i;

function headerFault(name: string, value: unknown): string | undefined {
  if (!/^[!#$%&'*+.^_`|~0-9a-z-]+$/i.test(name)) return "is not a valid header name";
  if (ownedByTransport.test(name)) return "is reserved for the connection; remove it";
  return isHeaderValue(value) ? undefined : "has a value that is not a string, or contains characters that are not allowed in headers";
}

function toHttpCall(
  options: ProviderEndpointOptions,
  call: EndpointCall,
  headers: Readonly<Record<string, string>>,
  base: string,
): HttpCall {
  const url = new URL(options.baseUrl);
  url.pathname = base + call.path;
  for (const [name, value] of Object.entries(call.query ?? {})) url.searchParams.set(name, value);
  return {
    method: call.method,
    url,
    signal: call.signal,
    origin: call.origin,
    headers: async () => ({
      accept: "application/json, text/event-stream",
      "user-agent": `skillhost/${packageVersion}`,
      ...(call.body === undefined ? {} : { "content-type": "application/json" }),
      ...(await proof(options.credential, headers, url)),
      ...headers,
    }),
    ...(call.body === undefined ? {} : { body: call.body }),
    ...(call.onRetry === undefined ? {} : { onRetry: call.onRetry }),
  };
}

async function proof(
  credential: Credential | undefined,
  headers: Readonly<Record<string, string>>,
  url: URL,
): Promise<Readonly<Record<string, string>>> {
  if (credential === undefined || headers["authorization"] !== undefined || headers[credential.header] !== undefined) return {};
  const { header, secret } = credential;
  const key = typeof secret === "string" ? secret : await askFor(secret, url);
  return { [header]: header === "authorization" ? `Bearer ${key}` : key };
}

async function askFor(secret: () => string | Promise<string>, url: URL): Promise<string> {
  const fault = createRequestErrors(url, {}, 0);
  let key: unknown;
  try {
    key = await secret();
  } catch {
    // The function's error message may contain parts of the key.
    throw fault("MODEL_AUTH", "got no request: the function that returns its API key failed.", { retryable: false });
  }
  if (isHeaderValue(key) && key.trim() !== "") return key.trim();
  const happened = "got no request: the function that returns its API key did not return a valid header value.";
  throw fault("MODEL_AUTH", happened, { retryable: false });
}

// An unknown model has the same status.
function isUnknownPath(error: unknown): boolean {
  if (!(error instanceof ModelError) || (error.status !== 404 && error.status !== 405)) return false;
  return !/model/i.test(`${error.details.providerCode} ${error.details.providerType}`);
}
