import type { Diagnostic } from "../../base/diagnostic.ts";
import { readTextFile } from "../../io/read-bounded.ts";
import { redactSecrets } from "./blob-store.ts";
import type { FeedDiagnostic } from "./feed-messages.ts";

const maxFileBytes = 1024 * 1024;
const around = 3;
const longestLine = 400;

/** A diagnostic with the lines around its place, if its file can be read. */
export function withCodeFrame(diagnostic: Diagnostic): FeedDiagnostic {
  const { file, range, message } = diagnostic;
  const shown = { ...diagnostic, message: redactSecrets(message) };
  if (file === undefined || range === undefined) return shown;
  const read = readTextFile(file, maxFileBytes);
  if (!read.ok) return shown;
  const lines = read.text.split(/\r?\n/);
  const firstLine = Math.max(1, range.start.line - around);
  const lastLine = Math.min(lines.length, (range.end?.line ?? range.start.line) + around, firstLine + 4 * around);
  if (firstLine > lines.length) return shown;
  const cut = lines.slice(firstLine - 1, lastLine).map((line) => redactSecrets(line.slice(0, longestLine)));
  return { ...shown, frame: { firstLine, lines: cut } };
}
