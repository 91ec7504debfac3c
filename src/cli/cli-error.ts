import type { Diagnostic } from "../base/diagnostic.ts";
import { HostError } from "../base/errors.ts";

/** Ends a command: 1, it ran and failed; 2, it was used wrongly. */
export class CliError extends HostError {
  readonly exitCode: 1 | 2;
  readonly diagnostics: readonly Diagnostic[];

  constructor(code: string, message: string, exitCode: 1 | 2, diagnostics: readonly Diagnostic[] = []) {
    super(code, message);
    this.name = "CliError";
    this.exitCode = exitCode;
    this.diagnostics = diagnostics;
  }
}

export function usageError(message: string): CliError {
  return new CliError("USAGE", message, 2);
}

// Options that came from the command line or the configuration: whoever gave them must change them.
const usageCodes: ReadonlySet<string> = new Set(["HOST_OPTIONS", "SESSION_OPTIONS", "MODEL_OPTIONS", "PERMISSION_RULE"]);

export function exitCodeOf(error: Error): 1 | 2 {
  if (error instanceof CliError) return error.exitCode;
  return error instanceof HostError && usageCodes.has(error.code) ? 2 : 1;
}
