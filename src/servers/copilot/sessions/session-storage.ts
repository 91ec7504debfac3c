import { HostError } from "../../../base/errors.ts";
import type { SessionStorage } from "../../../host/host-sessions.ts";
import type { Client } from "../clients/client.ts";
import { ClientFiles } from "../clients/client-files.ts";
import { createClientLog } from "../clients/client-log.ts";
import { ClientWorkspace } from "../clients/client-workspace.ts";
import type { WireSession } from "./wire-session.ts";

/** The files of a session that a client keeps; undefined: it keeps none. */
export function filesAt(client: Client, sessionId: string): ClientFiles | undefined {
  return client.fileSystem && new ClientFiles(client, sessionId, client.fileSystem);
}

/** A session that is kept there. */
export function storageIn(files: ClientFiles): SessionStorage {
  const workspace = new ClientWorkspace(files);
  return {
    log: createClientLog(files),
    plan: { read: () => workspace.readPlan(), write: (content) => workspace.writePlan(content) },
  };
}

/** What is needed to go on with a session that its client keeps. @throws HostError `SESSION_NOT_FOUND`. */
export async function findStorage(files: ClientFiles, sessionId: string): Promise<SessionStorage> {
  if (await files.exists(files.path("events.jsonl"))) return storageIn(files);
  throw new HostError("SESSION_NOT_FOUND", `Session not found for sessionId: ${sessionId}. Its client keeps none of this id.`);
}

/** Deletes what a client keeps of a session. False: it keeps nothing of it. */
export async function removeFiles(client: Client, sessionId: string, open: WireSession | undefined): Promise<boolean> {
  const files = open === undefined ? filesAt(client, sessionId) : open.files;
  if (files === undefined || !(await files.exists(files.path("events.jsonl")))) return false;
  await files.remove(files.statePath);
  return true;
}
