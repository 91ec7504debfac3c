import { cp, mkdir, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { HostError } from "../../base/errors.ts";
import { readManifest } from "../../skills/store/package-skills.ts";
import { digestBytes, isIgnoredName } from "../../trust/folder-digests.ts";
import { tarballLimits, unpackArchive } from "../inspect-tarball.ts";
import { download, downloadFile, isWebAddress, shown } from "./download.ts";
import { findSkills } from "./find-skills.ts";
import { folderDigest } from "./folder-digest.ts";
import type { OpenedSource, OpenOptions } from "./opened-source.ts";
import { type IndexedSkill, parseSkillIndex } from "./skill-index.ts";
import { isSkillFolderName, type StagedSkill } from "./stage-git-skills.ts";

const maxIndexBytes = 8 * 1024 * 1024;

/** Whether a text is a web address, which may be an index of skills, a tarball of skills or npm's tarball of a package. */
export function isWebSource(text: string): boolean {
  return isWebAddress(text);
}

/**
 * Opens what is at a web address: an index of skills below `.well-known`, or a tarball of skills. Undefined: npm's tarball of a package, or
 * something that only npm may be able to fetch.
 * @throws HostError `SOURCE_FETCH`, `SOURCE_UNKNOWN`, `INDEX_INVALID`, `PACKAGE_TARBALL`.
 */
export async function openWeb(address: string, options: OpenOptions): Promise<OpenedSource | undefined> {
  options.onProgress(`Fetching ${shown(address)}…`);
  const isTarball = /\.t(?:ar\.)?gz$/i.test(new URL(address).pathname);
  const index = isTarball ? undefined : await openIndex(address, options);
  if (index !== undefined) return index;
  const { status, bytes } = await download(address, { ...options, maxBytes: tarballLimits.packedBytes });
  // npm may have credentials for it.
  if (status !== 200 && isTarball) return undefined;
  const isGzip = bytes[0] === 0x1f && bytes[1] === 0x8b;
  if (status !== 200 || !isGzip) throw unknown(address, status);
  return openArchive(address, bytes, options);
}

/** As `openWeb`, for a source of a lock file. */
export async function openLockedWeb(kind: "index" | "archive", address: string, options: OpenOptions): Promise<OpenedSource> {
  if (!isWebAddress(address)) throw new HostError("SOURCE_FETCH", `${JSON.stringify(address)} is not an address that can be fetched.`);
  options.onProgress(`Fetching ${shown(address)}…`);
  const opened =
    kind === "index"
      ? await openIndex(address, options)
      : await openArchive(address, await downloadFile(address, { ...options, maxBytes: tarballLimits.packedBytes }), options);
  if (opened?.origin.kind !== kind)
    throw new HostError("SOURCE_UNKNOWN", `${shown(address)} is no longer ${kind === "index" ? "an index" : "a tarball"} of skills.`);
  return opened;
}

function unknown(address: string, status: number): HostError {
  const found = status === 200 ? "It is not a tarball either" : `The address itself answered ${status}`;
  const advice = "For a Git repository, use an address that ends in .git, or git+https://….";
  const message = `${shown(address)} has no index of skills (.well-known/agent-skills/index.json). ${found}. ${advice}`;
  return new HostError("SOURCE_UNKNOWN", message);
}

/** Where an index can be, most specific first. */
function indexAddresses(address: string): readonly string[] {
  const url = new URL(address);
  url.search = "";
  url.hash = "";
  if (url.pathname.endsWith(".json")) return [url.href];
  const bases = new Set([`${url.href.replace(/\/+$/, "")}/`, `${url.origin}/`]);
  return [...bases].flatMap((base) => ["agent-skills", "skills"].map((name) => `${base}.well-known/${name}/index.json`));
}

async function openIndex(address: string, options: OpenOptions): Promise<OpenedSource | undefined> {
  for (const candidate of indexAddresses(address)) {
    const { status, bytes, url } = await download(candidate, { ...options, maxBytes: maxIndexBytes });
    const index = status === 200 ? parseSkillIndex(new TextDecoder().decode(bytes), url) : undefined;
    if (index === undefined) continue;
    for (const problem of index.problems) options.onProgress(problem);
    if (index.skills.length === 0)
      throw new HostError("INDEX_INVALID", `${shown(url)} lists no skill that can be used. ${index.problems.join(" ")}`);
    return indexSource(candidate, index.skills, options);
  }
  return undefined;
}

function indexSource(url: string, skills: readonly IndexedSkill[], options: OpenOptions): OpenedSource {
  const byName = new Map(skills.map((skill) => [skill.name, skill]));
  const names = [...byName.keys()].sort();
  const isUnverified = skills.some(({ content }) => content.kind === "files" && content.files.some(({ digest }) => digest === undefined));
  return {
    origin: { kind: "index", url },
    isTag: false,
    warnings: isUnverified ? ["the index has no digests, so what arrived could not be compared with it"] : [],
    find: async () => ({ usual: names, all: names }),
    has: async (name) => byName.has(name),
    stage: async (wanted) => {
      const staged: StagedSkill[] = [];
      for (const name of wanted) staged.push(await stageIndexed(byName.get(name)!, join(options.folder, "skills", name), options));
      return staged;
    },
  };
}

async function stageIndexed({ name, content }: IndexedSkill, folder: string, options: OpenOptions): Promise<StagedSkill> {
  if (content.kind === "files") return stageFiles(name, content, folder, options);
  const most = content.kind === "archive" ? tarballLimits.packedBytes : tarballLimits.fileBytes;
  const bytes = await downloadFile(content.url, { ...options, maxBytes: most });
  assertDigest(content.url, bytes, content.digest);
  if (content.kind === "document") {
    await write(folder, "SKILL.md", bytes);
    return { name, folder, path: name, files: 1, bytes: bytes.length };
  }
  if (bytes[0] !== 0x1f || bytes[1] !== 0x8b)
    throw new HostError("PACKAGE_TARBALL", `${shown(content.url)} is not a gzipped tarball. Other archives are not supported.`);
  const archive = await openArchive(content.url, bytes, { ...options, folder: `${folder}.archive` }, { isPackageToo: true });
  if (!(await archive!.has(""))) throw new HostError("INDEX_INVALID", `${shown(content.url)} has no SKILL.md at its top.`);
  const [staged] = await archive!.stage([""]);
  return { ...staged!, name, folder: await renamed(staged!.folder, folder), path: name };
}

async function renamed(from: string, to: string): Promise<string> {
  await mkdir(dirname(to), { recursive: true });
  await cp(from, to, { recursive: true, errorOnExist: true, force: false });
  return to;
}

async function stageFiles(
  name: string,
  { files, digest }: Extract<IndexedSkill["content"], { kind: "files" }>,
  folder: string,
  options: OpenOptions,
): Promise<StagedSkill> {
  const digests: Record<string, string> = {};
  let total = 0;
  for (const file of files) {
    const bytes = await downloadFile(file.url, { ...options, maxBytes: Math.min(tarballLimits.fileBytes, tarballLimits.bytes - total) });
    if (file.digest !== undefined) assertDigest(file.url, bytes, file.digest);
    digests[file.path] = digestBytes(bytes);
    total += bytes.length;
    await write(folder, file.path, bytes);
  }
  if (digest !== undefined && folderDigest(digests) !== digest) throw wrongDigest(name);
  return { name, folder, path: name, files: files.length, bytes: total };
}

async function write(folder: string, path: string, bytes: Uint8Array): Promise<void> {
  // Neither locks nor signatures cover these.
  if (isIgnoredName(basename(path)) && basename(path) !== "skill.sig.json") return;
  const file = join(folder, path);
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, bytes, { flag: "wx" });
}

function assertDigest(url: string, bytes: Uint8Array, digest: string): void {
  if (digestBytes(bytes) !== digest) throw wrongDigest(shown(url));
}

function wrongDigest(what: string): HostError {
  const message = `${what} is not what the index describes: its digest is another one. Nothing was installed. Ask its publisher, or try again later.`;
  return new HostError("INDEX_DIGEST", message);
}

/** Undefined: it is npm's tarball of a package. */
async function openArchive(
  url: string,
  bytes: Uint8Array,
  { folder }: OpenOptions,
  { isPackageToo = false }: { readonly isPackageToo?: boolean } = {},
): Promise<OpenedSource | undefined> {
  const unpacked = await unpackArchive(Buffer.from(bytes), `${folder}.unpacked`);
  if (!isPackageToo && typeof readManifest(unpacked.folder)["name"] === "string") return undefined;
  const found = findSkills(unpacked.files.map(({ path }) => path));
  return {
    origin: { kind: "archive", url },
    isTag: false,
    warnings: [],
    find: async () => {
      if (found.all.length > 0) return found;
      throw new HostError("PACKAGE_NO_SKILLS", `${shown(url)} contains neither a package.json nor a folder with a SKILL.md.`);
    },
    has: async (path) => found.all.includes(path),
    stage: async (paths) => {
      const staged: StagedSkill[] = [];
      for (const [index, path] of paths.entries()) {
        const name = basename(path === "" ? new URL(url).pathname.replace(/\.t(?:ar\.)?gz$/i, "") : path);
        if (!isSkillFolderName(name))
          throw new HostError("PACKAGE_TARBALL", `${JSON.stringify(name)} cannot be the name of a skill's folder.`);
        const own = unpacked.files.filter((file) => path === "" || file.path.startsWith(`${path}/`));
        const bad = own.find((file) => file.path.split("/").includes("node_modules"));
        if (bad !== undefined)
          throw new HostError(
            "PACKAGE_TARBALL",
            `${JSON.stringify(bad.path)} is in a node_modules folder, which neither locks nor signatures cover.`,
          );
        const at = await renamed(join(unpacked.folder, path), join(folder, String(index), name));
        staged.push({ name, folder: at, path, files: own.length, bytes: own.reduce((sum, { size }) => sum + size, 0) });
      }
      return staged;
    },
  };
}
