import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { compileOnce } from "./compile-once.ts";

const root = fileURLToPath(new URL("..", import.meta.url));

/**
 * Compiles the current sources and the given files to JavaScript, for child processes that must start quickly and often.
 * Returns the path of a compiled file by its path from the root of the repository. Other files are copied unchanged.
 */
export function compileSources(...files: string[]): (file: string) => string {
  const sources = readdirSync(join(root, "src"), { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".ts"))
    .map((file) => join("src", file));
  const all = ["package.json", ...sources, ...files];
  const folder = compileOnce("compiled", new Map(all.map((file) => [file, readFileSync(join(root, file), "utf8")])));
  return (file) => join(folder, file.replace(/\.ts$/, ".js"));
}
