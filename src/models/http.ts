import { type Clock, sleep } from "../base/clock.ts";
import { onAbort, waitFor } from "../base/wait-for.ts";
import { errorOfStatus } from "./http-error.ts";
import type { ModelRetry, RequestOrigin } from "./model.ts";
import { createRequestErrors, ModelError, type RequestErrors } from "./model-error.ts";
import { readBytes, readText, receiveFailure } from "./receive-bytes.ts";

/** What carries requests: the global `fetch`, or anything that does the same. */
export type ModelFetch = (url: string, request: ModelFetchRequest) => Promise<ModelFetchResponse>;

interface ModelFetchRequest {
  readonly method: "GET" | "POST";
  readonly headers: Record<string, string>;
  readonly body?: string;
  readonly signal: AbortSignal;
  readonly redirect: "manual";
  /** What the request is for, where that is known. */
  readonly origin?: RequestOrigin | undefined;
}

interface ModelFetchResponse {
  readonly status: number;
  readonly headers: { get(name: string): string | null };
  readonly body: AsyncIterable<Uint8Array> | null;
}

export interface ModelHttpOptions extends RetryPolicy {
  readonly fetch: ModelFetch;
  readonly clock: Clock;
  /** A number from 0 to 1, for the spread of the waits. */
  readonly random: () => number;
  /** Milliseconds until an answer must have begun, and that may lie between two pieces of it. */
  readonly responseTimeout: number;
  readonly idleTimeout: number;
  /** Of an answer, after decompression. */
  readonly maxBytes: number;
}

export interface HttpCall {
  readonly method: "GET" | "POST";
  readonly url: URL;
  /** Names in lower case. Asked before every try, since keys expire. */
  headers(): Promise<Record<string, string>>;
  readonly body?: string;
  readonly signal: AbortSignal;
  onRetry?(retry: ModelRetry): void;
  readonly origin?: RequestOrigin | undefined;
}

/** An answer with a status of success. */
export interface HttpAnswer {
  readonly contentType: string;
  readonly requestId: string | undefined;
  /** Once only. Throws `ModelError`s for what goes wrong on the way. */
  readonly bytes: AsyncIterable<Uint8Array>;
  readonly receivedBytes: () => number;
  readonly attempt: number;
  /** When the try began, by the clock. */
  readonly startedAt: number;
  readonly fault: RequestErrors;
  /** To be called when nothing more is wanted: what is left may come for so many milliseconds, so that the connection can be used again. */
  readonly expectEnd: (milliseconds: number) => void;
  /** To be called when part of the answer leaves our hands: from then on nothing is tried again. */
  readonly handOn: () => void;
}

/**
 * One exchange with a model endpoint, tried again while that makes sense. `read` takes in the answer, and is called
 * once for each try that got one; what it throws other than a `ModelError` comes out as it is.
 */
export async function exchange<T>(call: HttpCall, options: ModelHttpOptions, read: (answer: HttpAnswer) => Promise<T>): Promise<T> {
  let isHandedOn = false;
  const handOn = (): void => {
    isHandedOn = true;
  };
  for (let attempt = 1; ; attempt++) {
    try {
      return await attemptOnce(call, options, { attempt, handOn }, read);
    } catch (error) {
      const mayRepeat = error instanceof ModelError && error.retryable && !isHandedOn && attempt <= options.retries;
      if (!mayRepeat) throw error;
      await waitToRepeat(call, options, error, attempt);
    }
  }
}

async function waitToRepeat(call: HttpCall, options: ModelHttpOptions, error: ModelError, attempt: number): Promise<void> {
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

type Try = Pick<HttpAnswer, "attempt" | "handOn">;

async function attemptOnce<T>(call: HttpCall, options: ModelHttpOptions, which: Try, read: (answer: HttpAnswer) => Promise<T>): Promise<T> {
  // The caller's signal may live long: nothing of the runtime's is left on it.
  const controller = new AbortController();
  let fault = createRequestErrors(call.url, {}, which.attempt);
  const waiting = onAbort(call.signal, () => controller.abort(aborted(fault)));
  try {
    const headers = await waitFor(call.headers(), { signal: controller.signal });
    fault = createRequestErrors(call.url, headers, which.attempt);
    return await send(call, options, { ...which, fault, headers, controller }, read);
  } finally {
    waiting[Symbol.dispose]();
    // Ends what is left of an answer that nobody wants any more.
    controller.abort();
  }
}

// Explanations of an error are short; one that does not end is not waited for.
const errorBodyTime = 5_000;

interface Sending extends Try {
  readonly fault: RequestErrors;
  readonly headers: Record<string, string>;
  readonly controller: AbortController;
}

async function send<T>(call: HttpCall, options: ModelHttpOptions, sending: Sending, read: (answer: HttpAnswer) => Promise<T>): Promise<T> {
  const { fault, controller, attempt, handOn } = sending;
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
  const requestId = requestIdOf(header, fault);
  if (response.status < 200 || response.status > 299) {
    const retryAfter = readRetryAfter(header, clock.now());
    expectEnd(errorBodyTime);
    const body = await readText(bytes, 64 * 1024);
    throw errorOfStatus({ status: response.status, body, header, retryAfter, requestId }, fault);
  }
  const contentType = header("content-type") ?? "";
  return read({ contentType, requestId, bytes, receivedBytes: () => received, attempt, startedAt, fault, expectEnd, handOn });
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
    // The function may be a stranger's: it may throw at once, or not heed the signal.
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

function requestIdOf(header: (name: string) => string | undefined, fault: RequestErrors): string | undefined {
  const id = header("x-request-id") ?? header("request-id") ?? header("x-github-request-id") ?? header("apim-request-id");
  return id === undefined ? undefined : fault.quote(id);
}

interface RetryPolicy {
  /** How often a request is sent again. */
  readonly retries: number;
  /** Milliseconds before the first retry; each further wait is twice as long, up to `longestDelay`. */
  readonly firstDelay: number;
  readonly longestDelay: number;
  /** Of what an endpoint asks to wait, no more than this is waited. */
  readonly longestRetryAfter: number;
}

/**
 * Milliseconds to wait after the given failed try (1 for the first): as long as the endpoint asks, otherwise between
 * half and all of the policy's wait, so that clients that failed together do not come back together.
 */
function retryDelay(attempt: number, retryAfter: number | undefined, policy: RetryPolicy, random: () => number): number {
  if (retryAfter !== undefined) return Math.min(retryAfter, policy.longestRetryAfter);
  const full = Math.min(policy.firstDelay * 2 ** Math.min(attempt - 1, 30), policy.longestDelay);
  return full * (0.5 + random() / 2);
}

/** Milliseconds that an answer's headers ask to wait: `retry-after-ms`, or `retry-after` in seconds or as a date (RFC 9110, 10.2.3). */
function readRetryAfter(header: (name: string) => string | undefined, now: number): number | undefined {
  const milliseconds = decimal(header("retry-after-ms"));
  if (milliseconds !== undefined) return milliseconds;
  const text = header("retry-after");
  const seconds = decimal(text);
  if (seconds !== undefined) return seconds * 1000;
  // Date.parse takes many things for a date; an HTTP date begins with the name of a day.
  const date = text !== undefined && /^[a-z]{3,9},? /i.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(date) ? undefined : Math.max(0, date - now);
}

function decimal(text: string | undefined): number | undefined {
  return text !== undefined && /^\d{1,12}(?:\.\d{1,9})?$/.test(text) ? Number(text) : undefined;
}
