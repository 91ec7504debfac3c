import { resolve } from "node:path";
import { runProgram } from "skillhost";
import { reportedFindings } from "./_linters.ts";
import { type Check, shown } from "./_plan-checks.ts";

/** One finding, whichever linter reported it. */
export interface Finding {
  /** Relative to the working directory, with forward slashes. */
  readonly file: string;
  readonly line: number;
  readonly column?: number;
  readonly rule: string;
  readonly severity: "error" | "warning" | "info";
  readonly message: string;
}

/** `failure` is text for the model: the linter and the last lines of its output. */
export type Outcome = { readonly findings: readonly Finding[] } | { readonly failure: string };

const maxReportBytes = 64 * 1024 * 1024;
const maxMessage = 500;

/** Runs a linter and reads its report. */
export async function runCheck(check: Check, base: string, signal: AbortSignal): Promise<Outcome> {
  const { linter, command, args, cwd } = check;
  const outcome = await runProgram({ command, args, cwd, signal, maxOutputBytes: maxReportBytes });
  if (outcome.kind !== "exited") return { failure: `${linter.name} failed: ${outcome.kind === "aborted" ? "aborted" : outcome.message}` };
  const { code, stdout, stderrTail, truncated } = outcome;
  if (truncated) return { failure: `${linter.name} reported more than ${maxReportBytes} bytes. Give fewer paths.` };
  const findings = readReport(check, stdout, base);
  // Every linter exits with 1 for findings, and some of them for failures, too.
  if (findings !== undefined && (code === 0 || (code === 1 && findings.length > 0))) return { findings };
  const said = stderrTail.trim() || stdout.slice(0, 16_384).trim();
  const reason = said.replaceAll(base, ".").split("\n").slice(-20).join("\n").slice(-2000);
  return { failure: `${linter.name} failed (exit code ${code ?? "none"}):\n${reason}` };
}

/** Undefined: the output has no report in the format of this linter. */
function readReport({ linter, cwd }: Check, stdout: string, base: string): readonly Finding[] | undefined {
  try {
    return reportedFindings.parse(linter.read(findJson(stdout))).map(({ file, line, column, rule, severity, message }) => ({
      file: shown(base, resolve(cwd, file)),
      line,
      ...(column !== undefined && { column }),
      rule: rule ?? linter.name,
      severity: /^(?:error|fatal)$/.test(severity) ? "error" : severity === "warning" ? "warning" : "info",
      message: message.replace(/[\s\p{Cc}]+/gu, " ").slice(0, maxMessage),
    }));
  } catch {
    // The linter failed before it wrote a report, or it is a version with another format.
    return undefined;
  }
}

/** Linters and their configurations may print other lines before the report. */
function findJson(text: string): unknown {
  for (const { index } of [...text.slice(0, 100_000).matchAll(/^[ \t]*[[{]/gm)].slice(0, 20)) {
    try {
      return JSON.parse(text.slice(index));
    } catch {
      // Not the report, but a line that begins with a bracket.
    }
  }
  return undefined;
}
