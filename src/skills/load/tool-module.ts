import { extname } from "node:path";
import { fileURLToPath } from "node:url";
import type { Diagnostic } from "../../base/diagnostic.ts";
import { errorMessage } from "../../base/errors.ts";
import { isThenable } from "../../base/wait.ts";
import { maxDocumentBytes } from "../../formats/text/limits.ts";
import type { ModuleLoaderOptions } from "../../io/module-loader/create-module-loader.ts";
import { type FileGuard, readTextFile } from "../../io/read-bounded.ts";
import type { Scope } from "../../io/scope.ts";
import { type DefinedPrompt, isDefinedPrompt } from "../../tools/define/define-prompt.ts";
import { type DefinedResource, isDefinedResource } from "../../tools/define/define-resource.ts";
import { isToolLike, type ToolLike } from "../../tools/define/define-tool.ts";
import type { ToolContext } from "../../tools/tool.ts";
import { normalizeResult } from "../../tools/tool-result.ts";
import { moduleExtensions } from "./tool-entries.ts";

/** The argument of a module's default function: its skill, and the lifetime of this generation. */
export interface SkillApi {
  readonly skill: { readonly name: string; readonly folder: string };
  /** Fires when this generation is replaced or its skill is removed. */
  readonly signal: AbortSignal;
  /** Runs `end` when this generation ends, after its last call, in reverse order of registration. */
  onDispose(end: () => void | Promise<void>): void;
}

/** The context of the `execute(input, context)` of a `SCHEMA` module. */
export interface ExecuteContext extends ToolContext {
  /** The session's working directory. */
  readonly workspaceRoot: string;
  /** Like `fileChanged`: reports that the tool wrote a file. */
  syncFileToServer(path: string, content: string): void;
  /** Asks editors and servers to open a document with a text: its URI, and the language as editors name it. */
  openDocument(uri: string, languageId: string, text: string): void;
}

/** The definitions of a module, each once, grouped by kind. */
interface ModuleDefinitions {
  readonly tools: readonly ToolLike[];
  readonly prompts: readonly DefinedPrompt[];
  readonly resources: readonly DefinedResource[];
  readonly diagnostics: readonly Diagnostic[];
}

type Exports = Readonly<Record<string, unknown>>;
type Definition = ToolLike | DefinedPrompt | DefinedResource;

/**
 * Finds the tools, prompts and resources that a module defines: `SCHEMA` with `execute`, a default export that is a definition, an array
 * of them or a function that returns them, and named exports. A `dispose` export, or a `dispose` in the function's result, runs when the
 * generation ends. Invalid definitions become diagnostics. Rejects with errors of the function.
 */
export async function definitionsOfModule(exports: Exports, file: string, api: SkillApi, scope: Scope): Promise<ModuleDefinitions> {
  const collected: Collected = { file, found: [], diagnostics: [] };
  const { found, diagnostics } = collected;
  registerDisposer(exports["dispose"], scope);
  if (typeof exports["execute"] === "function") collectExecute(exports, collected);
  if (!repeatsNames(exports)) await collectDefault(exports["default"], collected, { api, scope });
  for (const name of Object.keys(exports).sort()) {
    const value = exports[name];
    if (name !== "default" && isDefinition(value)) found.push(value);
  }
  if (found.length === 0 && diagnostics.length === 0) diagnostics.push(exportsNothing(file));
  const distinct = [...new Set(found)];
  return {
    tools: distinct.filter(isToolLike),
    prompts: distinct.filter(isDefinedPrompt),
    resources: distinct.filter(isDefinedResource),
    diagnostics,
  };
}

interface Collected {
  readonly file: string;
  readonly found: Definition[];
  readonly diagnostics: Diagnostic[];
}

function isDefinition(value: unknown): value is Definition {
  return isToolLike(value) || isDefinedPrompt(value) || isDefinedResource(value);
}

function collectExecute(exports: Exports, { file, found, diagnostics }: Collected): void {
  const schema = exports["SCHEMA"];
  if (typeof schema !== "object" || schema === null || typeof (schema as { name?: unknown }).name !== "string") {
    diagnostics.push(noSchema(file));
    return;
  }
  const execute = exports["execute"] as (input: unknown, context: ExecuteContext) => unknown;
  const { inputSchema, parameters = inputSchema, ...definition } = schema as Record<string, unknown> & { name: string };
  found.push({ ...definition, ...(parameters === undefined ? {} : { parameters }), handler: adaptExecute(execute) } as ToolLike);
}

/** Adapts an `execute(input, context)` function, whose results have their own form, to a handler. */
export function adaptExecute(execute: (input: unknown, context: ExecuteContext) => unknown) {
  return (args: unknown, _invocation: unknown, context: ToolContext): unknown => {
    const raw = execute(args, executeContext(context));
    return isThenable(raw) ? Promise.resolve(raw).then(fromExecute) : fromExecute(raw);
  };
}

function fromExecute(raw: unknown): unknown {
  return normalizeResult(raw, { form: "execute" });
}

function executeContext(context: ToolContext): ExecuteContext {
  return {
    invocation: context.invocation,
    workspaceRoot: context.invocation.workingDirectory,
    ask: (kind, data) => context.ask(kind, data),
    callTool: (ref, args) => context.callTool(ref, args),
    progress: (update) => context.progress(update),
    fileChanged: (path, content, options) => context.fileChanged(path, content, options),
    background: (work) => context.background(work),
    syncFileToServer: (path, content) => context.fileChanged(path, content),
    openDocument: (uri, languageId, text) => context.fileChanged(toPath(uri), text, { languageId }),
  };
}

/** Documents that are not files keep their URI. */
function toPath(uri: string): string {
  return uri.startsWith("file:") ? fileURLToPath(uri) : uri;
}

async function collectDefault(
  value: unknown,
  { file, found, diagnostics }: Collected,
  { api, scope }: { readonly api: SkillApi; readonly scope: Scope },
): Promise<void> {
  if (value === undefined) return;
  const isFactory = typeof value === "function" && !isDefinition(value);
  const produced: unknown = isFactory ? await (value as (api: SkillApi) => unknown)(api) : value;
  if (typeof produced === "function" && isFactory) return registerDisposer(produced, scope);
  if (isBundle(produced)) registerDisposer(produced["dispose"], scope);
  const parts: readonly (readonly [name: string, value: unknown])[] = isBundle(produced)
    ? bundleKeys.map((key) => [`${key} of the default export`, produced[key]])
    : [["the default export", produced]];
  for (const [what, items] of parts) {
    if ((isFactory || isBundle(produced)) && (items === undefined || items === null)) continue;
    (Array.isArray(items) ? items : [items]).forEach((item, index) => {
      if (isDefinition(item)) found.push(item);
      else diagnostics.push(isNothing(file, Array.isArray(items) ? `item ${index} of ${what}` : what, item));
    });
  }
}

/** CommonJS repeats its named exports as one default object. */
function repeatsNames(exports: Exports): boolean {
  const whole = exports["default"];
  if (typeof whole !== "object" || whole === null || Array.isArray(whole) || isDefinition(whole)) return false;
  const keys = Object.keys(whole).filter((key) => key !== "default" && key !== "__esModule");
  return keys.every((key) => Object.hasOwn(exports, key) && exports[key] === (whole as Exports)[key]);
}

const bundleKeys = ["tools", "prompts", "resources"] as const;

function isBundle(value: unknown): value is Exports {
  if (typeof value !== "object" || value === null || Array.isArray(value) || isDefinition(value)) return false;
  return bundleKeys.some((key) => key in value);
}

type Disposer = () => void | Promise<void>;

/** How many scopes share a disposer: an unchanged module is carried over when its skill is reloaded. */
const holders = new WeakMap<Disposer, number>();

/** Registers a disposer, if the value is one, to run when the last scope that it was registered for ends. */
export function registerDisposer(value: unknown, scope: Scope): void {
  if (typeof value !== "function") return;
  const disposer = value as Disposer;
  holders.set(disposer, (holders.get(disposer) ?? 0) + 1);
  scope.onDispose(() => {
    const left = (holders.get(disposer) ?? 1) - 1;
    holders.set(disposer, left);
    return left === 0 ? disposer() : undefined;
  });
}

function exportsNothing(file: string): Diagnostic {
  const message =
    "This module exports no tool, prompt or resource. Export one created with defineTool(…), definePrompt(…) or defineResource(…), an array of them, or SCHEMA and execute. Begin the name of a helper file with an underscore.";
  return { severity: "error", code: "MODULE_NO_TOOLS", file, message };
}

function noSchema(file: string): Diagnostic {
  const message =
    "This module exports execute without a SCHEMA object that has a name. Export const SCHEMA = { name, description, inputSchema }.";
  return { severity: "error", code: "MODULE_NO_SCHEMA", file, message };
}

function isNothing(file: string, what: string, item: unknown): Diagnostic {
  const kind =
    item === null
      ? "null"
      : Array.isArray(item)
        ? "an array"
        : typeof item === "object"
          ? "an object without a name and handler"
          : `a ${typeof item}`;
  return {
    severity: "error",
    code: "MODULE_NOT_A_TOOL",
    file,
    message: `In this module ${what} is ${kind}, not a tool, prompt or resource. Create it with defineTool(name, { … }), definePrompt or defineResource.`,
  };
}

/** The diagnostic for a failure of the module's own code: its message, never its stack. */
export function moduleFailure(file: string, error: unknown): Diagnostic {
  return { severity: "error", code: "MODULE_THREW", file, message: `This module failed while it loaded: ${errorMessage(error)}` };
}

/** What modules of skills and plugins can import without an installation. */
export const providedModules: Pick<ModuleLoaderOptions, "hostModules" | "fallbackPackages"> = {
  hostModules: {
    skillhost: () => importOwn("skillhost"),
    "skillhost/define": () => importOwn("skillhost/define"),
    "skillhost/testing": () => importOwn("skillhost/testing"),
  },
  fallbackPackages: ["zod"],
};

/**
 * By a name that bundlers do not see: what is imported as a whole stays in a bundle as a whole, and a module that defines a tool
 * would be bundled with all of this package.
 */
function importOwn(specifier: string): Promise<Readonly<Record<string, unknown>>> {
  return import(/* @vite-ignore */ specifier);
}

const meant = [/["']skillhost["'/]/, /\bSCHEMA\b/, /^[ \t]{0,20}export\b[^;\n]{0,500}\bfrom\s{0,20}["']/m];

/**
 * Whether a module is a script: its text shows no exported tool. A module that imports skillhost, uses the names of the SCHEMA form, or
 * re-exports another file is meant as a tool, and loading it reports its errors; so does loading a module that does not parse.
 */
export async function isScript(file: string, guard: FileGuard | undefined): Promise<boolean> {
  if (!moduleExtensions.includes(extname(file))) return false;
  const read = readTextFile(file, maxDocumentBytes, guard);
  if (!read.ok || meant.some((pattern) => pattern.test(read.text))) return false;
  // The parser is a native library, which a start without such a file does not need.
  const [{ parseModule }, { exportsOf }] = await Promise.all([
    import("../../formats/modules/module-source.ts"),
    import("../../formats/modules/module-exports.ts"),
  ]);
  const module = parseModule(file, read.text);
  return module !== undefined && exportsOf(module).tools !== "written";
}
