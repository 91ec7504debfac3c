import { redactText } from "../base/logger.ts";
import { ModelError, type ModelErrorCode, type ModelErrorDetails } from "./model-error.ts";

/** Makes the errors of one exchange. Whatever text they are given, they leave it without secrets, and start with where it happened. */
export interface Fault {
  (code: ModelErrorCode, happened: string, details: Omit<ModelErrorDetails, "attempts">): ModelError;
  /** Takes the secrets out of a text from outside and makes it one line of bounded length. */
  readonly quote: (text: string) => string;
}

/** `headers` and `url` are what is sent: their secrets are what must not come out. */
export function createFault(url: URL, headers: Readonly<Record<string, string>>, attempts: number): Fault {
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
