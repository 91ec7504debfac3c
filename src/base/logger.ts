import { escapeJsonText } from "./untrusted-text.ts";

/** The severity of a log entry. */
export type LogLevel = "error" | "warning" | "info" | "debug";

export const logLevels: readonly LogLevel[] = ["error", "warning", "info", "debug"];

/** Structured logging. `data` is written as JSON beside the message, with secrets redacted. Logging never throws. */
export interface Logger {
  error(message: string, data?: object): void;
  warning(message: string, data?: object): void;
  info(message: string, data?: object): void;
  debug(message: string, data?: object): void;
  /** Whether this level is logged. Check it before building expensive data. */
  enabled(level: LogLevel): boolean;
}

export interface LoggerOptions {
  readonly level: LogLevel;
  /** Receives one formatted line without a line break. */
  readonly write: (line: string) => void;
  readonly now?: () => Date;
}

/** One JSON object per line: `{"time", "level", "message", …data}`. */
export function createLogger(options: LoggerOptions): Logger {
  const rank = logLevels.indexOf(options.level);
  const now = options.now ?? (() => new Date());
  const enabled = (level: LogLevel): boolean => logLevels.indexOf(level) <= rank;
  return toLogger(enabled, (level, message, data) => {
    if (!enabled(level)) return;
    try {
      const line = JSON.stringify({ time: now().toISOString(), level, message: redactText(message), ...redact(data) });
      // Terminals execute control sequences; escaped, the JSON has the same content.
      options.write(escapeJsonText(line));
    } catch {
      // Neither data without a JSON form nor a full disk may affect the logged operation.
    }
  });
}

/** A logger with one function for all levels. */
export function toLogger(enabled: Logger["enabled"], log: (level: LogLevel, message: string, data?: object) => void): Logger {
  const at =
    (level: LogLevel) =>
    (message: string, data?: object): void =>
      log(level, message, data);
  return { error: at("error"), warning: at("warning"), info: at("info"), debug: at("debug"), enabled };
}

export const silentLogger: Logger = { error() {}, warning() {}, info() {}, debug() {}, enabled: () => false };

const secretKey = /pass(word|wd|phrase)|secret|token|authorization|cookie|credential|api[-_]?key|private[-_]?key/i;
const secretText =
  /\b(bearer|basic)\s+[\w.~+/=-]{8,}|\b(?:(?:sk|ghp|gho|ghs|ghu|github_pat|xox[abp]|glpat)[-_]|npm_|AKIA)[A-Za-z0-9_-]{12,}|(?<=:\/\/)[^/\s:@]+:[^/\s@]+(?=@)/gi;

/** Replaces likely credentials in free text. */
export function redactText(text: string): string {
  return text.replace(secretText, "[redacted]");
}

// Tools return JSON inside a text, where keys are not seen.
const secretMember =
  /("[^"]*(?:pass(?:word|wd|phrase)|secret|token|authorization|cookie|credential|api[-_]?key|private[-_]?key)[^"]*"\s*:\s*)"(?:[^"\\]|\\.)*"?/gi;

// JSON inside a text of JSON.
const escapedSecretMember =
  /((\\+)"[^"\\]*(?:pass(?:word|wd|phrase)|secret|token|authorization|cookie|credential|api[-_]?key|private[-_]?key)[^"\\]*\2"\s*:\s*\2")[^"]*?(?=\\*"|$)/gi;

/** Replaces the values of JSON members in a text whose names suggest a credential. */
export function redactMembers(text: string): string {
  return text.replace(secretMember, '$1"[redacted]"').replace(escapedSecretMember, "$1[redacted]");
}

/** Whether a name suggests that its value is a credential. */
export function isSecretName(name: string): boolean {
  return secretKey.test(name);
}

/** MCP's progressToken is a request number, and token counts are useful in logs. */
function isSecret(key: string, value: unknown): boolean {
  if (value === undefined || value === null || key === "progressToken") return false;
  return isSecretName(key) && !(typeof value === "number" && /tokens$|token(?:limit|count)$/i.test(key));
}

/** A copy for logs: values under keys that name secrets, and credentials inside strings, are replaced; depth is bounded. */
export function redact<T>(value: T, depth = 6): T {
  if (typeof value === "string") return redactText(value) as T;
  if (typeof value !== "object" || value === null) return value;
  if (value instanceof Error)
    return { name: value.name, message: redactText(value.message), code: (value as { code?: unknown }).code } as T;
  if (depth === 0) return "[too deep]" as T;
  if (Array.isArray(value)) return value.map((item) => redact(item, depth - 1)) as T;
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [key, isSecret(key, item) ? "[redacted]" : redact(item, depth - 1)]),
  ) as T;
}
