import { counted } from "../base/text.ts";
import { foldedName } from "../trust/folder-digests.ts";

export interface EntryLimits {
  readonly files: number;
  /** The limit for one file, in bytes. */
  readonly fileBytes: number;
  /** The limit for all files together, in bytes. */
  readonly bytes: number;
}

interface EntryRulesOptions {
  /** The number of leading parts that are dropped from each path before it is written. Default: 0. */
  readonly droppedParts?: number;
}

/**
 * The rules for files that come from elsewhere, whatever they are packed in: names that stay in their folder on every system, names that
 * no system treats as equal, and reasonable sizes. Each method returns what is wrong with an entry, in words that follow its name.
 */
export class EntryRules {
  readonly #limits: EntryLimits;
  readonly #droppedParts: number;
  readonly #names = new Map<string, string>();
  /** Each folder, with one file in it. */
  readonly #folders = new Map<string, string>();
  #files = 0;
  #bytes = 0;

  constructor(limits: EntryLimits, { droppedParts = 0 }: EntryRulesOptions = {}) {
    this.#limits = limits;
    this.#droppedParts = droppedParts;
  }

  get files(): number {
    return this.#files;
  }

  get bytes(): number {
    return this.#bytes;
  }

  addFile(path: string, size: number): string | undefined {
    this.#files++;
    this.#bytes += size;
    const { files, fileBytes, bytes } = this.#limits;
    if (size > fileBytes) return `is larger than ${megabytes(fileBytes)}.`;
    if (this.#files > files) return `is one of more than ${counted(files, "file")}.`;
    if (this.#bytes > bytes) return `makes the total larger than ${megabytes(bytes)}.`;
    return this.faultOfName(path) ?? this.#clashOf(path);
  }

  faultOfName(path: string): string | undefined {
    if (path.includes("\0")) return "has a NUL character in its name.";
    if (/^[\\/]/.test(path) || /^[a-z]:/i.test(path)) return "has an absolute name.";
    if (path.includes("\\")) return "has a backslash in its name, which is a separator on Windows.";
    const parts = path.split("/");
    if (parts.includes("..")) return "points out of its folder.";
    if (path.length > 1_024) return "has a name of more than 1024 characters.";
    const written = parts.slice(this.#droppedParts);
    if (written.some(isGitFolder)) return "is part of a git repository on some systems.";
    return written.map(faultOfPart).find((fault) => fault !== undefined);
  }

  #clashOf(path: string): string | undefined {
    const folded = foldedName(path);
    const other = this.#names.get(folded) ?? this.#folders.get(folded) ?? this.#fileAbove(folded);
    this.#names.set(folded, path);
    for (let end = folded.lastIndexOf("/"); end > 0; end = folded.lastIndexOf("/", end - 1)) {
      // The parents of a known folder are known too.
      if (this.#folders.has(folded.slice(0, end))) break;
      this.#folders.set(folded.slice(0, end), path);
    }
    return other === undefined ? undefined : `has the same name as ${JSON.stringify(other)} on some systems.`;
  }

  /** The file whose path this entry needs as a folder. */
  #fileAbove(folded: string): string | undefined {
    for (let end = folded.lastIndexOf("/"); end > 0; end = folded.lastIndexOf("/", end - 1)) {
      const file = this.#names.get(folded.slice(0, end));
      if (file !== undefined) return file;
    }
    return undefined;
  }
}

/** macOS ignores invisible characters, Windows trailing dots and spaces; `git~1` is a Windows short name. */
function isGitFolder(part: string): boolean {
  const folded = foldedName(part).replace(/[. ]+$/, "");
  return folded === ".git" || /^git~\d+$/.test(folded) || folded.startsWith(".git:");
}

const devices = /^(?:con|prn|aux|nul|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³])$/;

function faultOfPart(part: string): string | undefined {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: those are what is looked for
  if (/[\u0000-\u001f\u007f]|\p{Default_Ignorable_Code_Point}/u.test(part)) return "has invisible characters in its name.";
  if (part.includes(":")) return "has a colon in its name, which marks a drive or stream on Windows.";
  if (/[. ]$/.test(part) && part !== ".") return "has a dot or space at the end of its name, which Windows removes.";
  const stem = foldedName(part).replace(/\..*$/, "").trimEnd();
  return devices.test(stem) ? "has the name of a Windows device." : undefined;
}

export function megabytes(bytes: number): string {
  return bytes < 1024 * 1024 ? `${bytes} bytes` : `${Math.round(bytes / 1024 / 1024)} MB`;
}
