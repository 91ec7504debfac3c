import { isUtf8 } from "node:buffer";
import { createHash } from "node:crypto";
import { ProtocolError, ProtocolErrorCode } from "@modelcontextprotocol/server";
import { SKILL_LIMITS, type Skill, skillEntry } from "@modelcontextprotocol/server/ext/skills";
import { toError } from "../../base/errors.ts";
import type { Logger } from "../../base/logger.ts";
import type { Session } from "../../session/session.ts";
import type { Resource, ResourceContents } from "../../tools/resource.ts";
import type { SkillEntry } from "../../tools/tool-source.ts";

/** A file or folder of a skill, as `resources/directory/read` lists it. */
export interface ShelfChild {
  readonly uri: string;
  readonly name: string;
  readonly mimeType?: string | undefined;
  readonly size?: number | undefined;
}

/** What was made of one skill, and of which files. */
interface Shelved {
  readonly resources: readonly Resource[];
  readonly entry: Promise<Skill | undefined>;
}

const manifest = "SKILL.md";
const directoryType = "inode/directory";

/**
 * The skills of a session as the Skills extension (SEP-2640) serves them: an entry for each with the digests of its files,
 * made when somebody asks and kept until a file changes. What is read is held against its digest.
 */
export class SkillShelf {
  readonly #session: Session;
  readonly #log: Logger;
  readonly #shelved = new WeakMap<SkillEntry, Shelved>();

  constructor(session: Session, log: Logger) {
    this.#session = session;
    this.#log = log;
  }

  /** By address, so that the order is always the same. */
  async list(): Promise<readonly Skill[]> {
    const entries = await Promise.all(this.#served().map((skill) => this.#shelve(skill).entry));
    return entries.filter((entry) => entry !== undefined).sort((a, b) => (a.uri < b.uri ? -1 : 1));
  }

  /** The entry whose SKILL.md has the address. */
  async get(uri: string): Promise<Skill | undefined> {
    const skill = this.#skillAt(uri);
    const entry = await (skill && this.#shelve(skill).entry);
    return entry?.uri === uri ? entry : undefined;
  }

  /** What lies directly in a folder of a skill. Undefined: there is no such folder. */
  async directory(uri: string): Promise<readonly ShelfChild[] | undefined> {
    const skill = this.#skillAt(uri);
    const shelved = skill && this.#shelve(skill);
    if (shelved === undefined || (await shelved.entry) === undefined) return undefined;
    const prefix = `${uri.replace(/\/$/, "")}/`;
    const children = new Map<string, ShelfChild>();
    for (const { definition } of shelved.resources) {
      if (!definition.uri.startsWith(prefix)) continue;
      const [name = "", ...deeper] = definition.uri.slice(prefix.length).split("/");
      const child = { uri: prefix + name, name: decodeURIComponent(name) };
      const { mimeType, size } = definition;
      children.set(name, deeper.length > 0 ? { ...child, mimeType: directoryType } : { ...child, mimeType, size });
    }
    return children.size === 0 ? undefined : [...children.values()].sort((a, b) => (a.uri < b.uri ? -1 : 1));
  }

  /**
   * A file of a skill, if it is as the skill's entry says. Undefined: it belongs to no skill with an entry.
   * @throws ProtocolError when it has changed since; the entry is made anew then.
   */
  async read(uri: string): Promise<readonly ResourceContents[] | undefined> {
    const skill = this.#skillAt(uri);
    const shelved = skill && this.#shelve(skill);
    const entry = await shelved?.entry;
    const listed = Array.isArray(entry?.resources) ? entry.resources.find((resource) => resource.uri === uri) : undefined;
    const resource = shelved?.resources.find(({ definition }) => definition.uri === uri);
    if (skill === undefined || listed === undefined || resource === undefined) return undefined;
    const bytes = await skill.read(resource.origin.nativeName);
    if (digestOf(bytes) === listed.digest) return [toContents(uri, resource.definition.mimeType, bytes)];
    this.#shelved.delete(skill);
    throw new ProtocolError(ProtocolErrorCode.InternalError, `${uri} has changed. Ask for the skill again.`, { uri });
  }

  #served(): readonly SkillEntry[] {
    return this.#session.listSkills().filter(({ files, hiddenFromModel }) => files !== undefined && hiddenFromModel !== true);
  }

  #skillAt(uri: string): SkillEntry | undefined {
    return this.#served().findLast(({ name }) => uri === addressOf(name) || uri.startsWith(`${addressOf(name)}/`));
  }

  #shelve(skill: SkillEntry): Shelved {
    const resources = skill.files?.resources ?? [];
    const known = this.#shelved.get(skill);
    // The list of its files is another as soon as one of them is.
    if (known?.resources === resources) return known;
    const shelved = { resources, entry: this.#makeEntry(skill, resources) };
    this.#shelved.set(skill, shelved);
    return shelved;
  }

  async #makeEntry(skill: SkillEntry, resources: readonly Resource[]): Promise<Skill | undefined> {
    const bytes = resources.reduce((sum, { definition }) => sum + (definition.size ?? 0), 0);
    if (!resources.some(({ origin }) => origin.nativeName === manifest)) return undefined;
    try {
      if (resources.length > SKILL_LIMITS.files || bytes > SKILL_LIMITS.bytes)
        throw new Error(`it has ${resources.length} files of ${bytes} bytes`);
      const entry = await skillEntry(skill.name, { [manifest]: await skill.read(manifest) });
      const listed = await Promise.all(resources.map((resource) => describe(skill, resource)));
      return { ...entry, resources: listed.sort((a, b) => (a.uri < b.uri ? -1 : 1)) };
    } catch (error) {
      this.#log.warning(`Skill "${skill.name}" is not served as a skill: its files are.`, { error: toError(error) });
      return undefined;
    }
  }
}

async function describe(
  skill: SkillEntry,
  { definition: { uri }, origin }: Resource,
): Promise<{ uri: string; digest: string; size: number }> {
  const bytes = await skill.read(origin.nativeName);
  return { uri, digest: digestOf(bytes), size: bytes.byteLength };
}

function addressOf(name: string): string {
  return `skill://${encodeURIComponent(name)}`;
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
