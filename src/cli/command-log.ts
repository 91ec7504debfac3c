import { closeSync, mkdirSync, openSync, writeSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { errorMessage } from "../base/errors.ts";
import { createLogger, type Logger, type LogLevel } from "../base/logger.ts";
import { CliError } from "./cli-error.ts";
import type { CliIo } from "./cli-io.ts";

/** The log of one run; disposing of it closes its file. */
export interface CommandLog extends Disposable {
  readonly log: Logger;
}

/** JSON lines on stderr, or added to a file. A file that was asked for without a level gets `info`. */
export function openLog(level: LogLevel | undefined, file: string | undefined, io: CliIo): CommandLog {
  if (file === undefined) {
    const log = createLogger({ level: level ?? "error", write: (line) => io.stderr.write(`${line}\n`) });
    return { log, [Symbol.dispose]: () => {} };
  }
  const path = resolve(io.cwd, file);
  const handle = openForAppend(path);
  const log = createLogger({ level: level ?? "info", write: (line) => writeSync(handle, `${line}\n`) });
  return { log, [Symbol.dispose]: () => closeSync(handle) };
}

function openForAppend(path: string): number {
  try {
    mkdirSync(dirname(path), { recursive: true });
    // Logs may hold what tools were called with.
    return openSync(path, "a", 0o600);
  } catch (error) {
    throw new CliError("LOG_FILE", `The log file ${path} cannot be opened (${errorMessage(error)}). Name another with --log-file.`, 2);
  }
}
