import { htmlToText } from "./html-text.ts";
import type { Machine } from "./machine.ts";
import type { Roots } from "./places.ts";

export type FetchedPage =
  | { readonly kind: "page"; readonly text: string; readonly isPart: boolean }
  /** A redirect to another host, for which there is no permission. */
  | { readonly kind: "redirect"; readonly url: string }
  | { readonly kind: "status"; readonly status: number }
  | { readonly kind: "binary"; readonly contentType: string }
  | { readonly kind: "failed"; readonly message: string };

/** What fetching pages needs. */
export interface WebMachine extends Pick<Machine, "fetch"> {
  /** Host names that may resolve to addresses of a private network. */
  readonly privateHosts: readonly string[];
}

const maxBytes = 5 * 1024 * 1024;
const timeout = 30_000;

export interface FetchPageOptions {
  /** Returns HTML unchanged. */
  readonly raw: boolean;
  readonly signal: AbortSignal;
  readonly roots: Pick<Roots, "isAddressKeptBack">;
}

/** Fetches a page over HTTP and returns its text. Follows redirects on the same host only. */
export async function fetchPage(url: string, { raw, signal, roots }: FetchPageOptions, machine: WebMachine): Promise<FetchedPage> {
  const first = new URL(url);
  let elsewhere: string | undefined;
  const answer = await machine.fetch({
    url,
    method: "GET",
    headers: { accept: "text/html, text/markdown, text/plain, application/json;q=0.9, */*;q=0.5", "user-agent": "skillhost" },
    signal: AbortSignal.any([signal, AbortSignal.timeout(timeout)]),
    maxBytes,
    guardsPrivateNetworks: !machine.privateHosts.includes(first.hostname),
    allowAddress: (address, { protocol, port }) =>
      roots.isAddressKeptBack?.(`${protocol}//${address.includes(":") ? `[${address}]` : address}${port === "" ? "" : `:${port}`}/`) !==
      true,
    allowHost(next) {
      if (isSameHost(first, next)) return true;
      elsewhere = next.href;
      return false;
    },
  });
  if (elsewhere !== undefined) return { kind: "redirect", url: elsewhere };
  if (answer.kind === "failed") return { kind: "failed", message: answer.message };
  if (answer.status < 200 || answer.status > 299) return { kind: "status", status: answer.status };
  const contentType = (answer.headers["content-type"] ?? "").split(";")[0]!.trim().toLowerCase();
  if (!isText(contentType, answer.bytes)) return { kind: "binary", contentType };
  const isHtml = /html/.test(contentType) || (contentType === "" && /^\s*<(!doctype html|html)/i.test(answer.text.slice(0, 500)));
  return { kind: "page", text: isHtml && !raw ? htmlToText(answer.text, answer.url) : answer.text, isPart: answer.truncated };
}

/** The same host name, on the default port or the requested one. */
function isSameHost(first: URL, next: URL): boolean {
  if (first.hostname !== next.hostname) return false;
  return first.port === next.port || (first.port === "" && next.port === "");
}

function isText(contentType: string, bytes: Uint8Array): boolean {
  if (/^text\/|json|xml|javascript|ecmascript|yaml|toml|csv|x-www-form-urlencoded/.test(contentType)) return true;
  return (contentType === "" || contentType === "application/octet-stream") && !bytes.subarray(0, 8192).includes(0);
}

/** Why an address cannot be fetched. */
export function addressFault(url: string): string | undefined {
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  if (parsed === undefined || !/^https?:$/.test(parsed.protocol)) return `${shortened(url)} is not an http or https address.`;
  return parsed.username === "" && parsed.password === ""
    ? undefined
    : "The address contains a user name or password, which cannot be sent.";
}

/** Why a page cannot be returned. `tool`: the name of the tool that fetches pages. */
export function pageFaultText(page: Exclude<FetchedPage, { kind: "page" }>, tool: string): string {
  if (page.kind === "redirect") return `it redirects to another host. Call ${tool} with ${shortened(page.url)} instead.`;
  if (page.kind === "status") return `the server answered with HTTP status ${page.status}.`;
  if (page.kind === "binary") return `it is not text${page.contentType === "" ? "" : ` but ${page.contentType.slice(0, 100)}`}.`;
  return page.message;
}

export function shortened(url: string): string {
  return url.length > 500 ? `${url.slice(0, 500)}…` : url;
}
