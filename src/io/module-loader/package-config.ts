import { basename, dirname, join, sep } from "node:path";
import { createPathsMatcher, parseTsconfig } from "get-tsconfig";
import { canonicalJson } from "../../base/canonical-json.ts";
import type { Diagnostic } from "../../base/diagnostic.ts";
import { errorMessage } from "../../base/errors.ts";
import { type CompilerOptions, toTransformOptions } from "./decorators.ts";
import { ModuleError } from "./module-error.ts";
import { diskFiles, type ModuleFiles } from "./read-source.ts";
import type { SourceSettings } from "./transform-source.ts";

/** The fields of a package.json that decide how its modules are read and found. */
export interface PackageFacts {
  readonly directory: string;
  readonly name: string | undefined;
  readonly type: string | undefined;
  readonly main: string | undefined;
  readonly exports: unknown;
  readonly imports: unknown;
}

/** What a folder's modules inherit from the nearest package.json and tsconfig.json. */
export interface FolderConfig {
  readonly package: PackageFacts | undefined;
  readonly tsconfig: string | undefined;
  readonly compilerOptions: CompilerOptions;
  readonly settings: SourceSettings;
  /** The candidates of `paths` and `baseUrl` for a specifier, best first. */
  readonly matchPaths: (specifier: string) => readonly string[];
  /** Every path that was read or tried: a change of one of them invalidates this. */
  readonly inputs: readonly string[];
}

export interface PackageConfigsOptions {
  readonly files?: ModuleFiles;
  /** The topmost folder of the search. Absent: the root of the file system, or of an installed package. */
  readonly top?: string;
}

/** Reads package.json and tsconfig.json, once per folder, until `invalidate`. */
export class PackageConfigs {
  readonly #folders = new Map<string, FolderConfig>();
  readonly #report: (diagnostic: Diagnostic) => void;
  readonly #files: ModuleFiles;
  readonly #top: string | undefined;

  constructor(report: (diagnostic: Diagnostic) => void, { files = diskFiles, top }: PackageConfigsOptions = {}) {
    this.#report = report;
    this.#files = files;
    this.#top = top;
  }

  of(file: string): FolderConfig {
    const folder = dirname(file);
    const known = this.#folders.get(folder);
    if (known) return known;
    const inputs: string[] = [];
    const found = this.#findUp(folder, "package.json", inputs, this.#top);
    const facts = found === undefined ? undefined : readPackage(found, this.#files);
    const tsconfig = this.#findUp(folder, "tsconfig.json", inputs, this.#top ?? installedRoot(folder));
    const parsed = tsconfig === undefined ? noTsconfig : this.#readTsconfig(tsconfig, inputs);
    const transform = toTransformOptions(parsed.compilerOptions);
    const settings = { packageType: facts?.type, transform, key: `${facts?.type} ${canonicalJson(transform)}` };
    const config: FolderConfig = { package: facts, tsconfig, ...parsed, settings, inputs };
    this.#folders.set(folder, config);
    return config;
  }

  /** Forgets the folders whose configuration depends on these paths. */
  invalidate(paths: ReadonlySet<string>): void {
    for (const [folder, config] of this.#folders) {
      if (config.inputs.some((input) => paths.has(input))) this.#folders.delete(folder);
    }
  }

  /** A folder was removed. */
  forget(folder: string): void {
    this.#folders.delete(folder);
  }

  clear(): void {
    this.#folders.clear();
  }

  #findUp(folder: string, name: string, inputs: string[], top: string | undefined): string | undefined {
    for (let at = folder; ; at = dirname(at)) {
      const candidate = join(at, name);
      // A package.json directly in `node_modules` belongs to no package.
      if (basename(at) !== "node_modules") inputs.push(candidate);
      if (basename(at) !== "node_modules" && this.#files.isFile(candidate)) return candidate;
      if (at === top || dirname(at) === at) return undefined;
    }
  }

  #readTsconfig(path: string, inputs: string[]): Pick<FolderConfig, "compilerOptions" | "matchPaths"> {
    const cache: Map<string, string> = this.#files === diskFiles ? new Map() : new AnsweringCache(this.#files);
    try {
      const config = parseTsconfig(path, cache);
      const matchPaths = createPathsMatcher({ path, config }) ?? noTsconfig.matchPaths;
      return { compilerOptions: (config.compilerOptions ?? {}) as CompilerOptions, matchPaths };
    } catch (error) {
      if (isUntrusted(error)) throw error;
      const message = `${path} is ignored: ${errorMessage(error)}. Fix it; until then its compiler options and paths do not apply.`;
      this.#report({ severity: "warning", code: "TSCONFIG_INVALID", message, file: path });
      return noTsconfig;
    } finally {
      // The keys of the parser's cache name its file accesses, which reveals the files behind `extends`.
      for (const key of cache.keys()) if (key.startsWith(readCall)) inputs.push(join(key.slice(readCall.length).replace(/:utf8$/, "")));
    }
  }
}

const readCall = "readFileSync:";

/**
 * The parser asks its cache before it asks node:fs, with keys such as `readFileSync:<path>:utf8`. This cache answers each key
 * itself, so that the file system is never accessed. Its values have the types that those calls return.
 */
class AnsweringCache extends Map<string, string> {
  readonly #files: ModuleFiles;

  constructor(files: ModuleFiles) {
    super();
    this.#files = files;
  }

  override get(key: string): string | undefined {
    if (!this.has(key)) {
      const [, call, path = ""] = fileCall.exec(key) ?? [];
      if (call !== undefined) this.set(key, this.#answer(call, join(path)) as string);
    }
    return super.get(key);
  }

  #answer(call: string, path: string): unknown {
    if (call === "readFileSync") return this.#files.readText(path);
    if (call === "existsSync") return this.#files.isFile(path) || this.#files.isFolder(path);
    if (call === "realpathSync") return this.#files.realPath(path);
    return { isFile: () => this.#files.isFile(path), isDirectory: () => this.#files.isFolder(path) };
  }
}

const fileCall = /^(readFileSync|existsSync|realpathSync|statSync):(.*?)(?::utf8|:)?$/;

const noTsconfig: Pick<FolderConfig, "compilerOptions" | "matchPaths"> = { compilerOptions: {}, matchPaths: () => [] };

/** The folder of the installed package that a file belongs to, undefined for a file that is not under `node_modules`. */
export function installedRoot(file: string): string | undefined {
  const parts = file.split(sep);
  const at = parts.lastIndexOf("node_modules");
  if (at === -1 || parts[at + 1] === undefined) return undefined;
  const length = parts[at + 1]!.startsWith("@") ? at + 3 : at + 2;
  return parts.slice(0, length).join(sep);
}

/** Reads the relevant fields of a package.json. Broken files and fields of the wrong type count as absent. */
export function readPackage(path: string, files: ModuleFiles = diskFiles): PackageFacts {
  const json = readJsonObject(path, files);
  const text = (key: string): string | undefined => (typeof json[key] === "string" ? json[key] : undefined);
  const { exports, imports } = json;
  return { directory: dirname(path), name: text("name"), type: text("type"), main: text("main"), exports, imports };
}

function readJsonObject(path: string, files: ModuleFiles): Record<string, unknown> {
  try {
    const json: unknown = JSON.parse(files.readText(path));
    return typeof json === "object" && json !== null ? { __proto__: null, ...json } : {};
  } catch (error) {
    if (isUntrusted(error)) throw error;
    // Half-written or broken: the file is watched, and until it changes the folder has no package facts.
    return {};
  }
}

function isUntrusted(error: unknown): boolean {
  return error instanceof ModuleError && error.code === "MODULE_UNTRUSTED";
}
