import type { Diagnostic, Position } from "../../base/diagnostic.ts";
import { isRecord, type Json } from "../../base/json.ts";
import { createTextReport } from "../skills/text-report.ts";
import { type JsonDocument, type JsonPath, parseJson } from "../text/json-document.ts";
import { describe, type JsonComplain } from "../text/json-fields.ts";
import { fileTooLarge, maxJsonBytes } from "../text/limits.ts";
import {
  agentPluginsSchema,
  agentPluginsVersion,
  agentPluginsVersions,
  type BundleDialect,
  type ComponentKind,
  type ManifestRules,
  type MetadataType,
  manifestRulesOf,
} from "./plugin-dialects.ts";

/** A plugin's manifest, independent of the dialect. */
export interface PluginManifest {
  readonly dialect: BundleDialect;
  readonly name: string;
  readonly version?: string;
  readonly description?: string;
  readonly displayName?: string;
  /** The declared locations of each kind of component; other kinds are at the default paths of the dialect. */
  readonly components: Components;
  /** Environment variables for its MCP servers that the user must set (Gemini). */
  readonly variables: readonly string[];
}

interface ManifestOptions {
  /** Names the file in diagnostics. */
  readonly file: string;
  /** The dialect by location; a root `plugin.json` that declares the Agent Plugins specification follows that instead. */
  readonly dialect: BundleDialect;
  /** The name of the plugin's folder, for dialects in which the name is optional. */
  readonly folderName: string;
}

/**
 * Reads a plugin's manifest. Undefined if the text is not a JSON object, lacks a required key of its dialect, or breaks a rule
 * that the dialect treats as fatal. All other faults are diagnostics, and the remaining fields are used. Never throws.
 */
export function parsePluginManifest(
  text: string,
  options: ManifestOptions,
): { manifest?: PluginManifest; dialect: BundleDialect; diagnostics: readonly Diagnostic[] } {
  const { file } = options;
  if (text.length > maxJsonBytes) return { dialect: options.dialect, diagnostics: [fileTooLarge(file, text.length, maxJsonBytes)] };
  const report = createTextReport(text, file);
  const { document, faults } = parseJson(text);
  for (const fault of faults) report.add(fault.severity, fault.code, fault.message, fault.offset);
  if (document === undefined) return { dialect: options.dialect, diagnostics: [...report.diagnostics, ...linkStub(text, file)] };
  const dialect = dialectOf(options.dialect, document);
  const complain: JsonComplain = (severity, code, message, path) => report.add(severity, code, message, document.offsetOf(path));
  const startOf = (path: JsonPath): Position | undefined => {
    const offset = document.offsetOf(path);
    return offset === undefined ? undefined : report.position(offset);
  };
  const manifest = readManifest(document.value, { ...options, dialect, startOf }, complain);
  return { ...(manifest && { manifest }), dialect, diagnostics: report.diagnostics };
}

type Placed = ManifestOptions & { readonly startOf: (path: JsonPath) => Position | undefined };

function dialectOf(dialect: BundleDialect, { value }: JsonDocument): BundleDialect {
  const schema = isRecord(value) && Object.hasOwn(value, "$schema") ? value["$schema"] : undefined;
  return dialect === "copilot" && agentPluginsVersion(schema, "plugin") !== undefined ? "agent-plugins" : dialect;
}

function readManifest(value: unknown, { dialect, folderName, startOf }: Placed, complain: JsonComplain): PluginManifest | undefined {
  if (!isRecord(value)) {
    complain("error", "PLUGIN_MANIFEST_TYPE", `A plugin's manifest must be an object, not ${describe(value)}. Use { "name": "…" }.`, []);
    return undefined;
  }
  const rules = manifestRulesOf(dialect);
  const isOfKnownVersion = dialect !== "agent-plugins" || checkAgentPluginsSchema(value, complain);
  const metadata = readMetadata(value, { rules, folderName, dialect }, complain);
  const components = readComponents(value, { rules, startOf }, complain);
  if (!isOfKnownVersion || metadata === undefined || components === undefined) return undefined;
  return { dialect, ...metadata, components, variables: dialect === "gemini" ? readVariables(value) : [] };
}

function readVariables(value: Json): readonly string[] {
  const settings: unknown = Object.hasOwn(value, "settings") ? value["settings"] : undefined;
  return (Array.isArray(settings) ? settings.slice(0, 100) : []).flatMap((setting: unknown) => {
    const name: unknown = isRecord(setting) && Object.hasOwn(setting, "envVar") ? setting["envVar"] : undefined;
    return typeof name === "string" && /^[A-Za-z_]\w{0,200}$/.test(name) ? [name] : [];
  });
}

/** A symbolic link after a checkout without link support: a file that contains the path of the target. */
function linkStub(text: string, file: string): readonly Diagnostic[] {
  if (!/^\.{1,2}\/\S{1,500}$/.test(text.trim())) return [];
  const message = `This file contains only the target of a symbolic link, ${text.trim()}. Check it out with symbolic links enabled, or copy the file.`;
  return [{ severity: "error", code: "PLUGIN_MANIFEST_LINK", message, file }];
}

interface Metadata {
  readonly name: string;
  readonly version?: string;
  readonly description?: string;
  readonly displayName?: string;
}

/** The location of a kind of component: a path, or inline in the manifest. */
export type ComponentSource =
  | { readonly kind: "path"; readonly path: string; readonly start: Position | undefined }
  | { readonly kind: "inline"; readonly value: Json; readonly at: JsonPath };

export type Components = Readonly<Partial<Record<ComponentKind, readonly ComponentSource[]>>>;

interface ComponentOptions {
  readonly rules: ManifestRules;
  /** The position of a part of the manifest in its text. */
  readonly startOf: (path: JsonPath) => Position | undefined;
  /** The path of the object in its document. Absent: the document itself. */
  readonly base?: JsonPath;
}

interface MetadataOptions {
  readonly rules: ManifestRules;
  readonly folderName: string;
  readonly dialect: BundleDialect;
}

/** Whether a manifest has a supported version of the Agent Plugins specification. */
function checkAgentPluginsSchema(value: Json, complain: JsonComplain): boolean {
  if (value["$schema"] === agentPluginsSchema("plugin")) return true;
  const version = agentPluginsVersion(value["$schema"], "plugin");
  const message =
    version !== undefined && !agentPluginsVersions.includes(version)
      ? `This plugin requires version ${version} of the Agent Plugins specification; supported: ${agentPluginsVersions.join(", ")}.`
      : `"$schema" must be exactly "${agentPluginsSchema("plugin")}".`;
  complain("error", "PLUGIN_SCHEMA_UNKNOWN", `${message} The plugin is not loaded.`, ["$schema"]);
  return false;
}

/** Reads the descriptive fields of a manifest, and reports keys without effect. Undefined: the plugin is refused. */
function readMetadata(value: Json, options: MetadataOptions, complain: JsonComplain): Metadata | undefined {
  const { rules, dialect } = options;
  const read: Record<string, string> = {};
  let isSound = true;
  for (const [key, type] of Object.entries(rules.metadata)) {
    const given = own(value, key);
    const fault = given === undefined ? undefined : typeFault(given, type, dialect);
    if (fault === undefined && typeof given === "string") read[key] = given;
    if (fault === undefined) continue;
    isSound &&= !rules.isStrict;
    const effect = rules.isStrict ? "so the plugin is not loaded, as in its own client" : "so it is ignored";
    complain(rules.isStrict ? "error" : "warning", "PLUGIN_FIELD_TYPE", `"${key}" must be ${fault}, ${effect}.`, [key]);
  }
  const name = readName(value, options, complain);
  for (const key of rules.required.filter((required) => required !== "name" && required !== "$schema")) {
    if (read[key] !== undefined) continue;
    complain("error", "PLUGIN_FIELD_MISSING", `The manifest has no "${key}", which is required. Add it.`, []);
    isSound = false;
  }
  reportUnread(value, options, complain);
  if (name === undefined || !isSound) return undefined;
  const { version, description, displayName } = read;
  return { name, ...(version && { version }), ...(description && { description }), ...(displayName && { displayName }) };
}

function readName(value: Json, { rules, folderName }: MetadataOptions, complain: JsonComplain): string | undefined {
  const given = own(value, "name") ?? (Object.hasOwn(rules.metadata, "id") ? own(value, "id") : undefined);
  if (given === undefined && !rules.required.includes("name")) return legalName(folderName);
  if (typeof given === "string" && given.length <= 64 && rules.name.test(given)) return given;
  const what = given === undefined ? "has no name" : `has ${describe(given)} as its name`;
  const fallback = rules.required.includes("name") || typeof given !== "string" ? undefined : legalName(given);
  const effect = fallback === undefined ? "The plugin is not loaded." : `The name "${fallback}" is used instead.`;
  const severity = fallback === undefined ? "error" : "warning";
  complain(severity, "PLUGIN_NAME", `The manifest ${what}; a name must be ${rules.nameWords}. ${effect}`, ["name"]);
  return fallback;
}

/** The most similar name that is valid in filters and messages. */
function legalName(text: string): string | undefined {
  const name = text
    .replace(/[^\w.-]+/g, "-")
    .replace(/^[^a-zA-Z0-9]+|-+$/g, "")
    .slice(0, 64);
  return name === "" ? undefined : name;
}

const typeWords: Readonly<Record<MetadataType, string>> = {
  text: "text",
  texts: "an array of strings",
  author: "an object with a name",
  repository: "text",
};

function typeFault(value: unknown, type: MetadataType, dialect: BundleDialect): string | undefined {
  const isRight =
    type === "author"
      ? isAuthor(value, dialect)
      : type === "texts"
        ? Array.isArray(value) && value.every((item) => typeof item === "string")
        : typeof value === "string" || (type === "repository" && isRecord(value));
  return isRight ? undefined : `${typeWords[type]}, not ${describe(value)}`;
}

function isAuthor(value: unknown, dialect: BundleDialect): boolean {
  if (!isRecord(value)) return dialect !== "agent-plugins" && typeof value === "string";
  if (dialect !== "agent-plugins") return true;
  return Object.entries(value).every(([key, field]) => ["name", "email", "url"].includes(key) && typeof field === "string");
}

function reportUnread(value: Json, { rules, dialect }: MetadataOptions, complain: JsonComplain): void {
  const known = new Set(["name", ...Object.keys(rules.metadata), ...Object.keys(rules.components), ...rules.ignored]);
  const others = Object.keys(value).filter((key) => !known.has(key));
  const unsupported = others.filter((key) => rules.unsupported.includes(key));
  if (unsupported.length > 0)
    complain("info", "PLUGIN_KEY_UNSUPPORTED", `${listed(unsupported)} of the manifest has no effect here.`, [unsupported[0]!]);
  const unknown = others.filter((key) => !rules.unsupported.includes(key));
  if (unknown.length > 0)
    complain("warning", "PLUGIN_KEY_UNKNOWN", `${listed(unknown)} is not a key of the manifest and has no effect. Remove it.`, [
      unknown[0]!,
    ]);
  if (dialect === "agent-plugins" && own(value, "extensions") !== undefined && !isRecord(value["extensions"]))
    complain("warning", "PLUGIN_FIELD_TYPE", `"extensions" must be an object, not ${describe(value["extensions"])}. It is ignored.`, [
      "extensions",
    ]);
}

function listed(keys: readonly string[]): string {
  const shown = keys.slice(0, 20).map((key) => JSON.stringify(key.slice(0, 60)));
  return shown.join(", ") + (keys.length > 20 ? ` and ${keys.length - 20} more` : "");
}

/** Reads the locations of components. Undefined: the plugin is refused because of a value of the wrong type. */
export function readComponents(value: Json, options: ComponentOptions, complain: JsonComplain): Components | undefined {
  const { rules, base = [] } = options;
  const components: Partial<Record<ComponentKind, readonly ComponentSource[]>> = {};
  let isSound = true;
  for (const [key, kind] of Object.entries(rules.components)) {
    const given = own(value, key);
    if (given === undefined) continue;
    const found = readSources(given, [...base, key], kind);
    if (found === undefined) {
      isSound &&= !rules.isStrict;
      const effect = rules.isStrict ? "so the plugin is not loaded, as in its own client" : "so it is ignored";
      complain("error", "PLUGIN_FIELD_TYPE", `"${key}" must be ${shapeWords(kind)}, not ${describe(given)}, ${effect}.`, [...base, key]);
    }
    const sources = (found ?? []).slice(0, maxSources).flatMap((source) => place(source, options, complain) ?? []);
    components[kind] = [...(components[kind] ?? []), ...sources];
  }
  return isSound ? components : undefined;
}

interface FoundSource {
  readonly value: string | Json;
  readonly at: JsonPath;
}

const maxSources = 1_000;
const inlineKinds: ReadonlySet<ComponentKind> = new Set(["hooks", "mcpServers"]);

function readSources(given: unknown, at: JsonPath, kind: ComponentKind): readonly FoundSource[] | undefined {
  if (typeof given === "string") return [{ value: given, at }];
  if (isRecord(given)) return inlineKinds.has(kind) ? [{ value: given, at }] : undefined;
  if (!Array.isArray(given)) return undefined;
  const items = given.slice(0, maxSources).map((item: unknown, index) => {
    return Array.isArray(item) ? undefined : readSources(item, [...at, index], kind);
  });
  return items.includes(undefined) ? undefined : (items as (readonly FoundSource[])[]).flat();
}

function shapeWords(kind: ComponentKind): string {
  return inlineKinds.has(kind) ? "a path, an array of paths or an object" : "a path or an array of paths";
}

function place({ value, at }: FoundSource, { rules, startOf }: ComponentOptions, complain: JsonComplain): ComponentSource | undefined {
  if (typeof value !== "string") return { kind: "inline", value, at };
  return isWellFormed(value, at, rules, complain) ? { kind: "path", path: value, start: startOf(at) } : undefined;
}

function isWellFormed(path: string, at: JsonPath, { dotSlash }: ManifestRules, complain: JsonComplain): boolean {
  if (dotSlash === "free" || path === "." || path.startsWith("./") || !/^[^/\\~]/.test(path)) return true;
  const shown = JSON.stringify(path.slice(0, 200));
  if (dotSlash === "required") complain("error", "PLUGIN_PATH_FORM", `The path ${shown} must begin with "./", so it is ignored.`, at);
  else complain("warning", "PLUGIN_PATH_FORM", `Put "./" before the path ${shown}: its own client may reject it.`, at);
  return dotSlash !== "required";
}

function own(object: Json, key: string): unknown {
  return Object.hasOwn(object, key) ? object[key] : undefined;
}
