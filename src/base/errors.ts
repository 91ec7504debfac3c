/**
 * What skillhost throws for misuse and broken promises. Branch on `code`, which is stable; `message` is for people.
 * Expected trouble from outside (a bad file, an unknown tool, a denied call) is never thrown: it is a `Diagnostic` or a `ToolResult`.
 */
export class HostError extends Error {
  readonly code: string;

  constructor(code: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "HostError";
    this.code = code;
  }
}

/** The one door for caught values: whatever was thrown comes back as an `Error`, and this never throws itself. */
export function toError(value: unknown): Error {
  try {
    if (value instanceof Error) return value;
    return new Error(typeof value === "string" ? value : `A value that is not an Error was thrown: ${String(value)}`, { cause: value });
  } catch {
    // A proxy or an object whose toString throws: nothing more can be learnt from it.
    return new Error("A value that cannot be shown was thrown.");
  }
}

/** The message of whatever was thrown, one line, for diagnostics and logs. Never send it to a model. */
export function errorMessage(value: unknown): string {
  const error = toError(value);
  try {
    const advice = adviceOf(error);
    return `${error.message || error.name}${advice === undefined ? "" : ` (${advice})`}`;
  } catch {
    // A hostile error whose message is a throwing getter.
    return "An error whose message cannot be read.";
  }
}

/** Whether no more files could be opened. This says nothing about the file that was to be opened. */
export function isOutOfFiles(error: unknown): boolean {
  return adviceOf(error) !== undefined;
}

function adviceOf(error: unknown): string | undefined {
  const { code } = (error ?? {}) as { readonly code?: unknown };
  return typeof code === "string" ? outOfFiles.get(code) : undefined;
}

const outOfFiles: ReadonlyMap<string, string> = new Map([
  ["EMFILE", 'raise the limit on open files of this process, for example with "ulimit -n 4096", and start it again'],
  ["ENFILE", "close other programs, or raise the limit on open files of this system, which is fs.file-max on Linux"],
]);
