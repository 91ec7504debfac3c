import type { Diagnostic, Position } from "../../base/diagnostic.ts";
import { createTextReport } from "../skills/text-report.ts";
import { type JsonDocument, type JsonPath, parseJson } from "../text/json-document.ts";
import { describe, isJsonObject, type JsonComplain, type JsonObject } from "../text/json-fields.ts";
import { fileTooLarge, maxJsonBytes } from "../text/limits.ts";
import { agentPluginsVersion, type BundleDialect, manifestRulesOf } from "./plugin-dialects.ts";
import { type Components, checkAgentPluginsSchema, readComponents, readMetadata } from "./plugin-manifest-fields.ts";

/** A plugin's manifest, whosever it is. */
export interface PluginManifest {
  readonly dialect: BundleDialect;
  readonly name: string;
  readonly version?: string;
  readonly description?: string;
  readonly displayName?: string;
  /** What the manifest says of each kind; a kind that it does not mention lies where its dialect has it. */
  readonly components: Components;
  /** Environment variables that a person is to set, which its MCP servers get (Gemini). */
  readonly variables: readonly string[];
}

export interface ManifestOptions {
  /** Names the file in diagnostics. */
  readonly file: string;
  /** Whose place it lies at; a root `plugin.json` that declares the Agent Plugins specification follows that. */
  readonly dialect: BundleDialect;
  /** The name of the plugin's folder, for dialects where the name may be left out. */
  readonly folderName: string;
}

/**
 * Reads a plugin's manifest. There is none when the text is no JSON object, lacks what its dialect requires, or breaks
 * its rules where those say that this is fatal; everything else is a diagnostic, and the rest counts. Never throws.
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
  const schema = isJsonObject(value) && Object.hasOwn(value, "$schema") ? value["$schema"] : undefined;
  return dialect === "copilot" && agentPluginsVersion(schema, "plugin") !== undefined ? "agent-plugins" : dialect;
}

function readManifest(value: unknown, { dialect, folderName, startOf }: Placed, complain: JsonComplain): PluginManifest | undefined {
  if (!isJsonObject(value)) {
    complain("error", "PLUGIN_MANIFEST_TYPE", `A plugin's manifest must be an object, not ${describe(value)}. Write { "name": "…" }.`, []);
    return undefined;
  }
  const rules = manifestRulesOf(dialect);
  const isOfKnownVersion = dialect !== "agent-plugins" || checkAgentPluginsSchema(value, complain);
  const metadata = readMetadata(value, { rules, folderName, dialect }, complain);
  const components = readComponents(value, { rules, startOf }, complain);
  if (!isOfKnownVersion || metadata === undefined || components === undefined) return undefined;
  return { dialect, ...metadata, components, variables: dialect === "gemini" ? readVariables(value) : [] };
}

function readVariables(value: JsonObject): readonly string[] {
  const settings: unknown = Object.hasOwn(value, "settings") ? value["settings"] : undefined;
  return (Array.isArray(settings) ? settings.slice(0, 100) : []).flatMap((setting: unknown) => {
    const name: unknown = isJsonObject(setting) && Object.hasOwn(setting, "envVar") ? setting["envVar"] : undefined;
    return typeof name === "string" && /^[A-Za-z_]\w{0,200}$/.test(name) ? [name] : [];
  });
}

/** What a checkout without symbolic links leaves of one: a file whose text is the way to another. */
function linkStub(text: string, file: string): readonly Diagnostic[] {
  if (!/^\.{1,2}\/\S{1,500}$/.test(text.trim())) return [];
  const message = `This file is only the text of a symbolic link, to ${text.trim()}. Check it out with links, or copy the file.`;
  return [{ severity: "error", code: "PLUGIN_MANIFEST_LINK", message, file }];
}
