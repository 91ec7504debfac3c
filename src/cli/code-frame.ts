import type { Position } from "../base/diagnostic.ts";
import type { Style } from "./terminal-style.ts";
import { visibleLine } from "./visible-text.ts";

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
