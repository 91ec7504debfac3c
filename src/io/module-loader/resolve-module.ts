import { realpathSync } from "node:fs";
import { isBuiltin } from "node:module";
import { dirname, extname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { resolveExports, resolveImports } from "resolve-pkg-maps";
import { errorMessage } from "../../base/errors.ts";
import { isRecord } from "../../base/is-record.ts";
import { importPlace } from "../place-in-file.ts";
import type { CheckedTree } from "../read-bounded.ts";
import { ModuleError } from "./module-error.ts";
import { installedRoot, type PackageConfigs, type PackageFacts, readPackage } from "./package-config.ts";
import { checkedFiles, diskFiles, type ModuleFiles, statFile } from "./read-source.ts";
import { isTypeScript } from "./transform-source.ts";

export type ImportKind = "import" | "require";

/** Where a specifier leads: into the host, into Node.js, to a file the loader runs, or to one that Node.js runs itself. */
export type Resolved =
  | { readonly kind: "host" | "builtin" | "url"; readonly id: string }
  | { readonly kind: "local" | "native"; readonly file: string };

interface ResolveRequest {
  readonly specifier: string;
  readonly importer: string;
  readonly kind: ImportKind;
  readonly missed: Missed;
}

const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
const SYNC_CONDITION = major > 22 || (major === 22 && minor >= 12) || (major === 20 && minor >= 19) ? ["module-sync"] : [];
const CONDITIONS: Readonly<Record<ImportKind, readonly string[]>> = {
  import: ["node", "import", ...SYNC_CONDITION, "node-addons"],
  require: ["node", "require", ...SYNC_CONDITION, "node-addons"],
};

/** What modules can import wherever they lie. */
export interface ProvidedModules {
  /** Specifiers of the host's own modules, which nothing else can take the place of. */
  readonly hosts: readonly string[];
  /** Packages of the host, for modules that find none of that name. */
  readonly fallbacks: readonly string[];
}

/**
 * Answers where imports lead, from the importer's own folder upwards, as Node.js and TypeScript do. With `tree`, importers are
 * files of a checked folder: they reach its files, and packages that are installed above it.
 */
export class ModuleResolver {
  readonly #provided: ProvidedModules;
  readonly #configs: PackageConfigs;
  readonly #tree: CheckedTree | undefined;
  readonly #files: ModuleFiles;

  constructor(provided: ProvidedModules, configs: PackageConfigs, tree?: CheckedTree) {
    this.#provided = provided;
    this.#configs = configs;
    this.#tree = tree;
    this.#files = tree === undefined ? diskFiles : checkedFiles(tree);
  }

  /** @throws ModuleError `MODULE_NOT_FOUND`, naming the specifier and who imports it; `MODULE_UNTRUSTED` */
  resolve(request: ResolveRequest): Resolved {
    const { specifier } = request;
    if (this.#provided.hosts.includes(specifier)) return { kind: "host", id: specifier };
    if (isBuiltin(specifier)) return { kind: "builtin", id: specifier };
    if (/^(?:data|https?):/.test(specifier)) return { kind: "url", id: specifier };
    const file = this.#find(request);
    if (file === undefined) return this.#fallback(request) ?? throwNotFound(request);
    if (this.#tree !== undefined) return withinTree(file, request, this.#tree);
    return { kind: isLocal(file, request.importer) ? "local" : "native", file };
  }

  /** The host's own copy, so that a skill runs in a folder where nothing was installed. What an author installed comes first. */
  #fallback(request: ResolveRequest): Resolved | undefined {
    const [, name = "", subpath = ""] = PACKAGE.exec(request.specifier) ?? [];
    if (!this.#provided.fallbacks.includes(name)) return undefined;
    const own = { ...request, missed: () => {} };
    const manifest = findInstalled(name, own, dirname(fileURLToPath(import.meta.url)));
    const file = manifest === undefined ? undefined : inPackage(readPackage(manifest), subpath, own, diskFiles);
    return file === undefined ? undefined : { kind: "native", file };
  }

  #find(request: ResolveRequest): string | undefined {
    const { specifier, importer, missed } = request;
    const path = toPath(specifier, importer);
    if (path !== undefined) {
      if (this.#tree !== undefined) assertInside(path, request, this.#tree);
      return resolveFile(path, importer, missed, this.#files);
    }
    return this.#findByPaths(request) ?? (specifier.startsWith("#") ? this.#findInternal(request) : this.#findPackage(request));
  }

  #findByPaths({ specifier, importer, missed }: ResolveRequest): string | undefined {
    for (const candidate of this.#configs.of(importer).matchPaths(specifier)) {
      // Paths may lead to declarations, or say where packages are: both are for the type checker.
      if (DECLARATION.test(candidate) || installedRoot(candidate) !== installedRoot(importer)) continue;
      const file = resolveFile(candidate, importer, missed, this.#files);
      if (file !== undefined && !DECLARATION.test(file)) return file;
    }
    return undefined;
  }

  #findInternal(request: ResolveRequest): string | undefined {
    const facts = this.#configs.of(request.importer).package;
    if (facts === undefined || !isRecord(facts.imports)) return undefined;
    const targets = fromMap(request, () => resolveImports(facts.imports as never, request.specifier, CONDITIONS[request.kind]));
    for (const target of targets) {
      const path = target.startsWith("./") ? join(facts.directory, target) : undefined;
      const importer = join(facts.directory, "package.json");
      const inside = path === undefined ? undefined : resolveFile(path, request.importer, request.missed, this.#files);
      const file = path === undefined ? this.#findPackage({ ...request, specifier: target, importer }) : inside;
      if (file !== undefined) return file;
    }
    return undefined;
  }

  #findPackage(request: ResolveRequest): string | undefined {
    const match = PACKAGE.exec(request.specifier);
    if (match === null) return undefined;
    const [, name = "", subpath = ""] = match;
    const own = this.#configs.of(request.importer).package;
    if (own !== undefined && own.name === name && own.exports !== undefined) return inPackage(own, subpath, request, this.#files);
    const manifest = findInstalled(name, request, this.#firstFolder(request.importer));
    return manifest === undefined ? undefined : inPackage(readPackage(manifest), subpath, request, diskFiles);
  }

  /** A checked folder holds no packages. One that is found in it was put there later. */
  #firstFolder(importer: string): string {
    return this.#tree?.relative(importer) === undefined ? dirname(importer) : dirname(this.#tree.folder);
  }
}

const DECLARATION = /\.d\.[cm]?ts$/;
const PACKAGE = /^((?:@[^/\\%]+\/)?[^./\\%@][^/\\%]*)(?:\/(.*))?$/;

/** What lies under `node_modules` belongs to Node.js, but for the package that the importer itself is part of. */
function isLocal(file: string, importer: string): boolean {
  if (file.endsWith(".node")) return false;
  const root = installedRoot(file);
  // No Node.js runs TypeScript there, so a package that ships nothing else is ours to run.
  return root === undefined || root === installedRoot(importer) || isTypeScript(file);
}

function withinTree(file: string, request: ResolveRequest, tree: CheckedTree): Resolved {
  if (tree.kindOf(file) === "file") {
    if (!file.endsWith(".node")) return { kind: "local", file };
    throw untrusted(request, file, "It is a compiled addon, which can only be loaded from a package. Move it into a package.");
  }
  if (tree.relative(file) === undefined && !isLocal(file, request.importer)) return { kind: "native", file };
  throw untrusted(request, file, `It is not one of the verified files of ${tree.folder}. Move it into the folder, or into a package.`);
}

function assertInside(path: string, request: ResolveRequest, tree: CheckedTree): void {
  if (tree.relative(path) !== undefined || tree.kindOf(path) !== undefined) return;
  throw untrusted(
    request,
    path,
    `It is outside of ${tree.folder}, and only that folder was verified. Move it into the folder, or into a package.`,
  );
}

function untrusted({ importer, specifier }: ResolveRequest, file: string, why: string): ModuleError {
  const message = `${importer} imports "${specifier}", which is not allowed: ${why}`;
  return new ModuleError("MODULE_UNTRUSTED", message, { file: importer, files: [file] });
}

function toPath(specifier: string, importer: string): string | undefined {
  if (specifier.startsWith("file:")) return pathOfUrl(specifier);
  const plain = /^(?:\.{1,2}(?:\/|$)|\/|[a-zA-Z]:[\\/])/.test(specifier) ? specifier : undefined;
  if (plain === undefined) return undefined;
  const path = resolve(dirname(importer), plain.replace(/[?#].*$/, ""));
  return plain.endsWith("/") ? `${path}/` : path;
}

function pathOfUrl(url: string): string | undefined {
  try {
    return fileURLToPath(url);
  } catch {
    // Not a path on this machine: nothing is there.
    return undefined;
  }
}

function findInstalled(name: string, { missed }: ResolveRequest, first: string): string | undefined {
  for (let folder = first; ; folder = dirname(folder)) {
    const home = join(folder, "node_modules", name);
    const manifest = join(home, "package.json");
    if (statFile(manifest)?.isFile()) return join(realpathSync.native(home), "package.json");
    missed(manifest);
    if (dirname(folder) === folder) return undefined;
  }
}

function inPackage(facts: PackageFacts, subpath: string, request: ResolveRequest, files: ModuleFiles): string | undefined {
  const { exports, directory, main } = facts;
  if (exports !== undefined && exports !== null) {
    const targets = fromMap(request, () => resolveExports(exports as never, subpath, CONDITIONS[request.kind]));
    return firstFile(targets, directory, request, files);
  }
  if (subpath !== "") return firstFile([subpath], directory, request, files);
  return firstFile(main === undefined ? ["./"] : [main, "./"], directory, request, files);
}

function firstFile(
  targets: readonly string[],
  directory: string,
  { importer, missed }: ResolveRequest,
  files: ModuleFiles,
): string | undefined {
  for (const target of targets) {
    const file = resolveFile(join(directory, target), importer, missed, files);
    if (file !== undefined) return file;
  }
  return undefined;
}

function fromMap(request: ResolveRequest, targets: () => readonly string[]): readonly string[] {
  try {
    return targets();
  } catch (error) {
    throw notFound(request, error);
  }
}

function throwNotFound(request: ResolveRequest): never {
  throw notFound(request);
}

function notFound({ specifier, importer }: ResolveRequest, cause?: unknown): ModuleError {
  const reason = cause === undefined ? "" : ` (${errorMessage(cause)})`;
  const bare = PACKAGE.test(specifier) && !specifier.startsWith("#");
  const advice = bare ? ` If it is a package, run "npm install" for it in ${dirname(importer)} or a folder above it.` : "";
  const message = `Cannot find "${specifier}", imported by ${importer}${reason}.${advice}`;
  return new ModuleError("MODULE_NOT_FOUND", message, { file: importer, position: importPlace(importer, specifier), cause });
}

/** Told of every path that was looked at and was not there: creating one may change the answer. */
type Missed = (path: string) => void;

const EXTENSIONS = [".ts", ".tsx", ".mts", ".cts", ".js", ".jsx", ".mjs", ".cjs", ".json"];
const SOURCES_OF: Readonly<Record<string, readonly string[]>> = {
  ".js": [".ts", ".tsx"],
  ".jsx": [".tsx"],
  ".mjs": [".mts"],
  ".cjs": [".cts"],
};

/**
 * The file that a path without certainty means: the path itself, the TypeScript source of the JavaScript it names, the
 * path with an extension, or the index of a folder. TypeScript importers see a source before what was built from it.
 */
function resolveFile(path: string, importer: string, missed: Missed, files: ModuleFiles = diskFiles): string | undefined {
  for (const candidate of fileCandidates(path, importer)) {
    if (files.isFile(candidate)) return files.realPath(candidate);
    missed(candidate);
  }
  return resolveFolder(path, importer, missed, files);
}

function fileCandidates(path: string, importer: string): string[] {
  const extension = extname(path);
  const sources = (SOURCES_OF[extension] ?? []).map((source) => path.slice(0, -extension.length) + source);
  const exact = isTypeScript(importer) ? [...sources, path] : [path, ...sources];
  return path.endsWith("/") ? [] : [...exact, ...EXTENSIONS.map((each) => path + each)];
}

function resolveFolder(path: string, importer: string, missed: Missed, files: ModuleFiles): string | undefined {
  if (!files.isFolder(path)) return undefined;
  const manifest = join(path, "package.json");
  const main = files.isFile(manifest) ? readPackage(manifest, files).main : undefined;
  const named = main === undefined ? undefined : resolveFile(join(path, main), importer, missed, files);
  return named ?? resolveIndex(path, missed, files);
}

function resolveIndex(folder: string, missed: Missed, files: ModuleFiles): string | undefined {
  for (const extension of EXTENSIONS) {
    const candidate = join(folder, `index${extension}`);
    if (files.isFile(candidate)) return files.realPath(candidate);
    missed(candidate);
  }
  return undefined;
}
