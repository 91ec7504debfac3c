import { findHidden, hiddenWords } from "../../base/hidden-characters.ts";
import { nameFaults } from "../../formats/skills/skill-permissions.ts";
import { copyJson } from "../../tools/json-copy.ts";
import { isRecord } from "../../tools/schema/walk-schema.ts";

type Json = Readonly<Record<string, unknown>>;

/** A file of a skill: where it is, and what its bytes must be. */
export interface SkillFile {
  readonly uri: string;
  /** `sha256:` and 64 hex digits. */
  readonly digest: string;
  readonly size: number;
}

/** What a server says of a skill that it serves (Skills extension, SEP-2640). */
export interface SkillListing {
  /** Of its SKILL.md, as the server writes it. */
  readonly uri: string;
  /** The address of its folder, without a slash at the end. */
  readonly root: string;
  /** The path of that folder among the server's, such as `acme/billing/refunds`. */
  readonly folder: string;
  readonly name: string;
  readonly description: string;
  readonly frontmatter: Json;
  /** All of its files by their paths in it; `dynamic`: they are made as they are read. */
  readonly files: ReadonlyMap<string, SkillFile> | "dynamic";
}

export type ReadSkillEntry =
  | { readonly ok: true; readonly listing: SkillListing }
  | { readonly ok: false; readonly uri: string | undefined; readonly reason: string };

// The limits that the extension sets: servers know that no host need take more.
const maxFiles = 512;
export const maxSkillBytes: number = 16 * 1024 * 1024;
const maxDescription = 1024;

/**
 * Checks an entry of `skills/list` or `skills/get`: an address that ends in the skill's name, front matter by the Agent
 * Skills specification, and every file once, within the skill and within the limits. Nothing is fetched for it.
 */
export function readSkillEntry(raw: unknown): ReadSkillEntry {
  const uri = isRecord(raw) && typeof raw["uri"] === "string" ? raw["uri"] : undefined;
  const refuse = (reason: string): ReadSkillEntry => ({ ok: false, uri, reason });
  if (!isRecord(raw) || uri === undefined) return refuse("it has no uri");
  const root = rootOf(uri);
  if (root === undefined) return refuse("its uri is not that of a SKILL.md in a folder");
  const { resources } = raw;
  const frontmatter = frontMatterOf(raw["frontmatter"]);
  const folder = root.replace(/^[^:]*:\/*/, "");
  const fault = faultOfFrontMatter(frontmatter, decoded(folder.slice(folder.lastIndexOf("/") + 1)));
  if (fault !== undefined) return refuse(fault);
  const hidden = findHidden(String(frontmatter["description"]));
  if (hidden !== undefined) return refuse(`its description has ${hiddenWords(hidden)}`);
  const files = resources === "dynamic" ? resources : readFiles(resources, root);
  if (typeof files === "string" && files !== "dynamic") return refuse(files);
  const { name, description } = frontmatter as { readonly name: string; readonly description: string };
  return { ok: true, listing: { uri, root, folder: decoded(folder), name, description, frontmatter, files } };
}

/** What an approval of a skill is bound to: each file with its digest, and the front matter that says what it is. */
export function contentOf({ uri, frontmatter, files }: SkillListing): object {
  if (files === "dynamic") return { uri, frontmatter, resources: files };
  const sorted = [...files.values()].sort((a, b) => (a.uri < b.uri ? -1 : 1));
  return { uri, frontmatter, resources: sorted.map((file) => ({ uri: file.uri, digest: file.digest, size: file.size })) };
}

/** The path in a skill's folder that an address leads to, however its characters are written; undefined: it leads elsewhere. */
export function pathInFolder(root: string, uri: string): string | undefined {
  const url = parseUri(uri);
  if (url === undefined || url.search !== "") return undefined;
  url.hash = "";
  if (!url.href.startsWith(`${root}/`)) return undefined;
  const segments = url.href
    .slice(root.length + 1)
    .split("/")
    .map(decoded);
  return segments.every(isFileName) ? segments.join("/") : undefined;
}

const manifest = "/SKILL.md";

function rootOf(uri: string): string | undefined {
  const url = parseUri(uri);
  if (url === undefined || url.search !== "" || url.hash !== "" || !url.href.endsWith(manifest)) return undefined;
  const root = url.href.slice(0, -manifest.length);
  return root.endsWith("/") ? undefined : root;
}

/** A copy, frozen and plain. Of what is none of that, nothing: it has no name then. */
function frontMatterOf(raw: unknown): Json {
  const copy = isRecord(raw) && !Object.hasOwn(raw, "__proto__") ? copyJson(raw) : undefined;
  return copy?.ok === true && isRecord(copy.value) ? copy.value : {};
}

function faultOfFrontMatter(frontmatter: Json, folderName: string): string | undefined {
  const { name, description } = frontmatter;
  if (typeof name !== "string" || name === "") return "its frontmatter is not one with a name";
  const fault = nameFaults(name, folderName)[0];
  if (fault !== undefined) return fault.message.replace(/\.$/, "");
  const length = typeof description === "string" ? [...description].length : 0;
  return length >= 1 && length <= maxDescription ? undefined : `its description must have 1 to ${maxDescription} characters`;
}

/** A text says what is wrong with them. */
function readFiles(resources: unknown, root: string): ReadonlyMap<string, SkillFile> | string {
  if (!Array.isArray(resources)) return 'its resources are neither a list nor "dynamic"';
  if (resources.length > maxFiles) return `it has ${resources.length} files, and at most ${maxFiles} are taken`;
  const files = new Map<string, SkillFile>();
  let bytes = 0;
  for (const [index, resource] of resources.entries()) {
    const file = readFile(resource);
    if (file === undefined) return `resources[${index}] lacks an address, a digest or a size`;
    const path = pathInFolder(root, file.uri);
    if (path === undefined) return `resources[${index}] is not in the skill's folder`;
    if (files.has(path)) return `resources[${index}] is listed twice`;
    files.set(path, file);
    bytes += file.size;
  }
  if (!files.has("SKILL.md")) return "its resources lack its SKILL.md";
  return bytes <= maxSkillBytes ? files : `its files have ${bytes} bytes, and at most ${maxSkillBytes} are taken`;
}

function readFile(resource: unknown): SkillFile | undefined {
  if (!isRecord(resource)) return undefined;
  const { uri, digest, size } = resource;
  if (typeof uri !== "string" || typeof digest !== "string" || !/^sha256:[0-9a-f]{64}$/.test(digest)) return undefined;
  return typeof size === "number" && Number.isSafeInteger(size) && size >= 0 ? Object.freeze({ uri, digest, size }) : undefined;
}

function parseUri(uri: string): URL | undefined {
  return uri.length <= 4096 && URL.canParse(uri) ? new URL(uri) : undefined;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    // A percent sign that begins no escape means itself.
    return text;
  }
}

function isFileName(segment: string): boolean {
  return segment !== "" && segment !== "." && segment !== ".." && !segment.includes("/") && !segment.includes("\0");
}
