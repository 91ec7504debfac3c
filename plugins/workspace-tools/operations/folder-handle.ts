import { randomBytes } from "node:crypto";
import { type BigIntStats, constants, type Dirent, existsSync } from "node:fs";
import { chmod, type FileHandle, lstat, mkdir, open, readdir, readlink, realpath, rename, rm, rmdir, unlink } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import type { Machine } from "./machine.ts";

/** What was opened is not where it was looked for: a folder on the way was exchanged meanwhile, for a link or for another folder. */
class ExchangedError extends Error {
  override readonly name = "ExchangedError";
  readonly code = "EXCHANGED";
}

/** Linux tells by which path an open file is reached, and takes a path that starts at an open folder. */
const hasHandles = process.platform === "linux" && existsSync("/proc/self/fd");

const noFollow = constants.O_NOFOLLOW ?? 0;

/**
 * Opens what is at a path of which links were followed, and nothing else: neither through a link nor in a folder that has come
 * to stand in the place of another.
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

/** Without handles: whatever is at the path now is what was opened. Exchanging it twice in between goes unnoticed. */
async function isStillAt(file: FileHandle, path: string): Promise<boolean> {
  const [opened, named, real] = await Promise.all([file.stat({ bigint: true }), lstat(path, { bigint: true }), realpath(path)]);
  return real === path && isSame(opened, named);
}

function isSame(one: BigIntStats, other: BigIntStats): boolean {
  return one.dev === other.dev && one.ino === other.ino;
}

/**
 * A folder that is held open: what is done in it is done there, wherever its path leads by then. On systems other than Linux
 * its path is checked before and after instead, so that a short time remains in which it may be exchanged.
 */
export class FolderHandle implements AsyncDisposable {
  readonly path: string;
  readonly #handle: FileHandle | undefined;

  private constructor(path: string, handle: FileHandle | undefined) {
    this.path = path;
    this.#handle = handle;
  }

  /** `path`: links followed. @throws ExchangedError; the system's error. */
  static async open(path: string): Promise<FolderHandle> {
    if (hasHandles) return new FolderHandle(path, await openExactly(path, constants.O_RDONLY | constants.O_DIRECTORY));
    const folder = new FolderHandle(path, undefined);
    await folder.assertInPlace();
    return folder;
  }

  /** Makes the folders that are missing as well; `made` are those, the outermost first. */
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

  /** A path that leads to a name in this folder, and in no other. */
  pathOf(name: string): string {
    return this.#handle === undefined ? join(this.path, name) : `/proc/self/fd/${this.#handle.fd}/${name}`;
  }

  /** Makes a file that is not there yet; neither over another one nor through a link. */
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

  /** Replaces a file as a whole: who reads it sees the old one or the new one. */
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
    // Some file systems cannot make a folder's names last at once; the file is in its place all the same.
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

  /** @throws ExchangedError when its path leads elsewhere by now. */
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

  /** A file that was made in a folder which is elsewhere by now goes again, before anything is written to it. */
  async #assertHolds(file: FileHandle, name: string): Promise<void> {
    try {
      await assertIsAt(file, join(this.path, name));
    } catch (error) {
      if (this.#handle !== undefined) await rm(this.pathOf(name), { force: true });
      throw error;
    }
  }

  /** False: it is there already. */
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

/** The deepest folder on the way that is there; `missing` gets the names below it, the innermost first. */
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
