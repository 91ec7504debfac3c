import { realpathSync } from "node:fs";
import { dirname, sep } from "node:path";
import type { Diagnostic } from "../base/diagnostic.ts";
import type { FileGuard, GuardedRead } from "../io/file-guard.ts";
import { readFileBytes } from "../io/read-bounded.ts";
import { digestBytes, type FileDigest, type FolderDigests } from "./folder-digests.ts";

/** What was checked of a folder. */
export interface CheckedFolder {
  readonly folder: string;
  readonly files: FolderDigests["files"];
  /** The bytes that were checked, by file, for as long as the folder is being loaded. */
  readonly bytes: Map<string, Uint8Array>;
  /** False: what changed since may be used all the same; only what is held still is read from here. */
  readonly isEnforced: boolean;
}

interface Found {
  readonly root: string;
  readonly checked: CheckedFolder;
}

const maxFileBytes = 64 * 1024 * 1024;

/**
 * The folders whose files were checked. While one is loaded, it is read from the very bytes that were; what is read of it
 * later is held against their digests, so that nothing else is ever used.
 */
export class CheckedFiles implements FileGuard {
  readonly #folders = new Map<string, CheckedFolder>();
  /** What was found lately, by the folder that a file lies in. */
  readonly #found = new Map<string, Found | undefined>();

  read(file: string): GuardedRead | undefined {
    if (this.#folders.size === 0) return undefined;
    const found = this.#find(file);
    if (found === undefined) return undefined;
    const path = file.slice(found.root.length + 1);
    const held = found.checked.bytes.get(path);
    if (held !== undefined) return { ok: true, bytes: held };
    if (!found.checked.isEnforced) return undefined;
    const { files } = found.checked;
    return readListed(file, files.get((sep === "/" ? path : path.replaceAll(sep, "/")).normalize("NFC")));
  }

  folderOf(file: string): string | undefined {
    const found = this.#folders.size === 0 ? undefined : this.#find(file);
    return found?.checked.isEnforced === true ? found.root : undefined;
  }

  /** Guards a folder, under every name it is known by; gives what guarded it before. */
  put(checked: CheckedFolder): CheckedFolder | undefined {
    const before = this.#folders.get(checked.folder);
    for (const name of namesOf(checked.folder)) this.#folders.set(name, checked);
    this.#found.clear();
    return before;
  }

  /** Lets go of the bytes; a folder that is not enforced is guarded no longer. */
  settle(checked: CheckedFolder): void {
    checked.bytes.clear();
    if (!checked.isEnforced) this.remove(checked);
  }

  /** Guards a folder no longer, unless it was put again meanwhile. */
  remove(checked: CheckedFolder): void {
    for (const name of namesOf(checked.folder)) if (this.#folders.get(name) === checked) this.#folders.delete(name);
    this.#found.clear();
  }

  #find(file: string): Found | undefined {
    const directory = dirname(file);
    if (this.#found.has(directory)) return this.#found.get(directory);
    let root = directory;
    let checked = this.#folders.get(root);
    while (checked === undefined && root !== dirname(root)) {
      root = dirname(root);
      checked = this.#folders.get(root);
    }
    const found = checked && { root, checked };
    this.#found.set(directory, found);
    return found;
  }
}

function readListed(file: string, listed: FileDigest | undefined): GuardedRead {
  if (listed === undefined) return refused(file, "TRUST_FILE_ADDED", "This file is not among those that were signed, so it is not used.");
  const read = readFileBytes(file, maxFileBytes);
  if (!read.ok) return read;
  if (digestBytes(read.bytes) === listed.digest) return { ok: true, bytes: read.bytes };
  return refused(
    file,
    "TRUST_FILE_CHANGED",
    "This file has changed since the skill was signed, so it is not used. Have the skill signed anew.",
  );
}

function refused(file: string, code: string, message: string): { readonly ok: false; readonly diagnostic: Diagnostic } {
  return { ok: false, diagnostic: { severity: "error", code, file, message } };
}

/** As it is configured, and where it really lies: modules are known by their real paths. */
function namesOf(folder: string): readonly string[] {
  try {
    return [...new Set([folder, realpathSync.native(folder)])];
  } catch {
    // Gone already: nothing of it will be read.
    return [folder];
  }
}
