import { type Dirent, promises as fs } from "node:fs";
import { extname, isAbsolute, join, relative, resolve, sep } from "node:path";
import { extensions } from "./unit.ts";

const maxFiles = 2000;
export const maxFileBytes = 1024 * 1024;

export interface SourceFile {
  /** Relative to the working directory, with forward slashes. */
  readonly path: string;
  readonly absolute: string;
}

export type Collected =
  | { readonly ok: true; readonly files: readonly SourceFile[]; readonly truncated: boolean }
  | { readonly ok: false; readonly reason: string };

const skippedFolders = new Set(["node_modules", "bower_components", "dist", "coverage"]);

/** The source files at a path that lies in the working directory, sorted by path. Links are not followed out of it. */
export async function collectFiles(root: string, path: string, signal: AbortSignal): Promise<Collected> {
  const base = await fs.realpath(root);
  const wanted = resolve(base, path);
  const target = await fs.realpath(wanted).catch((error: NodeJS.ErrnoException) => ({ code: error.code }));
  if (typeof target !== "string")
    return { ok: false, reason: isInside(base, wanted) ? `There is no file or folder "${path}" in the working directory.` : outside(path) };
  if (!isInside(base, target)) return { ok: false, reason: outside(path) };
  const stat = await fs.stat(target);
  if (stat.isDirectory()) return { ok: true, ...(await walk(base, target, signal)) };
  if (!stat.isFile()) return { ok: false, reason: `"${path}" is neither a file nor a folder.` };
  if (!isSource(target)) return { ok: false, reason: `"${path}" is not a TypeScript or JavaScript file (${extensions.join(" ")}).` };
  return { ok: true, files: [toSourceFile(base, target)], truncated: false };
}

function outside(path: string): string {
  return `"${path}" leads out of the working directory. Give a path inside it.`;
}

function isInside(base: string, target: string): boolean {
  const way = relative(base, target);
  return way === "" || (way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way));
}

function isSource(path: string): boolean {
  return extensions.includes(extname(path));
}

function toSourceFile(base: string, absolute: string): SourceFile {
  return { path: relative(base, absolute).split(sep).join("/"), absolute };
}

async function walk(base: string, folder: string, signal: AbortSignal): Promise<{ files: SourceFile[]; truncated: boolean }> {
  const files: SourceFile[] = [];
  const open = [folder];
  for (let at = open.pop(); at !== undefined; at = open.pop()) {
    signal.throwIfAborted();
    const entries = await readFolder(at);
    for (const entry of entries) {
      const path = join(at, entry.name);
      if (entry.isDirectory() && !entry.name.startsWith(".") && !skippedFolders.has(entry.name)) open.push(path);
      if (!entry.isFile() || !isSource(path) || /\.d\.[cm]?ts$|\.min\.[cm]?js$/.test(entry.name)) continue;
      if (files.length === maxFiles) return { files: sorted(files), truncated: true };
      files.push(toSourceFile(base, path));
    }
  }
  return { files: sorted(files), truncated: false };
}

async function readFolder(folder: string): Promise<Dirent[]> {
  try {
    return await fs.readdir(folder, { withFileTypes: true });
  } catch {
    // A folder that may not be read, or went away meanwhile, holds nothing to check.
    return [];
  }
}

function sorted(files: SourceFile[]): SourceFile[] {
  return files.sort((a, b) => (a.path < b.path ? -1 : 1));
}

export type Loaded = { readonly ok: true; readonly text: string } | { readonly ok: false; readonly reason: string };

/** Reads one file, within bounds. */
export async function loadSource(file: SourceFile): Promise<Loaded> {
  try {
    const { size } = await fs.stat(file.absolute);
    if (size > maxFileBytes) return { ok: false, reason: `larger than ${maxFileBytes / 1024} KiB` };
    const text = await fs.readFile(file.absolute, "utf8");
    return text.includes("\0") ? { ok: false, reason: "not a text file" } : { ok: true, text };
  } catch (error) {
    return { ok: false, reason: `cannot be read (${(error as NodeJS.ErrnoException).code ?? "unknown error"})` };
  }
}
