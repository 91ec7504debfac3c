import { mkdir, readdir, readFile, rm, stat } from "node:fs/promises";
import { dirname, join, relative, sep } from "node:path";
import { HostError } from "../../../base/errors.ts";
import { writeFileAtomic } from "../../../io/atomic-write.ts";
import { confinePath } from "../../../io/confine-path.ts";
import type { CopilotServer } from "../server.ts";

const maxBytes = 10 * 1024 * 1024;

/** The folder of a session's own files: its plan, and what it keeps aside. It need not exist. */
export function workspacePathOf({ options }: Pick<CopilotServer, "options">, sessionId: string): string {
  return join(options.sessionsDirectory, sessionId);
}

/** A session's own files, wherever they are kept. They go with the session when it is deleted. */
export interface SessionWorkspace {
  readonly path: string;
  readonly planPath: string;
  /** Undefined: there is none. */
  readPlan(): Promise<string | undefined>;
  /** True: there was none before. */
  writePlan(content: string): Promise<boolean>;
  /** False: there was none. */
  deletePlan(): Promise<boolean>;
  /** The files by their paths from `files`, in order. */
  list(): Promise<readonly string[]>;
  /** @throws HostError `WORKSPACE_FILE`. */
  read(path: string): Promise<string>;
  /** True: it was not there before. @throws HostError `WORKSPACE_FILE`. */
  write(path: string, content: string): Promise<boolean>;
}

/** A workspace in a folder of this machine. */
export class Workspace implements SessionWorkspace {
  readonly path: string;

  constructor(server: Pick<CopilotServer, "options">, sessionId: string) {
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
      if (isMissing(error)) throw new HostError("WORKSPACE_FILE", `There is no file ${JSON.stringify(path)} in the workspace.`);
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
    // Whatever keeps it from being seen keeps it from being read.
    return false;
  }
}

function isMissing(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return code === "ENOENT" || code === "ENOTDIR";
}
