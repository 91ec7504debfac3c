import { homedir } from "node:os";
import { join, resolve } from "node:path";
import type { Diagnostic } from "../base/diagnostic.ts";
import type { ResolvedHostOptions } from "../host/host-options.ts";
import type { Bundle } from "../plugin-host/bundles/bundle.ts";
import { hasManifest, isBundleFolder } from "../plugin-host/bundles/find-manifest.ts";
import { loadBundle } from "../plugin-host/bundles/load-bundle.ts";
import { type ReadMarketplace, readMarketplace } from "../plugin-host/bundles/read-marketplace.ts";

export interface BundlesToCheck {
  readonly bundles: readonly Bundle[];
  readonly marketplaces: readonly ReadMarketplace[];
  /** What is to be checked for skills: theirs, and the folders that are no bundle. */
  readonly roots: readonly string[];
  readonly diagnostics: readonly Diagnostic[];
}

type Options = Pick<ResolvedHostOptions, "roots" | "plugins" | "workingDirectory" | "pluginDataDirectory" | "log">;

/**
 * Finds the bundles among folders that are to be checked, and those that the configuration names as plugins; of a
 * marketplace, those that lie in it. Reads them, and makes and runs nothing.
 */
export function findBundles({ roots, plugins, workingDirectory, pluginDataDirectory, log }: Options): BundlesToCheck {
  const marketplaces = roots.flatMap((root) => (hasManifest(root) ? [] : (readMarketplace(root) ?? [])));
  const listed = marketplaces.flatMap((marketplace) => marketplace.plugins.flatMap(({ folder }) => folder ?? []));
  const configured = plugins.flatMap((plugin) => folderOf(plugin, workingDirectory) ?? []).filter(isBundleFolder);
  const folders = [...new Set([...roots.filter(hasManifest), ...listed, ...configured])];
  const options = { workingDirectory, dataDirectory: pluginDataDirectory, log, isDry: true };
  const bundles = folders.map((folder) => loadBundle(folder, options));
  const others = roots.filter((root) => !hasManifest(root) && readMarketplace(root) === undefined);
  return {
    bundles,
    marketplaces,
    roots: [...new Set([...others, ...bundles.flatMap(({ skillDirectories }) => skillDirectories)])],
    diagnostics: [...marketplaces, ...bundles].flatMap(({ diagnostics }) => diagnostics),
  };
}

function folderOf(plugin: ResolvedHostOptions["plugins"][number], workingDirectory: string): string | undefined {
  const specifier = typeof plugin === "object" && "use" in plugin ? plugin.use : plugin;
  if (typeof specifier !== "string") return undefined;
  if (/^~[/\\]/.test(specifier)) return join(homedir(), specifier.slice(2));
  return /^(?:\.{1,2}(?:[/\\]|$)|[/\\]|[a-zA-Z]:[\\/])/.test(specifier) ? resolve(workingDirectory, specifier) : undefined;
}
