import { errorMessage, HostError } from "../base/errors.ts";

/** Imports a module of this package by the name that anybody would import it by. */
export type ImportModule = (specifier: string) => Promise<Readonly<Record<string, unknown>>>;

/** What the specifiers of plugins that come with this package begin with. */
export const bundledPrefix = "skillhost/plugins/";

/** The tools for a workspace. */
export const workspacePlugin: string = `${bundledPrefix}workspace-tools`;

/** What runs tools in Python. */
export const pythonPlugin: string = `${bundledPrefix}python-tools`;

/** Whether a specifier names a plugin that comes with this package. */
export function isBundledSpecifier(specifier: string): boolean {
  return specifier.startsWith(bundledPrefix);
}

/**
 * Imports a plugin that comes with this package, through the package's own exports: so it is the one that everybody
 * else gets by that name, in the sources and when built.
 * @throws HostError `PLUGIN_NOT_FOUND` when there is none of this name; what the module throws comes as it is.
 */
export async function importBundled(specifier: string, importModule: ImportModule = importOwn): Promise<Readonly<Record<string, unknown>>> {
  try {
    return await importModule(specifier);
  } catch (error) {
    if (!isMissing(error, specifier)) throw error;
    const name = specifier.slice(bundledPrefix.length);
    throw new HostError("PLUGIN_NOT_FOUND", `skillhost has no bundled plugin "${name}": ${errorMessage(error)}`, { cause: error });
  }
}

const importOwn: ImportModule = (specifier) => import(/* @vite-ignore */ specifier);

/** Node's words for a subpath that is not exported. A module that the plugin itself cannot find is another matter. */
function isMissing(error: unknown, specifier: string): boolean {
  const code = (error as { readonly code?: unknown } | null)?.code;
  const subpath = specifier.slice("skillhost".length);
  return code === "ERR_PACKAGE_PATH_NOT_EXPORTED" && errorMessage(error).includes(subpath);
}
