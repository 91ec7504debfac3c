import { HostError } from "../base/errors.ts";
import { redactText } from "../base/logger.ts";
import { shorten } from "../base/text.ts";

/** The cause of a failed request to a model. */
export type ModelErrorCode =
  /** The endpoint refused the request for a reason without a separate code. */
  | "MODEL_HTTP"
  | "MODEL_RATE_LIMITED"
  /** No connection, a timeout, or a broken connection. */
  | "MODEL_UNREACHABLE"
  | "MODEL_ABORTED"
  /** The response is not a chat reply, is too large, or is incomplete. */
  | "MODEL_BAD_ANSWER"
  /** The messages and tools exceed the context window: shorten them. */
  | "MODEL_CONTEXT_TOO_LONG"
  /** The key is missing, wrong or not allowed to use the model. */
  | "MODEL_AUTH";

/** The received part of an interrupted reply. */
export interface PartialReply {
  readonly content: string;
  readonly reasoning: string;
}

/** What is known about a failed request to a model. */
export interface ModelErrorDetails {
  /** Whether the same request may succeed later. The retries of `complete` are exhausted by then. */
  readonly retryable: boolean;
  /** The HTTP status, if a response was received. */
  readonly status?: number;
  /** The endpoint's own error code and message, without secrets. */
  readonly providerCode?: string;
  readonly providerType?: string;
  readonly providerMessage?: string;
  /** The endpoint's own id for the request. */
  readonly requestId?: string;
  /** The delay in milliseconds that the endpoint requests. */
  readonly retryAfter?: number;
  /** How often the request was sent. */
  readonly attempts?: number;
  readonly partial?: PartialReply;
  readonly cause?: Error;
}

/** The reason that a model sent no reply. Neither the message nor the details contain the key or a secret header value. */
export class ModelError extends HostError {
  override readonly code: ModelErrorCode;
  readonly details: ModelErrorDetails;

  constructor(code: ModelErrorCode, message: string, details: ModelErrorDetails) {
    super(code, message, details.cause === undefined ? undefined : { cause: details.cause });
    this.name = "ModelError";
    this.code = code;
    this.details = details;
  }

  get retryable(): boolean {
    return this.details.retryable;
  }

  get status(): number | undefined {
    return this.details.status;
  }

  /** A copy of the error with the part that was received before it. */
  withPartial(partial: PartialReply): ModelError {
    return new ModelError(this.code, this.message, { ...this.details, partial });
  }
}

/** Creates the errors of one request. Their messages begin with the endpoint, and secrets are removed from them. */
export interface RequestErrors {
  (code: ModelErrorCode, happened: string, details: Omit<ModelErrorDetails, "attempts">): ModelError;
  /** Removes the secrets from a foreign text and shortens it to one line of bounded length. */
  readonly quote: (text: string) => string;
}

/** `headers` and `url` of the request contain the secrets that must not appear in messages. */
export function createRequestErrors(url: URL, headers: Readonly<Record<string, string>>, attempts: number): RequestErrors {
  const found = new Set<string>();
  for (const [name, value] of Object.entries(headers)) {
    if (harmlessHeaders.has(name)) continue;
    for (const part of [value, ...value.split(/[\s,;=]+/)]) found.add(part.trim());
  }
  for (const [name, value] of url.searchParams) if (!harmlessParameters.has(name)) found.add(value).add(encodeURIComponent(value));
  const secrets = [...found].filter((text) => text.length >= shortestSecret && !schemes.test(text)).sort((a, b) => b.length - a.length);
  const quote = (text: string): string => oneLine(redactText(withoutSecrets(text.slice(0, 10_000), secrets)));
  const fault = (code: ModelErrorCode, happened: string, details: Omit<ModelErrorDetails, "attempts">): ModelError => {
    const message = withoutSecrets(`The model endpoint ${url.host} ${happened}`, secrets);
    return new ModelError(code, message, { ...details, attempts });
  };
  return Object.assign(fault, { quote });
}

// Any header or parameter may contain a key, so these lists contain the harmless ones.
const harmlessHeaders = new Set([
  "accept",
  "accept-language",
  "anthropic-beta",
  "anthropic-version",
  "content-type",
  "user-agent",
  "x-initiator",
  "traceparent",
  "tracestate",
]);
const harmlessParameters = new Set(["api-version", "version", "alt"]);
const schemes = /^(?:bearer|basic|digest|token|apikey)$/i;
// Shorter values would remove ordinary words from messages.
const shortestSecret = 6;

function withoutSecrets(text: string, secrets: readonly string[]): string {
  let clean = text;
  for (const secret of secrets) clean = clean.replaceAll(secret, "[redacted]");
  return clean;
}

function oneLine(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: those that break lines or change a terminal
  const line = text.replace(/[\u0000-\u0020\u007f-\u009f\u2028\u2029]+/g, " ").trim();
  return shorten(line, 500);
}
