import type { Diagnostic, Position } from "../../base/diagnostic.ts";
import { HostError } from "../../base/errors.ts";

export type ModuleErrorCode =
  | "MODULE_SYNTAX"
  | "MODULE_NOT_FOUND"
  | "MODULE_TOO_LARGE"
  | "MODULE_UNREADABLE"
  | "MODULE_UNTRUSTED"
  | "MODULE_EXPORT_MISSING"
  | "MODULE_THREW"
  | "MODULE_EXITED"
  | "MODULE_ABANDONED";

export interface ModuleErrorDetails extends ErrorOptions {
  /** The local file it concerns: the one that does not parse, that imports what is missing, or that threw. */
  readonly file?: string | undefined;
  readonly position?: Position | undefined;
  readonly files?: Iterable<string>;
}

/**
 * Why a module could not be loaded. `files` are all paths whose change may mend it: every local file that was read,
 * and every path that was looked for and was not there.
 */
export class ModuleError extends HostError {
  readonly file: string | undefined;
  readonly position: Position | undefined;
  readonly files: ReadonlySet<string>;

  constructor(code: ModuleErrorCode, message: string, details: ModuleErrorDetails = {}) {
    super(code, message, "cause" in details ? { cause: details.cause } : undefined);
    this.name = "ModuleError";
    this.file = details.file;
    this.position = details.position;
    this.files = new Set(details.files);
  }

  /** The same error with more files to watch. */
  withFiles(files: Iterable<string>): ModuleError {
    const { file, position } = this;
    const details = { file, position, files: [...this.files, ...files], ...(this.cause === undefined ? {} : { cause: this.cause }) };
    const copy = new ModuleError(this.code as ModuleErrorCode, this.message, details);
    if (this.stack !== undefined) copy.stack = this.stack;
    return copy;
  }

  toDiagnostic(): Diagnostic {
    const { code, message, file, position } = this;
    return {
      severity: "error",
      code,
      message,
      ...(file === undefined ? {} : { file }),
      ...(position === undefined ? {} : { range: { start: position } }),
    };
  }
}
