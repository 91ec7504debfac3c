import { realpathSync } from "node:fs";
import { delimiter, isAbsolute, resolve } from "node:path";
import type { Diagnostic } from "../base/diagnostic.ts";
import { HostError } from "../base/errors.ts";
import { isInside } from "../io/confine-path.ts";
import { fileStamp } from "../io/file-stamp.ts";
import { identityOf, locationOf, readTrustFile, type TrustedFolder } from "./trust-file.ts";

/** Folders whose code may run, or `true` for any folder. */
export type FolderChoice = true | readonly string[];

export interface FolderTrustOptions {
  /** The user's `trust.json`. */
  readonly file: string;
  /** The user's own folder for skillhost, which is always trusted. */
  readonly home: string;
  /** The folders that are trusted for this process. */
  readonly named: FolderChoice;
}

/** `changed`: it was trusted, but another folder is at its path now. */
export type FolderStanding = "named" | "own" | "trusted" | "changed" | "untrusted";

/**
 * Decides from which folders code may run: those that were named for this process, those that the user trusts, and the user's
 * own. Trust in a folder covers everything below it, including the targets of links in it. The user's trust file is read again
 * when it changes.
 */
export class FolderTrust {
  readonly #options: FolderTrustOptions;
  readonly #named: Set<string>;
  readonly #home: readonly string[];
  #read: { readonly state: string; readonly folders: readonly TrustedFolder[] } | undefined;

  constructor(options: FolderTrustOptions) {
    this.#options = options;
    this.#home = namesOf(options.home);
    this.#named = new Set(options.named === true ? [] : options.named.flatMap(namesOf));
  }

  allows(path: string): boolean {
    const standing = this.standingOf(path);
    return standing !== "untrusted" && standing !== "changed";
  }

  standingOf(path: string): FolderStanding {
    if (this.#options.named === true) return "named";
    // Most folders are named by the same spelling, so their real path need not be resolved.
    const spelled = resolve(path);
    if ([...this.#named].some((folder) => isInside(folder, spelled))) return "named";
    const names = namesOf(path);
    const isBelow = (folder: string): boolean => names.some((name) => isInside(folder, name));
    if ([...this.#named].some(isBelow)) return "named";
    if (this.#home.some(isBelow)) return "own";
    const kept = this.#folders.filter((folder) => isBelow(folder.path));
    if (kept.some((folder) => identityOf(folder.path) === folder.identity)) return "trusted";
    return kept.length > 0 ? "changed" : "untrusted";
  }

  /** Trusts a folder until this process ends. */
  name(folders: Iterable<string>): void {
    for (const folder of folders) for (const name of namesOf(folder)) this.#named.add(name);
  }

  get #folders(): readonly TrustedFolder[] {
    const { file } = this.#options;
    const state = fileStamp(file) ?? "absent";
    if (this.#read?.state !== state) this.#read = { state, folders: readTrustFile(file).folders ?? [] };
    return this.#read.folders;
  }
}

/** The reason that no code of a folder runs, and the command that changes this. */
export function untrustedFolder(folder: string): Diagnostic {
  const message = `No code in ${folder} was run, because this folder is not trusted yet. Review it, then run: ${trustCommand(folder)}`;
  return { severity: "error", code: "FOLDER_UNTRUSTED", file: folder, message };
}

/** The folder that must be trusted before code in it may run: the root of this process's project, else the parent folder. */
export function trustRootOf(path: string, workingDirectory: string): string {
  const project = locationOf(workingDirectory);
  return namesOf(path).some((name) => isInside(project, name)) ? project : locationOf(path);
}

export function trustCommand(folder: string): string {
  return `skillhost trust add ${/^[\w@%+=:,./\\-]+$/.test(folder) ? folder : quoted(folder)}`;
}

/**
 * Reads the variable `SKILLHOST_TRUST`: 1 for all folders, or a list of absolute folders.
 * @throws HostError `SKILLHOST_TRUST_INVALID`
 */
export function readTrustVariable(value: string | undefined): FolderChoice {
  const text = value?.trim() ?? "";
  if (text === "" || text === "0" || text === "false") return [];
  if (text === "1" || text === "true") return true;
  const folders = text.split(delimiter).filter((folder) => folder !== "");
  const wrong = folders.find((folder) => !isAbsolute(folder));
  if (wrong === undefined) return folders;
  const message = `SKILLHOST_TRUST must be 1, or absolute folders separated by "${delimiter}"; ${JSON.stringify(wrong)} is neither.`;
  throw new HostError("SKILLHOST_TRUST_INVALID", message);
}

/** Its spelling and its real path. */
function namesOf(path: string): readonly string[] {
  const spelled = resolve(path);
  try {
    return [...new Set([spelled, realpathSync.native(spelled)])];
  } catch {
    // It does not exist yet: it contains no code, and its spelling is used.
    return [spelled];
  }
}

function quoted(folder: string): string {
  return process.platform === "win32" ? `"${folder}"` : `'${folder.replaceAll("'", `'\\''`)}'`;
}
