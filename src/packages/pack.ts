import { createHash } from "node:crypto";
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, relative, resolve, sep } from "node:path";
import type { Diagnostic } from "../base/diagnostic.ts";
import { HostError } from "../base/errors.ts";
import { writeFileAtomic } from "../io/atomic-write.ts";
import { findPackageSkills, readManifest } from "../skills/store/package-skills.ts";
import { checkPacked } from "./check-packed.ts";
import { type UnpackedTarball, unpackTarball } from "./inspect-tarball.ts";
import type { NpmOptions } from "./npm-options.ts";
import { completeManifest, leftOf, type PackOptions } from "./packed-files.ts";
import type { ReadSkill } from "./read-skill-folder.ts";

export interface PackedPackage {
  /** The packed folder. */
  readonly folder: string;
  readonly name: string;
  readonly version: string;
  readonly manifest: Readonly<Record<string, unknown>>;
  /** The keys that were missing in package.json. */
  readonly added: readonly string[];
  readonly tarball: Buffer;
  /** `name-1.0.0.tgz` */
  readonly fileName: string;
  readonly integrity: string;
  readonly files: readonly { readonly path: string; readonly size: number }[];
  /** The files of the skill folders that are not packed. */
  readonly left: readonly string[];
  readonly skills: readonly ReadSkill[];
  /** Contains no errors: an error prevents packing. */
  readonly diagnostics: readonly Diagnostic[];
}

/**
 * Packs a folder with skills, or a skill's own folder, as an ordinary npm tarball. The result is unpacked and checked: it must contain
 * the skills of the folder and no secrets. Scripts are not run.
 * @throws HostError `PACK_REFUSED` with its diagnostics, `PACK_NO_SKILLS`, `PACK_NAME`, `PACK_VERSION`.
 */
export async function packSkills(folder: string, options: PackOptions): Promise<PackedPackage> {
  const source = resolve(folder);
  const found = findPackageSkills(source, readManifest(source));
  if (found.folders.length === 0) throw noSkills(source, found.diagnostics);
  const { skills, diagnostics } = await readAll(found.folders, options);
  const completed = completeManifest(source, skills, found.folders.includes(source));
  const isChanged = completed.added.length > 0;
  const before = existsSync(join(source, "package.json")) ? readFileSync(join(source, "package.json"), "utf8") : undefined;
  const place = isChanged && !options.writes ? copyOf(source) : { folder: source, remove: async () => {} };
  let unpacked: UnpackedTarball | undefined;
  try {
    if (isChanged)
      await writeFileAtomic(join(place.folder, "package.json"), `${JSON.stringify(completed.manifest, null, 2)}\n`, {
        inside: place.folder,
      });
    const tarball = await pack(place.folder, options.npm);
    unpacked = await unpackTarball(tarball);
    const checked = await checkPacked({ source, folders: found.folders, skills, manifest: completed.manifest, unpacked }, options);
    const all = [...found.diagnostics, ...diagnostics, ...(await options.lint(found.folders)), ...checked];
    if (all.some(({ severity }) => severity === "error")) throw new PackRefused(all);
    return {
      ...describe(completed.manifest, tarball, unpacked),
      folder: source,
      left: leftOfSkills(source, found.folders, unpacked),
      added: completed.added,
      skills,
      diagnostics: all,
    };
  } catch (error) {
    if (isChanged && options.writes && !isToBeSigned(error)) {
      const file = join(source, "package.json");
      if (before === undefined) await rm(file, { force: true });
      else await writeFileAtomic(file, before);
    }
    throw error;
  } finally {
    unpacked?.[Symbol.dispose]();
    await place.remove();
  }
}

/** Why a folder was not packed. */
export class PackRefused extends HostError {
  readonly diagnostics: readonly Diagnostic[];

  constructor(diagnostics: readonly Diagnostic[]) {
    super("PACK_REFUSED", "Nothing was packed. Fix the problems below.");
    this.diagnostics = diagnostics;
  }
}

async function readAll(
  folders: readonly string[],
  { reader, signal }: PackOptions,
): Promise<Pick<PackedPackage, "skills" | "diagnostics">> {
  const skills: ReadSkill[] = [];
  const diagnostics: Diagnostic[] = [];
  for (const folder of folders) {
    const read = await reader.read(folder, signal);
    diagnostics.push(...read.diagnostics);
    if ("name" in read) skills.push(read);
    else if (!read.diagnostics.some(({ severity }) => severity === "error")) diagnostics.push(notLoaded(folder));
  }
  return { skills, diagnostics };
}

/** Packs as npm does: by `files`, .npmignore and .gitignore, always with the manifest, README and licence. */
async function pack(folder: string, npm: NpmOptions): Promise<Buffer> {
  const [{ default: pacote }, { default: Arborist }] = await Promise.all([import("pacote"), import("@npmcli/arborist")]);
  return pacote.tarball(`file:${folder}`, { ...npm, Arborist, ignoreScripts: true, _isRoot: true } as Parameters<typeof pacote.tarball>[1]);
}

function describe(
  manifest: Readonly<Record<string, unknown>>,
  tarball: Buffer,
  { folder, files }: UnpackedTarball,
): Pick<PackedPackage, "name" | "version" | "manifest" | "tarball" | "fileName" | "integrity" | "files"> {
  const [name, version] = [String(manifest["name"]), String(manifest["version"])];
  return {
    name,
    version,
    // The manifest as it was packed.
    manifest: readManifest(folder),
    tarball,
    fileName: `${name.replace(/^@/, "").replace("/", "-")}-${version}.tgz`,
    integrity: `sha512-${createHash("sha512").update(tarball).digest("base64")}`,
    files,
  };
}

function leftOfSkills(source: string, folders: readonly string[], { files }: UnpackedTarball): readonly string[] {
  return folders.flatMap((folder) => {
    const prefix = folder === source ? "" : `${relative(source, folder).split(sep).join("/")}/`;
    const own = files.filter(({ path }) => path.startsWith(prefix)).map(({ path }) => path.slice(prefix.length));
    return leftOf(folder, new Set(own)).map((path) => `${prefix}${path}`);
  });
}

function copyOf(source: string): { readonly folder: string; remove(): Promise<void> } {
  const folder = mkdtempSync(join(tmpdir(), "skillhost-pack-"));
  const isLeft = (path: string): boolean =>
    relative(source, path)
      .split(sep)
      .some((part) => part === "node_modules" || part === ".git");
  for (const name of readdirSync(source))
    cpSync(join(source, name), join(folder, name), { recursive: true, filter: (path) => !isLeft(path) });
  return { folder, remove: () => rm(folder, { recursive: true, force: true }) };
}

/** A signature covers package.json, so the completed package.json must stay for signing. */
function isToBeSigned(error: unknown): boolean {
  if (!(error instanceof PackRefused)) return false;
  const errors = error.diagnostics.filter(({ severity }) => severity === "error");
  return errors.every(({ code }) => code === "PACK_SIGNED");
}

function noSkills(folder: string, diagnostics: readonly Diagnostic[]): HostError {
  const why = diagnostics.map(({ message }) => ` ${message}`).join("");
  return new HostError("PACK_NO_SKILLS", `${folder} contains no skill: no SKILL.md, and none below skills/.${why}`);
}

function notLoaded(file: string): Diagnostic {
  return { severity: "error", code: "PACK_SKILL", file, message: "This skill could not be read." };
}
