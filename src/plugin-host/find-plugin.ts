import { homedir } from "node:os";
import { join } from "node:path";
import type { Diagnostic } from "../base/diagnostic.ts";
import { HostError } from "../base/errors.ts";
import type { Logger } from "../base/logger.ts";
import { importNative } from "../io/module-loader/host-modules.ts";
import { ModuleError } from "../io/module-loader/module-error.ts";
import type { ModuleLoader } from "../io/module-loader/module-loader.ts";
import { installedRoot } from "../io/module-loader/package-config.ts";
import type { OwnedScope } from "../io/scope.ts";
import type { SkillTrust } from "../trust/skill-trust.ts";
import { admitPlugin } from "./admit-plugin.ts";
import { type ImportModule, importBundled } from "./bundled.ts";
import { bundlePlugin } from "./bundles/bundle-plugin.ts";
import { loadBundle } from "./bundles/load-bundle.ts";
import { isPlugin, type Plugin } from "./define-plugin.ts";
import type { LocatedPlugin } from "./locate-plugin.ts";

export interface FindOptions {
  readonly workingDirectory: string;
  /** Runs local files. */
  readonly loader: ModuleLoader;
  /** Checks plugins that lie in the folder of a skill. */
  readonly skillTrust?: SkillTrust | undefined;
  /** Runs plugins that come with this package. */
  readonly importModule?: ImportModule | undefined;
  /** Holds a folder for each bundle that keeps something. Default: `~/.skillhost/plugin-data`. */
  readonly pluginDataDirectory?: string | undefined;
  readonly log: Logger;
  readonly onDiagnostic: (diagnostic: Diagnostic) => void;
}

/** A plugin and the files that it is made of, as far as they can change while the process lives. */
export interface FoundPlugin {
  readonly plugin: Plugin;
  readonly files: ReadonlySet<string>;
}

type Exports = Readonly<Record<string, unknown>>;

/**
 * Runs the module of a plugin and gives what it exports. `scope` is the life of what the module opens while it is evaluated.
 * @throws HostError `PLUGIN_INVALID`, `PLUGIN_UNTRUSTED`; what the module itself throws comes as it is. `files` of a ModuleError say what may mend it.
 */
export async function findPlugin(specifier: string, located: LocatedPlugin, options: FindOptions, scope: OwnedScope): Promise<FoundPlugin> {
  const { kind, path } = located;
  if (kind === "bundled") return { plugin: pluginOf(specifier, await importBundled(path, options.importModule)), files: none };
  if (kind === "package") return { plugin: pluginOf(specifier, await importNative(path)), files: none };
  const admission = admitPlugin(path, options.skillTrust);
  try {
    if (kind === "folder") return loadFolder(path, options);
    const { exports, files } = await options.loader.load(path, scope, admission?.tree);
    // What is installed changes by being installed anew, and then the process starts anew, too.
    return { plugin: pluginOf(specifier, exports, files), files: installedRoot(path) === undefined ? files : none };
  } finally {
    admission?.conclude(false);
  }
}

const none: ReadonlySet<string> = new Set();

/** A bundle, as the plugin that adds what it holds. Whoever names it allows its hooks. */
function loadFolder(folder: string, options: FindOptions): FoundPlugin {
  const { workingDirectory, log, pluginDataDirectory, onDiagnostic } = options;
  const bundleOptions = { workingDirectory, log, dataDirectory: pluginDataDirectory ?? join(homedir(), ".skillhost", "plugin-data") };
  const bundle = loadBundle(folder, bundleOptions);
  bundle.diagnostics.forEach((found) => void onDiagnostic(found));
  if (bundle.isRefused) throw new NoPlugin(`The plugin in ${folder} cannot be used, for what else is said about it.`, bundle.files);
  return { plugin: bundlePlugin(bundle, bundleOptions), files: installedRoot(folder) === undefined ? bundle.files : none };
}

function pluginOf(specifier: string, exports: Exports, files: ReadonlySet<string> = none): Plugin {
  const whole = exports["default"];
  if (isPlugin(whole)) return whole;
  const named = Object.values(exports).filter(isPlugin);
  if (named.length === 1) return named[0]!;
  const found = named.length === 0 ? "exports no plugin" : `exports ${named.length} plugins and none of them by default`;
  const advice = "Write: export default definePlugin({ name, activate(api) { … } }).";
  throw new NoPlugin(`The module "${specifier}" ${found}. ${advice}`, files);
}

/** A module that exports no plugin; it may once one of its files is changed. */
class NoPlugin extends HostError {
  readonly files: ReadonlySet<string>;

  constructor(message: string, files: ReadonlySet<string>) {
    super("PLUGIN_INVALID", message);
    this.files = files;
  }
}

/** The files whose change may mend what kept a plugin from being found. */
export function filesOfFailure(error: unknown): ReadonlySet<string> {
  return error instanceof ModuleError || error instanceof NoPlugin ? error.files : none;
}
