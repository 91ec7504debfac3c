import { HostError } from "../base/errors.ts";
import { redactText } from "../base/logger.ts";

export type ModelErrorCode =
  /** The endpoint refused the request, for a reason that has no code of its own. */
  | "MODEL_HTTP"
  | "MODEL_RATE_LIMITED"
  /** No connection, no answer in time, or a connection that broke. */
  | "MODEL_UNREACHABLE"
  | "MODEL_ABORTED"
  /** What came is no chat answer, is too large, or stops in the middle. */
  | "MODEL_BAD_ANSWER"
  /** The messages and tools are more than the model takes: make them shorter. */
  | "MODEL_CONTEXT_TOO_LONG"
  /** The key is missing, wrong or not allowed to use the model. */
  | "MODEL_AUTH";

/** How far an answer had come when it broke off. */
export interface PartialReply {
  readonly content: string;
  readonly reasoning: string;
}

export interface ModelErrorDetails {
  /** Whether the same request may succeed later. The tries that `complete` makes of itself are over by then. */
  readonly retryable: boolean;
  /** The HTTP status, where there was one. */
  readonly status?: number;
  /** What the endpoint calls the trouble, and says about it, without secrets. */
  readonly providerCode?: string;
  readonly providerType?: string;
  readonly providerMessage?: string;
  /** The endpoint's own id for the request. */
  readonly requestId?: string;
  /** Milliseconds that the endpoint asks to wait. */
  readonly retryAfter?: number;
  /** How often the request was sent. */
  readonly attempts?: number;
  readonly partial?: PartialReply;
  readonly cause?: Error;
}

/** Why there is no reply from a model. Neither the message nor anything else in it holds the key or a header's secret. */
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

  /** The same error, knowing what had come before it. */
  withPartial(partial: PartialReply): ModelError {
    return new ModelError(this.code, this.message, { ...this.details, partial });
  }
}

/** Makes the errors of one exchange. Whatever text they are given, they leave it without secrets, and start with where it happened. */
export interface RequestErrors {
  (code: ModelErrorCode, happened: string, details: Omit<ModelErrorDetails, "attempts">): ModelError;
  /** Takes the secrets out of a text from outside and makes it one line of bounded length. */
  readonly quote: (text: string) => string;
}

/** `headers` and `url` are what is sent: their secrets are what must not come out. */
export function createRequestErrors(url: URL, headers: Readonly<Record<string, string>>, attempts: number): RequestErrors {
  const secrets = findSecrets(url, headers);
  const quote = (text: string): string => shorten(redactText(withoutSecrets(text.slice(0, 10_000), secrets)));
  const fault = (code: ModelErrorCode, happened: string, details: Omit<ModelErrorDetails, "attempts">): ModelError => {
    const message = withoutSecrets(`The model endpoint ${url.host} ${happened}`, secrets);
    return new ModelError(code, message, { ...details, attempts });
  };
  return Object.assign(fault, { quote });
}

// A header or parameter whose name is on neither list may hold a key just as well, so what is harmless is listed.
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
// Shorter values would take ordinary words out of messages.
const shortestSecret = 6;

function findSecrets(url: URL, headers: Readonly<Record<string, string>>): readonly string[] {
  const found = new Set<string>();
  for (const [name, value] of Object.entries(headers)) {
    if (harmlessHeaders.has(name)) continue;
    for (const part of [value, ...value.split(/[\s,;=]+/)]) found.add(part.trim());
  }
  for (const [name, value] of url.searchParams) if (!harmlessParameters.has(name)) found.add(value).add(encodeURIComponent(value));
  return [...found].filter((text) => text.length >= shortestSecret && !schemes.test(text)).sort((a, b) => b.length - a.length);
}

function withoutSecrets(text: string, secrets: readonly string[]): string {
  let clean = text;
  for (const secret of secrets) clean = clean.replaceAll(secret, "[redacted]");
  return clean;
}

function shorten(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the ones that would break up a line or a terminal
  const line = text.replace(/[\u0000-\u0020\u007f-\u009f\u2028\u2029]+/g, " ").trim();
  return line.length > 500 ? `${line.slice(0, 500)}…` : line;
}
