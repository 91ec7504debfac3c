import { homedir } from "node:os";
import { join, resolve } from "node:path";
import type { Diagnostic } from "../base/diagnostic.ts";
import type { ResolvedHostOptions } from "../host/host-options.ts";
import type { Bundle } from "../plugin-host/bundles/bundle.ts";
import { hasManifest, isBundleFolder, loadBundle } from "../plugin-host/bundles/load-bundle.ts";
import { entryOf, type ReadMarketplace, readMarketplace } from "../plugin-host/bundles/read-marketplace.ts";

export interface BundlesToCheck {
  readonly bundles: readonly Bundle[];
  readonly marketplaces: readonly ReadMarketplace[];
  /** What is to be checked for skills: the folders themselves, and those of their bundles. */
  readonly roots: readonly string[];
  readonly diagnostics: readonly Diagnostic[];
}

type Options = Pick<ResolvedHostOptions, "roots" | "plugins" | "workingDirectory" | "pluginDataDirectory" | "log">;

/**
 * Finds the bundles among folders that are to be checked, and those that the configuration names as plugins; of a
 * marketplace, those that lie in it. Reads them, and makes and runs nothing. A folder may be several of that, and hold
 * skills besides.
 */
export function findBundles({ roots, plugins, workingDirectory, pluginDataDirectory, log }: Options): BundlesToCheck {
  const options = { workingDirectory, dataDirectory: pluginDataDirectory, log, isDry: true };
  const marketplaces = roots.flatMap((root) => readMarketplace(root) ?? []);
  const listed = marketplaces.flatMap((marketplace) =>
    marketplace.plugins.flatMap((plugin) =>
      plugin.folder === undefined ? [] : [loadBundle(plugin.folder, { ...options, listed: entryOf(marketplace, plugin) })],
    ),
  );
  const configured = plugins.flatMap((plugin) => folderOf(plugin, workingDirectory) ?? []).filter(isBundleFolder);
  const known = new Set(listed.map(({ folder }) => folder));
  const others = [...new Set([...roots.filter(hasManifest), ...configured])].map((folder) => loadBundle(folder, options));
  const bundles = [...listed, ...others.filter(({ folder }) => !known.has(folder))];
  return {
    bundles,
    marketplaces,
    roots: [...new Set([...roots, ...bundles.flatMap(({ skillDirectories }) => skillDirectories)])],
    diagnostics: distinct([...marketplaces, ...bundles].flatMap(({ diagnostics }) => diagnostics)),
  };
}

/** Of plugins that share a folder, each has what is wrong with it. */
function distinct(diagnostics: readonly Diagnostic[]): readonly Diagnostic[] {
  const keyOf = ({ source: _source, ...rest }: Diagnostic): string => JSON.stringify(rest);
  return [...new Map(diagnostics.map((diagnostic) => [keyOf(diagnostic), diagnostic])).values()];
}

function folderOf(plugin: ResolvedHostOptions["plugins"][number], workingDirectory: string): string | undefined {
  const specifier = typeof plugin === "object" && "use" in plugin ? plugin.use : plugin;
  if (typeof specifier !== "string") return undefined;
  if (/^~[/\\]/.test(specifier)) return join(homedir(), specifier.slice(2));
  return /^(?:\.{1,2}(?:[/\\]|$)|[/\\]|[a-zA-Z]:[\\/])/.test(specifier) ? resolve(workingDirectory, specifier) : undefined;
}
