import { request as httpRequest, type IncomingMessage } from "node:http";
import { request as httpsRequest } from "node:https";
import { isIP } from "node:net";
import { PassThrough, pipeline, Readable } from "node:stream";
import { createBrotliDecompress, createGunzip, createInflate } from "node:zlib";
import { addressRefused, checkedLookup } from "./checked-lookup.ts";
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
  if (isIP(host) !== 0 && !isAllowed(host)) return Promise.reject(addressRefused(url.hostname));
  return new Promise((resolve, reject) => {
    const send = url.protocol === "https:" ? httpsRequest : httpRequest;
    const sent = { "accept-encoding": "gzip, deflate, br", ...Object.fromEntries(headers) };
    // A new connection: a kept-alive one may lead to an address that is no longer allowed.
    const outgoing = send(url, { method, headers: sent, signal, agent: false, lookup: checkedLookup(url.hostname, isAllowed) }, (answer) =>
      resolve(toResponse(answer)),
    );
    outgoing.on("error", (error) => reject(error instanceof AddressRefused ? error : new TypeError("fetch failed", { cause: error })));
    outgoing.end(body);
  });
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
