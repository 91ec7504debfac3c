import { createHash } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { transformSync } from "oxc-transform";

const here = dirname(fileURLToPath(import.meta.url));
// The folder lies below node_modules so that imports resolve.
const cache = fileURLToPath(new URL("../../../node_modules/.cache/skillhost-tests", import.meta.url));

/**
 * The double of the language server as a separate program, which can crash and receive signals. It is compiled in advance because
 * tests start it very often.
 */
export const doubleProgram: string = compile();

function compile(): string {
  const files = readdirSync(here).filter((file) => file.endsWith(".ts"));
  const texts = files.map((file) => readFileSync(join(here, file), "utf8"));
  const target = join(cache, `language-server-${createHash("sha256").update(texts.join("\0")).digest("hex").slice(0, 16)}`);
  const program = join(target, "language-server.mjs");
  if (existsSync(program)) return program;
  mkdirSync(cache, { recursive: true });
  const staging = mkdtempSync(`${target}-`);
  files.forEach((file, index) => {
    const { code } = transformSync(file, texts[index]!, { typescript: { rewriteImportExtensions: "rewrite" } });
    writeFileSync(join(staging, file.replace(/\.ts$/, ".js")), code);
  });
  writeFileSync(join(staging, "package.json"), '{ "type": "module" }');
  writeFileSync(join(staging, "language-server.mjs"), 'import { runDouble } from "./run-double.js";\nrunDouble();\n');
  try {
    renameSync(staging, target);
  } catch {
    // Another process was quicker and wrote the same file.
    rmSync(staging, { recursive: true, force: true });
  }
  return program;
}
