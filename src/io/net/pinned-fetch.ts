import { type LookupAddress, lookup } from "node:dns";
import { request as httpRequest, type IncomingMessage, type RequestOptions } from "node:http";
import { request as httpsRequest } from "node:https";
import { BlockList, isIP, isIPv4, isIPv6 } from "node:net";
import { PassThrough, pipeline, Readable } from "node:stream";
import { createBrotliDecompress, createGunzip, createInflate } from "node:zlib";

/** A host name resolves to an address that is not allowed. */
export class AddressRefused extends Error {
  override readonly name = "AddressRefused";
}

interface PinnedRequest {
  readonly url: URL;
  readonly method: string;
  readonly headers: Headers;
  readonly body: string | Uint8Array<ArrayBuffer> | undefined;
}

/**
 * One HTTP exchange, redirects not followed, over a connection to an address that was checked: the runtime's `fetch` resolves
 * names itself, so that it may connect to another address than the one that was checked.
 */
export function pinnedFetch(request: PinnedRequest, signal: AbortSignal, isAllowed: (address: string) => boolean): Promise<Response> {
  const { url, method, headers, body } = request;
  const host = url.hostname.replace(/^\[|\]$/g, "");
  // A literal address is not resolved, so `lookup` is not called for it.
  if (isIP(host) !== 0 && !isAllowed(host)) return Promise.reject(refused(url));
  return new Promise((resolve, reject) => {
    const send = url.protocol === "https:" ? httpsRequest : httpRequest;
    const sent = { "accept-encoding": "gzip, deflate, br", ...Object.fromEntries(headers) };
    // A new connection: a kept-alive one may lead to an address that is no longer allowed.
    const outgoing = send(url, { method, headers: sent, signal, agent: false, lookup: allowedLookup(url, isAllowed) }, (answer) =>
      resolve(toResponse(answer)),
    );
    outgoing.on("error", (error) => reject(error instanceof AddressRefused ? error : new TypeError("fetch failed", { cause: error })));
    outgoing.end(body);
  });
}

type Lookup = NonNullable<RequestOptions["lookup"]>;

/** Every address of a name must be allowed, because the name's owner chooses their order. */
function allowedLookup(url: URL, isAllowed: (address: string) => boolean): Lookup {
  return (hostname, options, callback) => {
    lookup(hostname, { ...options, all: true }, (error, addresses: readonly LookupAddress[] = []) => {
      const other = addresses.find(({ address }) => !isAllowed(address));
      const problem = error ?? (other === undefined ? null : refused(url));
      const [first] = addresses;
      if (problem !== null || first === undefined)
        return callback(problem ?? new Error(`${hostname} does not resolve to an address.`), "", 4);
      if (options.all === true) callback(null, [...addresses]);
      else callback(null, first.address, first.family);
    });
  };
}

// The message omits the address: it reveals the host's network, and a model may read it.
function refused({ hostname }: URL): AddressRefused {
  return new AddressRefused(`${hostname} resolves to an address that is not allowed, such as one of a private network.`);
}

function toResponse(answer: IncomingMessage): Response {
  const status = answer.statusCode ?? 0;
  const headers = new Headers();
  for (let at = 0; at + 1 < answer.rawHeaders.length; at += 2) headers.append(answer.rawHeaders[at]!, answer.rawHeaders[at + 1]!);
  // The statuses without a body, by the Fetch standard.
  const isEmpty = [101, 204, 205, 304].includes(status);
  if (isEmpty) answer.resume();
  return new Response(isEmpty ? null : (Readable.toWeb(decoded(answer)) as ReadableStream<Uint8Array>), { status, headers });
}

function decoded(answer: IncomingMessage): Readable {
  const decoders = { gzip: createGunzip, "x-gzip": createGunzip, deflate: createInflate, br: createBrotliDecompress };
  const encoding = (answer.headers["content-encoding"] ?? "").trim().toLowerCase();
  const decoder = Object.hasOwn(decoders, encoding) ? decoders[encoding as keyof typeof decoders]() : new PassThrough();
  // Errors reach the reader of the body.
  pipeline(answer, decoder, () => {});
  return decoder;
}

/** The canonical form of a host for rules: lower case, no trailing dot, and an embedded IPv4 address as IPv4. */
export function canonicalHost(hostname: string): string {
  const host = hostname.toLowerCase().replace(/\.$/, "");
  const inner = /^\[(.*)\]$/.exec(host)?.[1];
  const embedded = inner === undefined ? undefined : embeddedIPv4(inner);
  return embedded ?? host;
}

/** IPv4-mapped, IPv4-compatible, and by the well-known prefix of NAT64 (RFC 4291, 6052). URLs have them in eight groups at most. */
function embeddedIPv4(address: string): string | undefined {
  const [, high, low] = /^(?:::ffff:|::|64:ff9b::)([\da-f]{1,4}):([\da-f]{1,4})$/.exec(address) ?? [];
  if (high === undefined || low === undefined) return undefined;
  const bits = [Number.parseInt(high, 16), Number.parseInt(low, 16)];
  return bits.flatMap((each) => [each >> 8, each & 0xff]).join(".");
}

const privateNetworks = new BlockList();
for (const [network, prefix] of [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.168.0.0", 16],
  ["198.18.0.0", 15],
  ["224.0.0.0", 3],
] as const)
  privateNetworks.addSubnet(network, prefix, "ipv4");
for (const [network, prefix] of [
  ["::", 127],
  ["64:ff9b:1::", 48],
  ["fc00::", 7],
  ["fe80::", 10],
  ["fec0::", 10],
  ["ff00::", 8],
] as const)
  privateNetworks.addSubnet(network, prefix, "ipv6");

/** Whether an IP address is not public: private networks, this machine, link-local, multicast (RFC 6890). */
export function isPrivateAddress(address: string): boolean {
  const host = canonicalHost(
    address.includes(":") && !address.startsWith("[") ? new URL(`http://[${address.replace(/%.*$/, "")}]/`).hostname : address,
  );
  if (isIPv4(host)) return privateNetworks.check(host, "ipv4");
  const inner = host.replace(/^\[|\]$/g, "");
  if (!isIPv6(inner)) return false;
  const [, tunnel] = /^2002:([\da-f:]+?)::?/.exec(`${inner}:`) ?? [];
  if (tunnel !== undefined) return true;
  return privateNetworks.check(inner, "ipv6");
}

/** Whether a host, by its name or as an address, belongs to a private network or is this machine. */
export function isPrivateHost(hostname: string): boolean {
  const host = canonicalHost(hostname);
  if (isIPv4(host) || host.startsWith("[")) return isPrivateAddress(host);
  // A name without a dot belongs to the local network.
  return !host.includes(".") || /\.(?:localhost|local|internal|intranet|lan|home|corp|home\.arpa)$/.test(host);
}
