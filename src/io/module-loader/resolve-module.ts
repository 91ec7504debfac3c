import { realpathSync } from "node:fs";
import { isBuiltin } from "node:module";
import { dirname, extname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { resolveExports, resolveImports } from "resolve-pkg-maps";
import { errorMessage } from "../../base/errors.ts";
import { isRecord } from "../../base/json.ts";
import { importPlace } from "../place-in-file.ts";
import type { CheckedTree } from "../read-bounded.ts";
import { ModuleError } from "./module-error.ts";
import { installedRoot, type PackageConfigs, type PackageFacts, readPackage } from "./package-config.ts";
import { checkedFiles, diskFiles, type ModuleFiles, statFile } from "./read-source.ts";
import { isTypeScript } from "./transform-source.ts";

export type ImportKind = "import" | "require";

/** The target of a specifier: a host module, a Node.js module, a file that the loader runs, or one that Node.js runs itself. */
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
const syncCondition = major > 22 || (major === 22 && minor >= 12) || (major === 20 && minor >= 19) ? ["module-sync"] : [];
const conditions: Readonly<Record<ImportKind, readonly string[]>> = {
  import: ["node", "import", ...syncCondition, "node-addons"],
  require: ["node", "require", ...syncCondition, "node-addons"],
};

/** Modules that every file can import, wherever it lies. */
export interface ProvidedModules {
  /** Specifiers of the host's own modules. No other module can replace these. */
  readonly hosts: readonly string[];
  /** Packages of the host, for importers that have no package with that name. */
  readonly fallbacks: readonly string[];
}

/**
 * Resolves imports like Node.js and TypeScript, from the importer's folder upwards. With `tree`, importers are files of a
 * checked folder: they can import its files, and packages that are installed above it.
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

  /** @throws ModuleError `MODULE_NOT_FOUND`, naming the specifier and the importer; `MODULE_UNTRUSTED` */
  resolve(request: ResolveRequest): Resolved {
    const { specifier } = request;
    if (this.#provided.hosts.includes(specifier)) return { kind: "host", id: specifier };
    if (isBuiltin(specifier)) return { kind: "builtin", id: specifier };
    if (/^(?:data|https?):/.test(specifier)) return { kind: "url", id: specifier };
    const file = this.#find(request);
    if (file === undefined) {
      const fallback = this.#fallback(request);
      if (fallback === undefined) throw notFound(request);
      return fallback;
    }
    const tree = this.#tree;
    if (tree === undefined) return { kind: isLocal(file, request.importer) ? "local" : "native", file };
    if (tree.kindOf(file) === "file") {
      if (!file.endsWith(".node")) return { kind: "local", file };
      throw untrusted(request, file, "It is a compiled addon, which can only be loaded from a package. Move it into a package.");
    }
    if (tree.relative(file) === undefined && !isLocal(file, request.importer)) return { kind: "native", file };
    throw untrusted(request, file, `It is not one of the verified files of ${tree.folder}. Move it into the folder, or into a package.`);
  }

  /** The host's own copy, so that a skill runs in a folder without node_modules. An installed copy takes precedence. */
  #fallback(request: ResolveRequest): Resolved | undefined {
    const [, name = "", subpath = ""] = packageSpecifier.exec(request.specifier) ?? [];
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
      const tree = this.#tree;
      if (tree !== undefined && tree.relative(path) === undefined && tree.kindOf(path) === undefined) {
        const why = `It is outside of ${tree.folder}, and only that folder was verified. Move it into the folder, or into a package.`;
        throw untrusted(request, path, why);
      }
      return resolveFile(path, importer, missed, this.#files);
    }
    return this.#findByPaths(request) ?? (specifier.startsWith("#") ? this.#findInternal(request) : this.#findPackage(request));
  }

  #findByPaths({ specifier, importer, missed }: ResolveRequest): string | undefined {
    for (const candidate of this.#configs.of(importer).matchPaths(specifier)) {
      // `paths` may point to declarations or packages, which concern only the type checker.
      if (declarationFile.test(candidate) || installedRoot(candidate) !== installedRoot(importer)) continue;
      const file = resolveFile(candidate, importer, missed, this.#files);
      if (file !== undefined && !declarationFile.test(file)) return file;
    }
    return undefined;
  }

  #findInternal(request: ResolveRequest): string | undefined {
    const facts = this.#configs.of(request.importer).package;
    if (facts === undefined || !isRecord(facts.imports)) return undefined;
    const targets = fromMap(request, () => resolveImports(facts.imports as never, request.specifier, conditions[request.kind]));
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
    const match = packageSpecifier.exec(request.specifier);
    if (match === null) return undefined;
    const [, name = "", subpath = ""] = match;
    const own = this.#configs.of(request.importer).package;
    if (own !== undefined && own.name === name && own.exports !== undefined) return inPackage(own, subpath, request, this.#files);
    const manifest = findInstalled(name, request, this.#firstFolder(request.importer));
    return manifest === undefined ? undefined : inPackage(readPackage(manifest), subpath, request, diskFiles);
  }

  /** A checked folder contains no packages. A package in it was added after the check. */
  #firstFolder(importer: string): string {
    return this.#tree?.relative(importer) === undefined ? dirname(importer) : dirname(this.#tree.folder);
  }
}

const declarationFile = /\.d\.[cm]?ts$/;
const packageSpecifier = /^((?:@[^/\\%]+\/)?[^./\\%@][^/\\%]*)(?:\/(.*))?$/;

/** Node.js runs the files under `node_modules`, except those of the importer's own package. */
function isLocal(file: string, importer: string): boolean {
  if (file.endsWith(".node")) return false;
  const root = installedRoot(file);
  // Node.js never runs TypeScript in node_modules, so the loader runs packages that ship only that.
  return root === undefined || root === installedRoot(importer) || isTypeScript(file);
}

function untrusted({ importer, specifier }: ResolveRequest, file: string, why: string): ModuleError {
  const message = `${importer} imports "${specifier}", which is not allowed: ${why}`;
  return new ModuleError("MODULE_UNTRUSTED", message, { file: importer, files: [file] });
}

function toPath(specifier: string, importer: string): string | undefined {
  if (specifier.startsWith("file:")) {
    try {
      return fileURLToPath(specifier);
    } catch {
      // Not a valid path on this system, so no file can be there.
      return undefined;
    }
  }
  const plain = /^(?:\.{1,2}(?:\/|$)|\/|[a-zA-Z]:[\\/])/.test(specifier) ? specifier : undefined;
  if (plain === undefined) return undefined;
  const path = resolve(dirname(importer), plain.replace(/[?#].*$/, ""));
  return plain.endsWith("/") ? `${path}/` : path;
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
    const targets = fromMap(request, () => resolveExports(exports as never, subpath, conditions[request.kind]));
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

function notFound({ specifier, importer }: ResolveRequest, cause?: unknown): ModuleError {
  const reason = cause === undefined ? "" : ` (${errorMessage(cause)})`;
  const bare = packageSpecifier.test(specifier) && !specifier.startsWith("#");
  const advice = bare ? ` If it is a package, run "npm install" for it in ${dirname(importer)} or a folder above it.` : "";
  const message = `Cannot find "${specifier}", imported by ${importer}${reason}.${advice}`;
  return new ModuleError("MODULE_NOT_FOUND", message, { file: importer, position: importPlace(importer, specifier), cause });
}

/** Called for every candidate path that does not exist: creating it may change the result. */
type Missed = (path: string) => void;

const extensions = [".ts", ".tsx", ".mts", ".cts", ".js", ".jsx", ".mjs", ".cjs", ".json"];
const sourcesOf: Readonly<Record<string, readonly string[]>> = {
  ".js": [".ts", ".tsx"],
  ".jsx": [".tsx"],
  ".mjs": [".mts"],
  ".cjs": [".cts"],
};

/**
 * The file that a path in an import refers to: the path itself, the TypeScript source of the JavaScript it names, the path with
 * an extension, or the index of a folder. For TypeScript importers a source takes precedence over its build output.
 */
function resolveFile(path: string, importer: string, missed: Missed, files: ModuleFiles = diskFiles): string | undefined {
  const extension = extname(path);
  const sources = (sourcesOf[extension] ?? []).map((source) => path.slice(0, -extension.length) + source);
  const exact = isTypeScript(importer) ? [...sources, path] : [path, ...sources];
  const candidates = path.endsWith("/") ? [] : [...exact, ...extensions.map((each) => path + each)];
  const file = firstExisting(candidates, missed, files);
  if (file !== undefined || !files.isFolder(path)) return file;
  const manifest = join(path, "package.json");
  const main = files.isFile(manifest) ? readPackage(manifest, files).main : undefined;
  const named = main === undefined ? undefined : resolveFile(join(path, main), importer, missed, files);
  const indexes = extensions.map((each) => join(path, `index${each}`));
  return named ?? firstExisting(indexes, missed, files);
}

function firstExisting(candidates: readonly string[], missed: Missed, files: ModuleFiles): string | undefined {
  for (const candidate of candidates) {
    if (files.isFile(candidate)) return files.realPath(candidate);
    missed(candidate);
  }
  return undefined;
}
