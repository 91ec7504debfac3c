import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { compileOnce } from "./compile-once.ts";

const root = fileURLToPath(new URL("..", import.meta.url));

export interface BuiltPackage {
  /** Has `package.json`, and `dist` with a file for each source. */
  readonly folder: string;
  /** The command line of the bundle that users get, which can be run by itself. */
  readonly bin: string;
}

/** The package as installed, with its plugins, built from the current sources. Tests must not write to it. */
export function buildPackage(): BuiltPackage {
  const folder = compileOnce("package", readSources());
  return { folder, bin: join(folder, "shipped/dist/cli/bin.js") };
}

/** The sources by the paths of their built files, and the manifest. */
function readSources(): ReadonlyMap<string, string> {
  const parts = ["package.json", "scripts/bundle.mjs", "scripts/copy-declarations.mjs"];
  const sources = new Map(parts.map((file) => [file, readFileSync(join(root, file), "utf8")]));
  for (const [from, to] of [
    ["src", "dist"],
    ["plugins", "dist/plugins"],
  ] as const) {
    for (const file of readdirSync(join(root, from), { recursive: true, encoding: "utf8" })) {
      if (file.endsWith(".ts")) sources.set(join(to, file), readFileSync(join(root, from, file), "utf8"));
    }
  }
  return sources;
}
