import { mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative, sep } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGunzip } from "node:zlib";
import { extract, Parser } from "tar";
import { errorMessage, HostError } from "../base/errors.ts";
import { type EntryLimits, EntryRules, megabytes } from "./entry-rules.ts";

export interface TarballLimits extends EntryLimits {
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
  // npm drops the first part of each path.
  { droppedParts = 1 }: { readonly droppedParts?: number } = {},
): Promise<TarballSummary> {
  const inspection = new Inspection(limits, droppedParts);
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
  readonly #rules: EntryRules;
  #packed = 0;
  #unpacked = 0;
  #trailing = 0;

  constructor(limits: TarballLimits, droppedParts: number) {
    this.#limits = limits;
    this.#rules = new EntryRules(limits, { droppedParts });
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
    const { files, bytes } = this.#rules;
    if (files === 0) throw refusal("It is empty.");
    return { files, bytes };
  }

  #faultOf({ path, type, size }: TarEntry): string | undefined {
    if (type === "Directory" || type === "GNUDumpDir") return this.#rules.faultOfName(path);
    if (type === "SymbolicLink" || type === "Link") return "is a link, which is not allowed in packages.";
    if (type !== "File" && type !== "OldFile" && type !== "ContiguousFile") return `is a ${type}, not a regular file.`;
    return this.#rules.addFile(path, size);
  }

  #refuse(why: string): void {
    if (this.isRefused) return;
    this.isRefused = true;
    this.onRefused(refusal(why));
    this.onStop();
  }
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

/**
 * Unpacks an archive that is not npm's into a new folder, after inspection. If everything in it is in one folder, that is the result.
 * @throws HostError `PACKAGE_TARBALL` for forbidden contents.
 */
export async function unpackArchive(archive: Buffer, target: string): Promise<Omit<UnpackedTarball, keyof Disposable>> {
  await inspectTarball([archive], tarballLimits, { droppedParts: 0 });
  mkdirSync(target, { recursive: true });
  try {
    await pipeline(Readable.from([archive]), extract({ cwd: target, strict: true, preserveOwner: false }));
  } catch (error) {
    throw new HostError("PACKAGE_TARBALL", `This tarball cannot be unpacked: ${errorMessage(error)}`, { cause: error });
  }
  const [only, ...others] = readdirSync(target, { withFileTypes: true });
  const folder = others.length === 0 && only?.isDirectory() === true ? join(target, only.name) : target;
  return { folder, files: filesBelow(folder) };
}

function filesBelow(folder: string): UnpackedTarball["files"] {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const files = entries.map((entry) => {
    const file = join(entry.parentPath, entry.name);
    return { path: relative(folder, file).split(sep).join("/"), size: statSync(file).size };
  });
  return files.sort((a, b) => (a.path < b.path ? -1 : 1));
}
