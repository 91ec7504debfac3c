import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { extract } from "tar";
import { errorMessage, HostError } from "../base/errors.ts";
import { digestFolder } from "../trust/folder-digests.ts";
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
  const files = [...digestFolder(folder).files].map(([path, { size }]) => ({ path, size }));
  return { folder, files, [Symbol.dispose]: remove };
}
