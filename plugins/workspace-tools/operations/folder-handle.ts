import { randomBytes } from "node:crypto";
import { type BigIntStats, constants, type Dirent, existsSync } from "node:fs";
import { chmod, type FileHandle, lstat, mkdir, open, readdir, readlink, realpath, rename, rm, rmdir, unlink } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import type { Machine } from "./machine.ts";

/** The opened file is not the one at the path: a folder on the path was replaced by a link or by another folder. */
class ExchangedError extends Error {
  override readonly name = "ExchangedError";
  readonly code = "EXCHANGED";
}

/** On Linux /proc shows the path of an open file, and a path can start at an open folder. */
const hasHandles = process.platform === "linux" && existsSync("/proc/self/fd");

const noFollow = constants.O_NOFOLLOW ?? 0;

/**
 * Opens the file at a path with links resolved. Does not follow a link, and does not open a file in a folder that has
 * replaced another one on the path.
 * @throws ExchangedError; the system's error.
 */
export async function openExactly(path: string, flags: number): Promise<FileHandle> {
  const file = await open(path, flags | noFollow);
  try {
    await assertIsAt(file, path);
    return file;
  } catch (error) {
    await file.close();
    throw error;
  }
}

async function assertIsAt(file: FileHandle, path: string): Promise<void> {
  const isThere = hasHandles ? (await readlink(`/proc/self/fd/${file.fd}`)) === path : await isStillAt(file, path);
  if (!isThere) throw new ExchangedError(`What was opened is not at ${path}.`);
}

/** Without handles: compares the opened file with the one that is now at the path. Replacing it twice in between is not detected. */
async function isStillAt(file: FileHandle, path: string): Promise<boolean> {
  const [opened, named, real] = await Promise.all([file.stat({ bigint: true }), lstat(path, { bigint: true }), realpath(path)]);
  return real === path && isSame(opened, named);
}

function isSame(one: BigIntStats, other: BigIntStats): boolean {
  return one.dev === other.dev && one.ino === other.ino;
}

/**
 * An open folder. Operations affect this folder, even if its path leads somewhere else by then. On systems other than Linux
 * the path is checked before and after instead, which leaves a short time in which it can be replaced.
 */
export class FolderHandle implements AsyncDisposable {
  readonly path: string;
  readonly #handle: FileHandle | undefined;

  private constructor(path: string, handle: FileHandle | undefined) {
    this.path = path;
    this.#handle = handle;
  }

  /** `path`: with links resolved. @throws ExchangedError; the system's error. */
  static async open(path: string): Promise<FolderHandle> {
    if (hasHandles) return new FolderHandle(path, await openExactly(path, constants.O_RDONLY | constants.O_DIRECTORY));
    const folder = new FolderHandle(path, undefined);
    await folder.assertInPlace();
    return folder;
  }

  /** Creates missing folders, too. `made`: the created ones, outermost first. */
  static async make(path: string): Promise<{ readonly folder: FolderHandle; readonly made: readonly string[] }> {
    const missing: string[] = [];
    let folder = await openDeepest(path, missing);
    const made: string[] = [];
    for (const name of missing.reverse()) {
      await using parent = folder;
      if (await parent.#makeFolder(name)) made.push(join(parent.path, name));
      folder = await parent.#openFolder(name);
    }
    return { folder, made };
  }

  async entries(): Promise<readonly Dirent[]> {
    const entries = await readdir(this.pathOf("."), { withFileTypes: true });
    await this.assertInPlace();
    return entries;
  }

  /** A path to a name in exactly this folder. */
  pathOf(name: string): string {
    return this.#handle === undefined ? join(this.path, name) : `/proc/self/fd/${this.#handle.fd}/${name}`;
  }

  /** Creates a new file. Does not overwrite a file or follow a link. */
  async create(name: string, data: string | Uint8Array, mode = 0o666): Promise<void> {
    await this.assertInPlace();
    const file = await open(this.pathOf(name), constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | noFollow, mode);
    try {
      await this.#assertHolds(file, name);
      await file.writeFile(data);
    } finally {
      await file.close();
    }
  }

  /** Replaces a file atomically: readers see the old or the new content. */
  async replace(name: string, data: string | Uint8Array, machine: Pick<Machine, "writeFile">): Promise<void> {
    await this.assertInPlace();
    if (this.#handle === undefined) {
      await machine.writeFile(join(this.path, name), data);
      return this.assertInPlace();
    }
    const temporary = `.${name.slice(0, 200)}.${randomBytes(6).toString("hex")}.tmp`;
    const before = await lstat(this.pathOf(name));
    try {
      await this.#writeSynced(temporary, data, before.mode & 0o7777);
      await this.assertInPlace();
      await rename(this.pathOf(temporary), this.pathOf(name));
    } catch (error) {
      await rm(this.pathOf(temporary), { force: true });
      throw error;
    }
    // Some file systems cannot sync a folder; the file is in its place anyway.
    await this.#handle.sync().catch(() => undefined);
  }

  async remove(name: string): Promise<void> {
    await this.assertInPlace();
    await unlink(this.pathOf(name));
  }

  async removeFolder(name: string): Promise<void> {
    await this.assertInPlace();
    await rmdir(this.pathOf(name));
  }

  async chmod(name: string, mode: number): Promise<void> {
    await chmod(this.pathOf(name), mode);
  }

  /** @throws ExchangedError when its path leads somewhere else now. */
  async assertInPlace(): Promise<void> {
    if (this.#handle !== undefined) return assertIsAt(this.#handle, this.path);
    if ((await realpath(this.path)) !== this.path) throw new ExchangedError(`${this.path} was exchanged.`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#handle?.close();
  }

  async #writeSynced(name: string, data: string | Uint8Array, mode: number): Promise<void> {
    const file = await open(this.pathOf(name), constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | noFollow, 0o600);
    try {
      await file.writeFile(data);
      await file.chmod(mode);
      await file.sync();
    } finally {
      await file.close();
    }
  }

  /** Removes a new file before anything is written to it if its folder is somewhere else now. */
  async #assertHolds(file: FileHandle, name: string): Promise<void> {
    try {
      await assertIsAt(file, join(this.path, name));
    } catch (error) {
      if (this.#handle !== undefined) await rm(this.pathOf(name), { force: true });
      throw error;
    }
  }

  /** False: it exists already. */
  async #makeFolder(name: string): Promise<boolean> {
    try {
      await mkdir(this.pathOf(name));
      return true;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
      throw error;
    }
  }

  async #openFolder(name: string): Promise<FolderHandle> {
    const path = join(this.path, name);
    if (this.#handle === undefined) return FolderHandle.open(path);
    const handle = await open(this.pathOf(name), constants.O_RDONLY | constants.O_DIRECTORY | noFollow);
    const folder = new FolderHandle(path, handle);
    try {
      await folder.assertInPlace();
      return folder;
    } catch (error) {
      await handle.close();
      throw error;
    }
  }
}

/** The deepest existing folder on the path. `missing` receives the names below it, innermost first. */
async function openDeepest(path: string, missing: string[]): Promise<FolderHandle> {
  for (let at = path; ; at = dirname(at)) {
    try {
      return await FolderHandle.open(at);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT" || at === dirname(at)) throw error;
      missing.push(basename(at));
    }
  }
}
