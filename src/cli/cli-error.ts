import type { Diagnostic } from "../base/diagnostic.ts";
import { HostError } from "../base/errors.ts";
import type { SourcePlace } from "../io/module-loader/source-positions.ts";

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

/** A rejection or exception that nobody handled, in words. */
interface StrayError {
  readonly message: string;
  readonly stack: string;
  /** Where it came from, if the stack tells. */
  readonly place: SourcePlace | undefined;
}

/** Names the file that an error came from. Where its stack names none, nobody is blamed: it may be ours. */
export async function describeStrayError(error: Error): Promise<StrayError> {
  // Most commands end without one, and what maps stacks takes a while to load.
  const { readableStack } = await import("../io/module-loader/source-positions.ts");
  const { stack, place } = readableStack(error);
  const message =
    place === undefined
      ? `Unhandled error: ${error.message}`
      : `${place.file}:${place.line}:${place.column} unhandled error outside of any call: ${error.message} A promise is probably not awaited there.`;
  return { message, stack, place };
}
