import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

const dist = new URL("../../dist/", import.meta.url);

/** Imports a module of the built package: what is measured is what users get. */
export async function built(path) {
  if (!existsSync(new URL("index.js", dist))) {
    console.error(`There is nothing in ${fileURLToPath(dist)}. Run \`npm run build\` first.`);
    process.exit(2);
  }
  return import(new URL(path, dist).href);
}
