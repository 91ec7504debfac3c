import { syncBuiltinESMExports } from "node:module";
import { ModuleError } from "./module-error.ts";
import { stackFrames } from "./stack-frames.ts";

/** Whether a file is one that a loader evaluates, and so may not end the process. */
export type IsGuarded = (file: string) => boolean;

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
      const message = `${file} called process.${call}(), which would end the host. Throw an error or return a failure instead.`;
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
