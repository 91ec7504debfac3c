import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

const dist = new URL("../../dist/", import.meta.url);
const compiled = new URL("../../build/dist/", import.meta.url);

/** Imports an entry of the built package, as users get it, or a single module of it, as it was before modules became a few files. */
export async function built(path) {
  if (!existsSync(new URL("index.js", dist)) || !existsSync(new URL("index.js", compiled))) {
    console.error(`There is nothing in ${fileURLToPath(dist)}. Run \`npm run build\` first.`);
    process.exit(2);
  }
  return import(new URL(path, existsSync(new URL(path, dist)) ? dist : compiled).href);
}
