import { basename, join } from "node:path";
import type { Diagnostic } from "../../base/diagnostic.ts";
import { isRecord } from "../../base/json.ts";
import { type MarketplacePlugin, marketplacePlaces, parseMarketplace } from "../../formats/plugins/marketplace.ts";
import { parseJson } from "../../formats/text/json-document.ts";
import { maxJsonBytes } from "../../formats/text/limits.ts";
import { BundleFiles, joinedSources, type ListedEntry, placedIn } from "./bundle.ts";

/** A plugin of a marketplace. `folder`: its path, if the marketplace's own folder contains it. */
export interface ListedPlugin extends MarketplacePlugin {
  readonly folder?: string;
}

export interface ReadMarketplace {
  readonly name: string;
  /** Absolute. */
  readonly folder: string;
  /** Absolute. */
  readonly file: string;
  readonly text: string;
  readonly plugins: readonly ListedPlugin[];
  readonly diagnostics: readonly Diagnostic[];
}

/** Reads the marketplace of a folder. Undefined: it has none. Paths of plugins must stay inside the folder. */
export function readMarketplace(folder: string, files: BundleFiles = new BundleFiles(folder)): ReadMarketplace | undefined {
  const path = marketplacePlaces.find((place) => files.has(place, "file"));
  if (path === undefined) return undefined;
  const file = join(files.root, path);
  const text = files.read(file, maxJsonBytes * 8);
  const { marketplace, diagnostics } = text === undefined ? { marketplace: undefined, diagnostics: [] } : parseMarketplace(text, file);
  const plugins = (marketplace?.plugins ?? []).map((plugin): ListedPlugin => {
    const found = plugin.source.kind === "local" ? files.find(plugin.source.path, { file, start: plugin.start }) : undefined;
    return found === undefined ? plugin : { ...plugin, folder: found };
  });
  const { root } = files;
  return {
    name: marketplace?.name ?? "",
    folder: root,
    file,
    text: text ?? "",
    plugins,
    diagnostics: [...diagnostics, ...files.diagnostics],
  };
}

/** The entry of a plugin in a marketplace. */
export function entryOf({ folder, file, text }: Pick<ReadMarketplace, "folder" | "file" | "text">, plugin: ListedPlugin): ListedEntry {
  const { name, version, description, components, isStrict } = plugin;
  // As in Claude Code, an entry for the marketplace's own folder has only the skills that it names, so that several can share it.
  const replacesSkills = plugin.folder === folder && components.skills !== undefined;
  return { name, version, description, given: placedIn(components, file, text), isStrict, replacesSkills, file };
}

/** An entry of a marketplace in a form that can be stored with a copy of the plugin's folder. */
export interface StoredEntry {
  /** A marketplace with this plugin only. */
  readonly text: string;
  /** The marketplace's file, for diagnostics. */
  readonly file: string;
  /** Whether the plugin's folder was the marketplace's own. */
  readonly isOwnFolder: boolean;
}

/** Converts the entry of a plugin for storage. */
export function toStoredEntry({ folder, file, text }: ReadMarketplace, plugin: ListedPlugin): StoredEntry {
  const value = parseJson(text).document?.value;
  const plugins = isRecord(value) && Array.isArray(value["plugins"]) ? (value["plugins"] as readonly unknown[]) : [];
  const entry = plugins.find((one) => isRecord(one) && String(one["name"]).trim() === plugin.name);
  const { source: _source, ...rest } = isRecord(entry) ? entry : { name: plugin.name };
  return {
    text: JSON.stringify({ name: plugin.name, plugins: [{ ...rest, source: "./" }] }),
    file,
    isOwnFolder: plugin.folder === folder,
  };
}

/** Restores a stored entry. Undefined: it is not valid. */
export function fromStoredEntry({ text, file, isOwnFolder }: StoredEntry, folder: string): ListedEntry | undefined {
  const [plugin] = parseMarketplace(text, file).marketplace?.plugins ?? [];
  return plugin && entryOf({ folder, file, text }, isOwnFolder ? { ...plugin, folder } : plugin);
}

/** Joins the entries of a folder's own marketplace for the folder itself. Undefined: there are none. */
export function ownEntry(files: BundleFiles): ListedEntry | undefined {
  const marketplace = readMarketplace(files.root, new BundleFiles(files.root, { seen: files.seen }));
  const own = marketplace?.plugins.filter(({ folder }) => folder === files.root) ?? [];
  if (marketplace === undefined || own.length === 0) return undefined;
  const entries = own.map((plugin) => entryOf(marketplace, plugin));
  if (entries.length === 1) return entries[0];
  return {
    name: marketplace.name || basename(files.root),
    version: undefined,
    description: undefined,
    given: entries.map(({ given }) => given).reduce(joinedSources),
    isStrict: entries.every(({ isStrict }) => isStrict),
    replacesSkills: entries.every(({ replacesSkills }) => replacesSkills),
    file: marketplace.file,
  };
}
