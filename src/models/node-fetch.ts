import type { IncomingMessage, request } from "node:http";
import type { Transform } from "node:stream";
import { onAbort } from "../base/wait.ts";
import type { ModelFetch } from "./http.ts";

/**
 * Sends requests with Node's own HTTP client and its global agents: connections are reused, and the agents' settings (a proxy,
 * certificates) apply. The global `fetch` is several times slower.
 */
export const nodeFetch: ModelFetch = async (address, { method, headers, body, signal }) => {
  const url = new URL(address);
  const send = await clientFor(url.protocol);
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    const sent = send(url, { method, headers: { "accept-encoding": "gzip, deflate, br", ...headers } });
    sent.on("error", reject);
    sent.once("response", (response) => {
      // The reader receives errors. Without a reader they are ignored.
      response.on("error", () => {});
      sent.on("error", (error) => response.destroy(error));
      resolve(response);
    });
    const waiting = onAbort(signal, () => sent.destroy(signal.reason));
    sent.once("close", () => waiting[Symbol.dispose]());
    sent.end(body);
  });
  return {
    status: answer.statusCode ?? 0,
    headers: new Map(Object.entries(answer.headers).map(([header, value]) => [header, Array.isArray(value) ? value.join(", ") : value])),
    body: await decode(answer),
  };
};

const clients = new Map<string, Promise<typeof request>>();

/** Loaded with the first request, because TLS is large and a local model does not need it. */
function clientFor(protocol: string): Promise<typeof request> {
  let client = clients.get(protocol);
  if (client === undefined) {
    const loading: Promise<{ readonly request: typeof request }> = protocol === "https:" ? import("node:https") : import("node:http");
    client = loading.then((module) => module.request);
    clients.set(protocol, client);
  }
  return client;
}

/** The decoded body; codings are removed in reverse order. */
async function decode(answer: IncomingMessage): Promise<AsyncIterable<Uint8Array>> {
  const codings = (answer.headers["content-encoding"] ?? "").toLowerCase().split(",");
  if (codings.length > mostCodings) return answer;
  const decoders: Transform[] = [];
  for (const coding of codings.reverse()) {
    const decoder = coding.trim() === "" ? undefined : await decoderFor(coding.trim());
    if (decoder !== undefined) decoders.push(decoder);
  }
  const last = decoders.at(-1);
  if (last === undefined) return answer;
  const { pipeline } = await import("node:stream");
  // The last decoder, which is read, reports the end and errors.
  pipeline([answer, ...decoders], () => {});
  return last;
}

// Each decoder takes memory, and a header can list thousands. A response with too many codings is refused.
const mostCodings = 5;

/** Flushes decoded data immediately, because a stream may take minutes. */
async function decoderFor(coding: string): Promise<Transform | undefined> {
  const { constants, createBrotliDecompress, createGunzip, createInflate } = await import("node:zlib");
  const { BROTLI_OPERATION_FLUSH: brotliFlush, Z_SYNC_FLUSH: flush } = constants;
  if (coding === "gzip" || coding === "x-gzip") return createGunzip({ flush, finishFlush: flush });
  if (coding === "deflate") return createInflate({ flush, finishFlush: flush });
  return coding === "br" ? createBrotliDecompress({ flush: brotliFlush, finishFlush: brotliFlush }) : undefined;
}
