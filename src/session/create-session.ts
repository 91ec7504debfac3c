import { toError } from "../base/errors.ts";
import type { SessionEnvironment } from "./environment.ts";
import type { SessionLog } from "./records/session-log.ts";
import { Session } from "./session.ts";
import { resolveSessionConfig, type SessionOptions } from "./session-config.ts";

/**
 * Makes a session at once, whatever of its sources is loaded; `session.ready` waits for the rest. With a log it is
 * recorded there, and goes on where the log ends. Whoever gave a log closes it if this throws.
 * @throws HostError `SESSION_OPTIONS` naming the field; `TOOL_NAME_TAKEN`, `TOOL_NAME_ILLEGAL`, `TOOL_INVALID` for `tools`.
 */
export function createSession(options: SessionOptions, environment: SessionEnvironment, log?: SessionLog): Session {
  const config = resolveSessionConfig(options, environment.defaults);
  try {
    environment.adopt(config);
    return new Session(config, environment, log);
  } catch (error) {
    releaseQuietly(environment);
    throw error;
  }
}

function releaseQuietly(environment: SessionEnvironment): void {
  try {
    environment.release();
  } catch (error) {
    // What made the session fail is the news; this is only its echo.
    environment.log.error("What a session had taken on could not be released.", { error: toError(error) });
  }
}
