import { valid, validRange } from "semver";
import type { Diagnostic } from "../../base/diagnostic.ts";
import { isRecord, type Json } from "../../base/json.ts";
import { findHidden, hiddenWords, withoutHidden } from "../../base/untrusted-text.ts";
import { hiddenMessage, hiddenTextCode } from "../text/decode-text.ts";
import { type JsonDocument, parseJson } from "../text/json-document.ts";
import { createFieldReader, describe, type FieldReader, type JsonComplain, pathFault } from "../text/json-fields.ts";
import { fileTooLarge, maxJsonBytes } from "../text/limits.ts";
import { readSkillPermissions, type SkillPermissions } from "./skill-permissions.ts";
import { createTextReport } from "./text-report.ts";

/** The size limit of `skill.json` in bytes. Check the file's size before reading it. */
export const maxManifestBytes: number = maxJsonBytes;

interface SkillAuthor {
  readonly name: string;
  readonly email?: string;
  readonly url?: string;
}

/** A `skill.json`. An absent list means all files of its folder, an empty one means none. */
export interface SkillManifest {
  readonly name: string;
  readonly description?: string;
  readonly displayName?: string;
  /** As written; a warning reports an invalid semantic version. */
  readonly version?: string;
  readonly author?: string | SkillAuthor;
  /** Paths or patterns relative to the skill, in order of use. */
  readonly prompts?: readonly string[];
  /** Paths or patterns relative to the skill, or inline tools, which `toToolJson` reads. */
  readonly tools?: readonly (string | Json)[];
  /** Paths or patterns of modules that define resources. Unlike other lists, an absent one means none. */
  readonly resources?: readonly string[];
  /** As written. */
  readonly mcpServers?: Json;
  /** The required version ranges by program; only `skillhost` is checked. */
  readonly engines?: Readonly<Record<string, string>>;
  /** The required version ranges of other skills. */
  readonly requires?: Readonly<Record<string, string>>;
  /** The access of its tools. */
  readonly permissions?: SkillPermissions;
  readonly promptMode?: "eager" | "on-demand";
  readonly enabled?: boolean;
  /** All other keys. */
  readonly extra: Json;
}

/**
 * Reads a `skill.json`. Undefined if the text is not a JSON object, has no name, or belongs to another product. Otherwise an
 * invalid value is an error and grants less than it might have meant, never more: an invalid list is empty, and an invalid
 * `enabled` is false.
 */
export function parseSkillManifest(text: string, file: string): { manifest?: SkillManifest; diagnostics: readonly Diagnostic[] } {
  if (text.length > maxJsonBytes) return { diagnostics: [fileTooLarge(file, text.length, maxJsonBytes)] };
  const report = createTextReport(text, file);
  const { document, faults } = parseJson(text);
  for (const fault of faults) report.add(fault.severity, fault.code, fault.message, fault.offset);
  const manifest =
    document && readManifest(document, (severity, code, message, path) => report.add(severity, code, message, document.offsetOf(path)));
  return { ...(manifest && { manifest }), diagnostics: report.diagnostics };
}

const knownKeys = [
  "$schema",
  "name",
  "description",
  "displayName",
  "version",
  "author",
  "prompts",
  "tools",
  "resources",
  "mcpServers",
  "engines",
  "requires",
  "permissions",
  "promptMode",
  "enabled",
];

function readManifest({ value }: JsonDocument, complain: JsonComplain): SkillManifest | undefined {
  if (!isRecord(value)) {
    complain("error", "MANIFEST_FIELD_TYPE", `A skill.json must contain an object, not ${describe(value)}. Use { "name": "…" }.`, []);
    return undefined;
  }
  if (isAlexaManifest(value)) {
    complain("info", "MANIFEST_FOREIGN", "This is the manifest of an Alexa skill, which is not supported. It is ignored.", []);
    return undefined;
  }
  const fields = createFieldReader(value, complain, { code: "MANIFEST_FIELD_TYPE", path: [] });
  const extra = readExtra(fields, complain);
  const name = readName(fields, complain);
  const rest = readFields(fields, complain);
  return name === undefined ? undefined : { name, ...rest, extra };
}

function readFields(fields: FieldReader, complain: JsonComplain): Omit<SkillManifest, "name" | "extra"> {
  fields.text("$schema");
  const all = {
    description: readWords(fields, "description", complain),
    displayName: readWords(fields, "displayName", complain),
    version: readVersion(fields, complain),
    author: readAuthor(fields, complain),
    prompts: readList(fields, "prompts", complain, false) as readonly string[] | undefined,
    tools: readList(fields, "tools", complain, true),
    resources: readList(fields, "resources", complain, false) as readonly string[] | undefined,
    mcpServers: fields.object("mcpServers"),
    engines: readRanges(fields, "engines", complain),
    requires: readRanges(fields, "requires", complain),
    permissions: readSkillPermissions(fields, complain),
    promptMode: fields.oneOf("promptMode", ["eager", "on-demand"]),
    enabled: fields.flag("enabled") ?? (fields.has("enabled") ? false : undefined),
  };
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined));
}

function readName(fields: FieldReader, complain: JsonComplain): string | undefined {
  const name = readWords(fields, "name", complain);
  if (name !== undefined && name.trim() !== "") return name.trim();
  const message = 'A skill.json needs a name. Add "name": "…", preferably the name of its folder.';
  if (name !== undefined || !fields.has("name")) complain("error", "MANIFEST_NAME_MISSING", message, ["name"]);
  return undefined;
}

/** The text without hidden characters. */
function readWords(fields: FieldReader, key: string, complain: JsonComplain): string | undefined {
  const text = fields.text(key);
  const found = text === undefined ? undefined : findHidden(text);
  if (found !== undefined) complain("warning", hiddenTextCode, hiddenMessage(`"${key}" has ${hiddenWords(found)}`), [key]);
  return text === undefined ? undefined : withoutHidden(text);
}

function readVersion(fields: FieldReader, complain: JsonComplain): string | undefined {
  const version = fields.text("version");
  if (version === undefined || (valid(version) !== null && version === version.trim())) return version;
  const message = `The version ${JSON.stringify(version.slice(0, 80))} is not a valid semantic version, so no skill can require it. Use three numbers, such as 1.0.0.`;
  complain("warning", "MANIFEST_VERSION", message, ["version"]);
  return version;
}

function readAuthor(fields: FieldReader, complain: JsonComplain): string | SkillAuthor | undefined {
  const value = fields.raw("author");
  if (value === undefined || typeof value === "string") return value;
  if (!isRecord(value)) return fields.wrong("author", `"author" must be a string or an object with a name, not ${describe(value)}.`);
  const author = createFieldReader(value, complain, { code: "MANIFEST_FIELD_TYPE", path: ["author"] });
  const { name, email, url } = { name: author.text("name"), email: author.text("email"), url: author.text("url") };
  if (name === undefined) return author.has("name") ? undefined : fields.wrong("author", 'The object in "author" needs a name.');
  return { name, ...(email !== undefined && { email }), ...(url !== undefined && { url }) };
}

function readList(fields: FieldReader, key: string, complain: JsonComplain, objects: boolean): readonly (string | Json)[] | undefined {
  if (!fields.has(key)) return undefined;
  return (fields.list(key) ?? []).filter((item, index): item is string | Json => {
    if (typeof item !== "string") {
      if (objects && isRecord(item)) return true;
      const expected = objects ? "paths or tool objects" : "paths";
      complain("error", "MANIFEST_FIELD_TYPE", `"${key}" must contain only ${expected}, not ${describe(item)}, which is ignored.`, [
        key,
        index,
      ]);
      return false;
    }
    const fault = pathFault(item);
    if (fault !== undefined) complain("error", fault.code, `In "${key}": ${fault.message}`, [key, index]);
    return fault === undefined;
  });
}

// An invalid range is kept: no version satisfies it, which is the safe result.
function readRanges(fields: FieldReader, key: string, complain: JsonComplain): Readonly<Record<string, string>> | undefined {
  const ranges = fields.texts(key);
  for (const [name, range] of Object.entries(ranges ?? {})) {
    if (validRange(range) !== null) continue;
    const message = `${JSON.stringify(range.slice(0, 80))} for "${name}" in "${key}" is not a valid semver range. Use one such as ^1.2.0 or *.`;
    complain("error", "MANIFEST_RANGE", message, [key, name]);
  }
  return ranges;
}

function readExtra(fields: FieldReader, complain: JsonComplain): Json {
  const keys = fields.others(knownKeys);
  const extra: Record<string, unknown> = Object.create(null);
  for (const key of keys) extra[key] = fields.raw(key);
  if (keys.length > 0) complain("info", "MANIFEST_UNKNOWN_KEYS", unknownKeys(keys), [keys[0]!]);
  return extra;
}

function unknownKeys(keys: readonly string[]): string {
  const shown = keys.slice(0, 20).map((key) => {
    const meant = knownKeys.find((known) => alike(known) === alike(key));
    return `${JSON.stringify(key.slice(0, 60))}${meant === undefined ? "" : ` (did you mean "${meant}"?)`}`;
  });
  const more = keys.length > shown.length ? ` and ${keys.length - shown.length} more` : "";
  return `These keys of skill.json are unknown and have no effect: ${shown.join(", ")}${more}.`;
}

function alike(key: string): string {
  return key
    .slice(0, 60)
    .toLowerCase()
    .replace(/[^a-z]/g, "")
    .replace(/s$/, "");
}

function isAlexaManifest(value: Json): boolean {
  const inner = Object.hasOwn(value, "manifest") ? value["manifest"] : undefined;
  return isRecord(inner) && (Object.hasOwn(inner, "publishingInformation") || Object.hasOwn(inner, "manifestVersion"));
}
