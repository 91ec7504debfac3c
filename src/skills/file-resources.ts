import { isUtf8 } from "node:buffer";
import { join } from "node:path";
import { HostError } from "../base/errors.ts";
import type { CheckedTree } from "../io/read-bounded.ts";
import { unknownResource } from "../tools/create-resource.ts";
import { mediaTypeOf } from "../tools/media-type.ts";
import type { Resource, ResourceContents, ResourceDefinition } from "../tools/resource.ts";
import type { ResourceSet } from "../tools/tool-source.ts";
import type { FolderListing, ListedFile } from "./folder-listing.ts";

interface SkillOfFiles {
  readonly name: string;
  readonly description: string;
  read(path: string): Promise<Uint8Array>;
  /** Where the signature is required: the only files that are listed. */
  readonly tree?: CheckedTree | undefined;
}

/** The files of a skill as resources, made when they are first asked for: `skill://<name>/<path>`. */
export function createFileResources(listing: FolderListing, skill: SkillOfFiles): ResourceSet {
  let of: readonly ListedFile[] | undefined;
  let made = new Map<ListedFile, Resource>();
  let resources: readonly Resource[] = [];
  return Object.freeze({
    get resources() {
      const { files } = listing;
      if (files === of) return resources;
      of = files;
      const listed = files.filter(({ path }) => skill.tree === undefined || skill.tree.kindOf(join(skill.tree.folder, path)) === "file");
      made = new Map(listed.map((file) => [file, made.get(file) ?? createFileResource(file, listing, skill)]));
      resources = Object.freeze([...made.values()]);
      return resources;
    },
  });
}

/** The address of a file of a skill. */
function skillUri(skill: string, path: string): string {
  return `skill://${[skill, ...path.split("/")].map(encodeURIComponent).join("/")}`;
}

function createFileResource(file: ListedFile, listing: FolderListing, skill: SkillOfFiles): Resource {
  const { path, size, stamp } = file;
  const uri = skillUri(skill.name, path);
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

/** By what the file holds, not by what it is called: a text may have any extension. */
function toContents(uri: string, mimeType: string | undefined, bytes: Uint8Array): ResourceContents {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return isUtf8(buffer) && !buffer.includes(0)
    ? { uri, mimeType: mimeType ?? "text/plain", text: buffer.toString("utf8") }
    : { uri, mimeType: mimeType ?? "application/octet-stream", blob: buffer.toString("base64") };
}
