import { createJiti } from "jiti";
import { built } from "./built.mjs";

/**
 * jiti as its documentation has it for code that is edited: no module cache, its own Babel. `fsCache` is the folder for
 * what it transformed, or false. Modules that import the host get the built one.
 */
export async function plainJiti(base, fsCache) {
  const skillhost = await built("index.js");
  return createJiti(base, { moduleCache: false, fsCache, virtualModules: { skillhost } });
}
