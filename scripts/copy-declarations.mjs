import { copyFileSync, mkdirSync, readFileSync } from "node:fs";
import { dirname, join, posix } from "node:path";

/** Copies the declarations of some modules, and of all that these name, from one folder to the same places in another. */
export function copyDeclarations(from, to, modules) {
  const copied = new Set();
  const copy = (declarations) => {
    if (copied.has(declarations)) return;
    copied.add(declarations);
    const source = join(from, declarations);
    mkdirSync(dirname(join(to, declarations)), { recursive: true });
    copyFileSync(source, join(to, declarations));
    for (const imported of importsOf(readFileSync(source, "utf8"))) copy(posix.join(posix.dirname(declarations), imported));
  };
  for (const module of modules) copy(declarationsOf(module));
}

/** Relative imports in declarations, which the compiler leaves as they are in the sources: with `.ts`. */
function importsOf(text) {
  return [...text.matchAll(/(?:from|import\()\s*"(\.[^"]+)"/g)].map(([, specifier]) => declarationsOf(specifier));
}

function declarationsOf(module) {
  return module.replace(/\.[jt]s$/, ".d.ts");
}
