import { statSync } from "node:fs";
import { createRequire } from "node:module";
import { extname } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { compileFunction } from "node:vm";
import type { TransformResult } from "esbuild-wasm";
import type { OxcError, SourceMap, TransformOptions } from "oxc-transform";
import { sha256 } from "../../base/canonical-json.ts";
import { type Position, positionAt } from "../../base/diagnostic.ts";
import { isRecord } from "../../base/json.ts";
import { cacheKey, type DiskCache } from "../disk-cache.ts";
import { decoratorHelpers } from "./decorators.ts";
import { guardNesting } from "./guards.ts";
import { ModuleError } from "./module-error.ts";

/** The package and compiler settings that affect the transform of a file. */
export interface SourceSettings {
  /** The `type` of its package.json. */
  readonly packageType: string | undefined;
  readonly transform: TransformOptions;
  /** Equal for settings with the same effect. */
  readonly key: string;
}

/** A module's text, ready to be compiled. `code` depends only on the text and the settings, not on the file's path. */
export interface TransformedSource {
  readonly kind: "esm" | "commonjs" | "json";
  readonly code: string;
  /** The specifiers of its static imports, as written. */
  readonly imports: readonly string[];
  /** Names that it re-exports; in TypeScript such a name may be a type, which does not exist at run time. */
  readonly reexports: ReadonlySet<string>;
  /** Whether it mentions `require`, `__filename` or `__dirname`. */
  readonly usesCommonJs: boolean;
  /** From the last step back to the first; created only when a position is needed. */
  readonly maps: readonly (SourceMap | string)[];
}

const sourceExtension = /^\.(?:[cm]?[jt]s|[jt]sx)$/;
const typeScriptFile = /\.[cm]?tsx?$/;
const require = createRequire(import.meta.url);

/** The native compiler. Loading it takes longer than most files, so that happens at the first file whose result is not cached. */
export function nativeCompiler(): typeof import("oxc-transform") {
  return require("oxc-transform");
}

export const isTypeScript = (file: string): boolean => typeScriptFile.test(file);

/** Transforms one file's text. Throws `MODULE_SYNTAX` with the position of the first error. */
export function transformSource(file: string, text: string, settings: SourceSettings, withMaps = false): TransformedSource {
  const extension = extname(file);
  if (extension === ".json") return { ...noImports, kind: "json", code: text };
  if (!sourceExtension.test(extension)) throw unknownKind(file, extension);
  guardNesting(file, text, () => require.resolve("oxc-transform"));
  // Sloppy scripts stay unchanged: they contain no types, and their line numbers are those of the file.
  if (extension === ".cjs" && !dynamicImport.test(text)) return plainCommonJs(file, text);
  const result = nativeCompiler().transformSync(file, text, { ...settings.transform, sourcemap: withMaps });
  if (result.errors.some((error) => error.severity === "Error")) throw syntaxError(file, text, result.errors);
  const plain = runnerStep(file, result.code, result.map ? [result.map] : [], withMaps);
  const kind = moduleKind(extension, settings.packageType, plain);
  if (kind === "commonjs" && extension === ".js" && !dynamicImport.test(text)) return plainCommonJs(file, text);
  const prepared = toPrepared(kind, plain);
  const failure = compileFailure(prepared);
  if (failure === undefined) return prepared;
  const lower = tryLower(file, plain.code, failure);
  const step = runnerStep(file, lower.code, withMaps ? [...plain.maps, lower.map] : [], withMaps);
  const second = toPrepared(kind, step);
  const remaining = compileFailure(second);
  if (remaining !== undefined) throw syntaxError(file, "", [], remaining);
  return second;
}

/**
 * A TypeScript or JavaScript module as JavaScript that this Node.js runs by itself, with its source map in the last line. For programs that Node.js
 * loads, such as tests; modules of skills are transformed by `transformSource`. Throws `MODULE_SYNTAX` with the position of the first error.
 */
export function toNativeModule(file: string, text: string, settings: SourceSettings): string {
  guardNesting(file, text, () => require.resolve("oxc-transform"));
  const { code, map, errors } = nativeCompiler().transformSync(file, text, { ...settings.transform, sourcemap: true });
  if (errors.some((error) => error.severity === "Error")) throw syntaxError(file, text, errors);
  const withMap = `${code}\n${inlineMap({ ...map, sources: [pathToFileURL(file).href] })}`;
  const failure = compileFailure(toPrepared("esm", runnerStep(file, code, [], false)));
  if (failure === undefined) return withMap;
  // The map that this gives leads through the one in the text.
  const lower = tryLower(file, withMap, failure);
  return `${lower.code}\n${inlineMap(JSON.parse(lower.map))}`;
}

function inlineMap(map: object): string {
  return `//# sourceMappingURL=data:application/json;base64,${Buffer.from(JSON.stringify(map)).toString("base64")}\n`;
}

interface Step {
  readonly code: string;
  readonly maps: readonly (SourceMap | string)[];
  readonly runner: { readonly code: string; readonly deps: readonly string[]; readonly map?: SourceMap };
}

const dynamicImport = /\bimport\s*\(/;
const noImports = { imports: [], reexports: new Set<string>(), usesCommonJs: false, maps: [] };

function plainCommonJs(file: string, text: string): TransformedSource {
  const code = text.startsWith("#!") ? `//${text}` : text;
  const failure = failureOf(() => compileCommonJs(code, trialName()));
  if (failure !== undefined) {
    const parsed = nativeCompiler().transformSync(file, text, { sourceType: "commonjs", lang: "js" });
    throw syntaxError(file, text, parsed.errors, failure);
  }
  return { ...noImports, kind: "commonjs", code, usesCommonJs: true };
}

function runnerStep(file: string, stripped: string, maps: Step["maps"], withMaps: boolean): Step {
  const code = stripped.replace(hashBang, "//$&").replace(defaultAndNamespace, "import $1 from $3;import * as $2 from $3;");
  // The types are stripped, so the text is JavaScript regardless of the file's extension.
  const runner = nativeCompiler().moduleRunnerTransformSync(`${file}.js`, code, { sourcemap: withMaps });
  if (runner.errors.length > 0) throw syntaxError(file, code, runner.errors);
  return { code, maps, runner };
}

const hashBang = /^#!/;
// `import a, * as b` loses its default in the transform that follows (oxc-transform 0.151); two imports do not.
const defaultAndNamespace = /^import ([\w$]+), \* as ([\w$]+) from ("[^"\n]*")(?: with \{[^}\n]*\})?;$/gm;
const moduleSyntax = /__vite_ssr_(?:exports__|exportAll__|import_meta__)/;
const scriptWords = /\b(?:module|exports|require|__dirname|__filename)\b/;

function moduleKind(extension: string, packageType: string | undefined, step: Step): "esm" | "commonjs" {
  if (extension === ".mjs" || extension === ".mts") return "esm";
  if (step.runner.deps.length > 0 || moduleSyntax.test(step.runner.code)) return "esm";
  if (extension === ".cjs" || extension === ".cts") return "commonjs";
  if (packageType === "module") return "esm";
  if (typeScriptFile.test(extension) && !scriptWords.test(step.code)) return "esm";
  return /\bawait\b/.test(step.code) && failureOf(() => compileSync(step.code, trialName(), true)) !== undefined ? "esm" : "commonjs";
}

function tryLower(file: string, code: string, failure: unknown): ReturnType<typeof lowerSyntax> {
  // A RangeError is a stack overflow of the compiler, which another compiler would not avoid.
  if (!(failure instanceof SyntaxError)) throw syntaxError(file, "", [], failure);
  try {
    return lowerSyntax(code);
  } catch {
    // Lowering failed too. The engine's own message is more helpful.
    throw syntaxError(file, "", [], failure);
  }
}

function toPrepared(kind: "esm" | "commonjs", step: Step): TransformedSource {
  const { code, deps, map } = step.runner;
  const reexports = new Set([...code.matchAll(reexport)].map((match) => match[1]!));
  const usesCommonJs = kind === "commonjs" || commonJsWord.test(code);
  return { kind, code, imports: deps, reexports, usesCommonJs, maps: map ? [map, ...[...step.maps].reverse()] : [] };
}

const reexport = /^\t\treturn __vite_ssr_import_\d+__\.([\w$]+);$/gm;
// TypeScript's `import x = require("y")` becomes a require, and much TypeScript was written to be compiled to CommonJS.
const commonJsWord = /\b(?:require|__filename|__dirname)\b/;

function compileFailure({ kind, code }: TransformedSource): unknown {
  return failureOf(() => (kind === "esm" ? compileAsync(code, trialName(), true) : compileCommonJs(code, trialName())));
}

function failureOf(compile: () => unknown): unknown {
  try {
    compile();
    return undefined;
  } catch (error) {
    return error;
  }
}

function syntaxError(file: string, text: string, errors: readonly OxcError[], cause?: unknown): ModuleError {
  const first = errors.find((error) => error.severity === "Error") ?? errors[0];
  const start = first?.labels[0]?.start;
  const position: Position | undefined = start === undefined ? undefined : positionAt(text, utf16Offset(text, start));
  const detail = first?.message ?? (cause instanceof Error ? cause.message : "it does not parse");
  const help = first?.helpMessage ? ` ${first.helpMessage}` : "";
  const place = position ? `:${position.line}:${position.column}` : "";
  return new ModuleError("MODULE_SYNTAX", `${file}${place} does not parse: ${detail}.${help}`, { file, position, files: [file], cause });
}

function unknownKind(file: string, extension: string): ModuleError {
  const message = `${file} cannot be imported: "${extension}" is not a supported module type. Read it with node:fs instead.`;
  return new ModuleError("MODULE_SYNTAX", message, { file, files: [file] });
}

// The parser counts UTF-8 bytes, editors count UTF-16 units.
function utf16Offset(text: string, bytes: number): number {
  return Buffer.from(text, "utf8").subarray(0, bytes).toString("utf8").length;
}

/** The functions that transformed code calls; the transform defines the names. */
export interface ModuleBindings {
  readonly exports: object;
  readonly importModule: (specifier: string, metadata?: { readonly importedNames?: readonly string[] }) => unknown;
  readonly importDynamic: (specifier: unknown) => Promise<unknown>;
  readonly meta: object;
  readonly exportAll: (namespace: object) => void;
  /** `require`, `__filename` and `__dirname`, for TypeScript that was written for CommonJS. */
  readonly commonJs: readonly unknown[];
}

/** The names of compiled code in stacks and debuggers. */
export interface ScriptName {
  readonly address: string;
  /** A source map comment for debuggers, or an empty string. `head`: the number of lines before the code. */
  commentFor(code: string, head: number): string;
}

/** For code that is compiled only to see whether it compiles. */
export function trialName(): ScriptName {
  return { address: "", commentFor: () => "" };
}

type Compiled<Result> = (bindings: ModuleBindings) => Result;

const moduleParameters = [
  "__vite_ssr_exports__",
  "__vite_ssr_import__",
  "__vite_ssr_dynamic_import__",
  "__vite_ssr_import_meta__",
  "__vite_ssr_exportAll__",
  "babelHelpers",
];
const commonJsWords = ["require", "__filename", "__dirname"];
const AsyncFunction = (async () => {}).constructor as FunctionConstructor;

/** Lines that a function's head and our first line put before the code. */
export const moduleLineOffset = 3;

// Function constructors instead of vm.Script or import(): V8 keeps what those compiled, so old generations would never be
// freed.
export function compileAsync(code: string, name: ScriptName, withCommonJs = false): Compiled<Promise<void>> {
  return bind(new AsyncFunction(...parameters(withCommonJs), body(code, name)), withCommonJs);
}

/** The synchronous form of a module, for `require`: static imports become calls. Top-level await is a SyntaxError here. */
export function compileSync(code: string, name: ScriptName, withCommonJs = false): Compiled<void> {
  return bind(new Function(...parameters(withCommonJs), body(code.replace(staticImport, "$1$2"), name)), withCommonJs);
}

/** The CommonJS wrapper; lines and columns stay the file's own. */
export function compileCommonJs(code: string, { address, commentFor }: ScriptName): (...parameters: readonly unknown[]) => unknown {
  return compileFunction(code + commentFor(code, 0), commonJsParameters, { filename: address }) as (
    ...parameters: readonly unknown[]
  ) => unknown;
}

const commonJsParameters = ["exports", "require", "module", "__filename", "__dirname", "__vite_ssr_dynamic_import__", "babelHelpers"];
const staticImport = /^(const __vite_ssr_import_\d+__ = )await (__vite_ssr_import__\()/gm;

function parameters(withCommonJs: boolean): string[] {
  return withCommonJs ? [...moduleParameters, ...commonJsWords] : moduleParameters;
}

function body(code: string, { address, commentFor }: ScriptName): string {
  return `"use strict";\n${code}\n//# sourceURL=${address}${commentFor(code, moduleLineOffset)}`;
}

// biome-ignore lint/complexity/noBannedTypes: what the Function constructor returns has no narrower type
function bind<Result>(compiled: Function, withCommonJs: boolean): Compiled<Result> {
  return ({ exports, importModule, importDynamic, meta, exportAll, commonJs }) => {
    const values = [exports, importModule, importDynamic, meta, exportAll, decoratorHelpers];
    return compiled(...values, ...(withCommonJs ? commonJs : []));
  };
}

/**
 * Rewrites syntax that this Node.js version cannot run yet (decorators, accessors, `using`). The first use takes half a second,
 * so only texts that need it are lowered.
 */
function lowerSyntax(code: string): { readonly code: string; readonly map: string } {
  const esbuild = require("esbuild-wasm") as typeof import("esbuild-wasm");
  const result: TransformResult = esbuild.transformSync(code, {
    loader: "js",
    format: "esm",
    target: `node${process.versions.node}`,
    sourcemap: "external",
    logLevel: "silent",
  });
  return { code: result.code, map: result.map };
}

const maxEntries = 64;
const maxCharacters = 1_000_000;

/**
 * Transformed texts by content, so that switching a branch back and forth, touching a file, or checking it before loading it
 * costs one transform. The cache in memory is small, because a hit saves only a fraction of a millisecond. Texts of a file's first load
 * are kept on disk, too, for later processes; edits are not, because most of them are soon replaced.
 */
export class TransformCache {
  readonly #disk: DiskCache | undefined;
  readonly #entries = new Map<string, TransformedSource>();
  readonly #transformed = new Set<string>();
  #characters = 0;

  /** `disk`: absent where the code that runs must depend on nothing but the given text. */
  constructor(disk?: DiskCache) {
    this.#disk = disk;
  }

  prepare(file: string, text: string, settings: SourceSettings): TransformedSource {
    const key = `${extname(file)} ${settings.key} ${sha256(text)}`;
    const known = this.#entries.get(key);
    if (known !== undefined) this.#entries.delete(key);
    const prepared = known ?? this.#load(file, text, settings, key);
    if (known === undefined) this.#characters += prepared.code.length;
    this.#entries.set(key, prepared);
    this.#shrink();
    return prepared;
  }

  /** A file was removed. If it comes back, its text is that of a first load again. */
  forget(file: string): void {
    this.#transformed.delete(file);
  }

  clear(): void {
    this.#entries.clear();
    this.#transformed.clear();
    this.#characters = 0;
  }

  #load(file: string, text: string, settings: SourceSettings, identity: string): TransformedSource {
    if (this.#disk === undefined || isCheap(file)) return transformSource(file, text, settings);
    const key = cacheKey("module", [compilerIdentity(), identity]);
    const stored = readStored(this.#disk.get(key));
    const prepared = stored ?? transformSource(file, text, settings);
    if (stored === undefined && !this.#transformed.has(file)) this.#disk.set(key, toStored(prepared));
    this.#transformed.add(file);
    return prepared;
  }

  #shrink(): void {
    for (const [key, { code }] of this.#entries) {
      if (this.#entries.size <= maxEntries && this.#characters <= maxCharacters) return;
      this.#entries.delete(key);
      this.#characters -= code.length;
    }
  }
}

// Files whose text does not change, in most cases.
function isCheap(file: string): boolean {
  return file.endsWith(".json") || file.endsWith(".cjs");
}

let identity: string | undefined;

/**
 * Everything but a file that a transform depends on: whether syntax must be lowered depends on Node.js. This module's own file distinguishes builds
 * of one version apart.
 */
export function compilerIdentity(): string {
  if (identity !== undefined) return identity;
  const versionOf = (name: string): string => (require(`${name}/package.json`) as { version: string }).version;
  const { size, mtimeMs } = statSync(fileURLToPath(import.meta.url));
  // In seconds, since copies and archives keep no fractions.
  identity = [process.version, versionOf("oxc-transform"), versionOf("esbuild-wasm"), size, Math.trunc(mtimeMs / 1000)].join(" ");
  return identity;
}

type StoredSource = Pick<TransformedSource, "code" | "imports" | "usesCommonJs"> & {
  readonly kind: "esm" | "commonjs";
  readonly reexports: readonly string[];
};

function toStored({ kind, code, imports, reexports, usesCommonJs }: TransformedSource): object {
  return { kind, code, imports, reexports: [...reexports], usesCommonJs };
}

// The cache checks that this is what was stored; only another program of this user can have stored something else.
function readStored(value: unknown): TransformedSource | undefined {
  if (!isStored(value)) return undefined;
  return { ...value, reexports: new Set(value.reexports), maps: [] };
}

function isStored(value: unknown): value is StoredSource {
  if (!isRecord(value)) return false;
  const { kind, code, imports, reexports, usesCommonJs } = value;
  const isKind = kind === "esm" || kind === "commonjs";
  return isKind && typeof code === "string" && typeof usesCommonJs === "boolean" && isTexts(imports) && isTexts(reexports);
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((each) => typeof each === "string");
}
