import { readFileSync, realpathSync, type Stats, statSync } from "node:fs";
import { positionAt } from "../../base/diagnostic.ts";
import { errorMessage } from "../../base/errors.ts";
import type { CheckedTree, FileGuard } from "../read-bounded.ts";
import { ModuleError } from "./module-error.ts";

/** More than any hand-written module. A bundle of this size belongs in a package. */
const maxModuleBytes = 4 * 1024 * 1024;

/** Reads a module's text: regular files only (a pipe would block for ever), of a bounded size, without the byte order mark. */
export function readSource(file: string, guard?: FileGuard): string {
  const guarded = guard?.read(file);
  if (guarded?.ok === false) throw new ModuleError("MODULE_UNTRUSTED", guarded.diagnostic.message, { file, files: [file] });
  if (guarded !== undefined) return withoutMark(Buffer.from(guarded.bytes).toString("utf8"));
  const stats = statFile(file);
  if (stats === undefined) throw new ModuleError("MODULE_NOT_FOUND", `${file} does not exist.`, { file, files: [file] });
  if (!stats.isFile())
    throw new ModuleError("MODULE_UNREADABLE", `${file} is not a regular file, so it cannot be loaded as a module.`, { file });
  if (stats.size > maxModuleBytes) {
    const limit = maxModuleBytes / 1024 / 1024;
    const message = `${file} has ${stats.size} bytes, but the limit for a module is ${limit} MB. Move its data to a file that is read when needed.`;
    throw new ModuleError("MODULE_TOO_LARGE", message, { file });
  }
  try {
    return withoutMark(readFileSync(file, "utf8"));
  } catch (error) {
    throw new ModuleError("MODULE_UNREADABLE", `${file} cannot be read: ${errorMessage(error)}.`, { file, cause: error });
  }
}

function withoutMark(text: string): string {
  return text.startsWith("\uFEFF") ? text.slice(1) : text;
}

/** The entry at the path, or undefined for any reason (missing, no access, not a valid path). */
export function statFile(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch {
    // ENOTDIR, EACCES, ELOOP, a NUL in the path: a loader treats all of these as a missing file.
    return undefined;
  }
}

/** @throws ModuleError `MODULE_SYNTAX`, with the position if the engine reports one */
export function parseJson(file: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    const offset = /at position (\d+)/.exec(errorMessage(error))?.[1];
    const position = offset === undefined ? undefined : positionAt(text, Number(offset));
    const message = `${file} is not valid JSON: ${errorMessage(error)}.`;
    throw new ModuleError("MODULE_SYNTAX", message, { file, position, files: [file], cause: error });
  }
}

/** The file access of module resolution and configuration. */
export interface ModuleFiles {
  isFile(path: string): boolean;
  isFolder(path: string): boolean;
  /** The canonical path of a file. Throws for a missing file. */
  realPath(path: string): string;
  /** Throws when the file cannot be read. */
  readText(path: string): string;
}

export const diskFiles: ModuleFiles = {
  isFile: (path) => statFile(path)?.isFile() === true,
  isFolder: (path) => statFile(path)?.isDirectory() === true,
  realPath: (path) => realpathSync.native(path),
  readText: (path) => readFileSync(path, "utf8"),
};

/** The files of a checked folder, by their names at the time of the check. No other file exists for this loader. */
export function checkedFiles(tree: CheckedTree): ModuleFiles {
  return {
    isFile: (path) => tree.kindOf(path) === "file",
    isFolder: (path) => tree.kindOf(path) === "folder",
    realPath: (path) => path,
    readText: (path) => readSource(path, tree),
  };
}
