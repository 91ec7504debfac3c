import { randomUUID } from "node:crypto";
import { forkHistory } from "../../../session/history/fork-history.ts";
import { readRecorded, withoutCreation } from "../../../session/history/session-log.ts";
import { SessionWorkspace } from "../../../session/workspace/session-workspace.ts";
import { LocalFiles } from "../../../session/workspace/workspace-files.ts";
import type { Client } from "../clients/client.ts";
import { type ClientFiles, ClientLog } from "../clients/client-files.ts";
import { badParams, type Params } from "../connection/params.ts";
import type { ServerContext } from "../context.ts";
import { ClientWorkspaceFiles, filesAt, findStorage, workspacePathOf } from "./workspace.ts";

interface Fork {
  readonly sessionId: string;
  readonly name?: string;
}

/** Makes a session with the history of another. @throws HostError as `Host.forkSession`. */
export async function forkCopilotSession(server: ServerContext, client: Client, params: Params): Promise<Fork> {
  const from = params.text("sessionId");
  const toEventId = params.optionalText("toEventId");
  const name = params.optionalText("name")?.trim();
  if (name === "") throw badParams(params.method, "name must not be blank.");
  const files = server.sessions.get(from)?.files ?? filesAt(client, from);
  const host = await server.host();
  const sessionId = files === undefined ? await host.forkSession(from, { toEventId }) : await forkAtClient(server, files, from, toEventId);
  const own = files === undefined ? new LocalFiles(workspacePathOf(server, sessionId)) : new ClientWorkspaceFiles(files.sibling(sessionId));
  const workspace = new SessionWorkspace(own);
  const isNamed = name !== undefined && { name, user_named: true };
  if (name !== undefined || Object.keys(await workspace.readMetadata()).length > 0)
    await workspace.updateMetadata({ id: sessionId, created_at: new Date().toISOString(), ...isNamed });
  return { sessionId, ...(name !== undefined && { name }) };
}

/** Forks a session that its client stores, and returns the new id. */
async function forkAtClient(server: ServerContext, files: ClientFiles, from: string, toEventId: string | undefined): Promise<string> {
  await server.sessions.get(from)?.session.flush();
  const { log: source } = await findStorage(files, from);
  const { events, options } = readRecorded((await source.read()).records);
  if (options === undefined) throw withoutCreation(from);
  const sessionId = randomUUID();
  const history = forkHistory(events, { sessionId, from, options: { ...options }, toEventId });
  const target = files.sibling(sessionId);
  await copyFiles(new ClientWorkspaceFiles(files), new ClientWorkspaceFiles(target));
  // Last, since a session exists as soon as it has a log.
  const log = new ClientLog(target);
  for (const event of history) log.append(event);
  await log.close();
  return sessionId;
}

/** The log and its large results belong to the session itself. */
async function copyFiles(from: ClientWorkspaceFiles, to: ClientWorkspaceFiles): Promise<void> {
  for (const path of await from.list()) {
    if (path.startsWith("events.jsonl") || path.startsWith("outputs/")) continue;
    const content = await from.read(path);
    if (content !== undefined) await to.write(path, content);
  }
}
