import { isUtf8 } from "node:buffer";
import { createHash } from "node:crypto";
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

const pageSize = 100;

/** What a server with `serveSkills` has among its capabilities. */
export const skillsCapability: Readonly<Record<string, { readonly directoryRead: true }>> = {
  [SKILLS_EXTENSION_ID]: { directoryRead: true },
};

/** Has a server answer the methods of the Skills extension (SEP-2640). */
export function serveSkills(server: Server, shelf: SkillResources, cacheHint: CacheHint | undefined, log: Logger): void {
  const hints = { ...cacheHint };
  server.setRequestHandler(SKILLS_LIST_METHOD, { params: page }, ({ cursor }) =>
    guarded(log, "the list of skills", async () => {
      const { items, ...next } = cut(await shelf.list(), cursor);
      return { skills: items, ...next, ...hints };
    }),
  );
  server.setRequestHandler(SKILLS_GET_METHOD, { params: addressed }, ({ uri }) =>
    guarded(log, `skill ${uri}`, async () => {
      const skill = await shelf.get(uri);
      if (skill === undefined) throw notServed(uri, "is not a skill of this server");
      return { skill, ...hints };
    }),
  );
  server.setRequestHandler(RESOURCES_DIRECTORY_READ_METHOD, { params: addressed }, ({ uri, cursor }) =>
    guarded(log, `folder ${uri}`, async () => {
      const children = await shelf.directory(uri);
      if (children === undefined) throw notServed(uri, "is not a folder of this server");
      const { items, ...next } = cut(children, cursor);
      return { resources: items, ...next, ...hints };
    }),
  );
}

interface Page<T> {
  readonly items: readonly T[];
  readonly nextCursor?: string;
}

/** Goes on after the address that the cursor names, so that what comes or goes meanwhile repeats nothing. */
function cut<T extends { readonly uri: string }>(all: readonly T[], cursor: string | undefined): Page<T> {
  const after = cursor === undefined ? "" : Buffer.from(cursor, "base64url").toString("utf8");
  if (cursor !== undefined && !/^\w+:\/\//.test(after)) throw new ProtocolError(ProtocolErrorCode.InvalidParams, "Invalid cursor");
  const left = all.filter(({ uri }) => uri > after);
  const items = left.slice(0, pageSize);
  const last = items.at(-1);
  return left.length > pageSize && last !== undefined ? { items, nextCursor: Buffer.from(last.uri).toString("base64url") } : { items };
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

/** A file or folder of a skill, as `resources/directory/read` lists it. */
interface SkillDirectoryEntry {
  readonly uri: string;
  readonly name: string;
  readonly mimeType?: string | undefined;
  readonly size?: number | undefined;
}

/** What was made of one skill, and of which files. */
interface Shelved {
  /** Under which its files are served. */
  readonly name: string;
  readonly resources: readonly Resource[];
  readonly entry: Promise<Skill | undefined>;
}

/** A file as it is served: its bytes are those of the disk, but for a SKILL.md that strict clients could not read. */
interface ServedFile {
  readonly path: string;
  readonly source: Resource;
}

const documentName = "SKILL.md";
const directoryType = "inode/directory";

/**
 * The skills of a session as the Skills extension (SEP-2640) serves them: an entry for each with the digests of its files,
 * made when somebody asks and kept until a file changes. What is read is held against its digest. The extension's clients
 * refuse names and front matter that are not those of the specification, so such a SKILL.md is served in a normalised
 * form, with the digest of that.
 */
export class SkillResources {
  readonly #session: Session;
  readonly #log: Logger;
  readonly #shelved = new WeakMap<SkillEntry, Shelved>();
  #named: { readonly skills: readonly SkillEntry[]; readonly served: ReadonlyMap<string, SkillEntry> } | undefined;

  constructor(session: Session, log: Logger) {
    this.#session = session;
    this.#log = log;
  }

  /** By address, so that the order is always the same. */
  async list(): Promise<readonly Skill[]> {
    const entries = await Promise.all([...this.#served()].map(([name, skill]) => this.#shelve(name, skill).entry));
    return entries.filter((entry) => entry !== undefined).sort((a, b) => (a.uri < b.uri ? -1 : 1));
  }

  /** The entry whose SKILL.md has the address. */
  async get(uri: string): Promise<Skill | undefined> {
    const entry = await this.#shelvedAt(uri)?.entry;
    return entry?.uri === uri ? entry : undefined;
  }

  /** What lies directly in a folder of a skill. Undefined: there is no such folder. */
  async directory(uri: string): Promise<readonly SkillDirectoryEntry[] | undefined> {
    const shelved = this.#shelvedAt(uri);
    const entry = await shelved?.entry;
    if (shelved === undefined || entry === undefined) return undefined;
    const prefix = `${uri.replace(/\/$/, "")}/`;
    const sizes = new Map(listedFiles(entry).map((file) => [file.uri, file.size]));
    const children = new Map<string, SkillDirectoryEntry>();
    for (const { path, source } of filesOf(shelved.resources)) {
      const address = addressOf(shelved.name, path);
      if (!address.startsWith(prefix)) continue;
      const [name = "", ...deeper] = address.slice(prefix.length).split("/");
      const child = { uri: prefix + name, name: decodeURIComponent(name) };
      const { mimeType } = source.definition;
      children.set(name, deeper.length > 0 ? { ...child, mimeType: directoryType } : { ...child, mimeType, size: sizes.get(address) });
    }
    return children.size === 0 ? undefined : [...children.values()].sort((a, b) => (a.uri < b.uri ? -1 : 1));
  }

  /**
   * A file of a skill, if it is as the skill's entry says. Undefined: it belongs to no skill with an entry.
   * @throws ProtocolError when it has changed since; the next request for the skill lists it again.
   */
  async read(uri: string): Promise<readonly ResourceContents[] | undefined> {
    const skill = this.#skillAt(uri);
    const shelved = skill && this.#shelve(...skill);
    const entry = await shelved?.entry;
    if (skill === undefined || shelved === undefined || entry === undefined) return undefined;
    const listed = listedFiles(entry).find((file) => file.uri === uri);
    const file = filesOf(shelved.resources).find(({ path }) => addressOf(shelved.name, path) === uri);
    if (listed === undefined || file === undefined) return undefined;
    const bytes = await readServed(shelved.name, skill[1], file, listed.digest);
    if (digestOf(bytes) === listed.digest) return [toContents(uri, file.source.definition.mimeType, bytes)];
    this.#shelved.delete(skill[1]);
    throw new ProtocolError(ProtocolErrorCode.InternalError, `${uri} has changed. Request the skill again.`, { uri });
  }

  /** By the names under which they are served. */
  #served(): ReadonlyMap<string, SkillEntry> {
    const skills = this.#session.listSkills();
    if (this.#named?.skills !== skills) this.#named = { skills, served: nameServed(skills) };
    return this.#named.served;
  }

  #skillAt(uri: string): readonly [name: string, skill: SkillEntry] | undefined {
    const name = uri.startsWith(scheme) ? uri.slice(scheme.length).split("/", 1)[0]! : "";
    const skill = this.#served().get(name);
    return skill && [name, skill];
  }

  #shelvedAt(uri: string): Shelved | undefined {
    const skill = this.#skillAt(uri);
    return skill && this.#shelve(...skill);
  }

  #shelve(name: string, skill: SkillEntry): Shelved {
    const resources = skill.files?.resources ?? [];
    const known = this.#shelved.get(skill);
    // The list of its files is another as soon as one of them is.
    if (known?.resources === resources && known.name === name) return known;
    const shelved = { name, resources, entry: this.#makeEntry(name, skill, resources) };
    this.#shelved.set(skill, shelved);
    return shelved;
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
      listed.push(describe(entry.uri, bytes));
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
  // Sorted, so that the same skill gets the plain name each time.
  for (const skill of [...skills].sort((a, b) => (a.name < b.name ? -1 : 1))) {
    if (skill.files === undefined || skill.hiddenFromModel === true) continue;
    const plain = servedName(skill.name);
    const isFree = plain === skill.name || !(names.has(plain) || served.has(plain));
    served.set(isFree ? plain : distinctServedName(skill.name), skill);
  }
  return served;
}

/** The front matter of a skill's SKILL.md as clients read it, and the bytes that they are given. */
async function documentEntry(name: string, skill: SkillEntry, document: ServedFile): Promise<[Skill, Uint8Array]> {
  const written = await skill.read(document.source.origin.nativeName);
  try {
    return [await skillEntry(name, { [documentName]: written }), written];
  } catch {
    // Clients would refuse it as it is written.
    const bytes = normalized(name, skill, written);
    return [await skillEntry(name, { [documentName]: bytes }), bytes];
  }
}

/** A file as it is served: with the digest, if it is as it was listed. */
async function readServed(name: string, skill: SkillEntry, { path, source }: ServedFile, digest: string): Promise<Uint8Array> {
  const written = await skill.read(source.origin.nativeName);
  return path !== documentName || digestOf(written) === digest ? written : normalized(name, skill, written);
}

function normalized(name: string, { description }: SkillEntry, written: Uint8Array): Uint8Array {
  return Buffer.from(normalizeSkillDocument(decodeText(written, documentName).text, { name, description }));
}

/** By their paths as they are served. Of several spellings of SKILL.md the exact one counts, and the others are left out. */
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
  return `sha256:${createHash("sha256").update(bytes).digest("hex")}`;
}

/** By what the file holds, not by what it is called. */
function toContents(uri: string, mimeType: string | undefined, bytes: Uint8Array): ResourceContents {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const type = mimeType === undefined ? {} : { mimeType };
  return isUtf8(buffer) && !buffer.includes(0)
    ? { uri, ...type, text: buffer.toString("utf8") }
    : { uri, ...type, blob: buffer.toString("base64") };
}
