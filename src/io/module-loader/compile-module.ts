import { compileFunction } from "node:vm";
import { decoratorHelpers } from "./legacy-decorators.ts";

/** What transformed code calls; the names are those of the transform. */
export interface ModuleBindings {
  readonly exports: object;
  readonly importModule: (specifier: string, metadata?: { readonly importedNames?: readonly string[] }) => unknown;
  readonly importDynamic: (specifier: unknown) => Promise<unknown>;
  readonly meta: object;
  readonly exportAll: (namespace: object) => void;
  /** `require`, `__filename` and `__dirname`, for TypeScript that was written for CommonJS. */
  readonly commonJs: readonly unknown[];
}

/** What stacks and debuggers see of compiled code. */
export interface ScriptName {
  readonly address: string;
  /** A comment for debuggers, or nothing. `head`: the lines before the code. */
  commentFor(code: string, head: number): string;
}

/** For code that is compiled to see whether it can be. */
export function trialName(): ScriptName {
  return { address: "", commentFor: () => "" };
}

type Compiled<Result> = (bindings: ModuleBindings) => Result;

const PARAMETERS = [
  "__vite_ssr_exports__",
  "__vite_ssr_import__",
  "__vite_ssr_dynamic_import__",
  "__vite_ssr_import_meta__",
  "__vite_ssr_exportAll__",
  "babelHelpers",
];
const COMMONJS_WORDS = ["require", "__filename", "__dirname"];
const AsyncFunction = (async () => {}).constructor as FunctionConstructor;

/** Lines that a function's head and our first line put before the code. */
export const MODULE_LINE_OFFSET = 3;

// Function constructors and not vm.Script or import(): V8 keeps what those compiled, and an old generation would never be freed.
export function compileAsync(code: string, name: ScriptName, withCommonJs = false): Compiled<Promise<void>> {
  return bind(new AsyncFunction(...parameters(withCommonJs), body(code, name)), withCommonJs);
}

/** The same module for `require`, which cannot wait: static imports become calls. Top-level await is a SyntaxError here. */
export function compileSync(code: string, name: ScriptName, withCommonJs = false): Compiled<void> {
  return bind(new Function(...parameters(withCommonJs), body(code.replace(STATIC_IMPORT, "$1$2"), name)), withCommonJs);
}

/** The CommonJS wrapper; lines and columns stay the file's own. */
export function compileCommonJs(code: string, { address, commentFor }: ScriptName): (...parameters: readonly unknown[]) => unknown {
  return compileFunction(code + commentFor(code, 0), COMMONJS_PARAMETERS, { filename: address }) as (
    ...parameters: readonly unknown[]
  ) => unknown;
}

const COMMONJS_PARAMETERS = ["exports", "require", "module", "__filename", "__dirname", "__vite_ssr_dynamic_import__", "babelHelpers"];
const STATIC_IMPORT = /^(const __vite_ssr_import_\d+__ = )await (__vite_ssr_import__\()/gm;

function parameters(withCommonJs: boolean): string[] {
  return withCommonJs ? [...PARAMETERS, ...COMMONJS_WORDS] : PARAMETERS;
}

function body(code: string, { address, commentFor }: ScriptName): string {
  return `"use strict";\n${code}\n//# sourceURL=${address}${commentFor(code, MODULE_LINE_OFFSET)}`;
}

// biome-ignore lint/complexity/noBannedTypes: what the Function constructor returns has no narrower type
function bind<Result>(compiled: Function, withCommonJs: boolean): Compiled<Result> {
  return ({ exports, importModule, importDynamic, meta, exportAll, commonJs }) => {
    const values = [exports, importModule, importDynamic, meta, exportAll, decoratorHelpers];
    return compiled(...values, ...(withCommonJs ? commonJs : []));
  };
}
