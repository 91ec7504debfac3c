import type { Diagnostic, Position } from "../../base/diagnostic.ts";
import { isRecord, type Json } from "../../base/json.ts";
import { createTextReport } from "../skills/text-report.ts";
import { type JsonPath, parseJson } from "../text/json-document.ts";
import { describe, type JsonComplain } from "../text/json-fields.ts";
import { fileTooLarge, maxJsonBytes } from "../text/limits.ts";
import { manifestRulesOf } from "./plugin-dialects.ts";
import { type Components, readComponents } from "./plugin-manifest.ts";

/** The source of a listed plugin. */
export type MarketplaceSource =
  | { readonly kind: "local"; readonly path: string }
  | { readonly kind: "github"; readonly repo: string; readonly ref?: string; readonly sha?: string }
  | { readonly kind: "url"; readonly url: string; readonly ref?: string; readonly sha?: string }
  | { readonly kind: "git-subdir"; readonly url: string; readonly path: string; readonly ref?: string; readonly sha?: string }
  | { readonly kind: "npm"; readonly package: string; readonly version?: string; readonly registry?: string }
  | { readonly kind: "archive"; readonly url: string; readonly sha256?: string };

export interface MarketplacePlugin {
  readonly name: string;
  readonly source: MarketplaceSource;
  readonly version?: string;
  readonly description?: string;
  /** The entry's fields about the plugin's components, as in a manifest of Claude Code. */
  readonly components: Components;
  /** False: the entry is the complete definition of the plugin. True: it extends the plugin's manifest. */
  readonly isStrict: boolean;
  /** The position of its entry. */
  readonly start?: Position;
}

export interface Marketplace {
  readonly name: string;
  readonly owner?: string;
  /** In the order of the file; names are unique. */
  readonly plugins: readonly MarketplacePlugin[];
}

/** The paths of marketplace files in a folder, in the order of the search. */
export const marketplacePlaces: readonly string[] = [
  "marketplace.json",
  ".plugin/marketplace.json",
  ".github/plugin/marketplace.json",
  ".claude-plugin/marketplace.json",
  ".agents/plugins/marketplace.json",
  ".cursor-plugin/marketplace.json",
];

const maxPlugins = 10_000;

/** Reads a list of plugins. An invalid entry is an error and does not affect the others. Never throws. */
export function parseMarketplace(text: string, file: string): { marketplace?: Marketplace; diagnostics: readonly Diagnostic[] } {
  if (text.length > maxJsonBytes * 8) return { diagnostics: [fileTooLarge(file, text.length, maxJsonBytes * 8)] };
  const report = createTextReport(text, file);
  const { document, faults } = parseJson(text);
  for (const fault of faults) report.add(fault.severity, fault.code, fault.message, fault.offset);
  if (document === undefined) return { diagnostics: report.diagnostics };
  const startOf = (path: JsonPath): Position | undefined => {
    const offset = document.offsetOf(path);
    return offset === undefined ? undefined : report.position(offset);
  };
  const complain: JsonComplain = (severity, code, message, path) => report.add(severity, code, message, document.offsetOf(path));
  const marketplace = readMarketplace(document.value, startOf, complain);
  return { ...(marketplace && { marketplace }), diagnostics: report.diagnostics };
}

function readMarketplace(
  value: unknown,
  startOf: (path: JsonPath) => Position | undefined,
  complain: JsonComplain,
): Marketplace | undefined {
  if (!isRecord(value) || !Array.isArray(own(value, "plugins"))) {
    const what = isRecord(value) ? 'needs "plugins", an array' : `must be an object, not ${describe(value)}`;
    complain("error", "MARKETPLACE_TYPE", `A marketplace ${what}. Use { "name": "…", "plugins": [] }.`, []);
    return undefined;
  }
  const name = textOf(value, "name");
  if (name === undefined) complain("error", "MARKETPLACE_NAME", 'A marketplace needs a "name".', []);
  const owner = own(value, "owner");
  const ownerName = isRecord(owner) ? textOf(owner, "name") : undefined;
  const metadata = own(value, "metadata");
  const root = isRecord(metadata) ? textOf(metadata, "pluginRoot") : undefined;
  const plugins = readPlugins(value["plugins"] as readonly unknown[], { root, startOf }, complain);
  return { name: name ?? "", ...(ownerName !== undefined && { owner: ownerName }), plugins };
}

interface PluginsOptions {
  /** The base of bare paths. */
  readonly root: string | undefined;
  readonly startOf: (path: JsonPath) => Position | undefined;
}

function readPlugins(entries: readonly unknown[], { root, startOf }: PluginsOptions, complain: JsonComplain): readonly MarketplacePlugin[] {
  if (entries.length > maxPlugins)
    complain("error", "MARKETPLACE_TOO_MANY", `${entries.length} plugins are listed, but only the first ${maxPlugins} are read.`, [
      "plugins",
    ]);
  const taken = new Set<string>();
  return entries.slice(0, maxPlugins).flatMap((entry, index) => {
    const at = ["plugins", index];
    const refuse = (message: string): [] => {
      complain("error", "MARKETPLACE_ENTRY", `${message} The entry is ignored.`, at);
      return [];
    };
    if (!isRecord(entry)) return refuse(`An entry must be an object, not ${describe(entry)}.`);
    const name = textOf(entry, "name");
    if (name === undefined) return refuse('An entry needs a "name".');
    const shown = JSON.stringify(name.slice(0, 100));
    if (taken.has(name)) return refuse(`Two entries are named ${shown}; the first is used.`);
    const source = readSource(own(entry, "source"), root);
    if (typeof source === "string") return refuse(`The entry ${shown} ${source}.`);
    const components = readComponents(entry, { rules: manifestRulesOf("claude"), startOf, base: at }, complain);
    if (components === undefined) return refuse(`The entry ${shown} has a field of the wrong type.`);
    taken.add(name);
    const [version, description, start] = [textOf(entry, "version"), textOf(entry, "description"), startOf(at)];
    return [
      {
        name,
        source,
        ...(version !== undefined && { version }),
        ...(description !== undefined && { description }),
        components,
        isStrict: own(entry, "strict") !== false,
        ...(start && { start }),
      },
    ];
  });
}

/** The parsed source, or a description of its fault. */
function readSource(source: unknown, root: string | undefined): MarketplaceSource | string {
  if (typeof source === "string") {
    if (source.trim() === "") return 'has an empty "source"';
    if (/^(?:https?|git|ssh):\/\/|^git@/.test(source)) return { kind: "url", url: source };
    // A bare path is relative to the plugin root of the marketplace.
    const isBare = root !== undefined && !/^\.{0,2}\//.test(source) && source !== ".";
    return { kind: "local", path: isBare ? `${root.replace(/\/+$/, "")}/${source}` : source };
  }
  if (!isRecord(source)) return `needs a "source" that is a string or an object, not ${describe(source)}`;
  const kind = textOf(source, "source");
  const texts = (required: readonly string[], optional: readonly string[]): Record<string, string> | string => {
    const missing = required.find((key) => textOf(source, key) === undefined);
    if (missing !== undefined) return `has a source "${kind}" without "${missing}"`;
    return Object.fromEntries(
      [...required, ...optional].flatMap((key) => (textOf(source, key) === undefined ? [] : [[key, textOf(source, key)!]])),
    );
  };
  const read = kind === undefined || !Object.hasOwn(sourceKeys, kind) ? undefined : texts(...sourceKeys[kind]!);
  if (read === undefined) return `has an unsupported kind of source (${describe(own(source, "source"))})`;
  return typeof read === "string" ? read : ({ kind, ...read } as unknown as MarketplaceSource);
}

const sourceKeys: Readonly<Record<string, readonly [required: readonly string[], optional: readonly string[]]>> = {
  local: [["path"], []],
  github: [["repo"], ["ref", "sha"]],
  url: [["url"], ["ref", "sha"]],
  "git-subdir": [
    ["url", "path"],
    ["ref", "sha"],
  ],
  npm: [["package"], ["version", "registry"]],
  archive: [["url"], ["sha256"]],
};

function textOf(object: Json, key: string): string | undefined {
  const value = own(object, key);
  return typeof value === "string" && value !== "" && !value.includes("\0") ? value : undefined;
}

function own(object: Json, key: string): unknown {
  return Object.hasOwn(object, key) ? object[key] : undefined;
}
