import type { Diagnostic } from "../../base/diagnostic.ts";
import { isRecord, type Json } from "../../base/json.ts";
import { createTextReport } from "../skills/text-report.ts";
import { parseJson } from "../text/json-document.ts";
import { createFieldReader, describe, type JsonComplain } from "../text/json-fields.ts";
import { fileTooLarge, maxJsonBytes } from "../text/limits.ts";

/** The static description of a plugin. */
export interface CodePluginManifest {
  /** If present, the plugin's code must use the same name. */
  readonly name?: string;
  readonly version?: string;
  readonly engines?: Readonly<Record<string, string>>;
  readonly requires?: Readonly<Record<string, string>>;
  /** JSON Schema of its configuration. */
  readonly configSchema?: Json;
  /** The module that exports it, relative to the manifest. */
  readonly main?: string;
}

/** The location of a manifest: a separate file beside the module, or `skillhost.plugin` in a package.json. */
export type CodePluginManifestKind = "own-file" | "package";

/**
 * Reads the manifest of a code plugin. Undefined if a package.json does not declare a plugin. If the diagnostics contain an
 * error, the plugin must not run, because the unreadable part may restrict it.
 */
export function parseCodePluginManifest(
  text: string,
  file: string,
  kind: CodePluginManifestKind,
): { readonly manifest?: CodePluginManifest; readonly diagnostics: readonly Diagnostic[] } {
  if (text.length > maxJsonBytes) return { diagnostics: [fileTooLarge(file, text.length, maxJsonBytes)] };
  const report = createTextReport(text, file);
  const { document, faults } = parseJson(text);
  for (const fault of faults) report.add(fault.severity, fault.code, fault.message, fault.offset);
  if (document === undefined) return { diagnostics: report.diagnostics };
  const path = kind === "package" ? ["skillhost", "plugin"] : [];
  const found = kind === "package" ? memberAt(document.value, path) : document.value;
  if (found === undefined) return { diagnostics: [] };
  const complain: JsonComplain = (severity, code, message, at) => report.add(severity, code, message, document.offsetOf([...path, ...at]));
  const version = kind === "package" ? memberAt(document.value, ["version"]) : undefined;
  const manifest = readManifest(found, typeof version === "string" ? version : undefined, complain);
  return { ...(manifest && { manifest }), diagnostics: report.diagnostics };
}

const keys = ["$schema", "name", "version", "engines", "requires", "configSchema", "main"];

function readManifest(value: unknown, packageVersion: string | undefined, complain: JsonComplain): CodePluginManifest | undefined {
  const code = "PLUGIN_MANIFEST";
  if (!isRecord(value)) {
    complain("error", code, `A plugin's manifest must be an object, not ${describe(value)}.`, []);
    return undefined;
  }
  const fields = createFieldReader(value, complain, { code, path: [] });
  for (const key of fields.others(keys)) {
    const known = keys.slice(1).join(", ");
    complain("info", code, `"${key.slice(0, 60)}" is not a key of a plugin manifest. The keys are ${known}.`, [key]);
  }
  const all = {
    name: fields.text("name"),
    version: fields.text("version") ?? packageVersion,
    engines: fields.texts("engines"),
    requires: fields.texts("requires"),
    configSchema: fields.object("configSchema"),
    main: fields.text("main"),
  };
  return Object.fromEntries(Object.entries(all).filter(([, field]) => field !== undefined));
}

function memberAt(value: unknown, path: readonly string[]): unknown {
  let at = value;
  for (const key of path) at = isRecord(at) && Object.hasOwn(at, key) ? at[key] : undefined;
  return at;
}
