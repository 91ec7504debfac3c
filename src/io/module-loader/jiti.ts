import { createRequire } from "node:module";
import { sep } from "node:path";
import { pathToFileURL } from "node:url";
import type { Jiti, JitiOptions, TransformOptions } from "jiti";
import { waitFor } from "../../base/wait.ts";
import { type CacheKey, cacheKey, type DiskCache } from "../disk-cache.ts";
import { decoratorHelpers } from "./decorators.ts";
import { importNative } from "./host-modules.ts";
import { type Capture, captureModule, type edgeKey, pathsOf } from "./module-capture.ts";
import { placeIn, toModuleError } from "./module-error.ts";
import type { GraphParts } from "./module-graph.ts";
import type { LoadedModule } from "./module-loader.ts";
import { createNamespace, fillFromCommonJs } from "./module-record.ts";
import { compilerIdentity, nativeCompiler } from "./transform-source.ts";

const require = createRequire(import.meta.url);
const nativeCache = require.cache;
const helpersModule = "skillhost:decorators";

/**
 * Runs an entry with jiti, synchronously, because only then jiti notices edits of every kind of helper. A top-level await,
 * which occurs only when this engine was requested, requires an asynchronous run, in which edits of JavaScript helpers are not
 * noticed.
 */
async function runWithJiti(capture: Capture, parts: GraphParts, cache: DiskCache | undefined): Promise<Readonly<Record<string, unknown>>> {
  const { entry, texts } = capture;
  const { createJiti } = await import("jiti");
  const url = pathToFileURL(entry).href;
  const options = await jitiOptions(capture, parts);
  const compiler = createJiti(url, options);
  const compile = (given: TransformOptions): string => compiler.transform(withoutDecorators(given, capture));
  const transform = (given: TransformOptions): { code: string } => {
    if (cache === undefined) return { code: compile(given) };
    const key = keyOf(given, capture, options);
    const stored = cache.get(key);
    const code = typeof stored === "string" ? stored : compile(given);
    if (code !== stored) cache.set(key, code);
    return { code };
  };
  const jiti = createJiti(url, { ...options, transform });
  // Node.js keeps what jiti hands to it: CommonJS and JSON helpers.
  for (const file of texts.keys()) delete nativeCache[file];
  // What jiti returns, as a namespace: its exports, or the one value of a module that is `module.exports`.
  const [value] = await evaluate(jiti, entry, capture.hasTopLevelAwait);
  const namespace = createNamespace();
  const isEsModule = typeof value === "object" && value !== null && Object.hasOwn(value, "__esModule");
  if (!isEsModule) fillFromCommonJs(namespace, value);
  else for (const key of Object.keys(value)) if (key !== "__esModule") namespace[key] = (value as Record<string, unknown>)[key];
  return namespace;
}

async function evaluate(jiti: Jiti, file: string, isAsync: boolean): Promise<readonly unknown[]> {
  // In an array, so that a module that exports `then` is not treated as a promise.
  return [isAsync ? await jiti.import(file) : (jiti as (id: string) => unknown)(file)];
}

async function jitiOptions(capture: Capture, parts: GraphParts): Promise<JitiOptions> {
  const { tsconfig, compilerOptions } = parts.configs.of(capture.entry);
  const { jsxImportSource: importSource, jsxFactory: pragma, jsxFragmentFactory: pragmaFrag } = compilerOptions;
  const classic = { runtime: "classic", ...(pragma ? { pragma } : {}), ...(pragmaFrag ? { pragmaFrag } : {}) } as const;
  const automatic = { runtime: "automatic", ...(importSource ? { importSource } : {}) } as const;
  return {
    moduleCache: false,
    fsCache: false,
    virtualModules: await virtualModules(capture, parts),
    tsconfigPaths: tsconfig ?? false,
    jsx: compilerOptions.jsx === "react" ? classic : automatic,
  };
}

// Node.js evaluates packages once and passes them on: in synchronous runs jiti would evaluate them again each time.
async function virtualModules({ edges }: Capture, { hosts }: GraphParts): Promise<Record<string, unknown>> {
  const modules: Record<string, unknown> = Object.assign(Object.create(null), Object.fromEntries(await hosts.loadAll()));
  modules[helpersModule] = { default: decoratorHelpers };
  for (const [key, target] of edges) {
    const [kind, , specifier] = JSON.parse(key) as Parameters<typeof edgeKey>;
    if (kind === "import" && target.kind === "native") modules[specifier] = await importNative(target.file);
  }
  return modules;
}

/**
 * The captured text, with decorators compiled, because jiti's own transform fails on decorated fields. Texts without decorators
 * are passed on unchanged.
 */
function withoutDecorators(given: TransformOptions, { texts, configs }: Capture): TransformOptions {
  const file = given.filename ?? "";
  const source = texts.get(file) ?? given.source;
  const config = configs.get(file);
  if (!given.ts || config === undefined) return { ...given, source };
  const compiled = nativeCompiler().transformSync(file, source, config.settings.transform);
  if (Object.keys(compiled.helpersUsed).length === 0) return { ...given, source };
  return { ...given, ts: false, source: `import babelHelpers from "${helpersModule}"; ${compiled.code}` };
}

// What jiti compiles contains the file's path.
function keyOf(given: TransformOptions, { texts, configs }: Capture, { jsx }: JitiOptions): CacheKey {
  const file = given.filename ?? "";
  const input = { ...given, source: texts.get(file) ?? given.source };
  return cacheKey("jiti", [
    compilerIdentity(),
    (require("jiti/package.json") as { version: string }).version,
    JSON.stringify([input, configs.get(file)?.settings.key ?? "", jsx]),
  ]);
}

interface Run {
  readonly capture: Capture;
  readonly result: Promise<LoadedModule>;
  waiting: number;
  isSettled: boolean;
}

/** Entries that jiti runs. Each entry has its own copies of its helpers, so an edited helper invalidates whole entries. */
export class JitiRuns {
  readonly #parts: GraphParts;
  readonly #cache: DiskCache | undefined;
  readonly #runs = new Map<string, Run>();

  constructor(parts: GraphParts, cache: DiskCache | undefined) {
    this.#parts = parts;
    this.#cache = cache;
  }

  /** Concurrent first loads share one run. A run that fails, or that no caller waits for any longer, is not cached. */
  async load(entry: string, signal: AbortSignal): Promise<LoadedModule> {
    const run = this.#runs.get(entry) ?? this.#start(entry);
    run.waiting++;
    try {
      return await waitFor(run.result, { signal });
    } finally {
      run.waiting--;
      if (run.waiting === 0 && !run.isSettled) this.#forget(entry, run);
    }
  }

  has(entry: string): boolean {
    return this.#runs.has(entry);
  }

  /** The text of a file that is part of what was run. */
  textOf(file: string): string | undefined {
    for (const { capture } of this.#runs.values()) if (capture.texts.has(file)) return capture.texts.get(file);
    return undefined;
  }

  invalidate(paths: ReadonlySet<string>): ReadonlySet<string> {
    const forgotten = new Set<string>();
    for (const [entry, { capture }] of this.#runs) {
      const changed = [...paths].flatMap((path) => affected(capture, path));
      if (changed.length === 0) continue;
      this.#runs.delete(entry);
      for (const file of [entry, ...changed]) if (capture.texts.has(file)) forgotten.add(file);
    }
    return forgotten;
  }

  clear(): void {
    this.#runs.clear();
  }

  /** Runs a capture independently of the current files on disk. */
  async run(capture: Capture): Promise<LoadedModule> {
    const files = new Set(capture.texts.keys());
    try {
      return { exports: await runWithJiti(capture, this.#parts, this.#cache), files };
    } catch (error) {
      throw toModuleError(error, capture.entry, pathsOf(capture), (stack) => ({ stack, place: placeIn(stack, files) }));
    }
  }

  #start(entry: string): Run {
    const capture = captureModule(entry, this.#parts);
    const run: Run = { capture, result: this.run(capture), waiting: 0, isSettled: false };
    this.#runs.set(entry, run);
    const settle = (): void => {
      run.isSettled = true;
    };
    run.result.then(settle, () => {
      settle();
      this.#forget(entry, run);
    });
    return run;
  }

  #forget(entry: string, run: Run): void {
    if (this.#runs.get(entry) === run) this.#runs.delete(entry);
  }
}

function affected({ texts, inputs }: Capture, path: string): string[] {
  const below = [...texts.keys()].filter((file) => file === path || file.startsWith(path + sep));
  return below.length > 0 || !inputs.has(path) ? below : [path];
}
