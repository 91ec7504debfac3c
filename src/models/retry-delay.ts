export interface RetryPolicy {
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
export function retryDelay(attempt: number, retryAfter: number | undefined, policy: RetryPolicy, random: () => number): number {
  if (retryAfter !== undefined) return Math.min(retryAfter, policy.longestRetryAfter);
  const full = Math.min(policy.firstDelay * 2 ** Math.min(attempt - 1, 30), policy.longestDelay);
  return full * (0.5 + random() / 2);
}

/** Milliseconds that an answer's headers ask to wait: `retry-after-ms`, or `retry-after` in seconds or as a date (RFC 9110, 10.2.3). */
export function readRetryAfter(header: (name: string) => string | undefined, now: number): number | undefined {
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
