import { closeSync, constants, mkdirSync, openSync, readFileSync, statSync, writeSync } from "node:fs";
import { dirname, resolve, sep } from "node:path";
import type { Diagnostic } from "../base/diagnostic.ts";
import { errorMessage } from "../base/errors.ts";
import { isRecord } from "../base/json.ts";
import { createLogger, type Logger, type LogLevel, logLevels, redact, redactText, toLogger } from "../base/logger.ts";
import { foreignFrames } from "../io/module-loader/module-error.ts";
import { CliError } from "./cli-error.ts";
import type { CommonOptions, ConfiguredOptions } from "./command-context.ts";
import { codeFrame } from "./output.ts";
import type { CliIo } from "./process-io.ts";
import { createStyle, type Style, shownPath, visibleLine, visibleText } from "./terminal-style.ts";

/** The log of one run; disposing of it closes its file. */
interface CommandLog extends Disposable {
  readonly log: Logger;
}

interface LogChoice {
  readonly level?: LogLevel | undefined;
  readonly file?: string | undefined;
  /** Whether terminals get colours. Default: true. */
  readonly color?: boolean | undefined;
}

/** Uses the command line, then the configuration; a configuration found in a project cannot choose a log file. */
export function logChoice(options: Pick<CommonOptions, "logLevel" | "logFile" | "color">, config: ConfiguredOptions): LogChoice {
  const file = options.logFile ?? config.logFile;
  const ofConfig = file === undefined || config.origin?.isNamed === true ? config.logLevel : undefined;
  return { level: options.logLevel ?? ofConfig, file, color: options.color };
}

/** Writes JSON lines to stderr, or appends them to a file; if stderr is a terminal, readable lines. A file without a level gets `info`. */
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
    // Logs may contain tool arguments. A symbolic link could lead to any file; Windows has no such flag.
    return openSync(path, constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | (constants.O_NOFOLLOW ?? 0), 0o600);
  } catch (error) {
    throw new CliError(
      "LOG_FILE",
      `The log file ${path} cannot be opened (${errorMessage(error)}). Choose another file with --log-file.`,
      2,
    );
  }
}

interface TerminalLogOptions {
  readonly level: LogLevel;
  readonly style: Style;
  /** Paths below this folder are shown relative to it. */
  readonly cwd: string;
  readonly write: (text: string) => void;
  readonly now?: () => Date;
}

/** A log for terminals: the message, the error, its place, and the lines of source around it. */
function createTerminalLog(options: TerminalLogOptions): Logger {
  const rank = logLevels.indexOf(options.level);
  const enabled = (level: LogLevel): boolean => logLevels.indexOf(level) <= rank;
  return toLogger(enabled, (level, message, data = {}) => {
    if (!enabled(level)) return;
    try {
      options.write(`${entry(level, message, data, options)}\n`);
    } catch {
      // Neither unusual data nor a closed terminal may stop the operation that logs.
    }
  });
}

function entry(level: LogLevel, message: string, data: object, options: TerminalLogOptions): string {
  const { style, level: shownLevel } = options;
  if ("diagnostic" in data && isRecord(data.diagnostic))
    return diagnosticEntry({ ...data.diagnostic, severity: "error", message } as Diagnostic, level, options);
  const { error, stack, ...facts } = data as { error?: unknown; stack?: unknown };
  const time = style.dim((options.now?.() ?? new Date()).toTimeString().slice(0, 8));
  const head = `${time} ${paintLevel(level, style)} ${visibleLine(redactText(message))}`;
  const what = visibleText(redactText(thrownText(error)));
  const where = typeof stack === "string" ? placeLines(stack, options) : [];
  // A level below `warning` asks for details.
  const isDetailed = logLevels.indexOf(shownLevel) >= logLevels.indexOf("info") && Object.keys(facts).length > 0;
  const rest = isDetailed ? [style.dim(visibleLine(JSON.stringify(redact(facts))))] : [];
  return [head, ...[what, ...where, ...rest].filter((text) => text !== "").map(indented)].join("\n");
}

/** `skills/a/tools/t.ts:3:5 error MODULE_SYNTAX …`, followed by the lines of the file. */
function diagnosticEntry({ code, file, range, message }: Diagnostic, level: LogLevel, { style, cwd }: TerminalLogOptions): string {
  const at = range === undefined ? "" : `:${range.start.line}:${range.start.column}`;
  const place = file === undefined ? "" : `${shownPath(file, cwd)}${at} `;
  const said = visibleText(redactText(message.replaceAll(`${cwd}${sep}`, "")));
  const text = file === undefined || range === undefined ? undefined : sourceOf(file);
  const frame = text === undefined || range === undefined ? "" : codeFrame(text, range.start, style);
  return `${place}${paintLevel(level, style)} ${style.dim(visibleLine(code))} ${said}${frame === "" ? "" : `\n${indented(frame)}`}`;
}

function paintLevel(level: LogLevel, style: Style): string {
  if (level === "error") return style.red(level);
  return level === "warning" ? style.yellow(level) : style.dim(level);
}

function thrownText(error: unknown): string {
  if (error instanceof Error) return `${error.name}: ${error.message}`;
  if (error === undefined) return "";
  return typeof error === "string" ? error : JSON.stringify(redact(error));
}

function placeLines(stack: string, { cwd, style }: TerminalLogOptions): string[] {
  const frames = foreignFrames(stack);
  const [first] = frames;
  if (first === undefined) return [];
  const shown = frames.slice(0, 8).map(({ name, file, line, column }) => {
    const place = `${shownPath(file, cwd)}:${line}:${column}`;
    return style.dim(name === "" ? `at ${place}` : `at ${visibleLine(name)} (${place})`);
  });
  const text = sourceOf(first.file);
  return [...(text === undefined ? [] : [codeFrame(text, first, style)]), ...shown];
}

const maxSourceBytes = 4 * 1024 * 1024;

function sourceOf(file: string): string | undefined {
  try {
    const stats = statSync(file);
    return stats.isFile() && stats.size <= maxSourceBytes ? readFileSync(file, "utf8") : undefined;
  } catch {
    // The file is missing or unreadable: the place is enough.
    return undefined;
  }
}

function indented(text: string): string {
  return text
    .split("\n")
    .map((line) => `    ${line}`)
    .join("\n");
}
