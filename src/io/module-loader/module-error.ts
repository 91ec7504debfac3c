import { dirname, join, sep } from "node:path";
import { fileURLToPath } from "node:url";
import type { Diagnostic, Position } from "../../base/diagnostic.ts";
import { HostError } from "../../base/errors.ts";

type ModuleErrorCode =
  | "MODULE_SYNTAX"
  | "MODULE_NOT_FOUND"
  | "MODULE_TOO_LARGE"
  | "MODULE_UNREADABLE"
  | "MODULE_UNTRUSTED"
  | "MODULE_EXPORT_MISSING"
  | "MODULE_THREW"
  | "MODULE_EXITED"
  | "MODULE_ABANDONED";

interface ModuleErrorDetails extends ErrorOptions {
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

interface StackFrame {
  readonly file: string;
  readonly line: number;
  readonly column: number;
}

/** The frames of a stack that lie in files, from the innermost outwards. */
export function stackFrames(stack: string): StackFrame[] {
  return [...stack.matchAll(FRAME)].map(([, path = "", line, column]) => ({
    file: frameFile(path),
    line: Number(line),
    column: Number(column),
  }));
}

const FRAME = /(file:\/\/[^\s()]+?|(?:\/|[A-Z]:\\)[^()\n]+?):(\d+):(\d+)\)?$/gm;

/** The path behind what a frame shows: compiled code carries URLs, Node.js and jiti show paths. */
function frameFile(shown: string): string {
  if (!shown.startsWith("file:")) return shown;
  try {
    return fileURLToPath(shown);
  } catch {
    // Text of a message that only looks like a frame, or a name that code gave itself.
    return shown;
  }
}

interface NamedFrame extends StackFrame {
  /** What ran; empty for code outside of functions. */
  readonly name: string;
}

/** The frames of a stack that lie in files other than this package's, from the innermost outwards. */
export function foreignFrames(stack: string): readonly NamedFrame[] {
  return namedFrames(stack).filter(({ file }) => !isOfHost(file));
}

/** Without the frames of this package and of Node.js, which say nothing about the code of a skill. */
export function withoutHostFrames(stack: string): string {
  const lines = stack.split("\n");
  return lines.filter((line) => !/^\s+at /.test(line) || foreignFrames(line).length > 0).join("\n");
}

function namedFrames(stack: string): NamedFrame[] {
  return [...stack.matchAll(STACK_LINE)].map(([, name = "", path = "", line, column]) => ({
    name: name.replace(/^async |^Object\./g, ""),
    file: frameFile(path),
    line: Number(line),
    column: Number(column),
  }));
}

// "at greet (/a/greet.ts:10:9)", "at /a/greet.ts:10:9", "at async file:///a/greet.ts:10:9".
const STACK_LINE = /^\s+at (?:(.*?) \()?(?:async )?((?:file:\/\/|\/|[A-Za-z]:[\\/])[^()\n]*?):(\d+):(\d+)\)?$/gm;

const packageRoot = join(dirname(fileURLToPath(import.meta.url)), "../../..");
const ownFolders: readonly string[] = ["src", "dist", "plugins", "node_modules"].map((name) => join(packageRoot, name) + sep);

function isOfHost(file: string): boolean {
  return ownFolders.some((folder) => file.startsWith(folder));
}
