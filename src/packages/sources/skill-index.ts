import { HostError } from "../../base/errors.ts";
import { isRecord } from "../../base/json.ts";
import { EntryRules } from "../entry-rules.ts";
import { tarballLimits } from "../inspect-tarball.ts";
import { isSkillFolderName } from "./stage-git-skills.ts";

/** A skill that a site publishes. Addresses are absolute. */
export interface IndexedSkill {
  readonly name: string;
  /** Its files, one by one; or its document alone; or an archive with all of them. */
  readonly content:
    | { readonly kind: "files"; readonly files: readonly IndexedFile[]; readonly digest?: string | undefined }
    | { readonly kind: "document" | "archive"; readonly url: string; readonly digest: string };
}

export interface IndexedFile {
  readonly path: string;
  readonly url: string;
  readonly digest?: string | undefined;
}

interface SkillIndex {
  readonly skills: readonly IndexedSkill[];
  /** What is wrong with entries that were left out. */
  readonly problems: readonly string[];
}

const maxSkills = 5_000;
const maxFiles = 1_000;

/**
 * Reads an index of skills in any of the three shapes in use (cloudflare/agent-skills-discovery-rfc): 0.1, with names of files; 0.2.0 of
 * February 2026, with a digest for each file; 0.2.0 of March 2026, with one address and digest for each skill. Undefined: the text is not an index.
 * @throws HostError `INDEX_INVALID`
 */
export function parseSkillIndex(text: string, indexUrl: string): SkillIndex | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // Sites answer unknown paths with a page.
    return undefined;
  }
  if (!isRecord(value) || !Array.isArray(value["skills"])) return undefined;
  const entries: readonly unknown[] = value["skills"];
  if (entries.length > maxSkills) throw new HostError("INDEX_INVALID", `${indexUrl} lists more than ${maxSkills} skills.`);
  const skills = new Map<string, IndexedSkill>();
  const problems: string[] = [];
  for (const [index, entry] of entries.entries()) {
    const read = readEntry(entry, indexUrl);
    const problem =
      typeof read === "string" ? read : skills.has(read.name) ? `the name ${JSON.stringify(read.name)} is repeated` : undefined;
    if (problem !== undefined) problems.push(`skills[${index}] of ${indexUrl} is not used: ${problem}.`);
    else if (typeof read !== "string") skills.set(read.name, read);
  }
  return { skills: [...skills.values()], problems };
}

/** Returns a string that says what is wrong. */
function readEntry(entry: unknown, indexUrl: string): IndexedSkill | string {
  if (!isRecord(entry)) return "it is not an object";
  const { name, type, url, files, digest } = entry;
  if (typeof name !== "string" || !isSkillFolderName(name)) return "its name cannot be the name of a folder";
  if (Array.isArray(files)) return readFiles(name, files, { indexUrl, digest });
  // An entry of February 2026 may have an archive in place of files.
  const archive = isRecord(entry["package"]) ? entry["package"] : undefined;
  const kind = archive !== undefined || type === "archive" ? "archive" : type === "skill-md" ? "document" : undefined;
  if (kind === undefined) return `its type ${JSON.stringify(type)} is neither "skill-md" nor "archive"`;
  const [address, sum] = archive === undefined ? [url, digest] : [archive["url"], archive["digest"]];
  const resolved = typeof address === "string" ? resolveUrl(address, indexUrl) : undefined;
  if (resolved === undefined) return "its url is not an address that can be fetched";
  const known = readDigest(sum);
  if (known === undefined) return "its digest is not sha256: and 64 hexadecimal digits, so what arrives could not be compared";
  return { name, content: { kind, url: resolved, digest: known } };
}

function readFiles(
  name: string,
  given: readonly unknown[],
  { indexUrl, digest }: { readonly indexUrl: string; readonly digest: unknown },
): IndexedSkill | string {
  if (given.length > maxFiles) return `it has more than ${maxFiles} files`;
  const rules = new EntryRules(tarballLimits);
  const files: IndexedFile[] = [];
  for (const item of given) {
    const path = isRecord(item) ? item["path"] : item;
    if (typeof path !== "string" || path === "" || path.endsWith("/")) return "one of its files has no path";
    // Half of a character has no address.
    if (/\p{Surrogate}/u.test(path)) return `its file ${JSON.stringify(path.slice(0, 200))} has a name that is not valid Unicode`;
    const fault = rules.addFile(path, 0) ?? (path.split("/").includes("node_modules") ? "is in a node_modules folder." : undefined);
    if (fault !== undefined) return `its file ${JSON.stringify(path.slice(0, 200))} ${fault.replace(/\.$/, "")}`;
    const sum = isRecord(item) ? readDigest(item["digest"]) : undefined;
    if (isRecord(item) && sum === undefined) return `its file ${JSON.stringify(path)} has no sha256 digest`;
    const encoded = [name, ...path.split("/")].map(encodeURIComponent).join("/");
    files.push({ path, url: new URL(encoded, indexUrl).href, digest: sum });
  }
  if (!files.some(({ path }) => path.toLowerCase() === "skill.md")) return "it has no SKILL.md";
  return { name, content: { kind: "files", files, digest: readDigest(digest) } };
}

function readDigest(value: unknown): string | undefined {
  const hex = typeof value === "string" ? /^(?:sha256:)?([0-9a-f]{64})$/i.exec(value)?.[1] : undefined;
  return hex === undefined ? undefined : `sha256:${hex.toLowerCase()}`;
}

function resolveUrl(address: string, base: string): string | undefined {
  if (!URL.canParse(address, base)) return undefined;
  const url = new URL(address, base);
  const isSafe = url.protocol === "https:" || (url.protocol === "http:" && new URL(base).protocol === "http:");
  return isSafe && url.username === "" && url.password === "" ? url.href : undefined;
}
