import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { makeOnce } from "./compile-once.ts";

const root = fileURLToPath(new URL("..", import.meta.url));

// Without tree shaking, which also replaces variables by their values: messages of errors name variables.
const build = `import { build } from "rolldown";
const [input, file] = process.argv.slice(1);
await build({ input, platform: "node", logLevel: "silent", treeshake: false, output: { file, format: "esm", codeSplitting: false, minify: false } });`;

/**
 * Bundles a program with all that it imports into one file, and returns its path. Tests start such programs often, and most of the time of
 * a start is the reading of many small modules. The program may import files of its own folder, and packages.
 */
export function bundleProgram(program: string): string {
  const hash = createHash("sha256").update(`${basename(program)}\0${build}`);
  const files = readdirSync(dirname(program), { withFileTypes: true }).filter((file) => file.isFile());
  for (const { name } of files) hash.update(`${name}\0${readFileSync(join(dirname(program), name), "utf8")}\0`);
  hash.update(readFileSync(join(root, "package-lock.json")));
  const folder = makeOnce(`program-${hash.digest("hex").slice(0, 16)}`, (target) => {
    const arguments_ = ["--input-type=module", "--eval", build, program, join(target, basename(program))];
    execFileSync(process.execPath, arguments_, { cwd: root, stdio: "pipe" });
  });
  return join(folder, basename(program));
}
