import { isRecord } from "../base/json.ts";
import type { ModelError, ModelErrorCode, ModelErrorDetails, RequestErrors } from "./model-error.ts";

export interface RefusedAnswer {
  readonly status: number;
  readonly body: string;
  readonly header: (name: string) => string | undefined;
  readonly retryAfter: number | undefined;
  readonly requestId: string | undefined;
}

/** The error for a response with an error status. */
export function errorOfStatus(answer: RefusedAnswer, fault: RequestErrors): ModelError {
  const { status, header, retryAfter, requestId } = answer;
  if (status >= 300 && status < 400) {
    const location = header("location");
    const to = location !== undefined && URL.canParse(location) ? ` to ${fault.quote(new URL(location).origin)}` : "";
    return fault("MODEL_HTTP", `redirects${to} (${status}), which is not followed. Use the target of the redirect as the base URL.`, {
      status,
      retryable: false,
    });
  }
  const said = readDetails(parse(answer.body), fault.quote) ?? plainDetails(answer.body, fault.quote);
  const code = codeOf(status, said);
  const details = {
    ...said,
    status,
    retryable: isRetryable(status, code, said, header("x-should-retry")),
    ...(requestId === undefined ? {} : { requestId }),
    ...(retryAfter === undefined ? {} : { retryAfter }),
  };
  return fault(code, `answered ${status}${quoted(said)}. ${advice(code, status, said)}`, details);
}

/** The error in the body of a response with a success status, as gateways send it after a stream has begun; undefined if there is none. */
export function errorOfBody(body: unknown, fault: RequestErrors): ModelError | undefined {
  if (!isRecord(body) || body["error"] === undefined || body["error"] === null) return undefined;
  const said = readDetails(body, fault.quote) ?? {};
  const status = Number(said.providerCode);
  const code = codeOf(status, said);
  const retryable =
    isRetryable(status, code, said, undefined) || /overload|unavailable|timeout|server_error|api_error/i.test(wordsOf(said));
  return fault(code, `broke off with an error${quoted(said)}. ${advice(code, status, said)}`, { ...said, retryable });
}

type ErrorDetails = Pick<ModelErrorDetails, "providerCode" | "providerType" | "providerMessage">;
type Quote = (text: string) => string;

// In use: {error: {message, code, type, details: {error_code}}}, {error: "…"}, {message, code, type}, {detail: "…" or [{msg}]}.
function readDetails(body: unknown, quote: Quote): ErrorDetails | undefined {
  if (!isRecord(body)) return undefined;
  const error = body["error"];
  const source = isRecord(error) ? error : body;
  const message = textOf(source["message"]) ?? textOf(error) ?? textOf(source["msg"]) ?? detailOf(body["detail"]);
  const code = textOf(source["code"]) ?? (isRecord(source["details"]) ? textOf(source["details"]["error_code"]) : undefined);
  const type = textOf(source["type"]);
  return {
    ...(message === undefined ? {} : { providerMessage: quote(message) }),
    ...(code === undefined ? {} : { providerCode: quote(code) }),
    ...(type === undefined ? {} : { providerType: quote(type) }),
  };
}

function textOf(value: unknown): string | undefined {
  if (typeof value === "number") return String(value);
  return typeof value === "string" && value !== "" ? value : undefined;
}

function detailOf(detail: unknown): string | undefined {
  const first = Array.isArray(detail) ? detail[0] : detail;
  return textOf(first) ?? (isRecord(first) ? textOf(first["msg"]) : undefined);
}

// HTML pages contain no useful one-line message.
function plainDetails(body: string, quote: Quote): ErrorDetails {
  const text = /^\s*</.test(body) ? "" : quote(body);
  return text === "" ? {} : { providerMessage: text };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // Not JSON: it is treated as text.
    return undefined;
  }
}

const tooLong =
  /context[ _-]?(?:length|window|size|overflow)|maximum context|max(?:imum)? prompt length|prompt is too long|input (?:is too long|length exceeds|tokens? exceed|token count)|exceeds? context limit|reduce the length|token limit exceeded|request_too_large/i;
const overQuota = /insufficient_quota|quota_exceeded|spend_limit|billing|insufficient (?:credit|balance)/i;

function codeOf(status: number, said: ErrorDetails): ModelErrorCode {
  const words = wordsOf(said);
  if (status === 401 || status === 403 || /invalid_api_key|authentication_error/i.test(words)) return "MODEL_AUTH";
  if (status === 429 || /rate_limit/i.test(words)) return "MODEL_RATE_LIMITED";
  if (status === 413 || tooLong.test(words)) return "MODEL_CONTEXT_TOO_LONG";
  return "MODEL_HTTP";
}

function isRetryable(status: number, code: ModelErrorCode, said: ErrorDetails, shouldRetry: string | undefined): boolean {
  if (code === "MODEL_AUTH" || code === "MODEL_CONTEXT_TOO_LONG" || shouldRetry === "false") return false;
  if (code === "MODEL_RATE_LIMITED") return !overQuota.test(wordsOf(said));
  return [408, 409, 425].includes(status) || (status >= 500 && status !== 501 && status !== 505);
}

function wordsOf({ providerCode = "", providerType = "", providerMessage = "" }: ErrorDetails): string {
  return `${providerCode} ${providerType} ${providerMessage}`;
}

function quoted({ providerMessage, providerCode, providerType }: ErrorDetails): string {
  const text = providerMessage ?? providerCode ?? providerType;
  return text === undefined ? "" : `: ${text.replace(/\.$/, "")}`;
}

function advice(code: ModelErrorCode, status: number, said: ErrorDetails): string {
  if (code === "MODEL_AUTH") return "Check the API key, and that it may use this model.";
  if (code === "MODEL_RATE_LIMITED") return "Wait before you try again, or check the account's limits.";
  if (code === "MODEL_CONTEXT_TOO_LONG") return "Shorten the conversation, its tool results or the list of tools.";
  if (/content_filter|content_policy/i.test(wordsOf(said))) return "Its content filter rejects the conversation.";
  if (status === 404) return "Check the base URL and the name of the model.";
  return status >= 500 ? "Try again later." : "Check the model's name and options.";
}
