import { isRecord, type Json } from "../../base/json.ts";
import type { TrafficTap } from "../../base/traffic-tap.ts";

interface TappedRequest {
  readonly url: string;
  readonly method: string;
  readonly headers: Headers;
  readonly body: string | Uint8Array | undefined;
}

// Other headers may contain credentials, or differ each time.
const keptOfRequest = ["content-type"];
const keptOfResponse = ["content-type", "link", "location", "retry-after"];

/** Sends a request and keeps the exchange, or answers it from a recording. Streams of events may never end, so they pass unrecorded. */
export async function tappedFetch(tap: TrafficTap, request: TappedRequest, send: () => Promise<Response>): Promise<Response> {
  if (!tap.isReplay && request.headers.get("accept")?.includes("text/event-stream")) return send();
  const body = bodyToJson(request.body, request.headers.get("content-type"));
  const headers = keptHeaders(request.headers, keptOfRequest);
  const asked = { method: request.method, url: request.url, ...headers, ...(body !== undefined && { body }) };
  if (tap.isReplay) return toResponse(tap.replay("http", asked));
  const response = await send();
  const bytes = new Uint8Array(await response.arrayBuffer());
  const answered = bodyToJson(bytes, response.headers.get("content-type"));
  tap.record("http", asked, {
    status: response.status,
    ...keptHeaders(response.headers, keptOfResponse),
    ...(answered !== undefined && { body: answered }),
  });
  return withBody(bytes, response.status, withoutCoding(response.headers));
}

/** Sends the requests of `fetch` through the tap until it is disposed of. */
export function tapGlobalFetch(tap: TrafficTap): Disposable {
  const real = globalThis.fetch;
  const replaced: typeof fetch = async (input, init) => {
    const request = new Request(input, init);
    const body = request.body === null ? undefined : new Uint8Array(await request.clone().arrayBuffer());
    return tappedFetch(tap, { url: request.url, method: request.method, headers: request.headers, body }, () => real(request));
  };
  globalThis.fetch = replaced;
  return {
    [Symbol.dispose]: () => {
      if (globalThis.fetch === replaced) globalThis.fetch = real;
    },
  };
}

/** A body as people read it: JSON as data, text as text, anything else as `{ base64 }`. */
function bodyToJson(body: string | Uint8Array | undefined, type: string | null): unknown {
  if (body === undefined || body.length === 0) return undefined;
  const bytes = typeof body === "string" ? Buffer.from(body) : Buffer.from(body);
  const text = bytes.toString("utf8");
  if (!Buffer.from(text).equals(bytes)) return { base64: bytes.toString("base64") };
  if (type !== null && !/\bjson\b/i.test(type)) return text;
  try {
    const value: unknown = JSON.parse(text);
    // What has the form of the other kinds of bodies stays text.
    return typeof value === "string" || (isRecord(value) && "base64" in value) ? text : value;
  } catch {
    return text;
  }
}

function toResponse(answer: Json | undefined): Response {
  const { status, headers, body } = answer ?? {};
  const bytes =
    isRecord(body) && typeof body["base64"] === "string" ? Buffer.from(body["base64"], "base64") : Buffer.from(textOfBody(body));
  return withBody(new Uint8Array(bytes), typeof status === "number" ? status : 200, new Headers((headers ?? {}) as Record<string, string>));
}

function textOfBody(body: unknown): string {
  if (body === undefined) return "";
  return typeof body === "string" ? body : JSON.stringify(body);
}

function withBody(bytes: Uint8Array<ArrayBuffer>, status: number, headers: Headers): Response {
  const isEmpty = status === 101 || status === 204 || status === 205 || status === 304;
  return new Response(isEmpty ? null : bytes, { status, headers });
}

/** The bytes are decoded already. */
function withoutCoding(headers: Headers): Headers {
  const kept = new Headers(headers);
  for (const name of ["content-encoding", "content-length", "transfer-encoding"]) kept.delete(name);
  return kept;
}

function keptHeaders(headers: Headers, names: readonly string[]): { readonly headers?: Readonly<Record<string, string>> } {
  const kept = names.flatMap((name) => {
    const value = headers.get(name);
    return value === null ? [] : [[name, value] as const];
  });
  return kept.length === 0 ? {} : { headers: Object.fromEntries(kept) };
}
