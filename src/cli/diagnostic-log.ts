import { type Logger, toLogger } from "../base/logger.ts";

/** The log without what a host reports of skills and plugins: for commands whose output lists that. */
export function withoutDiagnostics(log: Logger): Logger {
  return toLogger(log.enabled.bind(log), (level, message, data) => {
    if (data === undefined || !("diagnostic" in data)) log[level](message, data);
  });
}
