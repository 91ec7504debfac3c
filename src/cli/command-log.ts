import { closeSync, constants, mkdirSync, openSync, writeSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { errorMessage } from "../base/errors.ts";
import { createLogger, type Logger, type LogLevel } from "../base/logger.ts";
import { CliError } from "./cli-error.ts";
import type { CommonOptions, ConfiguredOptions } from "./command-context.ts";
import type { CliIo } from "./process-io.ts";
import { createTerminalLog } from "./terminal-log.ts";
import { createStyle } from "./terminal-style.ts";

/** The log of one run; disposing of it closes its file. */
export interface CommandLog extends Disposable {
  readonly log: Logger;
}

export interface LogChoice {
  readonly level?: LogLevel | undefined;
  readonly file?: string | undefined;
  /** Whether a terminal may get colours. Default: true. */
  readonly color?: boolean | undefined;
}

/** What the command line says, else the configuration; one that was only found in a project has no say about a file. */
export function logChoice(options: Pick<CommonOptions, "logLevel" | "logFile" | "color">, config: ConfiguredOptions): LogChoice {
  const file = options.logFile ?? config.logFile;
  const ofConfig = file === undefined || config.origin?.isNamed === true ? config.logLevel : undefined;
  return { level: options.logLevel ?? ofConfig, file, color: options.color };
}

/**
 * JSON lines on stderr, or added to a file; for a person where stderr is a terminal. A file that was asked for without a level
 * gets `info`.
 */
export function openLog({ level, file, color = true }: LogChoice, io: CliIo): CommandLog {
  if (file === undefined && io.stderr.isTTY) {
    const style = createStyle(io.stderr, io.env, color);
    const log = createTerminalLog({ level: level ?? "error", style, cwd: io.cwd, write: (text) => io.stderr.write(text) });
    return { log, [Symbol.dispose]: () => {} };
  }
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
    // Logs may hold what tools were called with. A link could lead to any file; Windows has no such flag.
    return openSync(path, constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | (constants.O_NOFOLLOW ?? 0), 0o600);
  } catch (error) {
    throw new CliError(
      "LOG_FILE",
      `The log file ${path} cannot be opened (${errorMessage(error)}). Choose another file with --log-file.`,
      2,
    );
  }
}
