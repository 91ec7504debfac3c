import { type LookupAddress, lookup } from "node:dns";
import { request as httpRequest, type IncomingMessage, type RequestOptions } from "node:http";
import { request as httpsRequest } from "node:https";
import { isIP } from "node:net";
import { PassThrough, pipeline, Readable } from "node:stream";
import { createBrotliDecompress, createGunzip, createInflate } from "node:zlib";
import { AddressRefused } from "./host-address.ts";

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
