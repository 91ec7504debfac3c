import { spawnSync } from "node:child_process";
import { syncBuiltinESMExports } from "node:module";
import { ModuleError, stackFrames } from "./module-error.ts";

/** Whether a loader evaluates this file, so that it must not end the process. */
type IsGuarded = (file: string) => boolean;

/**
 * Keeps loaded modules from ending the process: `process.exit` and `process.abort` throw `MODULE_EXITED` when the call comes
 * from a guarded file, and work for all other code. This prevents mistakes, not attacks: malicious code finds other ways.
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
  // A guard that was installed later stays in place.
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

/** A key that was added to a built-in prototype, such as `Array.prototype.last`. */
type Pollution = readonly string[];

const prototypes: readonly (readonly [string, object])[] = [
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

/** The current keys of the built-in prototypes. Takes a few microseconds. */
export function prototypeKeys(): PrototypeKeys {
  return prototypes.map(([, prototype]) => Reflect.ownKeys(prototype));
}

/** The keys added since the snapshot. Replaced methods are not detected, because that would require comparing each method. */
export function addedSince(before: PrototypeKeys): Pollution {
  return prototypes.flatMap(([name, prototype], at) => {
    const keys = Reflect.ownKeys(prototype);
    const known = before[at] ?? [];
    if (keys.length === known.length) return [];
    return keys.filter((key) => !known.includes(key)).map((key) => `${name}.prototype.${String(key)}`);
  });
}

const smallText = 3_000;
const largeText = 128 * 1024;
const maxBrackets = 500;
const maxOperatorRun = 1_500;
// Windows cannot start a process without SystemRoot; the parser needs no other variable.
const minimalParserEnv: NodeJS.ProcessEnv = { SystemRoot: process.env["SystemRoot"] };

// The parser recurses on the native stack, and a stack overflow there ends the process. A worker's stack is half the
// main thread's, so what passes in one passes everywhere.
const parserProbe = `
const { Worker } = require("node:worker_threads");
const parse = "const { workerData: d } = require('node:worker_threads'); const oxc = require(d.oxc);" +
  "oxc.moduleRunnerTransformSync(d.file, oxc.transformSync(d.file, d.text).code);";
const [oxc, file] = process.argv.slice(1);
new Worker(parse, { eval: true, workerData: { oxc, file, text: require("node:fs").readFileSync(0, "utf8") } });
`;

/**
 * Refuses a text that would overflow the native parser's stack and take the process with it. A scan clears ordinary files; a
 * text that looks deep, or is too large to scan, is parsed in a child process first.
 */
export function guardNesting(file: string, text: string, findParser: () => string): void {
  if (!looksDeep(text)) return;
  const args = ["-e", parserProbe, "--", findParser(), file];
  const child = spawnSync(process.execPath, args, {
    input: text,
    stdio: ["pipe", "ignore", "ignore"],
    timeout: 20_000,
    env: minimalParserEnv,
  });
  if (child.status === 0) return;
  const message = `${file} nests too deeply to be parsed safely. Split its deepest expression.`;
  throw new ModuleError("MODULE_SYNTAX", message, { file, files: [file] });
}

/** An upper bound, not a parse: brackets open at once, and operators in a row without the `;` that ends a statement. */
export function looksDeep(text: string): boolean {
  if (text.length <= smallText) return false;
  if (text.length > largeText) return true;
  let depth = 0;
  let run = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    const weight = signWeights[code] ?? 0;
    if (weight === 0) continue;
    if (code === semicolon) run = 0;
    else if (++run > maxOperatorRun) return true;
    depth = Math.max(0, depth + weight - 2);
    if (depth > maxBrackets) return true;
  }
  return false;
}

const semicolon = 59;
const signWeights: Readonly<Record<number, number>> = weights();

// 1 closes a bracket, 2 is any other operator, 3 opens a bracket.
function weights(): Record<number, number> {
  const table: Record<number, number> = Object.create(null);
  for (const char of "?:=+-*/%&|^!~.<>,;") table[char.charCodeAt(0)] = 2;
  for (const char of "([{") table[char.charCodeAt(0)] = 3;
  for (const char of ")]}") table[char.charCodeAt(0)] = 1;
  return table;
}
