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

/** Where a specifier leads, and what is known of the plugin there before anything of it runs. */
export interface LocatedPlugin {
  /** `bundled`: part of this package. `module`: a file that the loader runs. `package`: one that Node.js runs itself. `folder`: no code. */
  readonly kind: "bundled" | "module" | "package" | "folder";
  /** The module, or the folder; of a bundled one its specifier. */
  readonly path: string;
  readonly manifest: CodePluginManifest | undefined;
}

interface LocateOptions {
  readonly workingDirectory: string;
  readonly onDiagnostic: (diagnostic: Diagnostic) => void;
  /** Gets every path that was looked at: a change of one may lead to another outcome. */
  readonly files: Set<string>;
  /** Whether a folder without code is a plugin all the same. */
  readonly isBundle?: ((folder: string) => boolean) | undefined;
}

const modules = ["plugin.ts", "plugin.mts", "plugin.js", "plugin.mjs"];

/**
 * Finds a plugin by a path (relative to the working directory, absolute, with `~`, or a `file:` address), as a package that
 * is installed for the working directory, or as `skillhost/plugins/<name>`, and reads its manifest. Runs nothing.
 * @throws HostError `PLUGIN_NOT_FOUND`; `PLUGIN_MANIFEST` when there is a manifest that cannot be used.
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
  if (specifier.startsWith("file:")) return pathOfUrl(specifier);
  if (/^~[/\\]/.test(specifier)) return join(homedir(), specifier.slice(2));
  return /^(?:\.{1,2}(?:[/\\]|$)|[/\\]|[a-zA-Z]:[\\/])/.test(specifier) ? resolve(workingDirectory, specifier) : undefined;
}

function pathOfUrl(url: string): string | undefined {
  try {
    return fileURLToPath(url);
  } catch {
    // An address of another machine: the resolver says that nothing is there.
    return undefined;
  }
}

function installedFolder(name: string, from: string): string | undefined {
  if (!/^(?:@[^/\\%]+\/)?[^./\\%@:][^/\\%:]*$/.test(name)) return undefined;
  for (let at = from; ; at = dirname(at)) {
    const folder = join(at, "node_modules", name);
    if (statFile(join(folder, "package.json"))?.isFile() === true) return folder;
    if (dirname(at) === at) return undefined;
  }
}

/** By what says that a folder is a plugin. Undefined: nothing does, so its `main` or index may be one. */
function locateInFolder(folder: string, options: LocateOptions): LocatedPlugin | undefined {
  const manifest = readManifest(join(folder, "package.json"), "package", options);
  const named = manifest?.main === undefined ? undefined : [manifest.main];
  for (const name of named ?? modules) {
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
  // As if a file of the working directory imported it.
  const importer = resolve(workingDirectory, "skillhost.json");
  const expanded = pathOf(specifier, workingDirectory) ?? specifier;
  try {
    const resolved = resolver.resolve({ specifier: expanded, importer, kind: "import", missed: (path) => void files.add(path) });
    if (resolved.kind !== "local" && resolved.kind !== "native") throw noModule(specifier);
    const { file, kind } = resolved;
    files.add(file);
    // What lies above a single file is somebody else's package.json.
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

function noModule(specifier: string): HostError {
  return new HostError("PLUGIN_NOT_FOUND", `"${specifier}" is a Node.js module or a URL, not a plugin. Use a file or a package.`);
}

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
interface FoundPlugin {
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
  if (bundle.isRefused)
    throw new NoPlugin(`The plugin in ${folder} cannot be used. See the other problems reported about it.`, bundle.files);
  return { plugin: bundlePlugin(bundle, bundleOptions), files: installedRoot(folder) === undefined ? bundle.files : none };
}

function pluginOf(specifier: string, exports: Exports, files: ReadonlySet<string> = none): Plugin {
  const whole = exports["default"];
  if (isPlugin(whole)) return whole;
  const named = Object.values(exports).filter(isPlugin);
  if (named.length === 1) return named[0]!;
  const found = named.length === 0 ? "exports no plugin" : `exports ${named.length} plugins but no default export`;
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

/**
 * Checks the skill that a plugin lies in, as if it were loaded as a skill. Undefined: it lies in none, or nobody asks for the
 * signature of that one. Conclude the admission when the plugin is loaded.
 * @throws HostError `PLUGIN_UNTRUSTED` for a plugin in a skill that must be signed and is not, or not rightly
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
