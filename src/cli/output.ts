import { sep } from "node:path";
import { type Diagnostic, formatDiagnostic, type Position } from "../base/diagnostic.ts";
import { escapeJsonText } from "../base/hidden-characters.ts";
import type { CliIo } from "./process-io.ts";
import { createStyle, type Style, shownPath, visibleLine } from "./terminal-style.ts";

/** What `--json` prints, as one line. */
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

/** The answer goes to stdout, the talk to stderr. With `--json` the answer is JSON, and there is no talk but errors of skills. */
export interface Output {
  readonly isJson: boolean;
  readonly style: Style;
  /** A line of the answer for people. Not for `--json`. */
  line(text?: string): void;
  /** An object of the answer as a line of JSON. */
  json(value: object): void;
  /** The envelope, when `--json` asks for it. */
  envelope(result: Omit<Envelope, "command">): void;
  /** A line of the talk: progress and hints, which `--quiet` leaves out. */
  note(text: string): void;
  /** A line of the talk that nothing leaves out. */
  complain(text: string): void;
  /** A diagnostic as talk. */
  complainOf(diagnostic: Diagnostic): void;
  /** `file:line:column severity CODE message`, with the file as seen from here. */
  diagnostic(diagnostic: Diagnostic): string;
  path(path: string): string;
}

export function createOutput(io: CliIo, { json, quiet, color, command }: OutputOptions): Output {
  const style = createStyle(io.stdout, io.env, color && !json);
  const talk = createStyle(io.stderr, io.env, color);
  const path = (full: string): string => shownPath(full, io.cwd);
  const write = (value: object): void => io.stdout.write(`${escapeJsonText(JSON.stringify(value))}\n`);
  return {
    isJson: json,
    style,
    line: (text = "") => io.stdout.write(`${text}\n`),
    json: write,
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
  // Paths in messages are as long as the one before them; what lies below is clear without its beginning.
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

/** Some lines of a text with a mark below the place that is meant. Empty where the text has no such line. */
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
  // Tabs are two columns wide above.
  const before = source.slice(0, column - 1).replaceAll("\t", "  ").length;
  return `${" ".repeat(Math.min(before, maxWidth))}${style.red("^")}`;
}
