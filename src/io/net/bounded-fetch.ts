import { onAbort } from "../../base/wait-for.ts";
import { AddressRefused, isPrivateAddress, isPrivateHost, pinnedFetch } from "./pinned-fetch.ts";

export interface FetchRequest {
  readonly url: string;
  readonly method: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array<ArrayBuffer>;
  readonly signal: AbortSignal;
  /** Of the body as it is after decompression. */
  readonly maxBytes: number;
  /** Default 5. With 0 none is followed: the answer that redirects is the response. */
  readonly maxRedirects?: number;
  /**
   * Asked before every request, the first included. Without it redirects are followed within the first address's
   * origin only. A redirect from https to http is never followed.
   */
  allowHost?(url: URL): boolean;
  /** Asked about each redirect that would be followed otherwise. */
  allowRedirect?(url: URL): boolean;
  /**
   * A host whose name belongs to the public internet must not stand for an address of a private network. The address is looked
   * up once, and is the one that is connected to.
   */
  readonly guardsPrivateNetworks?: boolean;
  /** Asked about each address that a host stands for, in the same way. */
  allowAddress?(address: string, url: URL): boolean;
}

export type FetchFailure =
  | "invalid-url"
  | "invalid-request"
  | "host-refused"
  | "address-refused"
  | "redirect-refused"
  | "too-many-redirects"
  | "network"
  | "aborted";

export type FetchOutcome =
  | {
      readonly kind: "response";
      readonly status: number;
      /** Names in lower case. */
      readonly headers: Readonly<Record<string, string>>;
      /** Where the answer came from, after redirects. */
      readonly url: string;
      readonly bytes: Uint8Array;
      /** The bytes in the character set that the answer names, else UTF-8. */
      readonly text: string;
      /** Whether there was more than allowed. */
      readonly truncated: boolean;
    }
  | { readonly kind: "failed"; readonly reason: FetchFailure; readonly message: string };

/**
 * One HTTP exchange with limits. Any status is a response; what keeps one from coming is a failure, never a throw. When
 * a redirect leads to another origin, headers that may hold credentials stay behind. Messages name the host only:
 * paths, queries and headers may hold secrets.
 */
export async function boundedFetch(request: FetchRequest): Promise<FetchOutcome> {
  const url = parseUrl(request.url);
  if (url === undefined) return failed("invalid-url", "The URL is not an http or https URL, or contains a user name and password.");
  const controller = new AbortController();
  // The caller's signal may live long: nothing of ours, nor of the runtime's, is left on it.
  const waiting = onAbort(request.signal, () => controller.abort());
  try {
    return await follow(request, url, controller.signal);
  } catch (error) {
    if (error instanceof AddressRefused) return failed("address-refused", error.message);
    if (controller.signal.aborted) return failed("aborted", `The request to ${url.host} was aborted.`);
    return failed("network", `The request to ${url.host} failed (${networkCode(error)}). Check the URL and the connection.`);
  } finally {
    waiting[Symbol.dispose]();
    // Ends what is left of a body that was longer than wanted.
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
    // Checked here because the runtime's own message quotes the header that it dislikes.
    const hop: Hop = { url, method: method.toUpperCase(), headers: new Headers(headers), body };
    new Request(url, { method: hop.method, ...(body === undefined ? {} : { body }) });
    return hop;
  } catch {
    // A forbidden method, a line break in a header, a body with GET.
    return undefined;
  }
}

function send(hop: Hop, signal: AbortSignal, { guardsPrivateNetworks = false, allowAddress }: FetchRequest): Promise<Response> {
  const { url, method, headers, body } = hop;
  if (guardsPrivateNetworks || allowAddress !== undefined) {
    const isGuarded = guardsPrivateNetworks && !isPrivateHost(url.hostname);
    return pinnedFetch(hop, signal, (address) => !(isGuarded && isPrivateAddress(address)) && allowAddress?.(address, url) !== false);
  }
  return fetch(url, { method, headers, redirect: "manual", signal, ...(body === undefined ? {} : { body }) });
}

function nextHop(hop: Hop, status: number, url: URL | undefined, mayLeave: boolean): Hop | undefined {
  if (url === undefined) return undefined;
  const isElsewhere = url.origin !== hop.url.origin;
  if (isElsewhere && (!mayLeave || (hop.url.protocol === "https:" && url.protocol === "http:"))) return undefined;
  const headers = isElsewhere ? harmless(hop.headers) : new Headers(hop.headers);
  // As browsers do: 303, and a POST answered by 301 or 302, go on as GET.
  const becomesGet = (status === 303 && hop.method !== "HEAD") || (status < 303 && hop.method === "POST");
  if (!becomesGet) return { ...hop, url, headers };
  for (const name of ["content-type", "content-length", "content-encoding", "content-language"]) headers.delete(name);
  return { url, method: "GET", headers, body: undefined };
}

// Keys travel in headers of any name, so what may go on is listed and not what may not.
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
      return decode(bytes, headers["content-type"] ?? "", truncated);
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

function decode(bytes: Uint8Array, contentType: string, truncated: boolean): string {
  const charset = /;\s*charset="?([^";\s]+)/i.exec(contentType)?.[1] ?? "utf-8";
  // "stream" leaves out a last character that we have cut in two.
  try {
    return new TextDecoder(charset).decode(bytes, { stream: truncated });
  } catch {
    // A character set that nobody knows.
    return new TextDecoder().decode(bytes, { stream: truncated });
  }
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
