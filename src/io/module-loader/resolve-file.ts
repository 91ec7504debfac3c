import { extname, join } from "node:path";
import { diskFiles, type ModuleFiles } from "./module-files.ts";
import { readPackage } from "./package-config.ts";
import { isTypeScript } from "./transform-source.ts";

/** Told of every path that was looked at and was not there: creating one may change the answer. */
export type Missed = (path: string) => void;

const EXTENSIONS = [".ts", ".tsx", ".mts", ".cts", ".js", ".jsx", ".mjs", ".cjs", ".json"];
const SOURCES_OF: Readonly<Record<string, readonly string[]>> = {
  ".js": [".ts", ".tsx"],
  ".jsx": [".tsx"],
  ".mjs": [".mts"],
  ".cjs": [".cts"],
};

/**
 * The file that a path without certainty means: the path itself, the TypeScript source of the JavaScript it names, the
 * path with an extension, or the index of a folder. TypeScript importers see a source before what was built from it.
 */
export function resolveFile(path: string, importer: string, missed: Missed, files: ModuleFiles = diskFiles): string | undefined {
  for (const candidate of fileCandidates(path, importer)) {
    if (files.isFile(candidate)) return files.realPath(candidate);
    missed(candidate);
  }
  return resolveFolder(path, importer, missed, files);
}

function fileCandidates(path: string, importer: string): string[] {
  const extension = extname(path);
  const sources = (SOURCES_OF[extension] ?? []).map((source) => path.slice(0, -extension.length) + source);
  const exact = isTypeScript(importer) ? [...sources, path] : [path, ...sources];
  return path.endsWith("/") ? [] : [...exact, ...EXTENSIONS.map((each) => path + each)];
}

function resolveFolder(path: string, importer: string, missed: Missed, files: ModuleFiles): string | undefined {
  if (!files.isFolder(path)) return undefined;
  const manifest = join(path, "package.json");
  const main = files.isFile(manifest) ? readPackage(manifest, files).main : undefined;
  const named = main === undefined ? undefined : resolveFile(join(path, main), importer, missed, files);
  return named ?? resolveIndex(path, missed, files);
}

function resolveIndex(folder: string, missed: Missed, files: ModuleFiles): string | undefined {
  for (const extension of EXTENSIONS) {
    const candidate = join(folder, `index${extension}`);
    if (files.isFile(candidate)) return files.realPath(candidate);
    missed(candidate);
  }
  return undefined;
}
