import { HostError } from "../../base/errors.ts";
import { trafficTap } from "../../base/traffic-tap.ts";
import { onAbort } from "../../base/wait.ts";
import { AddressRefused, isPrivateAddress, isPrivateHost } from "./host-address.ts";

/** A request with limits of time and size. */
export interface FetchRequest {
  readonly url: string;
  readonly method: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array<ArrayBuffer>;
  readonly signal: AbortSignal;
  /** Limit of the body after decompression. */
  readonly maxBytes: number;
  /** Default 5. With 0 no redirect is followed: the redirecting response is returned. */
  readonly maxRedirects?: number;
  /**
   * Called before every request, including the first. Without it, redirects are followed within the first URL's origin only. A
   * redirect from https to http is never followed.
   */
  allowHost?(url: URL): boolean;
  /** Called for each redirect that would be followed otherwise. */
  allowRedirect?(url: URL): boolean;
  /**
   * A public host name must not resolve to an address of a private network. The name is resolved once, and the connection uses
   * that address.
   */
  readonly guardsPrivateNetworks?: boolean;
  /** Called for each address that a host name resolves to. */
  allowAddress?(address: string, url: URL): boolean;
}

/** Why a request was not answered. */
export type FetchFailure =
  | "invalid-url"
  | "invalid-request"
  | "host-refused"
  | "address-refused"
  | "redirect-refused"
  | "too-many-redirects"
  | "network"
  | "aborted";

/** The answer to a request, or why there is none. */
export type FetchOutcome =
  | {
      readonly kind: "response";
      readonly status: number;
      /** Names in lower case. */
      readonly headers: Readonly<Record<string, string>>;
      /** The final URL, after redirects. */
      readonly url: string;
      readonly bytes: Uint8Array;
      /** The body decoded by the charset of the response, else as UTF-8. */
      readonly text: string;
      /** Whether the body was longer than `maxBytes`. */
      readonly truncated: boolean;
    }
  | { readonly kind: "failed"; readonly reason: FetchFailure; readonly message: string };

/**
 * One HTTP exchange with limits. Any status is a response; without a response the result is a failure. It never throws. A
 * redirect to another origin drops headers that may contain credentials. Messages name the host only: paths, queries and
 * headers may hold secrets.
 */
export async function boundedFetch(request: FetchRequest): Promise<FetchOutcome> {
  const url = parseUrl(request.url);
  if (url === undefined) return failed("invalid-url", "The URL is not an http or https URL, or contains a user name and password.");
  const controller = new AbortController();
  // The caller's signal may live long, so no listener may stay on it.
  const waiting = onAbort(request.signal, () => controller.abort());
  try {
    return await follow(request, url, controller.signal);
  } catch (error) {
    if (error instanceof AddressRefused) return failed("address-refused", error.message);
    if (error instanceof HostError && error.code === "RECORDING_MISMATCH") return failed("network", error.message);
    if (controller.signal.aborted) return failed("aborted", `The request to ${url.host} was aborted.`);
    return failed("network", `The request to ${url.host} failed (${networkCode(error)}). Check the URL and the connection.`);
  } finally {
    waiting[Symbol.dispose]();
    // Cancels the rest of a body that was longer than allowed.
    controller.abort();
  }
}

interface Hop {
  readonly url: URL;
  readonly method: string;
  readonly headers: Headers;
  readonly body: string | Uint8Array<ArrayBuffer> | undefined;
}

async function follow(request: FetchRequest, url: URL, signal: AbortSignal): Promise<FetchOutcome> {
  let hop = firstHop(request, url);
  if (hop === undefined) return failed("invalid-request", `The method or a header of the request to ${url.host} is not valid HTTP.`);
  for (let left = request.maxRedirects ?? 5; ; left--) {
    if (request.allowHost?.(hop.url) === false) return failed("host-refused", `Requests to ${hop.url.host} are not allowed.`);
    const response: Response = await send(hop, signal, request);
    const location = request.maxRedirects !== 0 && isRedirect(response.status) ? response.headers.get("location") : null;
    if (location === null) return receive(response, hop.url, request.maxBytes);
    await response.body?.cancel();
    if (left <= 0) return failed("too-many-redirects", `${hop.url.host} redirects too many times.`);
    const next = nextHop(hop, response.status, parseUrl(location, hop.url), request.allowHost !== undefined);
    if (next === undefined)
      return failed("redirect-refused", `${hop.url.host} redirects to another host or protocol, which is not allowed.`);
    if (request.allowRedirect?.(next.url) === false)
      return failed("redirect-refused", `${hop.url.host} redirects to a URL that is not allowed.`);
    hop = next;
  }
}

function firstHop({ method, headers, body }: FetchRequest, url: URL): Hop | undefined {
  try {
    // Checked here because the runtime's own message quotes the invalid header.
    const hop: Hop = { url, method: method.toUpperCase(), headers: new Headers(headers), body };
    new Request(url, { method: hop.method, ...(body === undefined ? {} : { body }) });
    return hop;
  } catch {
    // A forbidden method, a line break in a header, a body with GET.
    return undefined;
  }
}

async function send(hop: Hop, signal: AbortSignal, { guardsPrivateNetworks = false, allowAddress }: FetchRequest): Promise<Response> {
  const { url, method, headers, body } = hop;
  if (guardsPrivateNetworks || allowAddress !== undefined) {
    // Loads Node's HTTP clients and decoders, which most processes do not need.
    const { pinnedFetch } = await import("./pinned-fetch.ts");
    const isGuarded = guardsPrivateNetworks && !isPrivateHost(url.hostname);
    const isAllowed = (address: string): boolean => !(isGuarded && isPrivateAddress(address)) && allowAddress?.(address, url) !== false;
    const tap = trafficTap();
    if (tap === undefined) return pinnedFetch(hop, signal, isAllowed);
    const { tappedFetch } = await import("./tapped-fetch.ts");
    return tappedFetch(tap, { url: url.href, method, headers, body }, () => pinnedFetch(hop, signal, isAllowed));
  }
  return fetch(url, { method, headers, redirect: "manual", signal, ...(body === undefined ? {} : { body }) });
}

function nextHop(hop: Hop, status: number, url: URL | undefined, mayLeave: boolean): Hop | undefined {
  if (url === undefined) return undefined;
  const isElsewhere = url.origin !== hop.url.origin;
  if (isElsewhere && (!mayLeave || (hop.url.protocol === "https:" && url.protocol === "http:"))) return undefined;
  const headers = isElsewhere ? harmless(hop.headers) : new Headers(hop.headers);
  // As browsers do: after a 303, and after a POST with 301 or 302, the next request is a GET.
  const becomesGet = (status === 303 && hop.method !== "HEAD") || (status < 303 && hop.method === "POST");
  if (!becomesGet) return { ...hop, url, headers };
  for (const name of ["content-type", "content-length", "content-encoding", "content-language"]) headers.delete(name);
  return { url, method: "GET", headers, body: undefined };
}

// Credentials may be in headers of any name, so this is a list of allowed headers.
function harmless(headers: Headers): Headers {
  const kept = new Headers();
  for (const name of ["accept", "accept-language", "content-type", "user-agent"]) {
    const value = headers.get(name);
    if (value !== null) kept.set(name, value);
  }
  return kept;
}

async function receive(response: Response, url: URL, maxBytes: number): Promise<FetchOutcome> {
  const { bytes, truncated } = await readBody(response, maxBytes);
  const headers: Record<string, string> = Object.create(null);
  response.headers.forEach((value, name) => {
    headers[name] = value;
  });
  return {
    kind: "response",
    status: response.status,
    headers,
    url: url.href,
    bytes,
    get text() {
      const contentType = headers["content-type"] ?? "";
      const charset = /;\s*charset="?([^";\s]+)/i.exec(contentType)?.[1] ?? "utf-8";
      // "stream" omits an incomplete last character of a truncated body.
      try {
        return new TextDecoder(charset).decode(bytes, { stream: truncated });
      } catch {
        // An unknown charset.
        return new TextDecoder().decode(bytes, { stream: truncated });
      }
    },
    truncated,
  };
}

async function readBody({ body }: Response, maxBytes: number): Promise<{ bytes: Uint8Array; truncated: boolean }> {
  const chunks: Uint8Array[] = [];
  let left = maxBytes;
  for await (const chunk of body ?? []) {
    if (chunk.length > left) {
      chunks.push(chunk.slice(0, left));
      return { bytes: Buffer.concat(chunks), truncated: true };
    }
    chunks.push(chunk);
    left -= chunk.length;
  }
  return { bytes: Buffer.concat(chunks), truncated: false };
}

function parseUrl(text: string, base?: URL): URL | undefined {
  if (!URL.canParse(text, base?.href)) return undefined;
  const url = new URL(text, base);
  const isPlain = (url.protocol === "http:" || url.protocol === "https:") && url.username === "" && url.password === "";
  return isPlain ? url : undefined;
}

function isRedirect(status: number): boolean {
  return status === 301 || status === 302 || status === 303 || status === 307 || status === 308;
}

function networkCode(error: unknown): string {
  const { cause, name } = error as { cause?: { code?: unknown }; name?: unknown };
  return typeof cause?.code === "string" ? cause.code : String(name);
}

function failed(reason: FetchFailure, message: string): FetchOutcome {
  return { kind: "failed", reason, message };
}
