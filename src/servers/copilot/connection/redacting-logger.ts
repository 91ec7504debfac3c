import { type Logger, toLogger } from "../../../base/logger.ts";

/** Wraps a log so that none of these texts appear in it. Texts can be added later. */
export function hideSecrets(log: Logger, secrets: ReadonlySet<string>): Logger {
  const hide = (text: string): string => [...secrets].reduce((rest, secret) => rest.replaceAll(secret, "[secret]"), text);
  return toLogger(log.enabled.bind(log), (level, message, data) => {
    if (secrets.size === 0 || !log.enabled(level)) log[level](message, data);
    else log[level](hide(message), data && hideIn(data, hide));
  });
}

function hideIn(data: object, hide: (text: string) => string): object {
  try {
    return JSON.parse(hide(JSON.stringify(data, replaceErrors))) as object;
  } catch {
    // Data that cannot be searched for secrets is not logged.
    return { data: "[cannot be shown]" };
  }
}

function replaceErrors(_key: string, value: unknown): unknown {
  if (!(value instanceof Error)) return value;
  const { name, message, stack } = value;
  return { name, message, ...("code" in value && { code: value.code }), ...(stack !== undefined && { stack }) };
}
