import type { Host } from "../host/host.ts";
import type { SessionInfo } from "../host/host-sessions.ts";
import type { Session } from "../session/session.ts";
import type { SessionOptions } from "../session/session-config.ts";
import { CliError } from "./cli-error.ts";
import { visibleLine } from "./terminal-style.ts";

/**
 * The stored session with an id, or with the only id that begins so; `true`: the newest.
 * @throws CliError `SESSION_UNKNOWN`
 */
export async function findStoredSession(host: Host, wanted: string | true): Promise<SessionInfo> {
  const sessions = await host.listSessions();
  if (wanted === true) return sessions[0] ?? refuse("There are no stored sessions.");
  const exact = sessions.find(({ sessionId }) => sessionId === wanted);
  if (exact !== undefined) return exact;
  const found = sessions.filter(({ sessionId }) => sessionId.startsWith(wanted));
  if (found.length === 1) return found[0]!;
  const shown = `"${visibleLine(wanted)}"`;
  if (found.length === 0) return refuse(`No stored session has the id ${shown}. "skillhost sessions list" shows them.`);
  return refuse(`${found.length} sessions have ids that begin with ${shown}. Write more of it.`);
}

/** Opens a stored session, or with `isFork` a copy of it. Whether it is stored was decided when it was created. */
export async function resumeStored(
  host: Host,
  wanted: string | true,
  { persist: _persist, ...options }: SessionOptions,
  isFork = false,
): Promise<Session> {
  const { sessionId } = await findStoredSession(host, wanted);
  return host.resumeSession(isFork ? await host.forkSession(sessionId) : sessionId, options);
}

function refuse(message: string): never {
  throw new CliError("SESSION_UNKNOWN", message, 1);
}
