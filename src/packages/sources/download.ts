import { HostError } from "../../base/errors.ts";
import { boundedFetch } from "../../io/net/bounded-fetch.ts";
import { isPrivateHost } from "../../io/net/host-address.ts";
import { assertAddress, type SourceCheck } from "../check-sources.ts";
import { megabytes } from "../entry-rules.ts";
import { repositoryLabel } from "./git-source.ts";

export interface Download {
  readonly status: number;
  readonly bytes: Uint8Array;
  /** After redirects. */
  readonly url: string;
}

interface DownloadOptions {
  readonly maxBytes: number;
  readonly signal: AbortSignal;
  /** Asked for the address and for the target of every redirect. */
  readonly checkSource: SourceCheck;
  onProgress(text: string): void;
}

const longestMs = 300_000;

/** Whether an address may be fetched: https, or http on this machine; without credentials, which would get into the lock file. */
export function isWebAddress(text: string): boolean {
  if (!/^https?:\/\//i.test(text) || !URL.canParse(text)) return false;
  const url = new URL(text);
  return url.username === "" && url.password === "" && (url.protocol === "https:" || isLoopback(url));
}

function isLoopback({ hostname }: URL): boolean {
  return /^(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(hostname);
}

/**
 * Fetches a file. Redirects may lead to another host, but neither away from https nor from a public host into a private network.
 * @throws HostError `SOURCE_FETCH`
 */
export async function download(address: string, { maxBytes, signal, onProgress, checkSource }: DownloadOptions): Promise<Download> {
  if (!isWebAddress(address))
    throw new HostError("SOURCE_FETCH", "The address is neither https nor on this machine, or contains credentials.");
  const first = new URL(address);
  assertAddress(address, { checkSource });
  const wasPrivate = isPrivateHost(first.hostname);
  const isAllowed = (url: URL): boolean => checkSource({ name: repositoryLabel(address), address: url.href }) === undefined;
  const allowHost = (url: URL): boolean =>
    isAllowed(url) &&
    isWebAddress(url.href) &&
    (first.protocol === "http:" || url.protocol === "https:") &&
    (wasPrivate || !isPrivateHost(url.hostname));
  const limit = AbortSignal.any([signal, AbortSignal.timeout(longestMs)]);
  const outcome = await boundedFetch({
    url: address,
    method: "GET",
    signal: limit,
    maxBytes,
    allowHost,
    guardsPrivateNetworks: !wasPrivate,
  });
  signal.throwIfAborted();
  if (outcome.kind === "failed") throw new HostError("SOURCE_FETCH", `${shown(address)} could not be fetched: ${outcome.message}`);
  if (outcome.truncated)
    throw new HostError("SOURCE_FETCH", `${shown(address)} is larger than ${megabytes(maxBytes)}, so it was not used.`);
  if (outcome.url !== first.href) onProgress(`${shown(address)} redirects to ${shown(outcome.url)}.`);
  return { status: outcome.status, bytes: outcome.bytes, url: outcome.url };
}

/** As `download`, for a file that must exist. */
export async function downloadFile(address: string, options: DownloadOptions): Promise<Uint8Array> {
  const { status, bytes } = await download(address, options);
  if (status === 200) return bytes;
  throw new HostError("SOURCE_FETCH", `${shown(address)} could not be fetched: the server answered ${status}.`);
}

/** Without the query, which may contain a secret. */
export function shown(address: string): string {
  return address.replace(/[?#].*$/s, "");
}
