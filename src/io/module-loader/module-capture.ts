import type { Scope } from "../scope.ts";
import { GraphLoads } from "./graph-loads.ts";
import { ModuleError } from "./module-error.ts";
import { type GraphParts, ModuleGraph } from "./module-graph.ts";
import type { LoadedModule, PreparedModule } from "./module-loader.ts";
import type { FolderConfig } from "./package-config.ts";
import { parseJson } from "./read-source.ts";
import type { ImportKind, Resolved } from "./resolve-module.ts";
import { compileSync, type TransformedSource, trialName } from "./transform-source.ts";

/** The texts of an entry and the local files that it imports, at the time of reading. None of them has run. */
export interface Capture {
  readonly entry: string;
  readonly texts: ReadonlyMap<string, string>;
  readonly configs: ReadonlyMap<string, FolderConfig>;
  /** The resolution of each import, by `edgeKey`. */
  readonly edges: ReadonlyMap<string, Resolved>;
  /** Configuration files, and candidate paths that did not exist. */
  readonly inputs: ReadonlySet<string>;
  /** The first static import that cannot be resolved. */
  readonly missing: ModuleError | undefined;
  readonly hasTopLevelAwait: boolean;
}

export function edgeKey(kind: ImportKind, importer: string, specifier: string): string {
  return JSON.stringify([kind, importer, specifier]);
}

/**
 * Reads an entry and all that it imports or requires by a literal specifier.
 * @throws ModuleError when a file does not parse or cannot be read
 */
export function captureModule(entry: string, parts: GraphParts): Capture {
  const capture: OpenCapture = {
    entry,
    texts: new Map([[entry, ""]]),
    configs: new Map(),
    edges: new Map(),
    inputs: new Set(),
    missing: undefined,
    // A getter, because only jiti needs it and it may require a compilation.
    get hasTopLevelAwait() {
      return [...capture.texts].some(([file, text]) => awaitsAtTop(prepareIn(capture, parts, file, text)));
    },
  };
  try {
    for (const file of capture.texts.keys()) addFile(file, capture, parts);
    return capture;
  } catch (error) {
    throw error instanceof ModuleError ? error.withFiles(pathsOf(capture)) : error;
  }
}

/** All paths whose change may invalidate a capture. */
export function pathsOf({ texts, inputs }: Capture): string[] {
  return [...texts.keys(), ...inputs];
}

/** Whether the captured files are unchanged on disk. */
export function isCurrent({ texts }: Capture, read: GraphParts["read"]): boolean {
  for (const [file, text] of texts) if (readOrNothing(file, read) !== text) return false;
  return true;
}

interface OpenCapture extends Capture {
  readonly texts: Map<string, string>;
  readonly configs: Map<string, FolderConfig>;
  readonly edges: Map<string, Resolved>;
  readonly inputs: Set<string>;
  missing: ModuleError | undefined;
}

function addFile(file: string, capture: OpenCapture, parts: GraphParts): void {
  const config = parts.configs.of(file);
  const text = parts.read(file);
  for (const input of config.inputs) capture.inputs.add(input);
  capture.texts.set(file, text);
  capture.configs.set(file, config);
  const prepared = prepareIn(capture, parts, file, text);
  if (prepared.kind === "json") parseJson(file, text);
  for (const specifier of prepared.imports) addEdge("import", file, specifier, capture, parts);
  for (const specifier of literalRequires(prepared.code)) addEdge("require", file, specifier, capture, parts);
}

function prepareIn(capture: Capture, { transforms, configs }: GraphParts, file: string, text: string): TransformedSource {
  return transforms.prepare(file, text, (capture.configs.get(file) ?? configs.of(file)).settings);
}

function addEdge(kind: ImportKind, importer: string, specifier: string, capture: OpenCapture, { resolver }: GraphParts): void {
  try {
    const target = resolver.resolve({ specifier, importer, kind, missed: (path) => capture.inputs.add(path) });
    capture.edges.set(edgeKey(kind, importer, specifier), target);
    if (target.kind === "local" && !capture.texts.has(target.file)) capture.texts.set(target.file, "");
  } catch (error) {
    // A require may stand in a branch that never runs; a static import always fails.
    if (kind === "import" && error instanceof ModuleError) capture.missing ??= error;
  }
}

function literalRequires(code: string): string[] {
  return [...code.matchAll(/\brequire\s*\(\s*(["'])([^"'\n]+)\1\s*\)/g)].map((match) => match[2]!);
}

function awaitsAtTop({ kind, code, usesCommonJs }: TransformedSource): boolean {
  if (kind !== "esm" || !/\bawait\b/.test(code.replace(/^.*await __vite_ssr_import__\(.*$/gm, ""))) return false;
  try {
    compileSync(code, trialName(), usesCommonJs);
    return false;
  } catch {
    // The text compiles as an asynchronous function, so the error is a top-level await.
    return true;
  }
}

function readOrNothing(file: string, read: GraphParts["read"]): string | undefined {
  try {
    return read(file);
  } catch {
    // Removed or no longer a file: this counts as changed.
    return undefined;
  }
}

interface PreparedLoads {
  readonly read: GraphParts["read"];
  /** Loads the files on disk, in the shared graph. */
  readonly loadCurrent: (scope: Scope) => Promise<LoadedModule>;
  /** Loads the captured texts in a separate graph. */
  readonly loadCaptured: (capture: Capture, scope: Scope) => Promise<LoadedModule>;
}

/** A captured module, which runs at most once: in the shared graph while its files are unchanged, otherwise in a separate one. */
export function toPreparedModule(capture: Capture, loads: PreparedLoads): PreparedModule {
  const files = new Set(capture.texts.keys());
  let held: Capture | undefined = capture;
  let running: Promise<LoadedModule> | undefined;

  const run = async (scope: Scope): Promise<LoadedModule> => {
    try {
      const loaded = await (held === undefined || isCurrent(held, loads.read) ? loads.loadCurrent(scope) : loads.loadCaptured(held, scope));
      // The module does not run again, so the texts can be released.
      held = undefined;
      return loaded;
    } catch (error) {
      running = undefined;
      throw error;
    }
  };
  return {
    files,
    evaluate(scope) {
      running ??= run(scope);
      return running;
    },
  };
}

/** A separate graph over captured texts; other files are read from disk. */
export function loadCaptured(capture: Capture, parts: GraphParts, { signal }: Scope): Promise<LoadedModule> {
  const island: GraphParts = {
    ...parts,
    read: (file) => capture.texts.get(file) ?? parts.read(file),
    configs: { of: (file) => capture.configs.get(file) ?? parts.configs.of(file) },
    resolver: {
      resolve: (request) =>
        capture.edges.get(edgeKey(request.kind, request.importer, request.specifier)) ?? parts.resolver.resolve(request),
    },
  };
  return new GraphLoads(new ModuleGraph(island)).load(capture.entry, signal);
}
