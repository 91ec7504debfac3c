import { extname } from "node:path";
import type { FilesChecked } from "../operations/file-checks.ts";

export interface ErrorsShown {
  show(path: string): string;
  /** There are more files than were looked at. */
  readonly isPart: boolean;
  /** Somebody named the files, rather than all that there are. */
  readonly isAsked: boolean;
}

const maxProblems = 100;
const maxNamed = 20;

/** What checking files came to: what is wrong, and what was and was not looked at. */
export function errorsText(checks: readonly FilesChecked[], { show, isPart, isAsked }: ErrorsShown): string {
  const problems = checks.flatMap((check) => check.problems);
  const lines = problems.slice(0, maxProblems).map(({ path, line, column, severity, message }) => {
    const place = [show(path), ...(line === undefined ? [] : [line, ...(column === undefined ? [] : [column])])].join(":");
    return `${place}: ${severity}: ${message}`;
  });
  const more = problems.length > maxProblems ? [`[${problems.length - maxProblems} more are left out.]`] : [];
  const checked = checks.filter((check) => check.checked.length > 0);
  const nothing = checked.length === 0 ? "Nothing was checked." : "No errors found.";
  const part = isPart ? ["[There are more files than are checked at once. Name files or folders.]"] : [];
  const head = lines.length > 0 ? [...lines, ...more] : [nothing];
  return [...head, ...checkedLines(checked), ...uncheckedLines(checks, show, isAsked), ...part].join("\n");
}

function checkedLines(checks: readonly FilesChecked[]): readonly string[] {
  if (checks.length === 0) return [];
  return [`Checked: ${checks.map(({ by, checked }) => `${counted(checked.length)} for ${by}`).join("; ")}.`];
}

/** By its name where somebody asked for a file, and otherwise by kinds: there may be thousands. */
function uncheckedLines(checks: readonly FilesChecked[], show: ErrorsShown["show"], isAsked: boolean): readonly string[] {
  const unchecked = checks.flatMap((check) => check.unchecked);
  if (unchecked.length === 0) return [];
  if (isAsked && unchecked.length <= maxNamed) return ["Not checked:", ...unchecked.map(({ path, why }) => `${show(path)}: ${why}`)];
  const kinds = new Map<string, number>();
  for (const { path, why } of unchecked) {
    const kind = `${extname(path) || "without an extension"}, ${why}`;
    kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
  }
  const told = [...kinds].sort(([, a], [, b]) => b - a).slice(0, maxNamed);
  return ["Not checked:", ...told.map(([kind, count]) => `${counted(count)} (${kind})`)];
}

function counted(count: number): string {
  return count === 1 ? "1 file" : `${count} files`;
}
