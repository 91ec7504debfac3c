import { opendir } from "node:fs/promises";
import { FolderHandle } from "./folder-handle.ts";
import type { Place } from "./places.ts";

export interface FolderListing {
  /** Sorted names. */
  readonly names: readonly string[];
  /** The names of folders. */
  readonly folders: ReadonlySet<string>;
  /** There are more names. */
  readonly isPart: boolean;
}

/** Lists a folder. Undefined: it cannot be read. */
export async function listFolder({ real }: Place, max: number): Promise<FolderListing | undefined> {
  const names: string[] = [];
  const folders = new Set<string>();
  try {
    await using folder = await FolderHandle.open(real);
    for await (const entry of await opendir(folder.pathOf("."))) {
      // One more than is returned shows whether there are more.
      if (names.length > max) break;
      names.push(entry.name);
      if (entry.isDirectory()) folders.add(entry.name);
    }
    await folder.assertInPlace();
  } catch {
    // It is missing or cannot be opened; there is nothing to list.
    return undefined;
  }
  return { names: names.slice(0, max).sort(), folders, isPart: names.length > max };
}
