import { type Dirent, existsSync, readdirSync, statSync } from "node:fs";
import type { FolderView } from "../trust/folder-view.ts";

/** Whether there is anything at a path. */
export function existsAt(path: string, view: FolderView | undefined): boolean {
  const kind = view?.kindOf(path);
  return kind === undefined ? existsSync(path) : kind !== "nothing";
}

/** Throws the system's error where nothing is. */
export function isFolderAt(path: string, view: FolderView | undefined): boolean {
  const kind = view?.kindOf(path);
  return kind === undefined || kind === "nothing" ? statSync(path).isDirectory() : kind === "folder";
}

/** The names in a folder. Throws the system's error for what is none. */
export function namesAt(folder: string, view: FolderView | undefined): readonly string[] {
  return view?.entriesOf(folder)?.map(({ name }) => name) ?? readdirSync(folder);
}

/** Likewise, with what each of them is. */
export function entriesAt(folder: string, view: FolderView | undefined): readonly Dirent[] {
  return view?.entriesOf(folder) ?? readdirSync(folder, { withFileTypes: true });
}
