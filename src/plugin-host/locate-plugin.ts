import { homedir } from "node:os";
import { dirname, extname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { type Diagnostic, formatDiagnostic } from "../base/diagnostic.ts";
import { errorMessage, HostError } from "../base/errors.ts";
import type { Logger } from "../base/logger.ts";
import { type CodePluginManifest, type CodePluginManifestKind, parseCodePluginManifest } from "../formats/plugins/code-plugin-manifest.ts";
import { decodeText } from "../formats/text/decode-text.ts";
import { maxJsonBytes } from "../formats/text/limits.ts";
import { importNative } from "../io/module-loader/host-modules.ts";
import { ModuleError } from "../io/module-loader/module-error.ts";
import type { ModuleLoader } from "../io/module-loader/module-loader.ts";
import { installedRoot, PackageConfigs } from "../io/module-loader/package-config.ts";
import { statFile } from "../io/module-loader/read-source.ts";
import { ModuleResolver } from "../io/module-loader/resolve-module.ts";
import { readTextFile } from "../io/read-bounded.ts";
import type { OwnedScope } from "../io/scope.ts";
import { isSkillFolder } from "../skills/load/skill-path.ts";
import type { Admission, SkillTrust } from "../trust/skill-trust.ts";
import { type ImportModule, importBundled, isBundledSpecifier } from "./bundled.ts";
import { bundlePlugin } from "./bundles/bundle-plugin.ts";
import { loadBundle } from "./bundles/load-bundle.ts";
import { isPlugin, type Plugin } from "./define-plugin.ts";

/** The location of a plugin and its manifest, found without running its code. */
export interface LocatedPlugin {
  /** `bundled`: part of this package. `module`: a file that the loader runs. `package`: one that Node.js runs itself. `folder`: no code. */
  readonly kind: "bundled" | "module" | "package" | "folder";
  /** The module or folder. For a bundled plugin, its specifier. */
  readonly path: string;
  readonly manifest: CodePluginManifest | undefined;
}

interface LocateOptions {
  readonly workingDirectory: string;
  readonly onDiagnostic: (diagnostic: Diagnostic) => void;
  /** Collects every path that was checked: a change of any may change the result. */
  readonly files: Set<string>;
  /** Whether a folder without code is a plugin. */
  readonly isBundle?: ((folder: string) => boolean) | undefined;
}

const moduleNames = ["plugin.ts", "plugin.mts", "plugin.js", "plugin.mjs"];

/**
 * Finds a plugin by a path (relative to the working directory, absolute, with `~`, or a `file:` URL), as a package that is
 * installed for the working directory, or as `skillhost/plugins/<name>`, and reads its manifest. Runs no code.
 * @throws HostError `PLUGIN_NOT_FOUND`; `PLUGIN_MANIFEST` when its manifest is not valid.
 */
export function locatePlugin(specifier: string, options: LocateOptions): LocatedPlugin {
  if (isBundledSpecifier(specifier)) return { kind: "bundled", path: specifier, manifest: undefined };
  const folder = folderOf(specifier, options);
  return (folder === undefined ? undefined : locateInFolder(folder, options)) ?? locateModule(specifier, folder, options);
}

function folderOf(specifier: string, { workingDirectory }: LocateOptions): string | undefined {
  const path = pathOf(specifier, workingDirectory) ?? installedFolder(specifier, workingDirectory);
  return path !== undefined && statFile(path)?.isDirectory() === true ? path : undefined;
}

/** Undefined: the specifier names a package. */
function pathOf(specifier: string, workingDirectory: string): string | undefined {
  if (specifier.startsWith("file:")) {
    try {
      return fileURLToPath(specifier);
    } catch {
      // A URL of another host: the resolver reports that it does not exist.
      return undefined;
    }
  }
  if (/^~[/\\]/.test(specifier)) return join(homedir(), specifier.slice(2));
  return /^(?:\.{1,2}(?:[/\\]|$)|[/\\]|[a-zA-Z]:[\\/])/.test(specifier) ? resolve(workingDirectory, specifier) : undefined;
}

function installedFolder(name: string, from: string): string | undefined {
  if (!/^(?:@[^/\\%]+\/)?[^./\\%@:][^/\\%:]*$/.test(name)) return undefined;
  for (let at = from; ; at = dirname(at)) {
    const folder = join(at, "node_modules", name);
    if (statFile(join(folder, "package.json"))?.isFile() === true) return folder;
    if (dirname(at) === at) return undefined;
  }
}

/** Finds a plugin by its manifest or usual files. Undefined: the `main` or index of the folder may be one. */
function locateInFolder(folder: string, options: LocateOptions): LocatedPlugin | undefined {
  const manifest = readManifest(join(folder, "package.json"), "package", options);
  const named = manifest?.main === undefined ? undefined : [manifest.main];
  for (const name of named ?? moduleNames) {
    const file = join(folder, name);
    options.files.add(file);
    if (statFile(file)?.isFile() === true) return { kind: "module", path: file, manifest };
  }
  if (named !== undefined) {
    throw new HostError("PLUGIN_NOT_FOUND", `The plugin in ${folder} names ${named[0]} as its module, but that file does not exist.`);
  }
  return manifest === undefined && options.isBundle?.(folder) === true ? { kind: "folder", path: folder, manifest: undefined } : undefined;
}

function locateModule(specifier: string, folder: string | undefined, options: LocateOptions): LocatedPlugin {
  const { workingDirectory, files, onDiagnostic } = options;
  const configs = new PackageConfigs(onDiagnostic);
  const resolver = new ModuleResolver({ hosts: [], fallbacks: [] }, configs);
  // Resolves as an import from a file in the working directory.
  const importer = resolve(workingDirectory, "skillhost.json");
  const expanded = pathOf(specifier, workingDirectory) ?? specifier;
  try {
    const resolved = resolver.resolve({ specifier: expanded, importer, kind: "import", missed: (path) => void files.add(path) });
    if (resolved.kind !== "local" && resolved.kind !== "native") {
      throw new HostError("PLUGIN_NOT_FOUND", `"${specifier}" is a Node.js module or a URL, not a plugin. Use a file or a package.`);
    }
    const { file, kind } = resolved;
    files.add(file);
    // A package.json above a single file belongs to another package.
    const root = folder ?? installedRoot(file);
    const manifest =
      root === undefined
        ? readManifest(ownManifest(file), "own-file", options)
        : readManifest(join(root, "package.json"), "package", options);
    return { kind: kind === "local" ? "module" : "package", path: file, manifest };
  } catch (error) {
    if (error instanceof HostError && error.code.startsWith("PLUGIN_")) throw error;
    throw new HostError("PLUGIN_NOT_FOUND", `No plugin found at "${specifier}": ${errorMessage(error)}`, { cause: error });
  }
}

/** `dice.plugin.json` beside `dice.ts`. */
function ownManifest(file: string): string {
  return `${file.slice(0, file.length - extname(file).length)}.plugin.json`;
}

function readManifest(file: string, kind: CodePluginManifestKind, { files, onDiagnostic }: LocateOptions): CodePluginManifest | undefined {
  files.add(file);
  if (statFile(file) === undefined) return undefined;
  const read = readTextFile(file, maxJsonBytes);
  const text = read.ok ? decodeText(read.bytes, file).text : undefined;
  const { manifest, diagnostics } =
    text === undefined ? { manifest: undefined, diagnostics: read.ok ? [] : [read.diagnostic] } : parseCodePluginManifest(text, file, kind);
  const fault = diagnostics.find(({ severity }) => severity === "error");
  for (const diagnostic of diagnostics) if (diagnostic !== fault) onDiagnostic(diagnostic);
  if (fault === undefined) return manifest;
  const place = fault.range === undefined ? file : `${file}:${fault.range.start.line}:${fault.range.start.column}`;
  throw new HostError("PLUGIN_MANIFEST", `Its manifest ${place} is not valid: ${fault.message}`);
}

export interface FindOptions {
  readonly workingDirectory: string;
  /** Runs local files. */
  readonly loader: ModuleLoader;
  /** Checks plugins inside the folder of a skill. */
  readonly skillTrust?: SkillTrust | undefined;
  /** Imports bundled plugins. */
  readonly importModule?: ImportModule | undefined;
  /** Holds a folder for each bundle that stores data. Default: `~/.skillhost/plugin-data`. */
  readonly pluginDataDirectory?: string | undefined;
  readonly log: Logger;
  readonly onDiagnostic: (diagnostic: Diagnostic) => void;
}

/** A plugin and those of its files that can change while the process runs. */
interface FoundPlugin {
  readonly plugin: Plugin;
  readonly files: ReadonlySet<string>;
}

type Exports = Readonly<Record<string, unknown>>;

/**
 * Runs the module of a plugin, and returns the plugin that it exports. `scope` owns what the module opens during evaluation.
 * @throws HostError `PLUGIN_INVALID`, `PLUGIN_UNTRUSTED`; otherwise what the module throws. See `filesOfFailure`.
 */
export async function findPlugin(specifier: string, located: LocatedPlugin, options: FindOptions, scope: OwnedScope): Promise<FoundPlugin> {
  const { kind, path } = located;
  if (kind === "bundled") return { plugin: pluginOf(specifier, await importBundled(path, options.importModule)), files: none };
  if (kind === "package") return { plugin: pluginOf(specifier, await importNative(path)), files: none };
  const admission = admitPlugin(path, options.skillTrust);
  try {
    if (kind === "folder") return loadFolder(path, options);
    const { exports, files } = await options.loader.load(path, scope, admission?.tree);
    // An installed package changes only by an installation, after which the process has to be restarted anyway.
    return { plugin: pluginOf(specifier, exports, files), files: installedRoot(path) === undefined ? files : none };
  } finally {
    admission?.conclude(false);
  }
}

const none: ReadonlySet<string> = new Set();

/** Loads a bundle as a plugin. Naming a bundle in the configuration allows its hooks. */
function loadFolder(folder: string, options: FindOptions): FoundPlugin {
  const { workingDirectory, log, pluginDataDirectory, onDiagnostic } = options;
  const bundleOptions = { workingDirectory, log, dataDirectory: pluginDataDirectory ?? join(homedir(), ".skillhost", "plugin-data") };
  const bundle = loadBundle(folder, bundleOptions);
  bundle.diagnostics.forEach((found) => void onDiagnostic(found));
  if (bundle.isRefused)
    throw new MissingPluginError(`The plugin in ${folder} cannot be used. See the other problems reported about it.`, bundle.files);
  return { plugin: bundlePlugin(bundle, bundleOptions), files: installedRoot(folder) === undefined ? bundle.files : none };
}

function pluginOf(specifier: string, exports: Exports, files: ReadonlySet<string> = none): Plugin {
  const whole = exports["default"];
  if (isPlugin(whole)) return whole;
  const named = Object.values(exports).filter(isPlugin);
  if (named.length === 1) return named[0]!;
  const found = named.length === 0 ? "exports no plugin" : `exports ${named.length} plugins but no default export`;
  const advice = "Write: export default definePlugin({ name, activate(api) { … } }).";
  throw new MissingPluginError(`The module "${specifier}" ${found}. ${advice}`, files);
}

/** A module or folder is not a plugin. A change of one of its files may fix that. */
class MissingPluginError extends HostError {
  readonly files: ReadonlySet<string>;

  constructor(message: string, files: ReadonlySet<string>) {
    super("PLUGIN_INVALID", message);
    this.files = files;
  }
}

/** The files whose change may fix an error of `findPlugin`. */
export function filesOfFailure(error: unknown): ReadonlySet<string> {
  return error instanceof ModuleError || error instanceof MissingPluginError ? error.files : none;
}

/**
 * Checks the skill that contains a plugin, as when the skill is loaded. Undefined: no skill contains it, or the skill needs no
 * signature. The caller concludes the admission after loading the plugin.
 * @throws HostError `PLUGIN_UNTRUSTED` for a plugin in a skill whose required signature is absent or invalid.
 */
function admitPlugin(path: string, trust: SkillTrust | undefined): Admission | undefined {
  const folder = trust === undefined ? undefined : skillFolderOf(path);
  const admission = folder === undefined ? undefined : trust?.admit(folder);
  if (admission?.kind !== "refused") return admission;
  const why = admission.diagnostics.map((each) => formatDiagnostic(each)).join("\n");
  throw new HostError("PLUGIN_UNTRUSTED", `The plugin is inside a skill that is not allowed: ${why}`);
}

function skillFolderOf(path: string): string | undefined {
  for (let folder = path; ; folder = dirname(folder)) {
    if (isSkillFolder(folder)) return folder;
    if (dirname(folder) === folder) return undefined;
  }
}
