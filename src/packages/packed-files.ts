import { existsSync, lstatSync, readdirSync, realpathSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";
import type { Diagnostic } from "../base/diagnostic.ts";
import { HostError } from "../base/errors.ts";
import { writeFileAtomic } from "../io/atomic-write.ts";
import { findPackageSkills, readManifest } from "../skills/store/package-skills.ts";
import { foldersOf, isIgnoredName, signatureFileName } from "../trust/folder-digests.ts";
import type { NpmOptions } from "./npm-options.ts";
import type { ReadSkill, SkillReader } from "./read-skill-folder.ts";

/** The files of a skill that `pack` and `publish` take. */
export interface PackedFiles {
  /** The folder of the skill's package: its own folder, or one above it. */
  readonly root: string;
  /** Paths relative to the skill's folder, with forward slashes, including the signature if it exists and is packed. */
  readonly files: ReadonlySet<string>;
  /** The files that are not packed, and folders (with a trailing slash) without any packed file. */
  readonly left: readonly string[];
}

/**
 * Lists the files of a skill as npm packs them: by `files`, .npmignore and .gitignore of the skill's package. A skill that is not a
 * package yet is listed with the package.json that `pack` would write. Files whose names indicate secrets are never listed.
 */
export async function listPackedFiles(folder: string): Promise<PackedFiles> {
  const skill = realpathSync.native(folder);
  for (const root of packageRoots(skill)) {
    const files = await packedBelow(root, skill);
    // A package may publish other things and keep its skills for its own authors.
    if (files.size > 0) return { root, files, left: leftOf(skill, files) };
  }
  const files = await packedBelow(skill, skill);
  return { root: skill, files, left: leftOf(skill, files) };
}

export function isSignaturePacked({ files }: PackedFiles): boolean {
  return files.has(signatureFileName);
}

/**
 * Adds the signature of a skill to `files` of its package.json if that excludes it.
 * @returns the changed package.json; undefined when nothing was changed.
 */
export async function packSignature(folder: string, { root }: PackedFiles): Promise<string | undefined> {
  const file = join(root, "package.json");
  const manifest = readManifest(root);
  const { files } = manifest;
  if (!Array.isArray(files)) return undefined;
  const path = relative(root, join(realpathSync.native(folder), signatureFileName))
    .split(sep)
    .join("/");
  if (files.includes(path)) return undefined;
  await writeFileAtomic(file, `${JSON.stringify({ ...manifest, files: [...files, path] }, null, 2)}\n`, { inside: root });
  return file;
}

/** The folder itself and its ancestors with packages, up to the root of the repository. */
function packageRoots(skill: string): readonly string[] {
  const roots: string[] = [];
  for (let at = skill; ; at = dirname(at)) {
    if (existsSync(join(at, "package.json")) && findPackageSkills(at, readManifest(at)).folders.includes(skill)) roots.push(at);
    if (existsSync(join(at, ".git")) || dirname(at) === at) return roots;
  }
}

async function packedBelow(root: string, skill: string): Promise<ReadonlySet<string>> {
  const [{ default: packlist }, { default: Arborist }] = await Promise.all([import("npm-packlist"), import("@npmcli/arborist")]);
  const tree = await new Arborist({ path: root }).loadActual();
  if (!existsSync(join(root, "package.json"))) tree.package = { ...tree.package, files: [...packableEntries(root)] } as typeof tree.package;
  const prefix = root === skill ? "" : `${relative(root, skill).split(sep).join("/")}/`;
  const all = await packlist(tree, { path: root });
  const below = all.filter((path) => path.startsWith(prefix)).map((path) => path.slice(prefix.length));
  return new Set(below.filter((path) => !isSecretFile(path)));
}

/** The files of a folder that are not in this set, except for files of the system and git. */
export function leftOf(skill: string, files: ReadonlySet<string>): readonly string[] {
  const folders = foldersOf(files);
  const left: string[] = [];
  for (const waiting = [""]; waiting.length > 0; ) {
    const at = waiting.pop()!;
    for (const name of readdirSync(join(skill, at))) {
      const path = `${at}${name}`;
      if (isIgnoredName(name)) continue;
      const isFolder = lstatSync(join(skill, path)).isDirectory();
      if (isFolder && folders.has(path)) waiting.push(`${path}/`);
      else if (isFolder || !files.has(path)) left.push(isFolder ? `${path}/` : path);
    }
  }
  return left.sort();
}

export interface PackOptions {
  readonly npm: NpmOptions;
  readonly reader: SkillReader;
  readonly signal: AbortSignal;
  /** Checks each SKILL.md against the specification. */
  lint(folders: readonly string[]): Promise<readonly Diagnostic[]>;
  /** Whether to write a missing or incomplete package.json. Otherwise a copy is packed. */
  readonly writes: boolean;
}

/** Names of files that must not leave this machine. */
const secretNames: readonly RegExp[] = [
  /(?:^|\/)\.env(?:\.(?!example$|sample$|template$)[^/]+)?$/i,
  /(?:^|\/)\.(?:npmrc|netrc|pypirc|git-credentials|htpasswd)$/i,
  /(?:^|\/)id_(?:rsa|dsa|ecdsa|ed25519)$/,
  /\.(?:pem|p12|pfx|jks|keystore|kdbx)$/i,
  /(?:^|\/)\.(?:ssh|aws|gnupg|kube|docker)\//,
  /(?:^|\/)(?:service-account|credentials)[^/]*\.json$/i,
];

/** Patterns of keys and tokens, by issuer. */
const secretTexts: readonly (readonly [name: string, pattern: RegExp])[] = [
  ["a private key", /-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----/],
  ["an npm token", /\bnpm_[A-Za-z0-9]{36}\b/],
  ["a GitHub token", /\b(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{60,})\b/],
  ["an AWS key", /\b(?:AKIA|ASIA)[0-9A-Z]{16}\b/],
  ["an OpenAI or Anthropic key", /\bsk-(?:ant-|proj-)?[A-Za-z0-9_-]{32,}/],
  ["a Slack token", /\bxox[abprs]-[0-9A-Za-z-]{20,}/],
  ["a Google key", /\bAIza[0-9A-Za-z_-]{35}\b/],
  ["a Stripe key", /\b[rs]k_live_[0-9A-Za-z]{20,}/],
  ["a registry password", /^\s*\/\/[^\s=]+:_(?:authToken|password|auth)\s*=/m],
];

/** Whether files with this name contain secrets, such as `.env` and `.npmrc`. */
function isSecretFile(path: string): boolean {
  return secretNames.some((pattern) => pattern.test(path));
}

/** Why a file looks like a secret; undefined if it does not. */
export function findSecret(path: string, bytes: Uint8Array): string | undefined {
  if (isSecretFile(path)) return "files with this name contain secrets";
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("latin1");
  const found = secretTexts.find(([, pattern]) => pattern.test(text));
  return found && `it seems to contain ${found[0]}`;
}

interface CompletedManifest {
  readonly manifest: Readonly<Record<string, unknown>>;
  /** The missing keys. Empty: it is unchanged. */
  readonly added: readonly string[];
}

/** Keywords by which registries and other hosts find packages with skills. */
const skillKeywords = ["agent-skill", "skillhost"];

/**
 * Completes the package.json that a folder with skills needs. The author's fields stay; missing ones come from the skill: name, version,
 * description, files, keywords, engines.
 * @throws HostError `PACK_NAME` when neither has a name that npm allows.
 */
export function completeManifest(folder: string, skills: readonly ReadSkill[], isOwnSkill: boolean): CompletedManifest {
  const written = readManifest(folder);
  const [skill] = skills;
  const wanted: Record<string, unknown> = {
    name: isOwnSkill ? skill?.name : undefined,
    version: (isOwnSkill ? skill?.version : undefined) ?? "1.0.0",
    description: isOwnSkill ? skill?.description : undefined,
    keywords: skillKeywords,
    type: "module",
    files: isOwnSkill ? packableEntries(folder) : ["skills"],
    engines: isOwnSkill && skill?.engines["skillhost"] !== undefined ? { skillhost: skill.engines["skillhost"] } : undefined,
  };
  const isNew = Object.keys(written).length === 0;
  // `type` is only added to a new package.json; without `files` npm would pack everything.
  const keys = Object.keys(wanted).filter((key) => wanted[key] !== undefined && (isNew || (key !== "type" && key !== "files")));
  const added = keys.filter((key) => !Object.hasOwn(written, key));
  const manifest: Record<string, unknown> = { ...Object.fromEntries(added.map((key) => [key, wanted[key]])), ...written };
  const keywords = Array.isArray(written["keywords"]) ? (written["keywords"] as unknown[]) : undefined;
  if (keywords !== undefined && !keywords.includes("agent-skill")) {
    manifest["keywords"] = [...keywords, ...skillKeywords.filter((word) => !keywords.includes(word))];
    added.push("keywords");
  }
  assertNamed(manifest, folder);
  return { manifest: inOrder(manifest), added };
}

/** The top-level entries of a skill that belong into its package: without hidden files, tests and leftovers of tools. */
function packableEntries(folder: string): readonly string[] {
  const left = /^(?:\.|node_modules$|tests?$|package(?:-lock)?\.json$|.*\.tgz$|.*\.test\.|.*\.log$)/;
  return readdirSync(folder)
    .filter((name) => !left.test(name))
    .sort();
}

function assertNamed({ name, version }: Readonly<Record<string, unknown>>, folder: string): void {
  const file = existsSync(join(folder, "package.json")) ? "package.json" : "a package.json";
  if (typeof name !== "string" || !/^(?:@[a-z0-9~-][a-z0-9._~-]*\/)?[a-z0-9~-][a-z0-9._~-]*$/.test(name) || name.length > 214) {
    throw new HostError(
      "PACK_NAME",
      `${JSON.stringify(name ?? "")} is not a valid npm package name. Use lowercase letters, digits and hyphens in ${file}.`,
    );
  }
  if (typeof version !== "string" || !/^\d+\.\d+\.\d+(?:[-+][0-9A-Za-z.+-]+)?$/.test(version)) {
    throw new HostError(
      "PACK_VERSION",
      `${JSON.stringify(version)} is not a valid version. Set one such as 1.0.0 in ${file}, or in skill.json.`,
    );
  }
}

const firstKeys = ["name", "version", "description", "keywords", "license", "author", "type", "files", "engines"];

function inOrder(manifest: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const rank = (key: string): number => (firstKeys.includes(key) ? firstKeys.indexOf(key) : firstKeys.length);
  return Object.fromEntries(Object.entries(manifest).sort(([a], [b]) => rank(a) - rank(b)));
}
