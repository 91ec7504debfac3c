import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { transformSync } from "oxc-transform";

const root = fileURLToPath(new URL("..", import.meta.url));

export interface CompiledSources extends Disposable {
  /** The compiled form of a file, by its path from the root of the repository. */
  path(file: string): string;
}

/**
 * The sources as they are now, and some other files, as plain JavaScript: for child processes that are to start quickly
 * and often. Lies where packages are found as from the sources.
 */
export function compileSources(...files: string[]): CompiledSources {
  const cache = join(root, "node_modules/.cache/skillhost-tests");
  mkdirSync(cache, { recursive: true });
  const target = mkdtempSync(join(cache, "compiled-"));
  const sources = readdirSync(join(root, "src"), { recursive: true, encoding: "utf8" }).map((file) => join("src", file));
  for (const file of [...sources, ...files].filter((name) => name.endsWith(".ts"))) {
    const { code, errors } = transformSync(file, readFileSync(join(root, file), "utf8"), {
      typescript: { rewriteImportExtensions: "rewrite" },
    });
    if (errors.length > 0) throw new Error(`${file}: ${errors[0]?.message}`);
    mkdirSync(dirname(join(target, file)), { recursive: true });
    writeFileSync(join(target, file.replace(/\.ts$/, ".js")), code);
  }
  cpSync(join(root, "package.json"), join(target, "package.json"));
  return {
    path: (file) => join(target, file.replace(/\.ts$/, ".js")),
    [Symbol.dispose]: () => rmSync(target, { recursive: true, force: true }),
  };
}
