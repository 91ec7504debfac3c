import { join, sep } from "node:path";
import { fileURLToPath } from "node:url";
import type { Diagnostic, Position } from "../../base/diagnostic.ts";
import { errorMessage, HostError } from "../../base/errors.ts";
import { packageRoot } from "../../base/package-root.ts";

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
  /** The local file at fault: it does not parse, imports a missing module or name, or threw. */
  readonly file?: string | undefined;
  readonly position?: Position | undefined;
  readonly files?: Iterable<string>;
}

/**
 * The reason that a module could not be loaded. `files` are all paths whose change may fix it: every local file that was read,
 * and every candidate path that did not exist.
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

  /** A copy of the error with more files to watch. */
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

export interface SourcePlace extends Position {
  readonly file: string;
}

/** The frames of a stack that lie in files, from the innermost outwards. */
export function stackFrames(stack: string): SourcePlace[] {
  return [...stack.matchAll(frameLocation)].map(([, path = "", line, column]) => ({
    file: frameFile(path),
    line: Number(line),
    column: Number(column),
  }));
}

const frameLocation = /(file:\/\/[^\s()]+?|(?:\/|[A-Z]:\\)[^()\n]+?):(\d+):(\d+)\)?$/gm;

/** The path of a frame's location: compiled code has URLs, Node.js and jiti have paths. */
function frameFile(shown: string): string {
  if (!shown.startsWith("file:")) return shown;
  try {
    return fileURLToPath(shown);
  } catch {
    // Text of a message that looks like a frame, or a `sourceURL` of the code itself.
    return shown;
  }
}

interface NamedFrame extends SourcePlace {
  /** The function name; empty at module level. */
  readonly name: string;
}

/** The frames of a stack that lie in files other than this package's, from the innermost outwards. */
export function foreignFrames(stack: string): readonly NamedFrame[] {
  return [...stack.matchAll(stackLine)]
    .map(([, name = "", path = "", line, column]) => ({
      name: name.replace(/^async |^Object\./g, ""),
      file: frameFile(path),
      line: Number(line),
      column: Number(column),
    }))
    .filter(({ file }) => !ownFolders.some((folder) => file.startsWith(folder)));
}

/** A stack without the frames of this package and of Node.js, which are not the skill's code. */
export function withoutHostFrames(stack: string): string {
  const lines = stack.split("\n");
  return lines.filter((line) => !/^\s+at /.test(line) || foreignFrames(line).length > 0).join("\n");
}

// "at greet (/a/greet.ts:10:9)", "at /a/greet.ts:10:9", "at async file:///a/greet.ts:10:9".
const stackLine = /^\s+at (?:(.*?) \()?(?:async )?((?:file:\/\/|\/|[A-Za-z]:[\\/])[^()\n]*?):(\d+):(\d+)\)?$/gm;

const ownFolders: readonly string[] = ["src", "build", "dist", "plugins", "node_modules"].map((name) => join(packageRoot, name) + sep);

/** The first frame of a stack that lies in one of the files, for code whose lines are those of its source. */
export function placeIn(stack: string, files: ReadonlySet<string>): SourcePlace | undefined {
  return stackFrames(stack).find(({ file }) => files.has(file));
}

/** Maps a stack to positions in the sources, and finds its first place in a module. */
type Locate = (stack: string) => { readonly stack: string; readonly place: SourcePlace | undefined };

/** The error that loading `entry` threw, as a `ModuleError` with the paths whose change may fix it. */
export function toModuleError(thrown: unknown, entry: string, files: Iterable<string>, locate: Locate): ModuleError {
  if (thrown instanceof ModuleError) return thrown.withFiles(files);
  const place = relocate(thrown, locate);
  const where = place ? `${place.file}:${place.line}:${place.column}` : entry;
  const message = `${where} threw while ${place === undefined || place.file === entry ? "it" : entry} was loaded: ${errorMessage(thrown)}`;
  return new ModuleError("MODULE_THREW", message, { file: place?.file ?? entry, position: place, files, cause: thrown });
}

// Reading the stack makes V8 convert its frames to text, which releases the module's functions.
function relocate(thrown: unknown, locate: Locate): SourcePlace | undefined {
  try {
    if (!(thrown instanceof Error) || typeof thrown.stack !== "string") return undefined;
    const { stack, place } = locate(thrown.stack);
    thrown.stack = stack;
    return place;
  } catch {
    // A frozen error, or one with hostile getters: only its message is used.
    return undefined;
  }
}
