import { extname } from "node:path";
import { exportsOf } from "../formats/modules/module-exports.ts";
import { parseModule } from "../formats/modules/module-source.ts";
import { maxDocumentBytes } from "../formats/text/limits.ts";
import { type FileGuard, readTextFile } from "../io/read-bounded.ts";
import { moduleExtensions } from "./module-runner.ts";

const meant = [/["']skillhost["'/]/, /\bSCHEMA\b/, /^[ \t]{0,20}export\b[^;\n]{0,500}\bfrom\s{0,20}["']/m];

/**
 * Whether a module's text shows no tool that it exports. One that imports skillhost, has the names of the SCHEMA form, or passes on
 * what another file exports is meant as a tool, and loading it says what is wrong; so does loading what does not parse.
 */
export function isScript(file: string, guard: FileGuard | undefined): boolean {
  if (!moduleExtensions.includes(extname(file))) return false;
  const read = readTextFile(file, maxDocumentBytes, guard);
  if (!read.ok || meant.some((pattern) => pattern.test(read.text))) return false;
  const module = parseModule(file, read.text);
  return module !== undefined && exportsOf(module).tools !== "written";
}
