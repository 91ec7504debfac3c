import { HostError } from "../../../base/errors.ts";
import type { SessionInfo } from "../../../host/host-sessions.ts";
import { badParams } from "../connection/params.ts";
import type { CopilotSession } from "../sessions/copilot-session.ts";
import {
  createCopilotSession,
  findSession,
  joining,
  leaveSession,
  parkSession,
  resumeCopilotSession,
} from "../sessions/session-registry.ts";
import { removeFiles, workspacePathOf } from "../sessions/workspace.ts";
import type { Call, MethodFamily } from "./method.ts";

/** Methods that create, resume, list and end sessions. */
export const lifecycle: MethodFamily = {
  async "session.create"(call) {
    const session = await createCopilotSession(call.server, call.client, call.params);
    call.server.notifyLifecycle("session.created", session.id, session);
    return describeOpened(call, session);
  },
  async "session.resume"(call) {
    const session = await joining(call.client, resumeCopilotSession(call.server, call.client, call.params).catch(explainMissing(call)));
    return { ...describeOpened(call, session), openCanvases: [] };
  },
  "session.destroy": leave,
  "session.detach": leave,
  async "session.shutdown"({ server, params }) {
    await server.end(findSession(server, params));
  },
  // Pending requests stay open for a client that resumes the session with continuePendingWork.
  async "session.suspend"({ server, client, params }) {
    const session = findSession(server, params);
    await session.session.flush();
    await parkSession(server, session, client);
  },
  async "session.delete"(call) {
    const sessionId = call.params.text("sessionId");
    return deleteSession(call, sessionId).then(
      () => ({ success: true }),
      (error: Error) => ({ success: false, error: error.message }),
    );
  },
  async "session.list"(call) {
    const filter = call.params.optionalRecord("filter");
    const all = await listSessions(call);
    return { sessions: filter === undefined ? all : all.filter(({ context }) => matches(context, filter)) };
  },
  async "session.getMetadata"(call) {
    const sessionId = call.params.text("sessionId");
    const session = (await listSessions(call)).find((other) => other.sessionId === sessionId);
    return session === undefined ? {} : { session };
  },
  async "session.getLastId"(call) {
    const [last] = await listSessions(call);
    return last === undefined ? {} : { sessionId: last.sessionId };
  },
  // Sessions have no screen, so none is in the foreground.
  "session.getForeground": () => ({}),
  "session.setForeground": () => ({
    success: false,
    error: "Not running in TUI+server mode: skillhost has no user interface that could show a session.",
  }),
};

/** A session in the lists of the protocol. */
export interface ListedSession {
  readonly sessionId: string;
  readonly startTime: string;
  readonly modifiedTime: string;
  readonly summary?: string;
  readonly isRemote: false;
  readonly context?: { readonly cwd: string };
}

/** The store's own message names its folder and the methods of the library, which clients cannot use. */
function explainMissing({ params }: Call): (error: unknown) => never {
  return (error) => {
    if (!(error instanceof HostError) || error.code !== "SESSION_NOT_FOUND") throw error;
    const message = `Failed to load session events: Session not found: ${params.text("sessionId")}`;
    throw new HostError("SESSION_NOT_FOUND", message, { cause: error });
  };
}

/** All sessions, the most recently changed first. */
export async function listSessions({ server }: Call): Promise<readonly ListedSession[]> {
  const all = await (await server.host()).listSessions();
  const listed = all.map((info) => describeListed(info, server.sessions.get(info.sessionId)));
  return listed.sort((a, b) => b.modifiedTime.localeCompare(a.modifiedTime));
}

/** @throws HostError `SESSION_NOT_FOUND`, `SESSION_IN_USE`. */
export async function deleteSession({ server, client }: Call, sessionId: string): Promise<void> {
  const open = server.sessions.get(sessionId);
  server.sessions.delete(sessionId);
  const host = await server.host();
  await open?.close();
  const isRemoved = await removeFiles(client, sessionId, open);
  try {
    await host.deleteSession(sessionId);
  } catch (error) {
    // A session that was never stored, or that only its client stored, is deleted by now.
    if (open === undefined && !isRemoved) throw error;
  }
  server.notifyLifecycle("session.deleted", sessionId);
}

function describeListed(
  { sessionId, startTime, modifiedTime, summary, workingDirectory }: SessionInfo,
  open: CopilotSession | undefined,
): ListedSession {
  const now = new Date().toISOString();
  return {
    sessionId,
    startTime: startTime ?? open?.createdAt.toISOString() ?? now,
    modifiedTime: open?.modifiedAt.toISOString() ?? modifiedTime ?? now,
    ...(summary !== undefined && { summary }),
    isRemote: false,
    ...(workingDirectory !== undefined && { context: { cwd: workingDirectory } }),
  };
}

/** Sessions have only a folder, so a filter by repository or branch matches none. */
function matches(context: ListedSession["context"], filter: Readonly<Record<string, unknown>>): boolean {
  const wanted = Object.entries(filter).filter(([, value]) => value !== null && value !== undefined);
  return wanted.every(([key, value]) => key === "cwd" && context?.cwd === value);
}

function describeOpened({ server, params }: Call, session: CopilotSession): object {
  const isInfinite = params.optionalRecord("infiniteSessions")?.["enabled"] !== false;
  return {
    sessionId: session.id,
    ...(isInfinite && { workspacePath: session.files?.statePath ?? workspacePathOf(server, session.id) }),
    capabilities: {
      ...(session.extensions !== undefined && { extensions: true }),
      ui: { elicitation: session.canElicit, ...(session.rendersApps && { mcpApps: true }) },
    },
  };
}

async function leave({ server, client, params }: Call): Promise<object> {
  const sessionId = params.text("sessionId");
  if (sessionId === "") throw badParams(params.method, "sessionId is empty.");
  const session = server.sessions.get(sessionId);
  // Leaving is idempotent.
  if (session === undefined) return { success: true };
  await leaveSession(server, session, client);
  return { success: true };
}
