import { isUtf8 } from "node:buffer";
import { join } from "node:path";
import { HostError } from "../../base/errors.ts";
import type { CheckedTree } from "../../io/read-bounded.ts";
import { createListedResource, type ResourcePlace, unknownResource } from "../../tools/create/create-resource.ts";
import { kindOf } from "../../tools/define/content-block.ts";
import type { DefinedResource, ListedResource } from "../../tools/define/define-resource.ts";
import { mediaTypeOf, type Resource, type ResourceContents, type ResourceDefinition } from "../../tools/resource.ts";
import type { ResourceSet } from "../../tools/tool-source.ts";
import type { FolderListing, ListedFile } from "../store/folder-listing.ts";

interface ResourceListOptions {
  /** Fires when the generation ends, which stops listing. */
  readonly signal: AbortSignal;
  /** Called when the list was replaced. */
  onChange(): void;
}

const most = 10_000;
const pause = 20;

/** The resources that a template lists after `refresh`, and after each change its author reports; undefined without a `list`. */
export function createResourceList(
  defined: DefinedResource,
  place: ResourcePlace,
  options: ResourceListOptions,
): (ResourceSet & { refresh(): Promise<void> }) | undefined {
  return defined.list === undefined ? undefined : new TemplateList(defined, place, options);
}

class TemplateList implements ResourceSet {
  resources: readonly Resource[] = Object.freeze([]);
  readonly #defined: DefinedResource;
  readonly #place: ResourcePlace;
  readonly #options: ResourceListOptions;
  #isWanted = false;
  #isScheduled = false;

  constructor(defined: DefinedResource, place: ResourcePlace, options: ResourceListOptions) {
    this.#defined = defined;
    this.#place = place;
    this.#options = options;
  }

  /** Rejects with errors of the author's function, or with HostError `RESOURCE_LIST` for an invalid list. */
  async refresh(): Promise<void> {
    const { signal } = this.#options;
    const given: unknown = await this.#defined.list?.({ signal, changed: () => this.#changed() });
    if (!signal.aborted) this.#take(given);
  }

  #take(given: unknown): void {
    if (!Array.isArray(given)) throw new HostError("RESOURCE_LIST", `list must return an array of resources, not ${kindOf(given)}`);
    const before = new Map(this.resources.map((resource) => [resource.definition.uri, resource]));
    const made = new Map<string, Resource>();
    for (const item of given.slice(0, most) as ListedResource[]) {
      const resource = this.#make(item);
      const old = before.get(resource.definition.uri);
      made.set(resource.definition.uri, old?.revision === resource.revision ? old : resource);
    }
    const now = [...made.values()];
    const isSame = now.length === this.resources.length && now.every((resource, index) => resource === this.resources[index]);
    if (!isSame) this.resources = Object.freeze(now);
  }

  #make(item: ListedResource): Resource {
    try {
      return createListedResource(item, this.#defined, this.#place);
    } catch (cause) {
      throw new HostError("RESOURCE_LIST", `one of its entries is not valid: ${(cause as Error).message}`, { cause });
    }
  }

  /** Coalesces reports within a short time, including those of the list function itself. */
  #changed(): void {
    this.#isWanted = true;
    if (this.#isScheduled || this.#options.signal.aborted) return;
    this.#isScheduled = true;
    setTimeout(() => void this.#catchUp(), pause).unref();
  }

  async #catchUp(): Promise<void> {
    this.#isWanted = false;
    try {
      const before = this.resources;
      await this.refresh();
      if (this.resources !== before) this.#options.onChange();
    } catch {
      // The previous list stays; a lasting error is reported when the module is loaded again.
    }
    this.#isScheduled = false;
    if (this.#isWanted) this.#changed();
  }
}

interface SkillOfFiles {
  readonly name: string;
  readonly description: string;
  read(path: string): Promise<Uint8Array>;
}

/** The files of a skill as resources `skill://<name>/<path>`, created on first use. */
export class FileResources implements ResourceSet {
  readonly #listing: FolderListing;
  readonly #skill: SkillOfFiles;
  readonly #tree: CheckedTree | undefined;
  #of: readonly ListedFile[] | undefined;
  #made: ReadonlyMap<ListedFile, Resource> | undefined;
  #resources: readonly Resource[] = [];

  /** `tree`, if a signature is required: the only files that are listed. */
  constructor(listing: FolderListing, skill: SkillOfFiles, tree: CheckedTree | undefined) {
    this.#listing = listing;
    this.#skill = skill;
    this.#tree = tree;
  }

  get resources(): readonly Resource[] {
    const { files } = this.#listing;
    if (files === this.#of) return this.#resources;
    this.#of = files;
    const tree = this.#tree;
    const listed = files.filter(({ path }) => tree === undefined || tree.kindOf(join(tree.folder, path)) === "file");
    const made = this.#made;
    this.#made = new Map(listed.map((file) => [file, made?.get(file) ?? createFileResource(file, this.#listing, this.#skill)]));
    this.#resources = Object.freeze([...this.#made.values()]);
    return this.#resources;
  }
}

function createFileResource(file: ListedFile, listing: FolderListing, skill: SkillOfFiles): Resource {
  const { path, size, stamp } = file;
  // The URI of a skill file.
  const uri = `skill://${[skill.name, ...path.split("/")].map(encodeURIComponent).join("/")}`;
  const mimeType = mediaTypeOf(path);
  const about = path.toLowerCase() === "skill.md" ? { name: skill.name, description: skill.description } : { name: path };
  const definition: ResourceDefinition = Object.freeze({ uri, ...about, ...(mimeType !== undefined && { mimeType }), size });
  return Object.freeze({
    definition,
    origin: Object.freeze({ kind: "skill", source: skill.name, nativeName: path, file: join(listing.folder, path) }),
    revision: `${skill.name} ${stamp}`,
    read: async () => [toContents(uri, mimeType, await readFile(skill, path, uri))],
    watch: (_uri: string, changed: () => void) => listing.watch(path, changed),
  });
}

async function readFile(skill: SkillOfFiles, path: string, uri: string): Promise<Uint8Array> {
  try {
    return await skill.read(path);
  } catch (error) {
    if (error instanceof HostError && error.code === "FILE_MISSING") throw unknownResource(uri);
    throw error;
  }
}

/** Decides by the content, not by the name: a text may have any extension. */
function toContents(uri: string, mimeType: string | undefined, bytes: Uint8Array): ResourceContents {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return isUtf8(buffer) && !buffer.includes(0)
    ? { uri, mimeType: mimeType ?? "text/plain", text: buffer.toString("utf8") }
    : { uri, mimeType: mimeType ?? "application/octet-stream", blob: buffer.toString("base64") };
}
