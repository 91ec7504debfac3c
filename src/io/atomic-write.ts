import { randomBytes } from "node:crypto";
import { constants } from "node:fs";
import { chmod, type FileHandle, open, realpath, rename, rm, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { HostError } from "../base/errors.ts";
import { isReallyInside } from "./confine-path.ts";

export interface WriteOptions {
  readonly mode?: number;
  /** A folder that the file must be in, with links followed: for files of projects, which may contain links to anything. */
  readonly inside?: string;
}

/**
 * Replaces a file as a whole: readers see the old text or the new one, never half of one, also after a power cut. An existing
 * file keeps its mode, and a link stays a link: its target is replaced. Rejects with the system's error, or with
 * `PATH_OUTSIDE`, and changes nothing then. While it writes, a file `.<name>.<random>.tmp` lies beside the target.
 */
export async function writeFileAtomic(path: string, data: string | Uint8Array, options: WriteOptions = {}): Promise<void> {
  const target = await realpath(path).catch(() => path);
  if (options.inside !== undefined && !isReallyInside(options.inside, target)) throw leadsOut(path, options.inside);
  const mode = await modeOf(target);
  const temporary = join(dirname(target), `.${basename(target)}.${randomBytes(6).toString("hex")}.tmp`);
  try {
    await writeSynced(temporary, data, mode === undefined ? options.mode : 0o600);
    if (mode !== undefined) await chmod(temporary, mode);
    await renameOver(temporary, target);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
  await syncDirectory(dirname(target));
}

function leadsOut(path: string, folder: string): HostError {
  return new HostError(
    "PATH_OUTSIDE",
    `${path} was not written: it is, or is below, a symbolic link that points out of ${folder}. Remove the link.`,
  );
}

async function modeOf(path: string): Promise<number | undefined> {
  try {
    return (await stat(path)).mode & 0o7777;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

async function writeSynced(path: string, data: string | Uint8Array, mode = 0o666): Promise<void> {
  // "wx" refuses an existing path, so the write never follows a link that another program placed there.
  await usingFile(await open(path, "wx", mode), async (file) => {
    await file.writeFile(data);
    await file.sync();
  });
}

async function usingFile(file: FileHandle, use: (file: FileHandle) => Promise<void>): Promise<void> {
  try {
    await use(file);
  } finally {
    await file.close();
  }
}

// On Windows a virus scanner or an indexer may hold the target for a moment.
async function renameOver(from: string, to: string): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      await rename(from, to);
      return;
    } catch (error) {
      const isHeld = ["EPERM", "EACCES", "EBUSY"].includes((error as NodeJS.ErrnoException).code ?? "");
      if (process.platform !== "win32" || !isHeld || attempt === 10) throw error;
      await delay(attempt * 10);
    }
  }
}

// The rename survives a power cut only after the folder is synced.
async function syncDirectory(path: string): Promise<void> {
  if (process.platform === "win32") return;
  try {
    await usingFile(await open(path, constants.O_RDONLY), (folder) => folder.sync());
  } catch {
    // Some file systems cannot sync folders. The file is in place nevertheless.
  }
}
