import type { Diagnostic } from "../base/diagnostic.ts";
import { HostError } from "../base/errors.ts";
import type { SourcePlace } from "../io/module-loader/module-error.ts";

/** Ends a command with exit code 1 (it ran and failed) or 2 (wrong usage). */
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

// Errors about options from the command line or the configuration, which the user must fix.
const usageCodes: ReadonlySet<string> = new Set(["HOST_OPTIONS", "SESSION_OPTIONS", "MODEL_OPTIONS", "PERMISSION_RULE"]);

export function exitCodeOf(error: Error): 1 | 2 {
  if (error instanceof CliError) return error.exitCode;
  return error instanceof HostError && usageCodes.has(error.code) ? 2 : 1;
}

/** The description of an unhandled rejection or exception. */
interface StrayError {
  readonly message: string;
  readonly stack: string;
  /** The place of its origin, if the stack contains one. */
  readonly place: SourcePlace | undefined;
}

/** Names the file that caused an error. Without such a file in the stack, none is blamed: the error may be our own. */
export async function describeStrayError(error: Error): Promise<StrayError> {
  // Loaded on demand: few commands need it, and the stack mapper loads slowly.
  const { readableStack } = await import("../io/module-loader/source-positions.ts");
  const { stack, place } = readableStack(error);
  const message =
    place === undefined
      ? `Unhandled error: ${error.message}`
      : `${place.file}:${place.line}:${place.column} unhandled error outside of any call: ${error.message} A promise is probably not awaited there.`;
  return { message, stack, place };
}
