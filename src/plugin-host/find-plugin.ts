import { homedir } from "node:os";
import { join, resolve } from "node:path";
import type { Diagnostic } from "../base/diagnostic.ts";
import { errorMessage, HostError } from "../base/errors.ts";
import { importNative } from "../io/module-loader/native-modules.ts";
import { PackageConfigs } from "../io/module-loader/package-config.ts";
import { ModuleResolver, type Resolved } from "../io/module-loader/resolve-module.ts";
import type { ModuleLoader } from "../io/module-loader.ts";
import type { OwnedScope } from "../io/scope.ts";
import { type ImportModule, importBundled, isBundledSpecifier } from "./bundled.ts";
import { isPlugin, type Plugin } from "./define-plugin.ts";

export interface FindOptions {
  readonly workingDirectory: string;
  /** Runs local files. */
  readonly loader: ModuleLoader;
  /** Runs plugins that come with this package. */
  readonly importModule?: ImportModule | undefined;
  readonly onDiagnostic: (diagnostic: Diagnostic) => void;
}

type Exports = Readonly<Record<string, unknown>>;

/**
 * The plugin that a module specifier leads to: a path (relative to the working directory, absolute, with `~`, or a
 * `file:` address), a package as it is installed for the working directory, or `skillhost/plugins/<name>`. `scope` is
 * the life of what a local module opens while it is evaluated.
 * @throws HostError `PLUGIN_NOT_FOUND`, `PLUGIN_INVALID`; what the module itself throws comes as it is.
 */
export async function findPlugin(specifier: string, options: FindOptions, scope: OwnedScope): Promise<Plugin> {
  return pluginOf(specifier, await load(specifier, options, scope));
}

async function load(specifier: string, options: FindOptions, scope: OwnedScope): Promise<Exports> {
  if (isBundledSpecifier(specifier)) return importBundled(specifier, options.importModule);
  const resolved = locate(specifier, options);
  if (resolved.kind === "local") return (await options.loader.load(resolved.file, scope)).exports;
  if (resolved.kind === "native") return importNative(resolved.file);
  throw new HostError("PLUGIN_NOT_FOUND", `"${specifier}" is no plugin but a module of Node.js or an address. Name a file or a package.`);
}

function locate(specifier: string, { workingDirectory, onDiagnostic }: FindOptions): Resolved {
  const expanded = /^~[/\\]/.test(specifier) ? join(homedir(), specifier.slice(2)) : specifier;
  const resolver = new ModuleResolver([], new PackageConfigs(onDiagnostic));
  // As if a file of the working directory imported it.
  const importer = resolve(workingDirectory, "skillhost.json");
  try {
    return resolver.resolve({ specifier: expanded, importer, kind: "import", missed: () => {} });
  } catch (error) {
    const message = `There is no plugin at "${specifier}": ${errorMessage(error)}`;
    throw new HostError("PLUGIN_NOT_FOUND", message, { cause: error });
  }
}

function pluginOf(specifier: string, exports: Exports): Plugin {
  const whole = exports["default"];
  if (isPlugin(whole)) return whole;
  const named = Object.values(exports).filter(isPlugin);
  if (named.length === 1) return named[0]!;
  const found = named.length === 0 ? "exports no plugin" : `exports ${named.length} plugins and none of them by default`;
  const advice = "Write: export default definePlugin({ name, activate(api) { … } }).";
  throw new HostError("PLUGIN_INVALID", `The module "${specifier}" ${found}. ${advice}`);
}
