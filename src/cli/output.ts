import { sep } from "node:path";
import { type Diagnostic, formatDiagnostic, type Position } from "../base/diagnostic.ts";
import { escapeJsonText } from "../base/untrusted-text.ts";
import type { CliIo } from "./process-io.ts";
import { createStyle, type Style, shownPath, visibleLine } from "./terminal-style.ts";

/** The single line that `--json` prints. */
interface Envelope {
  readonly ok: boolean;
  readonly command: string;
  readonly data?: unknown;
  readonly diagnostics: readonly Diagnostic[];
  readonly error?: { readonly code: string; readonly message: string };
}

interface OutputOptions {
  readonly json: boolean;
  readonly quiet: boolean;
  readonly color: boolean;
  readonly command: string;
}

/** The answer goes to stdout, messages to stderr. With `--json` the answer is JSON, and the only messages are errors of skills. */
export interface Output {
  readonly isJson: boolean;
  readonly style: Style;
  /** Writes a line of the readable answer. Not with `--json`. */
  line(text?: string): void;
  /** Writes an object of the answer as a line of JSON. */
  json(value: object): void;
  /** Like `json`, for the text of an object. */
  jsonText(text: string): void;
  /** Writes the envelope, with `--json`. */
  envelope(result: Omit<Envelope, "command">): void;
  /** Writes a progress message or hint to stderr, unless `--quiet` is set. */
  note(text: string): void;
  /** Writes an error to stderr, even with `--quiet`. */
  complain(text: string): void;
  /** Writes a diagnostic to stderr. */
  complainOf(diagnostic: Diagnostic): void;
  /** `file:line:column severity CODE message`, with the path relative to the working directory. */
  diagnostic(diagnostic: Diagnostic): string;
  path(path: string): string;
}

export function createOutput(io: CliIo, { json, quiet, color, command }: OutputOptions): Output {
  const style = createStyle(io.stdout, io.env, color && !json);
  const talk = createStyle(io.stderr, io.env, color);
  const path = (full: string): string => shownPath(full, io.cwd);
  const writeText = (text: string): void => io.stdout.write(`${escapeJsonText(text)}\n`);
  const write = (value: object): void => writeText(JSON.stringify(value));
  return {
    isJson: json,
    style,
    line: (text = "") => io.stdout.write(`${text}\n`),
    json: write,
    jsonText: writeText,
    envelope: ({ ok, ...rest }) => json && write({ ok, command, ...rest }),
    note: (text) => (quiet || json ? undefined : io.stderr.write(`${text}\n`)),
    complain: (text) => io.stderr.write(`${talk.red("error:")} ${text}\n`),
    complainOf: (diagnostic) => io.stderr.write(`${paint(shown(diagnostic, io.cwd), talk)}\n`),
    diagnostic: (diagnostic) => paint(shown(diagnostic, io.cwd), style),
    path,
  };
}

function shown(diagnostic: Diagnostic, cwd: string): Diagnostic {
  const { file, code, message } = diagnostic;
  // The message repeats the folder of the path before it, so shorten paths below that folder.
  const clean = { ...diagnostic, code: visibleLine(code), message: visibleLine(message.replaceAll(`${cwd}${sep}`, "")) };
  return file === undefined ? clean : { ...clean, file: shownPath(file, cwd) };
}

function paint(diagnostic: Diagnostic, style: Style): string {
  const { severity, code, message } = diagnostic;
  const text = formatDiagnostic(diagnostic);
  const place = text.slice(0, text.length - `${severity} ${code} ${message}`.length);
  const color = { error: style.red, warning: style.yellow, info: style.cyan }[severity];
  return `${place}${color(severity)} ${style.dim(code)} ${message}`;
}

const around = 2;
const maxWidth = 160;

/** Some lines of a text with a mark below the given position. Empty if the text has no such line. */
export function codeFrame(text: string, { line, column }: Position, style: Style): string {
  const lines = text.split(/\r\n|\r|\n/);
  if (line < 1 || line > lines.length) return "";
  const first = Math.max(1, line - around);
  const last = Math.min(lines.length, line + around);
  const width = String(last).length;
  const rows: string[] = [];
  for (let number = first; number <= last; number++) {
    const source = visibleLine((lines[number - 1] ?? "").replaceAll("\t", "  ")).slice(0, maxWidth);
    const isMeant = number === line;
    rows.push(`${isMeant ? style.red(">") : " "} ${style.dim(`${String(number).padStart(width)} |`)} ${source}`.trimEnd());
    if (isMeant) rows.push(`  ${" ".repeat(width)} ${style.dim("|")} ${markAt(lines[number - 1] ?? "", column, style)}`);
  }
  return rows.join("\n");
}

function markAt(source: string, column: number, style: Style): string {
  // Tabs are printed as two columns in the line above.
  const before = source.slice(0, column - 1).replaceAll("\t", "  ").length;
  return `${" ".repeat(Math.min(before, maxWidth))}${style.red("^")}`;
}
