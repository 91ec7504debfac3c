import { createHash } from "node:crypto";
import { chmodSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { gunzipSync, gzipSync } from "node:zlib";
import { HostError } from "skillhost";

/** The files of a skill as one piece, and its digest: equal files give equal pieces. */
export interface SkillArchive {
  readonly bytes: Uint8Array;
  readonly digest: string;
}

const format = "skillhost-skill/1";
const maxFiles = 5_000;
// Of the unpacked whole.
const maxSize = 128 * 1024 * 1024;
// Legal on every platform: no drive letters, reserved characters or trailing dots.
const segment = /^(?!\.{1,2}$)[^\\/:*?"<>|\p{Cc}]{0,199}[^\\/:*?"<>|. \p{Cc}]$/u;

/** @throws HostError `FLEET_SKILL` when the files are too many or too large. */
export function packSkill(folder: string, files: Iterable<string>): SkillArchive {
  const paths = [...files].sort();
  if (paths.length > maxFiles)
    throw new HostError("FLEET_SKILL", `The skill has ${paths.length} files; at most ${maxFiles} can be pushed.`);
  let size = 0;
  const packed = paths.map((path) => {
    const file = join(folder, path);
    const content = readFileSync(file);
    size += content.length;
    if (size > maxSize) throw new HostError("FLEET_SKILL", `The skill has more than ${maxSize} bytes, which is more than can be pushed.`);
    return [path, content.toString("base64"), (statSync(file).mode & 0o100) !== 0];
  });
  const bytes = gzipSync(JSON.stringify({ format, files: packed }));
  return { bytes, digest: digestOf(bytes) };
}

/**
 * Writes the files of an archive into a new folder. Nothing is written unless all of it is valid.
 * @throws HostError `FLEET_SKILL`.
 */
export function unpackSkill(bytes: Uint8Array, digest: string, folder: string): void {
  if (digestOf(bytes) !== digest) throw damaged("its content does not have the digest of its name");
  const files = readFiles(bytes);
  mkdirSync(folder, { recursive: true });
  for (const { path, content, isExecutable } of files) {
    const file = join(folder, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, content, { flag: "wx" });
    if (isExecutable) chmodSync(file, 0o755);
  }
}

interface PackedFile {
  readonly path: string;
  readonly content: Buffer;
  readonly isExecutable: boolean;
}

function readFiles(bytes: Uint8Array): readonly PackedFile[] {
  let value: { readonly format?: unknown; readonly files?: unknown } | null;
  try {
    value = JSON.parse(gunzipSync(bytes, { maxOutputLength: maxSize * 2 }).toString("utf8"));
  } catch (error) {
    throw damaged(`it cannot be unpacked: ${(error as Error).message}`);
  }
  const list: unknown = value?.files;
  if (value?.format !== format || !Array.isArray(list) || list.length > maxFiles) throw damaged("it has an unknown form");
  // Two names that differ in case alone are one file on some disks.
  const seen = new Set<string>();
  return list.map((entry: unknown) => {
    const [path, text, isExecutable]: readonly unknown[] = Array.isArray(entry) ? entry : [];
    if (typeof path !== "string" || typeof text !== "string" || !isSafe(path))
      throw damaged(`it has the invalid path ${JSON.stringify(path)}`);
    const key = path.normalize("NFC").toLowerCase();
    if (seen.has(key)) throw damaged(`it has ${JSON.stringify(path)} twice`);
    seen.add(key);
    return { path, content: Buffer.from(text, "base64"), isExecutable: isExecutable === true };
  });
}

function isSafe(path: string): boolean {
  return path.length <= 1_000 && path.split("/").every((name) => segment.test(name));
}

function digestOf(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}

function damaged(why: string): HostError {
  return new HostError("FLEET_SKILL", `A pushed skill cannot be used: ${why}.`);
}
