import { readFileSync, realpathSync } from "node:fs";
import type { CheckedTree } from "../file-guard.ts";
import { readSource, statFile } from "./read-source.ts";

/** Where modules and their configuration are looked for. */
export interface ModuleFiles {
  isFile(path: string): boolean;
  isFolder(path: string): boolean;
  /** The one path that a file is known by. Throws for what is not there. */
  realPath(path: string): string;
  /** Throws for what cannot be read. */
  readText(path: string): string;
}

export const diskFiles: ModuleFiles = {
  isFile: (path) => statFile(path)?.isFile() === true,
  isFolder: (path) => statFile(path)?.isDirectory() === true,
  realPath: (path) => realpathSync.native(path),
  readText: (path) => readFileSync(path, "utf8"),
};

/** The files of a checked folder, by the names that they had when they were checked. Nothing outside of it exists. */
export function checkedFiles(tree: CheckedTree): ModuleFiles {
  return {
    isFile: (path) => tree.kindOf(path) === "file",
    isFolder: (path) => tree.kindOf(path) === "folder",
    realPath: (path) => path,
    readText: (path) => readSource(path, tree),
  };
}
