import { mkdtempSync, readdirSync, realpathSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative, sep } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGunzip } from "node:zlib";
import { extract, Parser } from "tar";
import { errorMessage, HostError } from "../base/errors.ts";
import { counted } from "../base/text.ts";
import { foldedName } from "../trust/folder-digests.ts";

export interface TarballLimits {
  readonly files: number;
  /** The limit for one file, in bytes. */
  readonly fileBytes: number;
  /** The limit for all files together, in bytes. */
  readonly bytes: number;
  /** The limit for the tarball itself, in bytes. */
  readonly packedBytes: number;
  /** The maximum ratio of contents to tarball, above one megabyte. */
  readonly ratio: number;
}

export const tarballLimits: TarballLimits = {
  files: 20_000,
  fileBytes: 64 * 1024 * 1024,
  bytes: 256 * 1024 * 1024,
  packedBytes: 64 * 1024 * 1024,
  ratio: 200,
};

export interface TarballSummary {
  readonly files: number;
  readonly bytes: number;
}

/**
 * Inspects a package's tarball before anything is written: paths out of the folder, links, devices, names that some systems treat as
 * equal, and unreasonable sizes are refused.
 * @throws HostError `PACKAGE_TARBALL` naming the entry and the problem.
 */
export async function inspectTarball(
  packed: Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
  limits: TarballLimits = tarballLimits,
): Promise<TarballSummary> {
  const inspection = new Inspection(limits);
  const gunzip = createGunzip();
  const parser = new Parser({ strict: true, onReadEntry: (entry) => inspection.enter(entry) });
  const done = new Promise<void>((resolve, reject) => {
    parser.on("end", resolve);
    parser.on("error", reject);
    gunzip.on("error", reject);
    inspection.onRefused = reject;
  });
  done.catch(() => {});
  gunzip.on("data", (chunk: Buffer) => {
    inspection.unpacked(chunk.length);
    if (inspection.isRefused) return;
    // The parser would keep data after the end of the archive and copy it with each chunk.
    if (inspection.hasEnded) inspection.trailing(chunk.length);
    else parser.write(chunk);
  });
  parser.on("eof", () => {
    inspection.hasEnded = true;
  });
  gunzip.on("end", () => parser.end());
  try {
    // A failing unpacker never requests more data, so wait for either.
    await Promise.race([feed(packed, gunzip, inspection), done]);
    await done;
  } catch (error) {
    throw error instanceof HostError ? error : refusal(`It is damaged or not an npm tarball: ${(error as Error).message}`);
  } finally {
    gunzip.destroy();
  }
  return inspection.summary();
}

async function feed(
  packed: Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
  gunzip: NodeJS.WritableStream,
  inspection: Inspection,
): Promise<void> {
  for await (const chunk of packed) {
    inspection.packed(chunk.length);
    if (inspection.isRefused) return;
    // Waits until each chunk is inspected, so that little is held in memory.
    await new Promise<void>((resolve, reject) => {
      gunzip.write(chunk as Buffer, (error) => (error ? reject(error) : resolve()));
      inspection.onStop = resolve;
    });
  }
  gunzip.end();
}

interface TarEntry {
  readonly path: string;
  readonly type: string;
  readonly size: number;
  resume(): void;
}

/** Archives are padded to whole records, which are much smaller than this. */
const maxTrailing = 1024 * 1024;

class Inspection {
  isRefused = false;
  hasEnded = false;
  onRefused: (error: Error) => void = () => {};
  onStop: () => void = () => {};
  readonly #limits: TarballLimits;
  readonly #names = new Map<string, string>();
  /** Each folder, with one file in it. */
  readonly #folders = new Map<string, string>();
  #files = 0;
  #bytes = 0;
  #packed = 0;
  #unpacked = 0;
  #trailing = 0;

  constructor(limits: TarballLimits) {
    this.#limits = limits;
  }

  packed(bytes: number): void {
    this.#packed += bytes;
    if (this.#packed > this.#limits.packedBytes) this.#refuse(`It is larger than ${megabytes(this.#limits.packedBytes)}.`);
  }

  unpacked(bytes: number): void {
    this.#unpacked += bytes;
    const { ratio, bytes: most } = this.#limits;
    // Headers count too: a million empty files is also a decompression bomb.
    if (this.#unpacked > most * 1.5) this.#refuse(`It is larger than ${megabytes(most)} when unpacked.`);
    else if (this.#unpacked > 1024 * 1024 && this.#unpacked > ratio * this.#packed) {
      this.#refuse(`It is more than ${ratio} times larger when unpacked.`);
    }
  }

  trailing(bytes: number): void {
    this.#trailing += bytes;
    if (this.#trailing > maxTrailing) this.#refuse(`More than ${megabytes(maxTrailing)} follow the end of the archive.`);
  }

  enter(entry: TarEntry): void {
    entry.resume();
    if (this.isRefused) return;
    const fault = this.#faultOf(entry);
    if (fault !== undefined) this.#refuse(`${JSON.stringify(entry.path.slice(0, 200))} ${fault}`);
  }

  summary(): TarballSummary {
    if (this.#files === 0) throw refusal("It is empty.");
    return { files: this.#files, bytes: this.#bytes };
  }

  #faultOf({ path, type, size }: TarEntry): string | undefined {
    if (type === "Directory" || type === "GNUDumpDir") return faultOfName(path);
    if (type === "SymbolicLink" || type === "Link") return "is a link, which is not allowed in packages.";
    if (type !== "File" && type !== "OldFile" && type !== "ContiguousFile") return `is a ${type}, not a regular file.`;
    this.#files++;
    this.#bytes += size;
    const { files, fileBytes, bytes } = this.#limits;
    if (size > fileBytes) return `is larger than ${megabytes(fileBytes)}.`;
    if (this.#files > files) return `is one of more than ${counted(files, "file")}.`;
    if (this.#bytes > bytes) return `makes the total larger than ${megabytes(bytes)}.`;
    return faultOfName(path) ?? this.#clashOf(path);
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

  #refuse(why: string): void {
    if (this.isRefused) return;
    this.isRefused = true;
    this.onRefused(refusal(why));
    this.onStop();
  }
}

// npm drops the first part of each path.
function faultOfName(path: string): string | undefined {
  if (path.includes("\0")) return "has a NUL character in its name.";
  if (/^[\\/]/.test(path) || /^[a-z]:/i.test(path)) return "has an absolute name.";
  if (path.includes("\\")) return "has a backslash in its name, which is a separator on Windows.";
  const parts = path.split("/");
  if (parts.includes("..")) return "points out of its folder.";
  if (path.length > 1_024) return "has a name of more than 1024 characters.";
  if (parts.slice(1).some(isGitFolder)) return "is part of a git repository on some systems.";
  return parts
    .slice(1)
    .map(faultOfPart)
    .find((fault) => fault !== undefined);
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

function megabytes(bytes: number): string {
  return bytes < 1024 * 1024 ? `${bytes} bytes` : `${Math.round(bytes / 1024 / 1024)} MB`;
}

function refusal(why: string): HostError {
  return new HostError("PACKAGE_TARBALL", `This tarball was not unpacked. ${why}`);
}

/** The contents of a tarball in a temporary folder, which disposing of this deletes. */
export interface UnpackedTarball extends Disposable {
  readonly folder: string;
  readonly files: readonly { readonly path: string; readonly size: number }[];
}

/** Unpacks a tarball after inspection. @throws HostError `PACKAGE_TARBALL` for forbidden contents. */
export async function unpackTarball(tarball: Buffer): Promise<UnpackedTarball> {
  await inspectTarball([tarball]);
  const folder = realpathSync.native(mkdtempSync(join(tmpdir(), "skillhost-unpacked-")));
  const remove = (): void => rmSync(folder, { recursive: true, force: true });
  try {
    await pipeline(Readable.from([tarball]), extract({ cwd: folder, strip: 1, strict: true, preserveOwner: false }));
  } catch (error) {
    remove();
    throw new HostError("PACKAGE_TARBALL", `This tarball cannot be unpacked: ${errorMessage(error)}`, { cause: error });
  }
  return { folder, files: filesBelow(folder), [Symbol.dispose]: remove };
}

function filesBelow(folder: string): UnpackedTarball["files"] {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const files = entries.map((entry) => {
    const file = join(entry.parentPath, entry.name);
    return { path: relative(folder, file).split(sep).join("/"), size: statSync(file).size };
  });
  return files.sort((a, b) => (a.path < b.path ? -1 : 1));
}
