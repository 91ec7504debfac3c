import type { Scope } from "../scope.ts";
import { GraphLoads } from "./graph-loads.ts";
import { ModuleError } from "./module-error.ts";
import { type GraphParts, ModuleGraph } from "./module-graph.ts";
import type { LoadedModule, PreparedModule } from "./module-loader.ts";
import type { FolderConfig } from "./package-config.ts";
import { parseJson } from "./read-source.ts";
import type { ImportKind, Resolved } from "./resolve-module.ts";
import { compileSync, type TransformedSource, trialName } from "./transform-source.ts";

/** An entry and the local files below it, as they were when they were read. Nothing of it has run. */
export interface Capture {
  readonly entry: string;
  readonly texts: ReadonlyMap<string, string>;
  readonly configs: ReadonlyMap<string, FolderConfig>;
  /** Where each import led, by `edgeKey`. */
  readonly edges: ReadonlyMap<string, Resolved>;
  /** Configuration files, and paths that were looked for and not there. */
  readonly inputs: ReadonlySet<string>;
  /** The first static import that leads nowhere. */
  readonly missing: ModuleError | undefined;
  readonly hasTopLevelAwait: boolean;
}

export function edgeKey(kind: ImportKind, importer: string, specifier: string): string {
  return JSON.stringify([kind, importer, specifier]);
}

/**
 * Reads an entry and all that it imports or requires by a literal specifier.
 * @throws ModuleError for what does not parse or cannot be read
 */
export function captureModule(entry: string, parts: GraphParts): Capture {
  const capture: OpenCapture = {
    entry,
    texts: new Map([[entry, ""]]),
    configs: new Map(),
    edges: new Map(),
    inputs: new Set(),
    missing: undefined,
    // Only one of the engines asks, and finding out may take another compilation.
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

/** All paths whose change concerns a capture. */
export function pathsOf({ texts, inputs }: Capture): string[] {
  return [...texts.keys(), ...inputs];
}

/** Whether the files on disk still are what was captured. */
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
    // The text compiled as an asynchronous function before, so what is wrong here is an await.
    return true;
  }
}

function readOrNothing(file: string, read: GraphParts["read"]): string | undefined {
  try {
    return read(file);
  } catch {
    // Gone or no longer a file: changed, in other words.
    return undefined;
  }
}

interface PreparedLoads {
  readonly read: GraphParts["read"];
  /** Loads what is on disk, shared with everybody else. */
  readonly loadCurrent: (scope: Scope) => Promise<LoadedModule>;
  /** Loads what was captured, for this module alone. */
  readonly loadCaptured: (capture: Capture, scope: Scope) => Promise<LoadedModule>;
}

/** A captured module that runs once, when asked: with the current modules as long as nothing changed, else on its own. */
export function toPreparedModule(capture: Capture, loads: PreparedLoads): PreparedModule {
  const files = new Set(capture.texts.keys());
  let held: Capture | undefined = capture;
  let running: Promise<LoadedModule> | undefined;

  const run = async (scope: Scope): Promise<LoadedModule> => {
    try {
      const loaded = await (held === undefined || isCurrent(held, loads.read) ? loads.loadCurrent(scope) : loads.loadCaptured(held, scope));
      // It will not run again, so the texts are of no more use.
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

/** A graph of its own over captured texts: what is not among them comes from disk. */
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
