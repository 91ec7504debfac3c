import { mkdir, readdir, readFile, rename, rm, stat } from "node:fs/promises";
import { dirname, join, relative, sep } from "node:path";
import { HostError } from "../../base/errors.ts";
import { writeFileAtomic } from "../../io/atomic-write.ts";
import { confinePath } from "../../io/confine-path.ts";

/** Larger files are not read as a whole. */
const maxBytes = 10 * 1024 * 1024;

export interface WorkspaceFileStat {
  readonly isFile: boolean;
  readonly isDirectory: boolean;
  readonly size: number;
  readonly mtimeMs: number;
  readonly birthtimeMs: number;
}

/** A folder of a session's own files, on this machine or at its client. Paths are relative to it; one that leaves it is refused. */
export interface WorkspaceFiles {
  readonly root: string;
  /** The folder below this one. It need not exist. */
  below(name: string): WorkspaceFiles;
  /** The absolute path of a file. @throws HostError `WORKSPACE_FILE`. */
  pathOf(path: string): string;
  /** Undefined: there is no such file. @throws HostError `WORKSPACE_FILE`. */
  read(path: string): Promise<string | undefined>;
  /** True: the file is new. @throws HostError `WORKSPACE_FILE`. */
  write(path: string, content: string): Promise<boolean>;
  makeFolder(path: string): Promise<void>;
  /** False: there was nothing. @throws HostError `WORKSPACE_FILE`, for a folder that is not empty without `recursive`. */
  remove(path: string, recursive?: boolean): Promise<boolean>;
  /** @throws HostError `WORKSPACE_FILE` when the source does not exist or the destination does. */
  rename(from: string, to: string): Promise<void>;
  /** Undefined: there is nothing. */
  stat(path: string): Promise<WorkspaceFileStat | undefined>;
  /** The sorted paths of all files, with "/" between their parts. */
  list(): Promise<readonly string[]>;
}

/** Files in a folder of this machine. */
export class LocalFiles implements WorkspaceFiles {
  readonly root: string;

  constructor(root: string) {
    this.root = root;
  }

  below(name: string): LocalFiles {
    return new LocalFiles(join(this.root, name));
  }

  pathOf(path: string): string {
    const confined = confinePath(this.root, path);
    if (confined.ok) return confined.path;
    throw new HostError("WORKSPACE_FILE", confined.message);
  }

  async read(path: string): Promise<string | undefined> {
    const file = this.pathOf(path);
    try {
      const { size } = await stat(file);
      if (size > maxBytes) throw new HostError("WORKSPACE_FILE", `${path} is larger than ${maxBytes} bytes.`);
      return await readFile(file, "utf8");
    } catch (error) {
      if (isMissing(error)) return undefined;
      throw toWorkspaceError(error, path);
    }
  }

  async write(path: string, content: string): Promise<boolean> {
    const file = this.pathOf(path);
    try {
      const isNew = (await this.stat(path)) === undefined;
      // Only the user may read what belongs to a conversation.
      await mkdir(dirname(file), { recursive: true, mode: 0o700 });
      await writeFileAtomic(file, content);
      return isNew;
    } catch (error) {
      throw toWorkspaceError(error, path);
    }
  }

  async makeFolder(path: string): Promise<void> {
    const folder = this.pathOf(path);
    try {
      await mkdir(folder, { recursive: true, mode: 0o700 });
    } catch (error) {
      throw toWorkspaceError(error, path);
    }
  }

  async remove(path: string, recursive = false): Promise<boolean> {
    const target = this.#pathInside(path);
    const found = await this.stat(path);
    if (found === undefined) return false;
    if (found.isDirectory && !recursive && (await readdir(target)).length > 0)
      throw new HostError("WORKSPACE_FILE", `${JSON.stringify(path)} is a folder that is not empty. Remove it with recursive: true.`);
    await rm(target, { recursive: true, force: true });
    return true;
  }

  async rename(from: string, to: string): Promise<void> {
    const [source, target] = [this.#pathInside(from), this.#pathInside(to)];
    if ((await this.stat(from)) === undefined) throw noFile(from);
    if ((await this.stat(to)) !== undefined) throw new HostError("WORKSPACE_FILE", `${JSON.stringify(to)} already exists.`);
    try {
      await mkdir(dirname(target), { recursive: true, mode: 0o700 });
      await rename(source, target);
    } catch (error) {
      throw toWorkspaceError(error, from);
    }
  }

  async stat(path: string): Promise<WorkspaceFileStat | undefined> {
    const target = this.pathOf(path);
    try {
      const found = await stat(target);
      const { size, mtimeMs, birthtimeMs } = found;
      return { isFile: found.isFile(), isDirectory: found.isDirectory(), size, mtimeMs, birthtimeMs };
    } catch (error) {
      if (isMissing(error)) return undefined;
      throw toWorkspaceError(error, path);
    }
  }

  async list(): Promise<readonly string[]> {
    try {
      const entries = await readdir(this.root, { recursive: true, withFileTypes: true });
      const files = entries.filter((entry) => entry.isFile()).map(({ parentPath, name }) => relative(this.root, join(parentPath, name)));
      return files.map((file) => file.split(sep).join("/")).sort();
    } catch (error) {
      if (isMissing(error)) return [];
      throw error;
    }
  }

  /** The folder itself can neither be removed nor renamed. */
  #pathInside(path: string): string {
    const target = this.pathOf(path);
    if (relative(this.root, target) !== "") return target;
    throw new HostError("WORKSPACE_FILE", `${JSON.stringify(path)} is the folder of all files. Name a file or a folder in it.`);
  }
}

export function noFile(path: string): HostError {
  return new HostError("WORKSPACE_FILE", `The workspace has no file ${JSON.stringify(path.slice(0, 200))}.`);
}

function isMissing(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return code === "ENOENT" || code === "ENOTDIR";
}

/** A client may read the message, and the system's own contains absolute paths. */
function toWorkspaceError(error: unknown, path: string): unknown {
  const { code } = error as NodeJS.ErrnoException;
  if (error instanceof HostError || code === undefined) return error;
  return new HostError("WORKSPACE_FILE", `${JSON.stringify(path.slice(0, 200))} cannot be used in this way (${code}).`, { cause: error });
}
