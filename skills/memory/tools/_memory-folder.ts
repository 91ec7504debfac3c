import { randomUUID } from "node:crypto";
import { lstat, mkdir, open, readdir, rename, rm } from "node:fs/promises";
import { homedir } from "node:os";
import { join, resolve } from "node:path";

/** The largest memory, in bytes of UTF-8. */
export const maxMemoryBytes = 256 * 1024;
const maxListed = 1000;

/** `SKILLHOST_MEMORY_DIR`, or a folder in the user's home. The variable is read on each call, so that tests can set it. */
export function memoryFolder(): string {
  const own = process.env["SKILLHOST_MEMORY_DIR"];
  return own ? resolve(own) : join(homedir(), ".skillhost", "memories");
}

export type Named = { readonly ok: true; readonly name: string } | { readonly ok: false; readonly reason: string };

// Windows reserves these names for devices, in every folder and with any extension.
const devices = /^(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])(\..*)?$/i;

/** The file name of a memory is the last segment of the given path, so it cannot be outside the folder. */
export function memoryName(path: string): Named {
  const name = path.split(/[\\/]/).at(-1)?.normalize("NFC").trim() ?? "";
  if (name === "") return refused(path, "it has no file name");
  if (name.startsWith(".")) return refused(name, "it begins with a dot");
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern is meant to match control characters
  if (/[\u0000-\u001f\u007f<>:"|?*]/.test(name)) return refused(name, 'it contains one of < > : " | ? * or a control character');
  if (name.endsWith(".")) return refused(name, "it ends with a dot");
  if (Buffer.byteLength(name) > 200) return refused(name, "it is longer than 200 bytes");
  if (devices.test(name)) return refused(name, "it is reserved on Windows");
  return { ok: true, name };
}

function refused(name: string, why: string): Named {
  return { ok: false, reason: `Error: ${JSON.stringify(name.slice(0, 100))} cannot name a memory: ${why}. Use a name like 'notes.md'.` };
}

/** Replaces a memory atomically: readers see the old or the new text. Returns its path. */
export async function writeMemory(name: string, content: string): Promise<string> {
  const folder = memoryFolder();
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const target = join(folder, name);
  // Names of memories cannot begin with a dot, so this file is never listed and never clashes.
  const draft = join(folder, `.${randomUUID()}.tmp`);
  try {
    await writeDraft(draft, content);
    await rename(draft, target);
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
  return target;
}

async function writeDraft(draft: string, content: string): Promise<void> {
  const file = await open(draft, "wx", 0o600);
  try {
    await file.writeFile(content, "utf8");
    await file.sync();
  } finally {
    await file.close();
  }
}

/** Undefined: the memory does not exist. Links are not followed, because they could lead to any file. */
export async function readMemory(name: string): Promise<string | undefined> {
  const path = join(memoryFolder(), name);
  if (!(await isMemory(path))) return undefined;
  const file = await open(path, "r");
  try {
    const buffer = Buffer.alloc(maxMemoryBytes + 1);
    const { bytesRead } = await file.read(buffer, 0, buffer.length, 0);
    const text = buffer.toString("utf8", 0, Math.min(bytesRead, maxMemoryBytes));
    return bytesRead > maxMemoryBytes ? `${text}\n[This memory is larger than ${maxMemoryBytes} bytes; the rest is not shown.]` : text;
  } finally {
    await file.close();
  }
}

/** Returns false if the memory does not exist. */
export async function deleteMemory(name: string): Promise<boolean> {
  const path = join(memoryFolder(), name);
  if (!(await isMemory(path))) return false;
  await rm(path);
  return true;
}

async function isMemory(path: string): Promise<boolean> {
  try {
    return (await lstat(path)).isFile();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return false;
    throw error;
  }
}

/** The names of all memories, sorted. */
export async function listMemories(): Promise<{ names: readonly string[]; more: number }> {
  const entries = await readEntries();
  const names = entries.filter((entry) => entry.isFile() && memoryName(entry.name).ok).map((entry) => entry.name);
  names.sort((a, b) => (a < b ? -1 : 1));
  return { names: names.slice(0, maxListed), more: Math.max(0, names.length - maxListed) };
}

async function readEntries(): Promise<{ name: string; isFile(): boolean }[]> {
  try {
    return await readdir(memoryFolder(), { withFileTypes: true });
  } catch (error) {
    // The folder is created by the first save.
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}
