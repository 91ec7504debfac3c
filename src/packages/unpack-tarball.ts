import { mkdtempSync, readdirSync, realpathSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative, sep } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { extract } from "tar";
import { errorMessage, HostError } from "../base/errors.ts";
import { inspectTarball } from "./inspect-tarball.ts";

/** A tarball's contents in a folder of their own, which goes when this is disposed of. */
export interface UnpackedTarball extends Disposable {
  readonly folder: string;
  readonly files: readonly { readonly path: string; readonly size: number }[];
}

/** @throws HostError `PACKAGE_TARBALL` for what no package may hold. */
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
