import { join } from "node:path";
import { HostError } from "../../../base/errors.ts";
import type { SessionStorage } from "../../../host/host-sessions.ts";
import { noFile, type WorkspaceFileStat, type WorkspaceFiles } from "../../../session/workspace/workspace-files.ts";
import type { Client } from "../clients/client.ts";
import { ClientDatabase } from "../clients/client-database.ts";
import { ClientFiles, ClientLog } from "../clients/client-files.ts";
import type { ServerContext } from "../context.ts";
import type { CopilotSession } from "./copilot-session.ts";

/** The folder of a session's own files, such as its plan. It may not exist. */
export function workspacePathOf({ options }: Pick<ServerContext, "options">, sessionId: string): string {
  return join(options.sessionsDirectory, sessionId);
}

/** The files of a session at a client. Undefined: the client does not store sessions. */
export function filesAt(client: Client, sessionId: string): ClientFiles | undefined {
  return client.fileSystem && new ClientFiles(client, sessionId, client.fileSystem);
}

/** The storage of a session at a client. */
export function storageIn(files: ClientFiles): SessionStorage {
  const database = files.hasDatabases ? new ClientDatabase(files) : undefined;
  return { log: new ClientLog(files), files: new ClientWorkspaceFiles(files), database };
}

/** The storage of an existing session at a client. @throws HostError `SESSION_NOT_FOUND`. */
export async function findStorage(files: ClientFiles, sessionId: string): Promise<SessionStorage> {
  if (await files.exists(files.path("events.jsonl"))) return storageIn(files);
  throw new HostError("SESSION_NOT_FOUND", `Session not found for sessionId: ${sessionId}. Its client has no session with this id.`);
}

/** Deletes the files of a session at a client. False: there were none. */
export async function removeFiles(client: Client, sessionId: string, open: CopilotSession | undefined): Promise<boolean> {
  const files = open === undefined ? filesAt(client, sessionId) : open.files;
  if (files === undefined || !(await files.exists(files.path("events.jsonl")))) return false;
  await files.remove(files.statePath);
  return true;
}

const maxDepthOfFiles = 20;

/** A session's own files in the file system of its client. */
export class ClientWorkspaceFiles implements WorkspaceFiles {
  readonly #files: ClientFiles;
  readonly #below: readonly string[];

  constructor(files: ClientFiles, below: readonly string[] = []) {
    this.#files = files;
    this.#below = below;
  }

  get root(): string {
    return this.#below.length === 0 ? this.#files.statePath : this.#files.path(...this.#below);
  }

  below(name: string): ClientWorkspaceFiles {
    return new ClientWorkspaceFiles(this.#files, [...this.#below, name]);
  }

  pathOf(path: string): string {
    return this.#files.path(...this.#below, ...partsOf(path));
  }

  read(path: string): Promise<string | undefined> {
    return this.#files.read(this.pathOf(path));
  }

  async write(path: string, content: string): Promise<boolean> {
    const file = this.pathOf(path);
    const isNew = !(await this.#files.exists(file));
    if (isNew) await this.#files.makeFolder(this.#folderOf(path));
    await this.#files.write(file, content);
    return isNew;
  }

  makeFolder(path: string): Promise<void> {
    return this.#files.makeFolder(this.pathOf(path));
  }

  async remove(path: string, recursive = false): Promise<boolean> {
    const target = this.pathOf(path);
    if (!(await this.#files.exists(target)) && (await this.#files.entries(target)).length === 0) return false;
    if (!recursive && (await this.#files.entries(target)).length > 0)
      throw new HostError("WORKSPACE_FILE", `${JSON.stringify(path)} is a folder that is not empty. Remove it with recursive: true.`);
    await this.#files.remove(target);
    return true;
  }

  async rename(from: string, to: string): Promise<void> {
    const [source, target] = [this.pathOf(from), this.pathOf(to)];
    if (!(await this.#files.exists(source))) throw noFile(from);
    if (await this.#files.exists(target)) throw new HostError("WORKSPACE_FILE", `${JSON.stringify(to)} already exists.`);
    await this.#files.makeFolder(this.#folderOf(to));
    await this.#files.rename(source, target);
  }

  stat(path: string): Promise<WorkspaceFileStat | undefined> {
    return this.#files.stat(this.pathOf(path));
  }

  async list(): Promise<readonly string[]> {
    return (await this.#listIn([])).sort();
  }

  async #listIn(parts: readonly string[]): Promise<string[]> {
    if (parts.length > maxDepthOfFiles) return [];
    const found: string[] = [];
    for (const { name, isFolder } of await this.#files.entries(this.#files.path(...this.#below, ...parts))) {
      if (isFolder) found.push(...(await this.#listIn([...parts, name])));
      else found.push([...parts, name].join("/"));
    }
    return found;
  }

  #folderOf(path: string): string {
    const parts = [...this.#below, ...partsOf(path).slice(0, -1)];
    return parts.length === 0 ? this.#files.statePath : this.#files.path(...parts);
  }
}

/** Splits a path, and refuses one that leaves the workspace before the client gets it. */
function partsOf(path: string): readonly string[] {
  const parts = path.split(/[\\/]/).filter((part) => part !== "" && part !== ".");
  const isAbsolute = /^(?:[\\/]|[A-Za-z]:)/.test(path);
  if (!isAbsolute && parts.length > 0 && !parts.includes("..") && !path.includes("\0")) return parts;
  throw new HostError("WORKSPACE_FILE", `${JSON.stringify(path.slice(0, 200))} is not a path inside the workspace files directory.`);
}
