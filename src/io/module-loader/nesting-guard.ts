import { spawnSync } from "node:child_process";
import { ModuleError } from "./module-error.ts";

const SMALL = 3_000;
const LARGE = 128 * 1024;
const MAX_BRACKETS = 500;
const MAX_RUN = 1_500;
// Windows cannot start a process without it; nothing else of ours concerns a parser.
const BARE_ENV: NodeJS.ProcessEnv = { SystemRoot: process.env["SystemRoot"] };

// The parser recurses on the native stack, and a stack overflow there ends the process. A worker's stack is half the
// main thread's, so what passes in one passes everywhere.
const PROBE = `
const { Worker } = require("node:worker_threads");
const parse = "const { workerData: d } = require('node:worker_threads'); const oxc = require(d.oxc);" +
  "oxc.moduleRunnerTransformSync(d.file, oxc.transformSync(d.file, d.text).code);";
const [oxc, file] = process.argv.slice(1);
new Worker(parse, { eval: true, workerData: { oxc, file, text: require("node:fs").readFileSync(0, "utf8") } });
`;

/**
 * Refuses a text that would overflow the native parser's stack and take the process with it. Ordinary files pass by a
 * scan; what looks deep, or is too large to tell, is parsed in a child process first.
 */
export function guardNesting(file: string, text: string, parser: string): void {
  if (!looksDeep(text)) return;
  const args = ["-e", PROBE, "--", parser, file];
  const child = spawnSync(process.execPath, args, { input: text, stdio: ["pipe", "ignore", "ignore"], timeout: 20_000, env: BARE_ENV });
  if (child.status === 0) return;
  const message = `${file} nests too deeply to be parsed safely. Split the deepest expression of it.`;
  throw new ModuleError("MODULE_SYNTAX", message, { file, files: [file] });
}

/** An upper bound, not a parse: brackets open at once, and operators in a row without the `;` that ends a statement. */
export function looksDeep(text: string): boolean {
  if (text.length <= SMALL) return false;
  if (text.length > LARGE) return true;
  let depth = 0;
  let run = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    const weight = WEIGHTS[code] ?? 0;
    if (weight === 0) continue;
    if (code === SEMICOLON) run = 0;
    else if (++run > MAX_RUN) return true;
    depth = Math.max(0, depth + weight - 2);
    if (depth > MAX_BRACKETS) return true;
  }
  return false;
}

const SEMICOLON = 59;
const WEIGHTS: Readonly<Record<number, number>> = weights();

// 1 closes a bracket, 2 is any other operator, 3 opens a bracket.
function weights(): Record<number, number> {
  const table: Record<number, number> = Object.create(null);
  for (const char of "?:=+-*/%&|^!~.<>,;") table[char.charCodeAt(0)] = 2;
  for (const char of "([{") table[char.charCodeAt(0)] = 3;
  for (const char of ")]}") table[char.charCodeAt(0)] = 1;
  return table;
}
