import type { Host } from "../../host/host.ts";

/** How often tools of servers were called in the last sessions that are kept. */
export interface RecordedCalls {
  readonly sessions: number;
  /** Calls by server. */
  readonly calls: ReadonlyMap<string, number>;
}

const mostSessions = 10;

/** Counts the calls of MCP tools that the logs of the last sessions tell of. */
export async function readRecordedCalls(host: Host, signal: AbortSignal): Promise<RecordedCalls> {
  const sessions = (await host.listSessions()).slice(0, mostSessions);
  const calls = new Map<string, number>();
  let read = 0;
  for (const { sessionId } of sessions) {
    signal.throwIfAborted();
    const log = await exported(host, sessionId);
    if (log === undefined) continue;
    read++;
    for (const line of log.split("\n")) {
      const server = line.includes('"tool.execution_start"') ? serverOf(line) : undefined;
      if (server !== undefined) calls.set(server, (calls.get(server) ?? 0) + 1);
    }
  }
  return { sessions: read, calls };
}

async function exported(host: Host, sessionId: string): Promise<string | undefined> {
  try {
    return await host.exportSession(sessionId);
  } catch {
    // A log that cannot be read tells nothing of calls; what is wrong with it concerns whoever resumes the session.
    return undefined;
  }
}

function serverOf(line: string): string | undefined {
  const event = JSON.parse(line) as { type?: unknown; data?: { mcpServerName?: unknown } };
  const name = event.type === "tool.execution_start" ? event.data?.mcpServerName : undefined;
  return typeof name === "string" ? name : undefined;
}
