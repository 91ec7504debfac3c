import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { HostError, toError } from "../../../base/errors.ts";
import { isRecord } from "../../../base/json.ts";
import { refused } from "../connection/params.ts";
import { findSession } from "../sessions/session-registry.ts";
import { workspacePathOf } from "../sessions/workspace.ts";
import { deleteSession, type ListedSession, listSessions } from "./lifecycle.ts";
import type { Call, MethodFamily } from "./method.ts";

/** All stored sessions, with or without clients. */
export const sessions: MethodFamily = {
  async "sessions.list"(call) {
    const filter = call.params.optionalRecord("filter");
    const cwd = filter?.["cwd"];
    const all = await listSessions(call);
    const limit = call.params.optionalNumber("metadataLimit") ?? Number.POSITIVE_INFINITY;
    return { sessions: all.filter(({ context }) => typeof cwd !== "string" || context?.cwd === cwd).slice(0, limit) };
  },
  async "sessions.getMetadata"(call) {
    const session = await find(call, call.params.text("sessionId"));
    return session === undefined ? {} : { session };
  },
  async "sessions.close"({ server, params }) {
    const session = server.sessions.get(params.text("sessionId"));
    if (session !== undefined) await server.end(session);
    return {};
  },
  async "sessions.delete"(call) {
    await deleteSession(call, call.params.text("sessionId"));
    return {};
  },
  async "sessions.bulkDelete"(call) {
    const freedBytes: Record<string, number> = {};
    for (const sessionId of call.params.texts("sessionIds")) {
      const bytes = await sizeOf(call, sessionId);
      if (await isDeleted(call, sessionId)) freedBytes[sessionId] = bytes;
    }
    return { freedBytes };
  },
  async "sessions.pruneOld"(call) {
    const { params } = call;
    const before = Date.now() - (params.optionalNumber("olderThanDays") ?? 0) * 24 * 60 * 60 * 1000;
    const excluded = new Set([...params.texts("excludeSessionIds"), ...call.server.sessions.keys()]);
    const old = (await listSessions(call))
      .filter(({ modifiedTime }) => Date.parse(modifiedTime) < before)
      .map(({ sessionId }) => sessionId);
    const candidates = old.filter((sessionId) => !excluded.has(sessionId));
    const dryRun = params.flag("dryRun");
    const deleted: string[] = [];
    let freedBytes = 0;
    for (const sessionId of candidates) {
      const bytes = await sizeOf(call, sessionId);
      if (!dryRun && !(await isDeleted(call, sessionId))) continue;
      if (!dryRun) deleted.push(sessionId);
      freedBytes += bytes;
    }
    return { deleted, candidates, skipped: old.filter((sessionId) => excluded.has(sessionId)), freedBytes, dryRun };
  },
  async "sessions.checkInUse"(call) {
    const host = await call.server.host();
    const inUse = new Set((await host.listSessions()).filter(({ isInUse }) => isInUse).map(({ sessionId }) => sessionId));
    return { inUse: call.params.texts("sessionIds").filter((sessionId) => inUse.has(sessionId)) };
  },
  async "sessions.enrichMetadata"(call) {
    const known = new Map((await listSessions(call)).map((session) => [session.sessionId, session]));
    return { sessions: call.params.records("sessions").map((given) => ({ ...given, ...known.get(String(given["sessionId"])) })) };
  },
  async "sessions.findByPrefix"(call) {
    const prefix = call.params.text("prefix");
    const found = (await listSessions(call)).filter(({ sessionId }) => sessionId.startsWith(prefix));
    return found.length === 1 ? { sessionId: found[0]!.sessionId } : {};
  },
  // Sessions do not belong to tasks of another system.
  "sessions.findByTaskId"({ params }) {
    params.text("taskId");
    return {};
  },
  async "sessions.getLastForContext"(call) {
    const context = call.params.optionalRecord("context");
    const cwd = isRecord(context) ? context["cwd"] : undefined;
    const last = (await listSessions(call)).find((session) => typeof cwd !== "string" || session.context?.cwd === cwd);
    return last === undefined ? {} : { sessionId: last.sessionId };
  },
  async "sessions.getSizes"(call) {
    const sizes: Record<string, number> = {};
    for (const { sessionId } of await listSessions(call)) sizes[sessionId] = await sizeOf(call, sessionId);
    return { sizes };
  },
  "sessions.getEventFilePath": ({ server, params }) => ({ path: join(workspacePathOf(server, params.text("sessionId")), "events.jsonl") }),
  async "sessions.save"({ server, params }) {
    await findSession(server, params).session.flush();
    return {};
  },
  "sessionFs.setProvider"({ server, client, params }) {
    if (server.sessions.size > 0)
      throw new HostError(
        "SESSION_FS",
        "sessionFs.setProvider was called too late: this runtime already has sessions. Call it before the first session is created.",
      );
    const capabilities = params.optionalRecord("capabilities");
    client.fileSystem = {
      statePath: params.text("sessionStatePath"),
      initialDirectory: params.optionalText("initialCwd") ?? "",
      hasDatabases: capabilities?.["sqlite"] === true,
    };
    return { success: true };
  },
  // An open session holds its lock, so releasing the lock closes the session.
  async "sessions.releaseLock"({ server, params }) {
    const session = server.sessions.get(params.text("sessionId"));
    if (session !== undefined && session.clients.length === 0) await server.end(session);
    return {};
  },
  // Hooks come from plugins only, and do not change while a session is open.
  "sessions.reloadPluginHooks"({ server, params }) {
    findSession(server, params);
    return {};
  },
  "sessions.loadDeferredRepoHooks"({ server, params }) {
    findSession(server, params);
    return { startupPrompts: [], hookCount: 0 };
  },
  "sessions.setAdditionalPlugins"({ params }) {
    if (params.records("plugins").length === 0) return {};
    throw refused(params.method, "list plugin folders in pluginDirectories of the session.");
  },
};

async function find(call: Call, sessionId: string): Promise<ListedSession | undefined> {
  return (await listSessions(call)).find((session) => session.sessionId === sessionId);
}

async function isDeleted(call: Call, sessionId: string): Promise<boolean> {
  try {
    await deleteSession(call, sessionId);
    return true;
  } catch (error) {
    call.server.log.info("A session could not be deleted.", { sessionId, error: toError(error) });
    return false;
  }
}

async function sizeOf({ server }: Call, sessionId: string): Promise<number> {
  // The id becomes a folder name, so it must not contain a path.
  if (!/^[\w-][\w.-]{0,127}$/.test(sessionId)) return 0;
  const folder = workspacePathOf(server, sessionId);
  try {
    const entries = await readdir(folder, { recursive: true, withFileTypes: true });
    const files = entries.filter((entry) => entry.isFile()).map(({ parentPath, name }) => stat(join(parentPath, name)));
    return (await Promise.all(files)).reduce((sum, { size }) => sum + size, 0);
  } catch {
    // The folder does not exist, or is being deleted.
    return 0;
  }
}
