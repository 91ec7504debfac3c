import { errorMessage, HostError } from "../base/errors.ts";

/** Imports a module of this package by its public name. */
export type ImportModule = (specifier: string) => Promise<Readonly<Record<string, unknown>>>;

/** The prefix of the specifiers of bundled plugins. */
const bundledPrefix = "skillhost/plugins/";

/** The bundled plugin with tools for a workspace. */
export const workspacePlugin: string = `${bundledPrefix}workspace-tools`;

/** The bundled plugin that runs tools in Python. */
export const pythonPlugin: string = `${bundledPrefix}python-tools`;

/** The bundled plugin that offers the tools of other machines. */
export const natsPlugin: string = `${bundledPrefix}nats`;

const bundledSpecifiers: ReadonlySet<string> = new Set([
  workspacePlugin,
  pythonPlugin,
  `${bundledPrefix}language-server`,
  `${bundledPrefix}library-docs`,
  natsPlugin,
]);

/** The specifier of the bundled plugin with this name. Undefined: there is none. */
export function bundledSpecifier(name: string): string | undefined {
  const specifier = `${bundledPrefix}${name}`;
  return bundledSpecifiers.has(specifier) ? specifier : undefined;
}

/** Whether a specifier names a bundled plugin. */
export function isBundledSpecifier(specifier: string): boolean {
  return specifier.startsWith(bundledPrefix);
}

/** Whether the tools of a bundled plugin are part of skillhost, too. Those that come from other machines are not: they cannot take a skill's name. */
export function bringsOwnTools(specifier: string | undefined): boolean {
  return specifier !== undefined && isBundledSpecifier(specifier) && specifier !== natsPlugin;
}

/**
 * Imports a bundled plugin through the package's own exports, so that all importers get the same module, in the sources and in
 * the build.
 * @throws HostError `PLUGIN_NOT_FOUND` when there is no such plugin; otherwise what the module throws.
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

/** Node's error for a subpath that is not exported, as opposed to a module that the plugin itself cannot find. */
function isMissing(error: unknown, specifier: string): boolean {
  const code = (error as { readonly code?: unknown } | null)?.code;
  const subpath = specifier.slice("skillhost".length);
  return code === "ERR_PACKAGE_PATH_NOT_EXPORTED" && errorMessage(error).includes(subpath);
}
