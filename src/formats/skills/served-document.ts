import { sha256 } from "../../base/canonical-json.ts";
import { maxFrontMatterLength } from "../text/limits.ts";
import { parseSkillDocument } from "./skill-document.ts";

/** The name and description of a skill. */
export interface ServedSkill {
  /** The result of `servedName`. */
  readonly name: string;
  readonly description: string;
}

const maxNameLength = 64;
const maxDescriptionLength = 1024;
const maxCompatibilityLength = 500;

/**
 * The name under which a skill is served to clients that follow the Agent Skills specification: lower-case ASCII letters,
 * digits and single hyphens. A name without any of these is replaced by one derived from its digest.
 */
export function servedName(name: string): string {
  const slug = name
    .toLowerCase()
    .normalize("NFKD")
    .replace(/\p{M}/gu, "")
    .split(/[^a-z0-9]+/)
    .filter((part) => part !== "")
    .join("-");
  return cutName(slug, maxNameLength) || `skill-${shortDigest(name)}`;
}

/** Like `servedName`, for a skill whose served name is already in use. */
export function distinctServedName(name: string): string {
  const digest = shortDigest(name);
  return `${cutName(servedName(name), maxNameLength - digest.length - 1)}-${digest}`;
}

/**
 * Rewrites a SKILL.md so that it conforms to the specification and strict clients can read it. The front matter has one line of
 * JSON per key, which all YAML parsers read equally. Names, descriptions and compatibility are shortened to their limits,
 * `metadata` maps strings to strings, and other keys keep their values unless they are too large. The instructions are
 * unchanged.
 */
export function normalizeSkillDocument(text: string, { name, description }: ServedSkill): string {
  const { document } = parseSkillDocument(text, { file: "SKILL.md", directoryName: name });
  const { license, compatibility, metadata, frontMatter, body } = document;
  const {
    name: _name,
    description: _description,
    license: _license,
    compatibility: _compatibility,
    metadata: _metadata,
    ...others
  } = frontMatter;
  const fields = {
    name,
    description: cutText(description || document.description || name, maxDescriptionLength),
    license,
    compatibility: compatibility && cutText(compatibility, maxCompatibilityLength),
    metadata: metadata && textMap(metadata),
    ...others,
  };
  return `---\n${yamlLines(fields)}---\n\n${body}\n`;
}

function yamlLines(fields: Readonly<Record<string, unknown>>): string {
  let left = maxFrontMatterLength;
  let lines = "";
  for (const [key, value] of Object.entries(fields)) {
    const json = value === undefined ? undefined : boundedJson(value, left);
    const line = `${boundedJson(key, maxFrontMatterLength)}: ${json}\n`;
    if (json === undefined || line.length > left) continue;
    left -= line.length;
    lines += line;
  }
  // Names of the specification need no quotes, and line-based readers expect none.
  return lines.replace(/^"([a-zA-Z][\w-]*)":/gm, "$1:");
}

/** JSON that is also valid YAML. Undefined: longer than the limit, for example because of repeated aliases. */
function boundedJson(value: unknown, limit: number): string | undefined {
  let left = limit;
  const tooLong = new RangeError("too long");
  try {
    const json = JSON.stringify(value, (key, part: unknown) => {
      left -= key.length + (typeof part === "string" ? part.length : 1);
      if (left < 0) throw tooLong;
      return typeof part === "string" ? part.replace(/\p{Surrogate}/gu, "\uFFFD") : part;
    });
    // Characters that JSON allows but YAML treats as unprintable or as line ends.
    return json.replace(
      /[\u007F-\u009F\u2028\u2029\uFEFF\uFFFE\uFFFF]/g,
      (found) => `\\u${found.charCodeAt(0).toString(16).padStart(4, "0")}`,
    );
  } catch (error) {
    if (error === tooLong) return undefined;
    throw error;
  }
}

function textMap(metadata: Readonly<Record<string, unknown>>): Readonly<Record<string, string>> {
  const texts = Object.entries(metadata).flatMap(([key, value]) => {
    const text = typeof value === "object" && value !== null ? boundedJson(value, maxFrontMatterLength) : String(value ?? "");
    return text === undefined ? [] : [[key, text] as const];
  });
  return Object.fromEntries(texts);
}

/** In code points, as in the specification. */
function cutText(text: string, limit: number): string {
  const points = [...text];
  return points.length <= limit
    ? text
    : `${points
        .slice(0, limit - 1)
        .join("")
        .trimEnd()}…`;
}

function cutName(slug: string, limit: number): string {
  return slug.slice(0, limit).replace(/-+$/, "");
}

function shortDigest(text: string): string {
  return sha256(text).slice(0, 8);
}
