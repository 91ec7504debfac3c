import { join } from "node:path";
import type { Diagnostic } from "../../base/diagnostic.ts";
import { type MarketplacePlugin, marketplacePlaces, parseMarketplace } from "../../formats/plugins/marketplace.ts";
import { maxJsonBytes } from "../../formats/text/limits.ts";
import { BundleFiles } from "./bundle-files.ts";

/** A plugin of a marketplace; `folder` where it lies in the marketplace's own. */
export interface ListedPlugin extends MarketplacePlugin {
  readonly folder?: string;
}

export interface ReadMarketplace {
  readonly name: string;
  /** Absolute. */
  readonly file: string;
  readonly plugins: readonly ListedPlugin[];
  readonly diagnostics: readonly Diagnostic[];
}

/** Reads the list of plugins that a folder holds; undefined: it holds none. Plugins that lie in the folder must stay inside. */
export function readMarketplace(folder: string): ReadMarketplace | undefined {
  const files = new BundleFiles(folder);
  const path = marketplacePlaces.find((place) => files.has(place, "file"));
  if (path === undefined) return undefined;
  const file = join(files.root, path);
  const text = files.read(file, maxJsonBytes * 8);
  const { marketplace, diagnostics } = text === undefined ? { marketplace: undefined, diagnostics: [] } : parseMarketplace(text, file);
  const plugins = (marketplace?.plugins ?? []).map((plugin): ListedPlugin => {
    const found = plugin.source.kind === "local" ? files.find(plugin.source.path, { file, start: plugin.start }) : undefined;
    return found === undefined ? plugin : { ...plugin, folder: found };
  });
  return { name: marketplace?.name ?? "", file, plugins, diagnostics: [...diagnostics, ...files.diagnostics] };
}
