// What the bundled plugins read at run time beside their code goes where their compiled code is.
import { cpSync } from "node:fs";
import { extname } from "node:path";
import { fileURLToPath } from "node:url";

const [from, to] = ["../plugins", "../dist/plugins"].map((path) => fileURLToPath(new URL(path, import.meta.url)));
const compiled = new Set([".ts", ".json", ".pyc"]);
cpSync(from, to, { recursive: true, filter: (path) => !compiled.has(extname(path)) && !path.endsWith("__pycache__") });
