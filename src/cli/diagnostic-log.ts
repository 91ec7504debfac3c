import type { Logger, LogLevel } from "../base/logger.ts";

/** The log without what a host reports of skills and plugins: for commands whose output lists that. */
export function withoutDiagnostics(log: Logger): Logger {
  const write =
    (level: LogLevel) =>
    (message: string, data?: object): void => {
      if (data === undefined || !("diagnostic" in data)) log[level](message, data);
    };
  return {
    error: write("error"),
    warning: write("warning"),
    info: write("info"),
    debug: write("debug"),
    enabled: (level) => log.enabled(level),
  };
}
