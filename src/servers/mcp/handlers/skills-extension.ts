import { isUtf8 } from "node:buffer";
import { hash } from "node:crypto";
import { type CacheHint, ProtocolError, ProtocolErrorCode, type Server } from "@modelcontextprotocol/server";
import {
  RESOURCES_DIRECTORY_READ_METHOD,
  SKILL_LIMITS,
  SKILLS_EXTENSION_ID,
  SKILLS_GET_METHOD,
  SKILLS_LIST_METHOD,
  type Skill,
  type SkillResourceEntry,
  skillEntry,
} from "@modelcontextprotocol/server/ext/skills";
import { toError } from "../../../base/errors.ts";
import type { Logger } from "../../../base/logger.ts";
import { distinctServedName, normalizeSkillDocument, servedName } from "../../../formats/skills/served-document.ts";
import { decodeText } from "../../../formats/text/decode-text.ts";
import type { Session } from "../../../session/session.ts";
import type { Resource, ResourceContents } from "../../../tools/resource.ts";
import type { SkillEntry } from "../../../tools/tool-source.ts";
import { guarded, schemaOf } from "../fast-path-server.ts";
import { cursorUri, cutPage, firstAfter, nextCursor, type Page } from "../served-session.ts";
import { readPlainFrontMatter } from "./plain-front-matter.ts";

const pageSize = 100;
/** The number of skills whose files are read at the same time: more would only hold more files in memory. */
const readAtOnce = 8;

/** The capability of a server with `serveSkills`. */
export const skillsCapability: Readonly<Record<string, { readonly directoryRead: true }>> = {
  [SKILLS_EXTENSION_ID]: { directoryRead: true },
};

/** Adds the handlers of the Skills extension (SEP-2640) to a server. */
export function serveSkills(server: Server, resources: SkillResources, cacheHint: CacheHint | undefined, log: Logger): void {
  const hints = { ...cacheHint };
  server.setRequestHandler(SKILLS_LIST_METHOD, { params: page }, ({ cursor }) =>
    guarded(log, "the list of skills", async () => {
      const { items, ...next } = await resources.list(cursor);
      return { skills: items, ...next, ...hints };
    }),
  );
  server.setRequestHandler(SKILLS_GET_METHOD, { params: addressed }, ({ uri }) =>
    guarded(log, `skill ${uri}`, async () => {
      const skill = await resources.get(uri);
      if (skill === undefined) throw notServed(uri, "is not a skill of this server");
      return { skill, ...hints };
    }),
  );
  server.setRequestHandler(RESOURCES_DIRECTORY_READ_METHOD, { params: addressed }, ({ uri, cursor }) =>
    guarded(log, `folder ${uri}`, async () => {
      const children = await resources.directory(uri);
      if (children === undefined) throw notServed(uri, "is not a folder of this server");
      const { items, ...next } = cutPage(children, cursor, pageSize);
      return { resources: items, ...next, ...hints };
    }),
  );
}

function notServed(uri: string, why: string): ProtocolError {
  return new ProtocolError(ProtocolErrorCode.InvalidParams, `${uri.slice(0, 200)} ${why}.`, { uri });
}

interface PageParams {
  readonly cursor?: string | undefined;
}

interface AddressParams extends PageParams {
  readonly uri: string;
}

const page = schemaOf<PageParams>(({ cursor }) => (isOptionalText(cursor) ? undefined : "cursor must be a string"));
const addressed = schemaOf<AddressParams>(({ uri, cursor }) => {
  if (typeof uri !== "string") return "uri must be a string";
  return isOptionalText(cursor) ? undefined : "cursor must be a string";
});

function isOptionalText(value: unknown): boolean {
  return value === undefined || typeof value === "string";
}

/** A file or folder of a skill, in the form of `resources/directory/read`. */
interface SkillDirectoryEntry {
  readonly uri: string;
  readonly name: string;
  readonly mimeType?: string | undefined;
  readonly size?: number | undefined;
}

/** The entry of one skill, and the files that it was created from. */
interface CachedSkill {
  /** The name under which its files are served. */
  readonly name: string;
  readonly resources: readonly Resource[];
  readonly entry: Promise<Skill | undefined>;
}

/** The skills by the names under which they are served, and sorted by the URIs of their SKILL.md. */
interface ServedSkills {
  readonly byName: ReadonlyMap<string, SkillEntry>;
  readonly sorted: readonly { readonly uri: string; readonly name: string; readonly skill: SkillEntry }[];
}

/** A served file. It has the bytes of the disk, except a SKILL.md that strict clients could not read. */
interface ServedFile {
  readonly path: string;
  readonly source: Resource;
}

const documentName = "SKILL.md";
const directoryType = "inode/directory";

/**
 * The skills of a session in the form of the Skills extension (SEP-2640): an entry for each, with the digests of its files. Entries
 * are created on demand and cached until a file changes, and every read file is compared with its digest. Clients of the extension
 * refuse names and front matter that do not conform to the specification, so such a SKILL.md is served in a normalized form, with
 * the digest of that form.
 */
export class SkillResources {
  readonly #session: Session;
  readonly #log: Logger;
  readonly #cached = new WeakMap<SkillEntry, CachedSkill>();
  #named: { readonly skills: readonly SkillEntry[]; readonly served: ServedSkills } | undefined;

  constructor(session: Session, log: Logger) {
    this.#session = session;
    this.#log = log;
  }

  /** One page of entries, sorted by URI. Only the skills of the page are read. */
  async list(cursor?: string): Promise<Page<Skill>> {
    const after = cursorUri(cursor);
    const served = this.#served();
    const items: Skill[] = [];
    for (let start = after === undefined ? 0 : firstAfter(served.sorted, after); start < served.sorted.length; ) {
      // A skill that cannot be served has no entry, so the page may need more than its number of skills.
      const some = served.sorted.slice(start, start + Math.min(pageSize - items.length, readAtOnce));
      const entries = await Promise.all(some.map(({ name, skill }) => this.#cache(name, skill).entry));
      items.push(...entries.filter((entry) => entry !== undefined));
      start += some.length;
      if (items.length >= pageSize && start < served.sorted.length) return { items, ...nextCursor(items.at(-1)) };
    }
    return { items };
  }

  /** The entry whose SKILL.md has this URI. */
  async get(uri: string): Promise<Skill | undefined> {
    const entry = await this.#cachedAt(uri)?.entry;
    return entry?.uri === uri ? entry : undefined;
  }

  /** The direct children of a folder of a skill. Undefined: there is no such folder. */
  async directory(uri: string): Promise<readonly SkillDirectoryEntry[] | undefined> {
    const cached = this.#cachedAt(uri);
    const entry = await cached?.entry;
    if (cached === undefined || entry === undefined) return undefined;
    const prefix = `${uri.replace(/\/$/, "")}/`;
    const sizes = new Map(listedFiles(entry).map((file) => [file.uri, file.size]));
    const children = new Map<string, SkillDirectoryEntry>();
    for (const { path, source } of filesOf(cached.resources)) {
      const address = addressOf(cached.name, path);
      if (!address.startsWith(prefix)) continue;
      const [name = "", ...deeper] = address.slice(prefix.length).split("/");
      const child = { uri: prefix + name, name: decodeURIComponent(name) };
      const { mimeType } = source.definition;
      children.set(name, deeper.length > 0 ? { ...child, mimeType: directoryType } : { ...child, mimeType, size: sizes.get(address) });
    }
    return children.size === 0 ? undefined : [...children.values()].sort((a, b) => (a.uri < b.uri ? -1 : 1));
  }

  /**
   * Reads a file of a skill. Undefined: it belongs to no skill with an entry.
   * @throws ProtocolError when it differs from its digest; the next request for the skill creates a new entry.
   */
  async read(uri: string): Promise<readonly ResourceContents[] | undefined> {
    const skill = this.#skillAt(uri);
    const cached = skill && this.#cache(...skill);
    const entry = await cached?.entry;
    if (skill === undefined || cached === undefined || entry === undefined) return undefined;
    const listed = listedFiles(entry).find((file) => file.uri === uri);
    const file = filesOf(cached.resources).find(({ path }) => addressOf(cached.name, path) === uri);
    if (listed === undefined || file === undefined) return undefined;
    const bytes = await readServed(cached.name, skill[1], file, listed.digest);
    if (digestOf(bytes) === listed.digest) return [toContents(uri, file.source.definition.mimeType, bytes)];
    this.#cached.delete(skill[1]);
    throw new ProtocolError(ProtocolErrorCode.InternalError, `${uri} has changed. Request the skill again.`, { uri });
  }

  #served(): ServedSkills {
    const skills = this.#session.listSkills();
    if (this.#named?.skills !== skills) {
      const byName = nameServed(skills);
      const sorted = [...byName].map(([name, skill]) => ({ uri: addressOf(name, documentName), name, skill }));
      this.#named = { skills, served: { byName, sorted: sorted.sort((a, b) => (a.uri < b.uri ? -1 : 1)) } };
    }
    return this.#named.served;
  }

  #skillAt(uri: string): readonly [name: string, skill: SkillEntry] | undefined {
    const name = uri.startsWith(scheme) ? uri.slice(scheme.length).split("/", 1)[0]! : "";
    const skill = this.#served().byName.get(name);
    return skill && [name, skill];
  }

  #cachedAt(uri: string): CachedSkill | undefined {
    const skill = this.#skillAt(uri);
    return skill && this.#cache(...skill);
  }

  #cache(name: string, skill: SkillEntry): CachedSkill {
    const resources = skill.files?.resources ?? [];
    const known = this.#cached.get(skill);
    // The list of files is a new object when any file changes.
    if (known?.resources === resources && known.name === name) return known;
    const cached = { name, resources, entry: this.#makeEntry(name, skill, resources) };
    this.#cached.set(skill, cached);
    return cached;
  }

  async #makeEntry(name: string, skill: SkillEntry, resources: readonly Resource[]): Promise<Skill | undefined> {
    const files = filesOf(resources);
    const document = files.find(({ path }) => path === documentName);
    if (document === undefined) return undefined;
    try {
      const [entry, bytes] = await documentEntry(name, skill, document);
      const others = files.filter((file) => file !== document);
      const size = others.reduce((sum, { source }) => sum + (source.definition.size ?? 0), bytes.byteLength);
      if (files.length > SKILL_LIMITS.files || size > SKILL_LIMITS.bytes) throw new Error(tooLarge(files.length, size));
      const listed = await Promise.all(
        others.map(async ({ path, source }) => describe(addressOf(name, path), await skill.read(source.origin.nativeName))),
      );
      listed.push(...listedFiles(entry));
      return { ...entry, resources: listed.sort((a, b) => (a.uri < b.uri ? -1 : 1)) };
    } catch (error) {
      this.#log.error(`Skill "${skill.name}" is not available to MCP clients.`, { error: toError(error) });
      return undefined;
    }
  }
}

const scheme = "skill://";

function nameServed(skills: readonly SkillEntry[]): ReadonlyMap<string, SkillEntry> {
  const names = new Set(skills.map(({ name }) => name));
  const served = new Map<string, SkillEntry>();
  // Sorted, so that the same skill always gets the plain name.
  for (const skill of [...skills].sort((a, b) => (a.name < b.name ? -1 : 1))) {
    if (skill.files === undefined || skill.hiddenFromModel === true) continue;
    const plain = servedName(skill.name);
    const isFree = plain === skill.name || !(names.has(plain) || served.has(plain));
    served.set(isFree ? plain : distinctServedName(skill.name), skill);
  }
  return served;
}

/** The entry of a skill by its SKILL.md, and the served bytes of that file. */
async function documentEntry(name: string, skill: SkillEntry, document: ServedFile): Promise<[Skill, Uint8Array]> {
  const written = await skill.read(document.source.origin.nativeName);
  const plain = plainEntry(name, written);
  if (plain !== undefined) return [plain, written];
  try {
    return [await skillEntry(name, { [documentName]: written }), written];
  } catch {
    // Clients would refuse the original file.
    const bytes = normalized(name, skill, written);
    return [plainEntry(name, bytes) ?? (await skillEntry(name, { [documentName]: bytes })), bytes];
  }
}

/** The entry of a simple SKILL.md, without the SDK, which takes ten times as long. */
function plainEntry(name: string, bytes: Uint8Array): Skill | undefined {
  const document = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const end = document.indexOf(frontMatterEnd);
  if (end < 0 || end > maxPlainLength || !isUtf8(document)) return undefined;
  // Only the front matter: the texts of the entry are parts of this string, and keep all of it.
  const frontmatter = readPlainFrontMatter(document.toString("utf8", 0, end + frontMatterEnd.length), name);
  if (frontmatter === undefined) return undefined;
  const uri = addressOf(name, documentName);
  return { uri, frontmatter: frontmatter as Skill["frontmatter"], resources: [describe(uri, bytes)] };
}

const frontMatterEnd = "\n---\n";
/** Longer front matter is not simple. */
const maxPlainLength = 4_096;

/** The bytes of a served file. They match the digest if the file is unchanged. */
async function readServed(name: string, skill: SkillEntry, { path, source }: ServedFile, digest: string): Promise<Uint8Array> {
  const written = await skill.read(source.origin.nativeName);
  return path !== documentName || digestOf(written) === digest ? written : normalized(name, skill, written);
}

function normalized(name: string, { description }: SkillEntry, written: Uint8Array): Uint8Array {
  return Buffer.from(normalizeSkillDocument(decodeText(written, documentName).text, { name, description }));
}

/** The files with their served paths. Of several spellings of SKILL.md the exact one is used, and the others are left out. */
function filesOf(resources: readonly Resource[]): readonly ServedFile[] {
  const isDocument = ({ origin }: Resource): boolean => origin.nativeName.toLowerCase() === "skill.md";
  const document = resources.find(({ origin }) => origin.nativeName === documentName) ?? resources.find(isDocument);
  const others = resources.filter((resource) => !isDocument(resource)).map((source) => ({ path: source.origin.nativeName, source }));
  return document === undefined ? others : [{ path: documentName, source: document }, ...others];
}

function listedFiles({ resources }: Skill): readonly SkillResourceEntry[] {
  return Array.isArray(resources) ? resources : [];
}

function tooLarge(files: number, bytes: number): string {
  return `It has ${files} files of ${bytes} bytes, but clients accept at most ${SKILL_LIMITS.files} files of ${SKILL_LIMITS.bytes} bytes. Move unneeded files out of its folder.`;
}

function describe(uri: string, bytes: Uint8Array): SkillResourceEntry {
  return { uri, digest: digestOf(bytes), size: bytes.byteLength };
}

function addressOf(name: string, path: string): string {
  return `${scheme}${[name, ...path.split("/")].map(encodeURIComponent).join("/")}`;
}

function digestOf(bytes: Uint8Array): string {
  return `sha256:${hash("sha256", bytes, "hex")}`;
}

/** Chooses text or blob by the content of the file, not by its name. */
function toContents(uri: string, mimeType: string | undefined, bytes: Uint8Array): ResourceContents {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const type = mimeType === undefined ? {} : { mimeType };
  return isUtf8(buffer) && !buffer.includes(0)
    ? { uri, ...type, text: buffer.toString("utf8") }
    : { uri, ...type, blob: buffer.toString("base64") };
}
