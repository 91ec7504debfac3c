import { type Clock, onAbort, sleep, waitFor } from "../base/wait.ts";
import { errorOfStatus } from "./http-error.ts";
import type { ModelRetry, RequestOrigin } from "./model.ts";
import { createRequestErrors, ModelError, type RequestErrors } from "./model-error.ts";
import { readBytes, readText, receiveFailure } from "./receive-bytes.ts";

/** The function that sends requests: the global `fetch` or a compatible one. */
export type ModelFetch = (url: string, request: ModelFetchRequest) => Promise<ModelFetchResponse>;

export interface ModelFetchRequest {
  readonly method: "GET" | "POST";
  readonly headers: Record<string, string>;
  readonly body?: string;
  readonly signal: AbortSignal;
  readonly redirect: "manual";
  /** The purpose of the request, if it is known. */
  readonly origin?: RequestOrigin | undefined;
}

export interface ModelFetchResponse {
  readonly status: number;
  readonly headers: { get(name: string): string | null | undefined };
  readonly body: AsyncIterable<Uint8Array> | null;
  /** It came over a WebSocket connection. */
  readonly isFromSocket?: boolean;
}

export interface ModelHttpOptions extends RetryPolicy {
  readonly fetch: ModelFetch;
  readonly clock: Clock;
  /** Returns a number from 0 to 1, for the jitter of the delays. */
  readonly random: () => number;
  /** Time limits in milliseconds until the response begins, and between two chunks. */
  readonly responseTimeout: number;
  readonly idleTimeout: number;
  /** Limit of a response after decompression. */
  readonly maxBytes: number;
}

export interface HttpCall {
  readonly method: "GET" | "POST";
  readonly url: URL;
  /** Names in lower case. Called before every attempt, because keys expire. */
  headers(): Promise<Record<string, string>>;
  readonly body?: string;
  readonly signal: AbortSignal;
  onRetry?(retry: ModelRetry): void;
  readonly origin?: RequestOrigin | undefined;
}

/** A response with a success status. */
export interface HttpAnswer {
  readonly contentType: string;
  readonly requestId: string | undefined;
  readonly isFromSocket: boolean;
  /** Can be read once. Throws a `ModelError` if the transfer fails. */
  readonly bytes: AsyncIterable<Uint8Array>;
  readonly receivedBytes: () => number;
  readonly attempt: number;
  /** The start of the attempt, by the clock. */
  readonly startedAt: number;
  readonly fault: RequestErrors;
  /** To be called when no more data is needed: the rest is read for this many milliseconds, so that the connection can be reused. */
  readonly expectEnd: (milliseconds: number) => void;
  /** To be called when a part of the reply is passed to the caller: no retry happens afterwards. */
  readonly markPassedOn: () => void;
}

/**
 * One request to a model endpoint, with retries of temporary failures. `read` consumes the response, and is called once per
 * attempt that received one; its errors other than `ModelError` are rethrown unchanged.
 */
export async function requestWithRetries<T>(
  call: HttpCall,
  options: ModelHttpOptions,
  read: (answer: HttpAnswer) => Promise<T>,
): Promise<T> {
  let isPassedOn = false;
  const markPassedOn = (): void => {
    isPassedOn = true;
  };
  for (let attempt = 1; ; attempt++) {
    try {
      return await attemptOnce(call, options, { attempt, markPassedOn }, read);
    } catch (error) {
      const mayRepeat = error instanceof ModelError && error.retryable && !isPassedOn && attempt <= options.retries;
      if (!mayRepeat) throw error;
      const delay = retryDelay(attempt, error.details.retryAfter, options, options.random);
      call.onRetry?.({ error, attempt, delay });
      const fault = createRequestErrors(call.url, {}, attempt);
      const controller = new AbortController();
      const waiting = onAbort(call.signal, () => controller.abort(aborted(fault)));
      try {
        await sleep(options.clock, delay, controller.signal);
      } finally {
        waiting[Symbol.dispose]();
      }
    }
  }
}

type Try = Pick<HttpAnswer, "attempt" | "markPassedOn">;

async function attemptOnce<T>(call: HttpCall, options: ModelHttpOptions, which: Try, read: (answer: HttpAnswer) => Promise<T>): Promise<T> {
  // The caller's signal may live long, so no listener of the runtime may stay on it.
  const controller = new AbortController();
  let fault = createRequestErrors(call.url, {}, which.attempt);
  const waiting = onAbort(call.signal, () => controller.abort(aborted(fault)));
  try {
    const headers = await waitFor(call.headers(), { signal: controller.signal });
    fault = createRequestErrors(call.url, headers, which.attempt);
    return await send(call, options, { ...which, fault, headers, controller }, read);
  } finally {
    waiting[Symbol.dispose]();
    // Cancels the rest of a response that is no longer needed.
    controller.abort();
  }
}

// Error bodies are short; an endless one is not read completely.
const errorBodyTime = 5_000;

interface Sending extends Try {
  readonly fault: RequestErrors;
  readonly headers: Record<string, string>;
  readonly controller: AbortController;
}

async function send<T>(call: HttpCall, options: ModelHttpOptions, sending: Sending, read: (answer: HttpAnswer) => Promise<T>): Promise<T> {
  const { fault, controller, attempt, markPassedOn } = sending;
  const { clock } = options;
  const expectEnd = (milliseconds: number): void => {
    const overdue = (): void => controller.abort(fault("MODEL_UNREACHABLE", "did not finish its answer.", { retryable: false }));
    const timer = clock.after(milliseconds, overdue);
    onAbort(controller.signal, () => timer[Symbol.dispose]());
  };
  const startedAt = clock.now();
  const response = await respond(call, options, sending);
  let received = 0;
  const bytes = readBytes(response.body, {
    ...options,
    fault,
    controller,
    onBytes: (total) => {
      received = total;
    },
  });
  const header = (name: string): string | undefined => response.headers.get(name) ?? undefined;
  const id = header("x-request-id") ?? header("request-id") ?? header("x-github-request-id") ?? header("apim-request-id");
  const requestId: string | undefined = id === undefined ? undefined : fault.quote(id);
  if (response.status < 200 || response.status > 299) {
    const retryAfter = readRetryAfter(header, clock.now());
    expectEnd(errorBodyTime);
    const body = await readText(bytes, 64 * 1024);
    throw errorOfStatus({ status: response.status, body, header, retryAfter, requestId }, fault);
  }
  const contentType = header("content-type") ?? "";
  const isFromSocket = response.isFromSocket === true;
  return read({
    contentType,
    requestId,
    isFromSocket,
    bytes,
    receivedBytes: () => received,
    attempt,
    startedAt,
    fault,
    expectEnd,
    markPassedOn,
  });
}

async function respond(call: HttpCall, options: ModelHttpOptions, { fault, controller, headers }: Sending): Promise<ModelFetchResponse> {
  const { method, body, url, origin } = call;
  const timer = options.clock.after(options.responseTimeout, () => {
    controller.abort(fault("MODEL_UNREACHABLE", `did not answer within ${options.responseTimeout} ms.`, { retryable: true }));
  });
  const request = {
    method,
    headers,
    signal: controller.signal,
    redirect: "manual",
    ...(body === undefined ? {} : { body }),
    ...(origin && { origin }),
  } as const;
  try {
    // The function may be custom: it may throw synchronously, or ignore the signal.
    return await waitFor(
      Promise.resolve().then(() => options.fetch(url.href, request)),
      { signal: controller.signal },
    );
  } catch (error) {
    throw receiveFailure(error, controller.signal, fault, "cannot be reached");
  } finally {
    timer[Symbol.dispose]();
  }
}

function aborted(fault: RequestErrors): ModelError {
  return fault("MODEL_ABORTED", "did not answer before the request was aborted.", { retryable: false });
}

interface RetryPolicy {
  /** The maximum number of retries. */
  readonly retries: number;
  /** Milliseconds before the first retry; each further wait is twice as long, up to `longestDelay`. */
  readonly firstDelay: number;
  readonly longestDelay: number;
  /** The upper limit for the delay that an endpoint requests. */
  readonly longestRetryAfter: number;
}

/**
 * Milliseconds to wait after the given failed try (1 for the first): the delay that the endpoint requests, otherwise between
 * half and all of the policy's delay, so that clients that failed together do not retry together.
 */
function retryDelay(attempt: number, retryAfter: number | undefined, policy: RetryPolicy, random: () => number): number {
  if (retryAfter !== undefined) return Math.min(retryAfter, policy.longestRetryAfter);
  const full = Math.min(policy.firstDelay * 2 ** Math.min(attempt - 1, 30), policy.longestDelay);
  return full * (0.5 + random() / 2);
}

/**
 * The delay in milliseconds that the response headers request: `retry-after-ms`, or `retry-after` in seconds or as a date (RFC
 * 9110, 10.2.3).
 */
function readRetryAfter(header: (name: string) => string | undefined, now: number): number | undefined {
  const milliseconds = decimal(header("retry-after-ms"));
  if (milliseconds !== undefined) return milliseconds;
  const text = header("retry-after");
  const seconds = decimal(text);
  if (seconds !== undefined) return seconds * 1000;
  // Date.parse accepts many texts; an HTTP date begins with a weekday.
  const date = text !== undefined && /^[a-z]{3,9},? /i.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(date) ? undefined : Math.max(0, date - now);
}

function decimal(text: string | undefined): number | undefined {
  return text !== undefined && /^\d{1,12}(?:\.\d{1,9})?$/.test(text) ? Number(text) : undefined;
}
