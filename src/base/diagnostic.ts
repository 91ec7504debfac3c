/** How serious a diagnostic is: an `error` keeps something from working. */
export type Severity = "error" | "warning" | "info";

/** A position in a file; lines and columns count from 1, columns in UTF-16 units. */
export interface Position {
  readonly line: number;
  readonly column: number;
}

/**
 * A fault of, or advice about, external input. `code` is stable and meant for programs; `message` describes the fault and how
 * to fix it.
 */
export interface Diagnostic {
  readonly severity: Severity;
  readonly code: string;
  readonly message: string;
  readonly file?: string;
  readonly range?: { readonly start: Position; readonly end?: Position };
  /** The name of the skill, server or plugin that it concerns. */
  readonly source?: string;
}

/** Converts an offset in UTF-16 units to a line and column. Offsets past the end give the end. */
export function positionAt(text: string, offset: number): Position {
  const before = text.slice(0, Math.max(0, offset));
  const lastBreak = before.lastIndexOf("\n");
  let line = 1;
  for (let at = before.indexOf("\n"); at !== -1; at = before.indexOf("\n", at + 1)) line++;
  return { line, column: before.length - lastBreak };
}

/** `file:line:column severity CODE message`, which editors and terminals make clickable. */
export function formatDiagnostic(diagnostic: Diagnostic): string {
  const { file, range, severity, code, message } = diagnostic;
  const place = file === undefined ? "" : `${file}${range ? `:${range.start.line}:${range.start.column}` : ""} `;
  return `${place}${severity} ${code} ${message}`;
}
