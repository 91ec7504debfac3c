import { spawnSync } from "node:child_process";
import { syncBuiltinESMExports } from "node:module";
import { ModuleError, stackFrames } from "./module-error.ts";

/** Whether a file is one that a loader evaluates, and so may not end the process. */
type IsGuarded = (file: string) => boolean;

/**
 * Keeps loaded modules from ending the process: `process.exit` and `process.abort` throw `MODULE_EXITED` when the call
 * comes from a guarded file, and work for everybody else. Code that means harm finds other ways; this is for mistakes.
 */
export function guardExit(isGuarded: IsGuarded): Disposable {
  const { exit, abort } = process;
  const guarded = (call: string, real: (...args: never[]) => never) =>
    function guard(...args: never[]): never {
      const file = callerAmong(isGuarded, guard);
      if (file === undefined) return Reflect.apply(real, process, args);
      const message = `${file} called process.${call}(), which would stop the host. Throw an error or return a failure instead.`;
      throw new ModuleError("MODULE_EXITED", message, { file });
    };
  const own = { exit: guarded("exit", exit), abort: guarded("abort", abort) };
  install(own);
  // Another guard may sit on top of ours by then; it stays.
  return { [Symbol.dispose]: () => process.exit === own.exit && install({ exit, abort }) };
}

function install({ exit, abort }: { readonly exit: typeof process.exit; readonly abort: typeof process.abort }): void {
  process.exit = exit;
  process.abort = abort;
  // For `import { exit } from "node:process"`.
  syncBuiltinESMExports();
}

// biome-ignore lint/complexity/noBannedTypes: captureStackTrace takes any function
function callerAmong(isGuarded: IsGuarded, below: Function): string | undefined {
  const limit = Error.stackTraceLimit;
  const trace: { stack?: string } = {};
  Error.stackTraceLimit = 200;
  Error.captureStackTrace(trace, below);
  const stack = trace.stack ?? "";
  Error.stackTraceLimit = limit;
  return stackFrames(stack)
    .map(({ file }) => file)
    .find(isGuarded);
}

/** What was added to a built-in prototype: `Array.prototype.last`. */
type Pollution = readonly string[];

const PROTOTYPES: readonly (readonly [string, object])[] = [
  ["Object", Object.prototype],
  ["Function", Function.prototype],
  ["Array", Array.prototype],
  ["String", String.prototype],
  ["Number", Number.prototype],
  ["Boolean", Boolean.prototype],
  ["Symbol", Symbol.prototype],
  ["Promise", Promise.prototype],
  ["Map", Map.prototype],
  ["Set", Set.prototype],
  ["Date", Date.prototype],
  ["RegExp", RegExp.prototype],
  ["Error", Error.prototype],
];

export type PrototypeKeys = readonly (readonly PropertyKey[])[];

/** The keys of the built-in prototypes, as they are now. A few microseconds. */
export function prototypeKeys(): PrototypeKeys {
  return PROTOTYPES.map(([, prototype]) => Reflect.ownKeys(prototype));
}

/** What has been added since. Replaced methods are not seen: that would cost a comparison of each of them. */
export function addedSince(before: PrototypeKeys): Pollution {
  return PROTOTYPES.flatMap(([name, prototype], at) => {
    const keys = Reflect.ownKeys(prototype);
    const known = before[at] ?? [];
    if (keys.length === known.length) return [];
    return keys.filter((key) => !known.includes(key)).map((key) => `${name}.prototype.${String(key)}`);
  });
}

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
  const message = `${file} nests too deeply to be parsed safely. Split its deepest expression.`;
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
