import { hash, randomBytes } from "node:crypto";
import {
  closeSync,
  constants,
  type Dirent,
  fstatSync,
  lstatSync,
  openSync,
  readdirSync,
  readFileSync,
  type Stats,
  statSync,
} from "node:fs";
import { mkdir, readdir, rename, rm, stat, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Diagnostic } from "../../base/diagnostic.ts";
import { isRecord } from "../../base/json.ts";
import { packageVersion } from "../../base/package-root.ts";
import { readFileBytes } from "../../io/read-bounded.ts";
import { settledState, stateOf } from "../store/file-hashes.ts";
import type { SkillHead, SkillText } from "./read-skill.ts";
import { SkillBody } from "./skill-body.ts";

/** A skill as a cache knows it, with the state of what it was read from. */
export interface RecalledSkill {
  readonly text: SkillText;
  readonly file: string;
  readonly stats: Stats;
  /** sha256 of the file as 64 hex digits. */
  readonly digest: string;
  readonly listed: ReadonlyMap<string, Stats>;
}

/** One skill in the cache. The text itself is never stored, only where it lies in the file. */
interface CachedSkill {
  /** The state of the folder when it was listed; absent if it may have changed unnoticed. */
  readonly state?: string | undefined;
  /** sha256 of SKILL.md: nothing is used for another content. */
  readonly digest: string;
  readonly start: number;
  readonly length: number;
  readonly name: string;
  readonly description: string;
  readonly document: SkillHead;
  readonly diagnostics: readonly Diagnostic[];
}

// A start with few skills must not pay for another file.
const fewest = 32;
const largestPack = 64 * 1024 * 1024;
const largestDocument = 64 * 1024;
const mostPacks = 128;
const mostBytes = 128 * 1024 * 1024;
const digestLength = 64;
const packName = /^[0-9a-f]{40}\.skills$/;
// Opening a pipe must not block, and a link must not be followed.
const readFlags = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0);
const documentName = "SKILL.md";
const scratch = Buffer.allocUnsafeSlow(largestDocument + 1);
// No document is larger than a block.
const blockLength = 4 * largestDocument;

/**
 * What the front matter of skills says, on disk, so that the next start need not parse it. It holds only skills that are one plain
 * SKILL.md, without code, manifest, prompts, links or signature; trust is never decided by it. An entry counts only for the content whose
 * sha256 it names, in a folder that has no other part of a skill. One file for each directory of skills, replaced as a whole: a file that
 * is missing, truncated, damaged or of another version counts as absent. Nothing here ever fails.
 */
export class SkillTextCache {
  readonly #folder: string;
  readonly #saving = new Set<Promise<void>>();

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** What is known of these skill folders. Undefined: there are too few. */
  open(folders: readonly string[]): SkillTexts | undefined {
    const byParent = new Map<string, number>();
    for (const folder of folders) byParent.set(dirname(folder), (byParent.get(dirname(folder)) ?? 0) + 1);
    const packs = new Map<string, Pack>();
    for (const [parent, count] of byParent) if (count >= fewest) packs.set(parent, new Pack(parent, readPack(this.#folder, parent)));
    return packs.size === 0 ? undefined : new SkillTexts(packs);
  }

  /** Writes what `texts` learned, in the background. */
  save(texts: SkillTexts): void {
    const saving = texts
      .save(this.#folder)
      // A full disk, or a folder that cannot be written: the next start parses again.
      .catch(() => {})
      .finally(() => this.#saving.delete(saving));
    this.#saving.add(saving);
  }

  /** Settles when everything is written. */
  async idle(): Promise<void> {
    await Promise.all(this.#saving);
  }
}

/** The cached skills of some directories during one load of them. */
export class SkillTexts {
  readonly #packs: ReadonlyMap<string, Pack>;
  #block: Buffer = Buffer.alloc(0);
  #used = 0;

  constructor(packs: ReadonlyMap<string, Pack>) {
    this.#packs = packs;
  }

  /**
   * The skill in a folder, if its file has the content that the cache knows. Throws the system's error when no more files can be opened,
   * like the listing that it replaces.
   */
  recall(folder: string): RecalledSkill | undefined {
    const pack = this.#packs.get(dirname(folder));
    const entry = basename(folder);
    const cached = pack?.find(entry);
    const listed = cached && stateOfPlainFolder(folder, cached);
    if (listed === undefined || cached === undefined) return undefined;
    const file = join(folder, documentName);
    const read = readFileBytes(file, largestDocument, scratch);
    if (!read.ok || read.stats === undefined || hash("sha256", read.bytes, "hex") !== cached.digest) return undefined;
    const { name, description, document, diagnostics, start, length, digest } = cached;
    // A text that names files of a plugin is never stored.
    const body = new SkillBody(folder, this.#copy(read.bytes.subarray(start, start + length)), false);
    pack?.confirm(entry);
    const text: SkillText = {
      name,
      description,
      document,
      diagnostics,
      documentName,
      body,
      manifestFile: join(folder, "skill.json"),
      prompts: none,
      promptFiles: none,
      files: new Set([file]),
      lost: nothingLost,
    };
    return { text, file, stats: read.stats, digest, listed: new Map([[folder, listed]]) };
  }

  /** Into blocks that many texts share: a buffer for each costs the garbage collector more than the text. */
  #copy(bytes: Uint8Array): Buffer {
    if (bytes.length > this.#block.length - this.#used) {
      this.#block = Buffer.allocUnsafeSlow(blockLength);
      this.#used = 0;
    }
    const copy = this.#block.subarray(this.#used, this.#used + bytes.length);
    copy.set(bytes);
    this.#used += bytes.length;
    return copy;
  }

  /** Remembers a skill that is one plain SKILL.md. `start`: a time before its folder was listed, in milliseconds of `Date.now()`. */
  keep(folder: string, text: SkillText, listed: Stats, start: number): void {
    const pack = this.#packs.get(dirname(folder));
    const { name, description, document, diagnostics, source } = text;
    if (pack === undefined || source === undefined || document === undefined || text.documentName !== documentName) return;
    pack.keep(basename(folder), { state: settledState(listed, start), ...source, name, description, document, diagnostics });
  }

  async save(folder: string): Promise<void> {
    const changed = [...this.#packs.values()].filter((pack) => pack.isWorthWriting);
    for (const pack of changed) await writePack(folder, pack);
    if (changed.length > 0) await removeOldest(folder);
  }
}

const none: readonly never[] = Object.freeze([]);
const nothingLost: SkillText["lost"] = Object.freeze({ manifest: false, document: false, prompts: none });

/** The state of a folder that contains no other part of a skill than its document. On Windows only its entries show that. */
function stateOfPlainFolder(folder: string, { state }: CachedSkill): Stats | undefined {
  const now = statSync(folder, { throwIfNoEntry: false });
  if (now === undefined) return undefined;
  if (state !== undefined && process.platform !== "win32" && state === stateOf(now)) return now;
  return isPlainListing(readdirSync(folder, { withFileTypes: true })) ? now : undefined;
}

/** Whether a skill's folder contains no part of a skill but `SKILL.md`, and no link. */
export function isPlainListing(entries: readonly Dirent[]): boolean {
  let hasDocument = false;
  for (const entry of entries) {
    const name = entry.name.toLowerCase();
    if (entry.name === documentName && entry.isFile()) hasDocument = true;
    else if (otherParts.has(name) || !(entry.isFile() || entry.isDirectory())) return false;
  }
  return hasDocument;
}

const otherParts: ReadonlySet<string> = new Set(["skill.md", "skill.json", "tools", "prompts", "node_modules"]);

/** The skills of one directory: what was stored, and what is to be stored. */
class Pack {
  readonly parent: string;
  readonly next: Map<string, Uint8Array> = new Map();
  readonly #stored: ReadonlyMap<string, Uint8Array>;
  #fresh = 0;

  constructor(parent: string, stored: ReadonlyMap<string, Uint8Array>) {
    this.parent = parent;
    this.#stored = stored;
  }

  find(name: string): CachedSkill | undefined {
    const line = this.#stored.get(name);
    return line && toCachedSkill(line);
  }

  confirm(name: string): void {
    const line = this.#stored.get(name);
    if (line !== undefined) this.next.set(name, line);
  }

  keep(name: string, skill: CachedSkill): void {
    this.next.set(name, Buffer.from(JSON.stringify(skill)));
    this.#fresh++;
  }

  /** Not for a few changes in a large directory, which cost less to parse than a file to write. */
  get isWorthWriting(): boolean {
    return this.next.size > 0 && (this.#fresh > this.next.size / 64 || this.#stored.size > this.next.size * 2);
  }
}

function toCachedSkill(line: Uint8Array): CachedSkill | undefined {
  try {
    const value: unknown = JSON.parse(Buffer.from(line.buffer, line.byteOffset, line.byteLength).toString("utf8"));
    return isCachedSkill(value) ? value : undefined;
  } catch {
    // Not what this version writes.
    return undefined;
  }
}

function isCachedSkill(value: unknown): value is CachedSkill {
  if (!isRecord(value)) return false;
  const { digest, start, length, name, description, document, diagnostics } = value;
  const areTexts = [digest, name, description].every((text) => typeof text === "string");
  return areTexts && Number.isSafeInteger(start) && Number.isSafeInteger(length) && isRecord(document) && Array.isArray(diagnostics);
}

/** Everything that an entry depends on beside the skill. A build during development has the version of the one before. */
function packKey(parent: string): string {
  return JSON.stringify([packageVersion, ownState, process.version, parent]);
}

const ownState = stateOfOwnCode();

function stateOfOwnCode(): string {
  try {
    return stateOf(statSync(fileURLToPath(import.meta.url)));
  } catch {
    // Bundled in another way: the version must do.
    return "";
  }
}

function packFile(folder: string, parent: string): string {
  return join(folder, `${hash("sha256", packKey(parent), "hex").slice(0, 40)}.skills`);
}

/** A digest, a line with the key and the names, and a line for each name. */
function readPack(folder: string, parent: string): ReadonlyMap<string, Uint8Array> {
  const found = new Map<string, Uint8Array>();
  const bytes = readOwnFile(folder, packFile(folder, parent));
  if (bytes === undefined) return found;
  const rest = bytes.subarray(digestLength);
  if (bytes.toString("latin1", 0, digestLength) !== hash("sha256", rest, "hex")) return found;
  try {
    let end = rest.indexOf(10);
    const { key, names } = JSON.parse(rest.toString("utf8", 0, end)) as { key: string; names: readonly string[] };
    if (key !== packKey(parent)) return found;
    for (const name of names) {
      const start = end + 1;
      end = rest.indexOf(10, start);
      found.set(name, rest.subarray(start, end));
    }
    return found;
  } catch {
    // Not what this version writes.
    return new Map();
  }
}

/** A regular file in a folder that only this user can write to. */
function readOwnFile(folder: string, file: string): Buffer | undefined {
  let descriptor: number | undefined;
  try {
    if (!isOwn(lstatSync(folder))) return undefined;
    descriptor = openSync(file, readFlags);
    const stats = fstatSync(descriptor);
    return stats.isFile() && stats.size <= largestPack && isOwn(stats) ? readFileSync(descriptor) : undefined;
  } catch {
    // It does not exist, or cannot be read.
    return undefined;
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
}

function isOwn({ uid, mode }: Stats): boolean {
  return process.getuid === undefined || (uid === process.getuid() && (mode & 0o022) === 0);
}

async function writePack(folder: string, { parent, next }: Pack): Promise<void> {
  const lines = [Buffer.from(`${JSON.stringify({ key: packKey(parent), names: [...next.keys()] })}\n`)];
  const content = Buffer.concat([...lines, ...[...next.values()].flatMap((line) => [line, lineEnd])]);
  if (content.length > largestPack - digestLength) return;
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const file = packFile(folder, parent);
  const temporary = `${file}.${randomBytes(6).toString("hex")}.tmp`;
  try {
    // Not synced: after a power cut the digest does not match.
    await writeFile(temporary, [Buffer.from(hash("sha256", content, "hex")), content], { mode: 0o600, flag: "wx" });
    await rename(temporary, file);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}

const lineEnd = Buffer.from("\n");

/** Keeps the cache small. What another process removed meanwhile is gone anyway. */
async function removeOldest(folder: string): Promise<void> {
  const names = (await readdir(folder)).filter((name) => packName.test(name));
  const packs = await Promise.all(names.map(async (name) => ({ name, stats: await stat(join(folder, name)) })));
  packs.sort((a, b) => b.stats.mtimeMs - a.stats.mtimeMs);
  let bytes = 0;
  for (const [index, { name, stats }] of packs.entries()) {
    bytes += stats.size;
    if (index >= mostPacks || bytes > mostBytes) await rm(join(folder, name), { force: true });
  }
}
