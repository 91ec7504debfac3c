import { compileSync, trialName } from "./compile-module.ts";
import { parseJson } from "./json-text.ts";
import { ModuleError } from "./module-error.ts";
import type { GraphParts } from "./module-graph.ts";
import type { FolderConfig } from "./package-config.ts";
import type { ImportKind, Resolved } from "./resolve-module.ts";
import type { Prepared } from "./transform-source.ts";

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

function prepareIn(capture: Capture, { transforms, configs }: GraphParts, file: string, text: string): Prepared {
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

function awaitsAtTop({ kind, code, usesCommonJs }: Prepared): boolean {
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
