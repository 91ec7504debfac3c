import { readFileSync } from "node:fs";
import { basename, dirname, join, sep } from "node:path";
import { createPathsMatcher, parseTsconfig } from "get-tsconfig";
import { canonicalJson } from "../../base/canonical-json.ts";
import type { Diagnostic } from "../../base/diagnostic.ts";
import { errorMessage } from "../../base/errors.ts";
import { type CompilerOptions, toTransformOptions } from "./compile-settings.ts";
import { statFile } from "./read-source.ts";
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
  /** Where `paths` and `baseUrl` would have a specifier lead, best first. */
  readonly matchPaths: (specifier: string) => readonly string[];
  /** Every path that was read or looked for: a change of one of them changes this. */
  readonly inputs: readonly string[];
}

/** Reads package.json and tsconfig.json, once per folder, until told that one changed. */
export class PackageConfigs {
  readonly #folders = new Map<string, FolderConfig>();
  readonly #report: (diagnostic: Diagnostic) => void;

  constructor(report: (diagnostic: Diagnostic) => void) {
    this.#report = report;
  }

  of(file: string): FolderConfig {
    const folder = dirname(file);
    const known = this.#folders.get(folder);
    if (known) return known;
    const config = this.#read(folder);
    this.#folders.set(folder, config);
    return config;
  }

  /** Forgets what was read from these paths. */
  invalidate(paths: ReadonlySet<string>): void {
    for (const [folder, config] of this.#folders) {
      if (config.inputs.some((input) => paths.has(input))) this.#folders.delete(folder);
    }
  }

  clear(): void {
    this.#folders.clear();
  }

  #read(folder: string): FolderConfig {
    const inputs: string[] = [];
    const found = findUp(folder, "package.json", inputs);
    const facts = found === undefined ? undefined : readPackage(found);
    const tsconfig = findUp(folder, "tsconfig.json", inputs, installedRoot(folder));
    const parsed = tsconfig === undefined ? NO_TSCONFIG : this.#readTsconfig(tsconfig, inputs);
    const transform = toTransformOptions(parsed.compilerOptions);
    const settings = { packageType: facts?.type, transform, key: `${facts?.type} ${canonicalJson(transform)}` };
    return { package: facts, tsconfig, ...parsed, settings, inputs };
  }

  #readTsconfig(path: string, inputs: string[]): Pick<FolderConfig, "compilerOptions" | "matchPaths"> {
    const cache = new Map<string, never>();
    try {
      const config = parseTsconfig(path, cache);
      const matchPaths = createPathsMatcher({ path, config }) ?? NO_TSCONFIG.matchPaths;
      return { compilerOptions: (config.compilerOptions ?? {}) as CompilerOptions, matchPaths };
    } catch (error) {
      const message = `${path} is ignored: ${errorMessage(error)}. Mend it; its compiler options and paths are not in force.`;
      this.#report({ severity: "warning", code: "TSCONFIG_INVALID", message, file: path });
      return NO_TSCONFIG;
    } finally {
      // The parser's cache is keyed by what it did: this is how the files behind `extends` become known.
      for (const key of cache.keys()) if (key.startsWith(READ)) inputs.push(join(key.slice(READ.length).replace(/:utf8$/, "")));
    }
  }
}

const READ = "readFileSync:";
const NO_TSCONFIG: Pick<FolderConfig, "compilerOptions" | "matchPaths"> = { compilerOptions: {}, matchPaths: () => [] };

/** The folder of the installed package that a file belongs to, undefined for a file that is not under `node_modules`. */
export function installedRoot(file: string): string | undefined {
  const parts = file.split(sep);
  const at = parts.lastIndexOf("node_modules");
  if (at === -1 || parts[at + 1] === undefined) return undefined;
  const length = parts[at + 1]!.startsWith("@") ? at + 3 : at + 2;
  return parts.slice(0, length).join(sep);
}

/** Reads the facts of a package.json; what is broken or of the wrong type counts as absent. */
export function readPackage(path: string): PackageFacts {
  const json = readJsonObject(path);
  const text = (key: string): string | undefined => (typeof json[key] === "string" ? json[key] : undefined);
  const { exports, imports } = json;
  return { directory: dirname(path), name: text("name"), type: text("type"), main: text("main"), exports, imports };
}

function readJsonObject(path: string): Record<string, unknown> {
  try {
    const json: unknown = JSON.parse(readFileSync(path, "utf8"));
    return typeof json === "object" && json !== null ? { __proto__: null, ...json } : {};
  } catch {
    // Half-written or broken: its change is watched, and until then the folder has no package facts.
    return {};
  }
}

function findUp(folder: string, name: string, inputs: string[], top?: string): string | undefined {
  for (let at = folder; ; at = dirname(at)) {
    const candidate = join(at, name);
    // A package.json of `node_modules` itself belongs to nobody.
    if (basename(at) !== "node_modules") inputs.push(candidate);
    if (basename(at) !== "node_modules" && statFile(candidate)?.isFile()) return candidate;
    if (at === top || dirname(at) === at) return undefined;
  }
}
