import { fileURLToPath } from "node:url";
import { bundleProgram } from "../../bundle-program.ts";

/** The double of the language server as a separate program, which can crash and receive signals. */
export const doubleProgram: string = bundleProgram(fileURLToPath(new URL("language-server.mjs", import.meta.url)));
