import type { Host } from "../host/host.ts";
import type { SessionInfo } from "../host/host-sessions.ts";
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

function refuse(message: string): never {
  throw new CliError("SESSION_UNKNOWN", message, 1);
}
