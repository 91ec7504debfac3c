import type { Diagnostic } from "../../base/diagnostic.ts";
import { isRecord, type Json } from "../../base/json.ts";
import { createTextReport } from "../skills/text-report.ts";
import { parseJson } from "../text/json-document.ts";
import { createFieldReader, describe, type JsonComplain } from "../text/json-fields.ts";
import { fileTooLarge, maxJsonBytes } from "../text/limits.ts";

/** What can be known of a plugin without running it. */
export interface CodePluginManifest {
  /** If given, what its code must call it. */
  readonly name?: string;
  readonly version?: string;
  readonly engines?: Readonly<Record<string, string>>;
  readonly requires?: Readonly<Record<string, string>>;
  /** JSON Schema of its configuration. */
  readonly configSchema?: Json;
  /** The module that exports it, relative to the manifest. */
  readonly main?: string;
}

/** Where a manifest stands: a file of its own beside the module, or `skillhost.plugin` in a package.json. */
export type CodePluginManifestKind = "own-file" | "package";

/**
 * Reads the manifest of a code plugin. There is none when a package.json says nothing of a plugin. With an error among the
 * diagnostics the plugin must not run: what was meant to hold it back may be what cannot be read.
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
