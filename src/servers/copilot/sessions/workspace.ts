import { mkdir, readdir, readFile, rm, stat } from "node:fs/promises";
import { dirname, join, relative, sep } from "node:path";
import { HostError } from "../../../base/errors.ts";
import type { SessionStorage } from "../../../host/host-sessions.ts";
import { writeFileAtomic } from "../../../io/atomic-write.ts";
import { confinePath } from "../../../io/confine-path.ts";
import type { Client } from "../clients/client.ts";
import { ClientFiles, ClientLog } from "../clients/client-files.ts";
import type { ServerContext } from "../context.ts";
import type { CopilotSession } from "./copilot-session.ts";

const maxBytes = 10 * 1024 * 1024;

/** The folder of a session's own files, such as its plan. It may not exist. */
export function workspacePathOf({ options }: Pick<ServerContext, "options">, sessionId: string): string {
  return join(options.sessionsDirectory, sessionId);
}

/** The files of a session, on this machine or at its client. They are deleted with the session. */
export interface SessionWorkspace {
  readonly path: string;
  readonly planPath: string;
  /** Undefined: there is no plan. */
  readPlan(): Promise<string | undefined>;
  /** True: the plan is new. */
  writePlan(content: string): Promise<boolean>;
  /** False: there was no plan. */
  deletePlan(): Promise<boolean>;
  /** The sorted paths of the files, relative to `files`. */
  list(): Promise<readonly string[]>;
  /** @throws HostError `WORKSPACE_FILE`. */
  read(path: string): Promise<string>;
  /** True: the file is new. @throws HostError `WORKSPACE_FILE`. */
  write(path: string, content: string): Promise<boolean>;
}

/** A workspace in a folder of this machine. */
export class Workspace implements SessionWorkspace {
  readonly path: string;

  constructor(server: Pick<ServerContext, "options">, sessionId: string) {
    this.path = workspacePathOf(server, sessionId);
  }

  get planPath(): string {
    return join(this.path, "plan.md");
  }

  async readPlan(): Promise<string | undefined> {
    try {
      return await readFile(this.planPath, "utf8");
    } catch (error) {
      if (isMissing(error)) return undefined;
      throw error;
    }
  }

  writePlan(content: string): Promise<boolean> {
    return writeFile(this.planPath, content);
  }

  async deletePlan(): Promise<boolean> {
    const wasThere = await exists(this.planPath);
    await rm(this.planPath, { force: true });
    return wasThere;
  }

  async list(): Promise<readonly string[]> {
    try {
      const entries = await readdir(this.#files, { recursive: true, withFileTypes: true });
      const files = entries.filter((entry) => entry.isFile()).map(({ parentPath, name }) => relative(this.#files, join(parentPath, name)));
      return files.map((file) => file.split(sep).join("/")).sort();
    } catch (error) {
      if (isMissing(error)) return [];
      throw error;
    }
  }

  async read(path: string): Promise<string> {
    const file = this.#resolve(path);
    try {
      if ((await stat(file)).size > maxBytes) throw new HostError("WORKSPACE_FILE", `${path} is larger than ${maxBytes} bytes.`);
      return await readFile(file, "utf8");
    } catch (error) {
      if (isMissing(error)) throw new HostError("WORKSPACE_FILE", `The workspace has no file ${JSON.stringify(path)}.`);
      throw error;
    }
  }

  write(path: string, content: string): Promise<boolean> {
    return writeFile(this.#resolve(path), content);
  }

  get #files(): string {
    return join(this.path, "files");
  }

  #resolve(path: string): string {
    const confined = confinePath(this.#files, path);
    if (confined.ok) return confined.path;
    throw new HostError("WORKSPACE_FILE", confined.message);
  }
}

async function writeFile(file: string, content: string): Promise<boolean> {
  const isNew = !(await exists(file));
  await mkdir(dirname(file), { recursive: true });
  await writeFileAtomic(file, content);
  return isNew;
}

async function exists(file: string): Promise<boolean> {
  try {
    await stat(file);
    return true;
  } catch {
    // A file that cannot be accessed cannot be read either.
    return false;
  }
}

function isMissing(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return code === "ENOENT" || code === "ENOTDIR";
}

/** The files of a session at a client. Undefined: the client does not store sessions. */
export function filesAt(client: Client, sessionId: string): ClientFiles | undefined {
  return client.fileSystem && new ClientFiles(client, sessionId, client.fileSystem);
}

/** The storage of a session at a client. */
export function storageIn(files: ClientFiles): SessionStorage {
  const workspace = new ClientWorkspace(files);
  return {
    log: new ClientLog(files),
    plan: { read: () => workspace.readPlan(), write: (content) => workspace.writePlan(content) },
  };
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
export class ClientWorkspace implements SessionWorkspace {
  readonly #files: ClientFiles;

  constructor(files: ClientFiles) {
    this.#files = files;
  }

  get path(): string {
    return this.#files.statePath;
  }

  get planPath(): string {
    return this.#files.path("plan.md");
  }

  readPlan(): Promise<string | undefined> {
    return this.#files.read(this.planPath);
  }

  writePlan(content: string): Promise<boolean> {
    return this.#write(this.planPath, content);
  }

  async deletePlan(): Promise<boolean> {
    const wasThere = await this.#files.exists(this.planPath);
    if (wasThere) await this.#files.remove(this.planPath);
    return wasThere;
  }

  async list(): Promise<readonly string[]> {
    return (await this.#listIn([])).sort();
  }

  async read(path: string): Promise<string> {
    const content = await this.#files.read(this.#resolve(path));
    if (content !== undefined) return content;
    throw new HostError("WORKSPACE_FILE", `The workspace has no file ${JSON.stringify(path)}.`);
  }

  async write(path: string, content: string): Promise<boolean> {
    const parts = partsOf(path);
    await this.#files.makeFolder(this.#files.path("files", ...parts.slice(0, -1)));
    return this.#write(this.#resolve(path), content);
  }

  async #listIn(parts: readonly string[]): Promise<string[]> {
    if (parts.length > maxDepthOfFiles) return [];
    const found: string[] = [];
    for (const { name, isFolder } of await this.#files.entries(this.#files.path("files", ...parts))) {
      if (isFolder) found.push(...(await this.#listIn([...parts, name])));
      else found.push([...parts, name].join("/"));
    }
    return found;
  }

  async #write(path: string, content: string): Promise<boolean> {
    const isNew = !(await this.#files.exists(path));
    if (isNew) await this.#files.makeFolder(this.#files.statePath);
    await this.#files.write(path, content);
    return isNew;
  }

  #resolve(path: string): string {
    return this.#files.path("files", ...partsOf(path));
  }
}

/** Splits a path, and refuses one that leaves the workspace before the client gets it. */
function partsOf(path: string): readonly string[] {
  const parts = path.split(/[\\/]/).filter((part) => part !== "" && part !== ".");
  const isAbsolute = /^(?:[\\/]|[A-Za-z]:)/.test(path);
  if (!isAbsolute && parts.length > 0 && !parts.includes("..") && !path.includes("\0")) return parts;
  throw new HostError("WORKSPACE_FILE", `${JSON.stringify(path.slice(0, 200))} is not a path inside the workspace.`);
}
